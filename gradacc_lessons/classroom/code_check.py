"""Grading the source of a function that was handed in: it runs in the sandbox, and nowhere else."""

import re
import time
import unicodedata
from dataclasses import replace

from gradacc_lessons.classroom import sandbox
from gradacc_lessons.classroom.results import CodeRun
from gradacc_lessons.detective.written import Written
from gradacc_lessons.quiz.exercise import TIMED_OUT
from gradacc_lessons.quiz.exercises import EXERCISES
from gradacc_lessons.quiz.grade import Grade, fill, no_answer
from gradacc_lessons.text import LANGUAGES, Text

MOST_RUNS, MOST_TIMEOUTS, MOST_SECONDS = 60, 3, 300.0
"""Of one submission: how many sources are run, how many may run until they are ended, and how long all may take."""
LONGEST_SAID = 600
"""Characters of a sentence about code; the code may have written some of them."""
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")
"""Where something lay in memory: another place each time."""

NO_SANDBOX = Text(
    "The code was not run: there is no sandbox on the machine that graded it.",
    "De code is niet uitgevoerd: de computer die het nakeek heeft geen sandbox.",
)
TOUCHED = Text(
    "The code replaced what measures it ({names}), so it does not count.",
    "De code heeft vervangen wat haar controleert ({names}), dus ze telt niet.",
)
NO_RESULT = Text(
    "The code ended its process, and there is no result that can be read.",
    "De code beëindigde zijn proces en er is geen leesbaar resultaat.",
)
TOO_MUCH = Text(
    "The code was not run: this submission has used up what it may run.",
    "De code is niet uitgevoerd: deze inzending heeft opgebruikt wat ze mag uitvoeren.",
)


class CodeCheck:
    """The code of one submission, as `regrade` takes it. Call it with an exercise's key and a source."""

    def __init__(self, kind: CodeRun) -> None:
        self.kind = kind
        self.asked = False
        self._runs, self._timeouts, self._seconds = 0, 0, 0.0

    def __call__(self, exercise: str, source: str) -> Grade:
        """The grade of a source. SandboxError if the sandbox does not work; never raises because of the source."""
        self.asked = True
        if self.kind not in ("sandbox", "unsafe"):
            return no_answer(NO_SANDBOX)
        if self._runs >= MOST_RUNS or self._timeouts >= MOST_TIMEOUTS or self._seconds >= MOST_SECONDS:
            return Grade(0.0, False, TOO_MUCH, "too_much")
        began = time.monotonic()
        grade = _checked(exercise, source)
        self._runs, self._seconds = self._runs + 1, self._seconds + time.monotonic() - began
        self._timeouts += grade.mistake == TIMED_OUT
        return replace(grade, feedback=_tidy(grade.feedback))


def _checked(key: str, source: str) -> Grade:
    exercise = EXERCISES[key]
    try:
        return exercise.check(Written(source, exercise.function))
    except sandbox.SandboxError:
        raise
    except sandbox.Tampered as attempt:
        return Grade(0.0, False, fill(TOUCHED, {"names": attempt.names}), "tampered")
    except Exception:  # the worker was ended, or the judge reads what no honest run sends
        return Grade(0.0, False, NO_RESULT, "no_result")


def _tidy(said: Text) -> Text:
    """The sentence, the same each time and harmless wherever it is written."""
    return Text(*(_plain(said.to(to)) for to in LANGUAGES))


def _plain(text: str) -> str:
    kept = "".join(char for char in text if char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs"))
    kept = ADDRESS.sub("0x…", kept)
    return kept if len(kept) <= LONGEST_SAID else f"{kept[: LONGEST_SAID - 1]}…"
