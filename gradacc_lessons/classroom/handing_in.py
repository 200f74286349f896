"""The learner's side: join a class, and write the file that is handed in."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gradacc_lessons import __version__
from gradacc_lessons.canonical import JsonError, canonical
from gradacc_lessons.classroom.codes import ClassCode, read_code
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.submission import MOST_BYTES, read_submission, sealed
from gradacc_lessons.progress import Answer, Progress
from gradacc_lessons.text import Text, counted, joined
from gradacc_lessons.whole_file import write_whole


@dataclass(frozen=True)
class HandIn:
    """What would be handed in."""

    code: ClassCode
    """The class code that was joined with."""
    content: bytes
    """The file."""
    lessons: Mapping[str, list[dict[str, Any]]]
    """The answers in it, by lesson."""
    left_out: int
    """Takes of a quiz that do not belong to this class: they were begun before joining it."""

    @property
    def file_name(self) -> str:
        """How it is called if nobody says otherwise."""
        return f"gradacc-{self.code.class_id}-{self.code.handle[:8]}.json"

    def described(self) -> Text:
        """What is in it, and what is not."""
        answers, lessons, named = sum(map(len, self.lessons.values())), len(self.lessons), ", ".join(self.lessons)
        parts = [
            Text(
                f"It holds {counted(answers, 'answer')} from {counted(lessons, 'lesson')} ({named}), with the source "
                "of the functions that you wrote, when you answered, and the versions of the course, Python and "
                "PyTorch.",
                f"Wat erin staat: {answers} {'antwoord' if answers == 1 else 'antwoorden'} uit {lessons} "
                f"{'les' if lessons == 1 else 'lessen'} ({named}), met de broncode van de functies die je schreef, "
                "wanneer je antwoordde, en de versies van de cursus, Python en PyTorch.",
            ),
            Text(
                "Your name is not in it: your teacher sees by your class code whose it is. No scores are in it "
                "either: your teacher grades the answers again.",
                "Je naam staat er niet in: je docent ziet aan je klascode van wie het is. Ook cijfers staan er niet "
                "in: je docent kijkt de antwoorden opnieuw na.",
            ),
        ]
        if self.left_out:
            parts.append(
                Text(
                    f"Left out: {counted(self.left_out, 'take')} that you began before you joined the class. If those "
                    "quizzes should count, take them again: gradacc quiz LESSON --again",
                    f"Weggelaten, want begonnen voordat je bij de klas kwam: {self.left_out} "
                    f"{'poging' if self.left_out == 1 else 'pogingen'}. Moeten die quizzen meetellen, maak ze dan "
                    "opnieuw: gradacc quiz LES --again",
                )
            )
        return joined(parts)


def join(progress: Progress, code: str) -> ClassCode:
    """Join the class of a code: its numbers come in the takes that begin from now. ClassError if it is no code."""
    read = read_code(code)
    progress.join(read.text)
    return read


def gather(progress: Progress) -> HandIn:
    """What this learner would hand in now; ClassError without a class, or with nothing to hand in."""
    if not (joined_with := progress.class_code):
        raise ClassError(
            "no_class",
            "You are in no class yet. Join yours with the code from your teacher: gradacc class join CODE",
            "Je zit nog niet in een klas. Kom erbij met de code van je docent: gradacc class join CODE",
        )
    code, lessons, left_out = read_code(joined_with), {}, 0
    for lesson in (result.lesson for result in progress.results()):
        takes = progress.takes(lesson)
        mine = {take.number for take in takes if progress.seed(lesson, take.number) == code.text}
        left_out += len(takes) - len(mine)
        if records := _records(answer for answer in progress.answers(lesson) if answer.counts and answer.take in mine):
            lessons[lesson] = records
    if not lessons:
        raise ClassError(
            "nothing",
            "There is nothing to hand in: you have not answered a question since you joined the class.",
            "Er is niets om in te leveren: je hebt nog geen vraag beantwoord sinds je bij de klas kwam.",
        )
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    content = canonical(sealed(code, now, _versions(), lessons)) + b"\n"
    if len(content) > MOST_BYTES:
        raise ClassError(
            "too_large", "Your answers take more room than a submission has.", "Je antwoorden passen er niet in."
        )
    return HandIn(code, content, lessons, left_out)


def write(hand_in: HandIn, file: Path | None = None) -> Path:
    """Write the file, whole or not at all; a file that is no submission is never written over."""
    file = file or Path(hand_in.file_name)
    if file.exists() and not (file.is_file() and _is_submission(file)):  # a pipe would be waited for
        raise ClassError(
            "in_the_way",
            f"{file} is something else; name another file with --to",
            f"{file} is iets anders; noem een ander bestand met --to",
        )
    write_whole(file, hand_in.content)
    return file


def _records(answers: Any) -> list[dict[str, Any]]:
    """One record for each question and take: the answer that counts, of several tries at code the best."""
    best: dict[tuple[str, int], Answer] = {}
    for answer in answers:
        asked = (answer.question, answer.take)
        if asked not in best or answer.fraction > best[asked].fraction:
            best[asked] = answer
    kept = sorted(best.values(), key=lambda answer: answer.at)
    return [{"question": each.question, "take": each.take, "value": each.value, "at": each.at} for each in kept]


def _versions() -> dict[str, str]:
    found = {"gradacc_lessons": __version__, "python": platform.python_version()}
    try:
        return {**found, "torch": version("torch")}
    except PackageNotFoundError:
        return found


def _is_submission(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            read_submission(stream.read(MOST_BYTES + 1))
    except (ClassError, JsonError, OSError):
        return False
    return True
