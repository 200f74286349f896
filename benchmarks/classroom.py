"""Grading a class: how many submissions a second, how long code takes, and whether memory stays flat."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.row import NotHere, Row
from gradacc_lessons import __version__
from gradacc_lessons.canonical import canonical
from gradacc_lessons.quiz import draw
from gradacc_lessons.quiz.questions import ChoiceQuestion, MultipleQuestion, NumberQuestion, Question, SpotQuestion

LESSONS = ("01_accumulate", "02_scale_the_loss")
"""Quizzes that each learner of the benchmark has taken."""
EXERCISE = "train_epoch_windows"
GRADE = """
import resource, sys
from pathlib import Path
from gradacc_lessons.classroom.class_folder import open_class
from gradacc_lessons.classroom.grade_folder import grade_folder
if __name__ == "__main__":
    summary = grade_folder(open_class(Path(sys.argv[1])), Path(sys.argv[2]), jobs=int(sys.argv[3]))
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(sum(summary.counts.values()), summary.counts["graded"], *peaks)
"""


def grading(quick: bool) -> list[Row]:
    """Grading a class again from its answers, with two processes.

    Two quizzes of answers, some wrong, from each learner; then the same with a loop that runs in the sandbox. Memory
    is the largest process's, for a class 100 times as large. A run in which a file is not graded gives no figure.
    """
    from gradacc_lessons.classroom import sandbox

    if not sys.platform.startswith("linux"):
        raise NotHere("not measured: peak memory is read as Linux gives it")
    if (missing := sandbox.missing()) is not None:
        raise NotHere(f"not measured: {missing}")
    few, many, with_code = (8, 40, 2) if quick else (100, 10_000, 200)
    with tempfile.TemporaryDirectory() as home:
        class_of = _Class(Path(home), many)
        _, small_peak = class_of.graded("few", range(few), code=False)
        seconds, large_peak = class_of.graded("many", range(many), code=False)
        rows = [
            Row(f"quiz-only submissions, of {many:,}", many / seconds, "/s", at_least=100),
            Row(f"memory for {many:,} over that for {few}", large_peak / small_peak, "x", at_most=1.5),
        ]
        seconds, _ = class_of.graded("code", range(with_code), code=True)
        rows.append(Row(f"{with_code} submissions with a function each", seconds, "s", at_most=180 * with_code / 200))
    return rows


class _Class:
    """A class with as many learners as are wanted, and folders with what they handed in."""

    def __init__(self, home: Path, learners: int) -> None:
        from gradacc_lessons.classroom.class_folder import new_class

        self.home, self.script = home, home / "grade.py"
        self.script.write_text(GRADE, encoding="ascii")  # a file, which its processes can start again
        ids = "\n".join(f"s{number}" for number in range(learners))
        (home / "roster.csv").write_text(f"id\n{ids}\n", encoding="ascii")
        self.of = new_class(home / "class", home / "roster.csv")
        self.banks = [self.of.bank(lesson)[0] for lesson in LESSONS]

    def graded(self, name: str, learners: range, *, code: bool) -> tuple[float, float]:
        """Seconds, and the peak in KiB of the largest process, for these learners' files."""
        folder = self.home / name
        folder.mkdir()
        for number in learners:
            (folder / f"{number}.json").write_bytes(self._handed_in(number, code=code))
        began = time.monotonic()
        command = [sys.executable, str(self.script), str(self.of.folder), str(folder), "2"]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - began
        files, graded, own, largest_child = map(int, ended.stdout.split())
        if not files == graded == len(learners):
            raise RuntimeError(f"of {len(learners)} files {files} were read and {graded} graded")
        return seconds, max(own, largest_child)

    def _handed_in(self, number: int, *, code: bool) -> bytes:
        from gradacc_lessons.classroom.submission import sealed
        from gradacc_lessons.quiz.exercises import EXERCISES

        class_code = self.of.codes[f"s{number}"]
        lessons: dict[str, list[dict[str, Any]]] = {}
        for bank in self.banks:
            given = [(each.id, self._value(each, class_code.text, number)) for each in bank.counted]
            lessons[bank.lesson] = [_record(name, value, number) for name, value in given if value is not None]
        if code:
            source = f"# {number}\n{EXERCISES[EXERCISE].solution}"
            lessons[LESSONS[0]].append(_record("acc-write-loop", source, number))
        versions = {"gradacc_lessons": __version__}
        return canonical(sealed(class_code, "2026-09-01T10:00:00.000+00:00", versions, lessons))

    def _value(self, question: Question, seed: str, number: int) -> Any:
        """Right for most, and wrong in its own way for some."""
        wrong = number % 3 == 0
        if isinstance(question, NumberQuestion):
            right = question.answer.value(draw.variables(question.variables, draw.key(seed, 1, question.id)))
            return right + 1 if wrong else right
        if isinstance(question, ChoiceQuestion):
            return next(option.id for option in question.options if option.correct != wrong)
        if isinstance(question, MultipleQuestion):
            return [option.id for option in question.options if option.correct]
        return question.line[0] if isinstance(question, SpotQuestion) else None


def _record(name: str, value: Any, number: int) -> dict[str, Any]:
    minutes, seconds = divmod(number % 3600, 60)
    at = f"2026-09-01T{number // 3600:02d}:{minutes:02d}:{seconds:02d}.{number % 1000:03d}Z"
    return {"question": name, "take": 1, "value": value, "at": at}
