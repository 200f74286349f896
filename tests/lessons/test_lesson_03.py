"""Lesson 03 as a page: its numbers fit what the package asks and draws."""

from typing import Any

import nbformat
from lessons.notebook_cells import cells

from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons.memory_budget import TARGET, explore_budget
from gradacc_lessons.lessons.peaks import LONGEST, measured, recipe_for
from gradacc_lessons.quiz import exercises_memory

LESSON = "03_the_memory_wall"


def test_the_page_asks_for_what_the_exercise_measures() -> None:
    for number in (f"**{exercises_memory.TARGET}** examples", f"**{exercises_memory.BUDGET_MEBIBYTES} MiB**"):
        assert number in cells(LESSON)["choose"]


def test_the_second_explorer_begins_with_the_batch_that_did_not_fit() -> None:
    values = explore_budget().values
    assert (values["micro_batch_size"], values["accumulation_steps"], values["budget"]) == (16, 2, 64)
    assert values["micro_batch_size"] * values["accumulation_steps"] == TARGET
    table = cells(LESSON)["no-help-table"]
    assert "MIB, BUDGET = 2**20, 64" in table and "[(16, 2), (16, 4), (8, 4)]" in table


def test_no_cell_before_the_prediction_shows_the_peak_that_is_asked_for() -> None:
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("predict-ask")]
    shown = str([cell.get("outputs", []) for cell in before if cell.id != "timeline"])
    assert "85" not in shown


def test_the_cells_and_the_explorers_measure_the_same_window() -> None:
    names: dict[str, Any] = {}
    for cell in ("task", "loop", "profile"):
        exec(cells(LESSON)[cell], names)
    for b, n in ((1, 1), (2, 2)):
        shown = names["profile"](b, n)
        drawn = measured(LONGEST, recipe_for("adamw", b, n))
        assert abs(shown.peak_bytes - drawn.peak_bytes) <= 4, "apart from the loss itself, which one of the loops keeps"
