"""The schema for editors: every bank fits it, and what it refuses the course refuses too."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from gradacc_lessons.cli import main
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import BankError, load_bank
from gradacc_lessons.quiz.schema import bank_schema
from gradacc_lessons.quiz.yaml_lines import load

OWN = Path(__file__).parent / "banks"
BANKS = [*sorted(course_folder("quizzes").glob("*.yaml")), *sorted(OWN.glob("*.yaml"))]


@pytest.fixture(scope="module")
def schema() -> Any:
    printed = CliRunner().invoke(main, ["quiz", "schema"], catch_exceptions=False)
    assert json.loads(printed.output) == bank_schema()
    jsonschema.Draft202012Validator.check_schema(bank_schema())
    return jsonschema.Draft202012Validator(bank_schema())


def as_editor_sees_it(bank: Path) -> Any:
    """With every key as text, as in JSON."""
    return json.loads(json.dumps(load(bank).data))


@pytest.mark.parametrize("bank", BANKS, ids=lambda path: path.stem)
def test_every_bank_fits_the_schema(schema: Any, bank: Path) -> None:
    assert [error.message for error in schema.iter_errors(as_editor_sees_it(bank))] == []


EDITS = {
    "no Dutch": ("nl: Backward telt op.}", "}"),
    "an empty text": ('"{n} keer."', '""'),
    "a language too many": ("{en: Backward adds., nl:", "{en: x, fr: x, nl:"),
    "a field too many": ("tolerance: 0.1", "tolerence: 0.1"),
    "no answer": ("    answer: b * n\n", ""),
    "a strange id": ("id: small-guess", 'id: "Small guess!"'),
    "an unknown kind": ("kind: multiple", "kind: guess"),
    "text for points": ("points: 3", "points: many"),
    "no points": ("points: 3", "points: 0"),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_an_editor_marks_the_course_refuses(schema: Any, edited: Any, name: str) -> None:
    path = edited(EDITS[name])
    assert list(schema.iter_errors(as_editor_sees_it(path)))
    with pytest.raises(BankError):
        load_bank(path)
