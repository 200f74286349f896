"""Lesson 03 as a page: its sections, its exercises and its numbers fit what the package asks and draws."""

import nbformat
import pytest

from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons.memory_budget import TARGET, explore_budget
from gradacc_lessons.quiz import exercises_memory
from gradacc_lessons.quiz.exercises import exercise

SECTIONS = [
    "Raising N does not help",
    "Where the bytes go",
    "Predict the peak",
    "A line with a knee",
    "What N costs",
    "What keeps memory alive",
    "Keep within a budget",
    "What a GPU shows",
    "Find the leak",
    "Choose b and N",
    "Quiz",
    "Summary",
]


@pytest.fixture(scope="module")
def cells() -> dict[str, str]:
    """Source by cell id."""
    notebook = nbformat.read(course_folder("notebooks") / "03_the_memory_wall.ipynb", as_version=4)
    return {cell.id: cell.source for cell in notebook.cells}


def test_questions_point_at_sections_that_are_there(cells: dict[str, str]) -> None:
    headings = [line[3:] for source in cells.values() for line in source.splitlines() if line.startswith("## ")]
    assert headings == SECTIONS


@pytest.mark.parametrize(
    ("cell", "key", "question"),
    [
        ("leak-exercise", "find_leak", "mem-find-leak"),
        ("choose-exercise", "choose_for_budget", "mem-choose"),
    ],
)
def test_an_exercise_starts_from_its_own_starter(cells: dict[str, str], cell: str, key: str, question: str) -> None:
    asked = exercise(key)
    assert cells[cell].startswith(asked.starter.strip())
    assert cells[cell].endswith(f'quiz.answer("{question}", {asked.function})')


def test_the_page_asks_for_what_the_exercise_measures(cells: dict[str, str]) -> None:
    for number in (f"**{exercises_memory.TARGET}** examples", f"**{exercises_memory.BUDGET_MEBIBYTES} MiB**"):
        assert number in cells["choose"]


def test_the_second_explorer_begins_with_the_batch_that_did_not_fit(cells: dict[str, str]) -> None:
    values = explore_budget().values
    assert (values["micro_batch_size"], values["accumulation_steps"], values["budget"]) == (16, 2, 64)
    assert values["micro_batch_size"] * values["accumulation_steps"] == TARGET
    assert "MIB, BUDGET = 2**20, 64" in cells["no-help-table"]
    assert "[(16, 2), (16, 4), (8, 4)]" in cells["no-help-table"]


def test_no_cell_before_the_prediction_shows_the_peak_that_is_asked_for() -> None:
    notebook = nbformat.read(course_folder("notebooks") / "03_the_memory_wall.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("predict-ask")]
    shown = str([cell.get("outputs", []) for cell in before if cell.id != "timeline"])
    assert "85" not in shown
