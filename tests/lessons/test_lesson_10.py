"""Lesson 10 as a page: its numbers fit what the package asks and draws."""

from lessons.notebook_cells import cells

from gradacc_lessons.lessons.peak_and_time import LENGTH, TURNS, explore_peak_and_time
from gradacc_lessons.lessons.planner import explore_planner
from gradacc_lessons.quiz import judge_fit

LESSON = "10_fit_a_budget"


def test_the_page_asks_for_what_the_exercise_measures() -> None:
    asked = cells(LESSON)["choose"]
    for number in (f"**{judge_fit.TARGET}** examples", f"**{judge_fit.BUDGET_MEBIBYTES} MiB**"):
        assert number in asked


def test_both_explorers_begin_with_the_target_of_the_page() -> None:
    page, plane, planner = cells(LESSON), explore_peak_and_time().values, explore_planner().values
    assert "TARGET, BUDGET = 40, 48" in page["target-forecast"]
    assert f"shorter(chat(), {LENGTH})" in page["target-task"]
    assert plane["micro_batch_size"] * plane["accumulation_steps"] == planner["target"] == 40
    assert planner["budget"] == 48
    assert f".loc[{plane['micro_batch_size']}, " in page["plane-measured"]


def test_the_page_says_how_often_each_point_is_timed() -> None:
    assert {2: "the quicker of two turns counts"}[TURNS] in cells(LESSON)["plane"]
