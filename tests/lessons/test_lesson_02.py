"""Lesson 02 as a page: its exercise, its sections and its questions fit together."""

import nbformat
import pytest

from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons.hidden_by_adam import SEEDS, SETTINGS
from gradacc_lessons.quiz.exercises import exercise

SECTIONS = [
    "A run that blows up",
    "Exactly N times too long",
    "Adam hides it",
    "What gives it away",
    "Dividing twice, dividing by k + 1",
    "Three losses",
    "Who divides?",
    "Break it",
    "Repair it",
    "Quiz",
    "Summary",
]


@pytest.fixture(scope="module")
def cells() -> dict[str, str]:
    """Source by cell id."""
    notebook = nbformat.read(course_folder("notebooks") / "02_scale_the_loss.ipynb", as_version=4)
    return {cell.id: cell.source for cell in notebook.cells}


def test_the_exercise_starts_from_the_loop_that_is_to_be_repaired(cells: dict[str, str]) -> None:
    assert cells["exercise"].startswith(exercise("repair_scale").starter.strip())
    assert cells["exercise"].endswith('quiz.answer("scale-repair", train_epoch)')


def test_questions_point_at_sections_that_are_there(cells: dict[str, str]) -> None:
    headings = [line[3:] for source in cells.values() for line in source.splitlines() if line.startswith("## ")]
    assert headings == SECTIONS


def test_the_table_of_optimizers_waits_for_all_its_runs(cells: dict[str, str]) -> None:
    assert f'progress(over_seeds("none"), {SEEDS} * len(SETTINGS)' in cells["seeds-run"]
    assert len(SETTINGS) == 7
