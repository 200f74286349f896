"""What the tests of a class share: a class, and files as learners hand them in, honest or not."""

import csv
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gradacc_lessons import __version__
from gradacc_lessons.canonical import canonical
from gradacc_lessons.classroom import sandbox
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.codes import ClassCode
from gradacc_lessons.classroom.submission import sealed
from gradacc_lessons.quiz import draw
from gradacc_lessons.quiz.questions import NumberQuestion

AT = "2026-09-01T10:00:00.000+00:00"
LESSON = "90_small"
BANKS = Path(__file__).parents[1] / "quiz" / "banks"
Given = tuple[str, int, Any]
"""Question, take, value."""


def handed_in(
    code: ClassCode, lessons: Mapping[str, Iterable[Given]], *, written: str = AT, moment: str = AT, **changed: Any
) -> bytes:
    """A submission with these answers, as `gradacc submit` writes it; `changed` replaces fields after sealing."""
    answers = {
        lesson: [{"question": name, "take": take, "value": value, "at": moment} for name, take, value in given]
        for lesson, given in lessons.items()
    }
    return canonical({**sealed(code, written, {"gradacc_lessons": __version__}, answers), **changed})


def right_number(of_class: ClassFolder, learner: str, question: str = "small-number", take: int = 1) -> float:
    """The right answer to a learner's own numbers in the small bank."""
    bank, _ = of_class.bank(LESSON)
    asked = bank.question(question)
    assert isinstance(asked, NumberQuestion)
    drawn = draw.variables(asked.variables, draw.key(of_class.codes[learner].text, take, question))
    return asked.answer.value(drawn)


def need_sandbox() -> None:
    """Skip the test where no sandbox can be had; fail there if CI says that it must not be skipped."""
    if (missing := sandbox.missing()) is None:
        return
    if os.environ.get("CI", "").lower() in ("", "0", "false"):
        pytest.skip(f"no sandbox: {missing}")
    pytest.fail(f"no sandbox, and CI is set: {missing}")


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file of ours, as Python's own reader has them."""
    return list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"), newline="")))
