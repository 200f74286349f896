"""Lesson 07's second explorer: one plan, two moments at which it moves, real runs."""

from typing import Any

import pandas as pd
import pytest
import torch

from gradacc_lessons.lessons.schedule_units import (
    FIRST,
    LEARNING_RATE,
    UNITS,
    UPDATES,
    WARM_UP,
    UnitsFigure,
    explore_units,
    highest,
    still_from,
    two_units,
    units_sentence,
    units_table,
)
from gradacc_lessons.lessons.training import collect, train
from gradacc_lessons.palette import GUESS
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.schedule import factor
from gradacc_lessons.tasks import digits
from gradacc_lessons.text import LANGUAGES

PATIENCE = 120.0
ASKED = "once-predict-peak"


@pytest.fixture(scope="module")
def whole() -> pd.DataFrame:
    """What the explorer begins with."""
    return collect(two_units(digits("mlp"), FIRST, WARM_UP, "micro-batch"))


def test_moved_at_every_micro_batch_the_plan_is_over_n_times_too_early(whole: pd.DataFrame) -> None:
    assert highest(whole, "right") == (100, pytest.approx(LEARNING_RATE))
    assert highest(whole)[0] == 13 and still_from(whole) == UPDATES / FIRST.accumulation_steps == 30
    assert still_from(whole, "right") is None
    late = whole[["loss_right", "loss_wrong"]].tail(20).mean()
    assert late["loss_wrong"] > 5 * late["loss_right"]


def test_the_rates_are_those_of_the_plan_at_the_count_of_each_unit(whole: pd.DataFrame) -> None:
    for update, right, wrong in zip(whole["update"], whole["rate_right"], whole["rate_wrong"], strict=True):
        assert right == pytest.approx(LEARNING_RATE * factor(update - 1, WARM_UP, UPDATES))
        assert wrong == pytest.approx(LEARNING_RATE * factor(8 * update, WARM_UP, UPDATES))
    assert list(whole["planned"]) == pytest.approx(list(whole["rate_right"]))
    assert list(whole["micro_batches"]) == [8 * update for update in whole["update"]]


@pytest.mark.parametrize("unit", [value for _, value in UNITS])
def test_short_windows_and_ends_of_epochs_are_counted_as_they_are(unit: Any) -> None:
    """1,536 images, b = 64, N = 7: windows of 7, 7, 7 and 3 micro-batches."""
    data = collect(two_units(digits("mlp"), Recipe(64, 7, learning_rate=LEARNING_RATE), 20, unit, updates=9))
    seen = [7, 14, 21, 24, 31, 38, 45, 48, 55]
    assert list(data["micro_batches"]) == seen
    moved = {"update": range(9), "micro-batch": seen, "epoch": [0, 0, 0, 0, 1, 1, 1, 1, 2]}[unit]
    assert list(data["rate_wrong"]) == pytest.approx([LEARNING_RATE * factor(k, 20, UPDATES) for k in moved])
    if unit == "update":
        assert list(data["loss_right"]) == list(data["loss_wrong"])


def test_with_a_rate_that_stays_the_run_is_the_one_that_the_course_trains() -> None:
    """The explorer's loop adds a schedule and nothing else: without one it gives the losses of `train`."""
    task, recipe = digits("mlp", dtype=torch.float64), Recipe(16, 4, learning_rate=LEARNING_RATE)
    first = next(iter(two_units(task, recipe, 1, "update", updates=1)))
    assert first["loss_right"] == next(train(task, recipe, 1))["loss"]


@pytest.fixture(scope="module")
def explorer() -> Any:
    return explore_units()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"micro_batch_size": 32, "accumulation_steps": 2},
            "b = 32, N = 2, warm-up 100 updates; the schedule",
        ),
        ({"warm_up": 0}, "warm-up 0 updates; the schedule moves at every micro-batch: its learning rate is highest at"),
        ({"unit": "epoch"}, "the schedule moves once per epoch: its learning rate is highest at update"),
        ({"unit": "update"}, "the schedule moves once per update: right: its learning rate is highest at update 1,"),
    ],
    ids=str,
)
def test_each_control_moves_the_run(explorer: Any, values: dict[str, Any], words: str) -> None:
    explorer.set(**values)
    explorer.wait(PATIENCE)
    assert words in explorer.sentence, explorer.sentence
    assert explorer._bar.value == explorer._bar.max == len(explorer.data) == UPDATES


def test_impossible_values_are_refused_in_a_sentence(explorer: Any) -> None:
    for impossible, sentence in (
        ({"warm_up": 201}, "whole number from 0 to 200"),
        ({"accumulation_steps": 17}, "whole number from 1 to 16"),
        ({"unit": "hour"}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


@pytest.mark.parametrize("guess", [12.0, 100.0, 240.0])
def test_a_prediction_is_drawn_and_said(whole: pd.DataFrame, guess: float) -> None:
    figure = UnitsFigure()
    data = whole.assign(predicted=guess)
    assert f"You predicted update {guess:g}." in figure.draw(data)
    assert figure.figure is not None
    drawn = [line for line in figure.figure.axes[0].lines if line.get_color() == GUESS]
    assert [list(line.get_xdata()) for line in drawn] == [[guess, guess]]
    assert "You predicted" not in figure.update(whole)
    assert [len(line.get_xdata()) for line in drawn] == [0]


def test_the_prediction_is_about_the_values_it_was_asked_for(predicted: Any) -> None:
    asked = explore_units(predicted(ASKED, 40))
    others = ({}, {"unit": "epoch"}, {"accumulation_steps": 2}, {"warm_up": 0})
    runs = [asked._plan(**(asked.values | other)) for other in others]
    assert [next(iter(run.rows()))["predicted"] for run in runs] == [40, None, None, None]


def test_on_the_axis_of_micro_batches_the_wrong_run_lies_on_the_plan(whole: pd.DataFrame) -> None:
    """Which is why nobody sees it there."""
    figure = UnitsFigure()
    figure.draw(whole)
    assert figure.figure is not None
    _, wrong, plan = figure.figure.axes[1].lines
    planned = dict(zip(plan.get_xdata(), plan.get_ydata(), strict=True))
    on_both = [(x, y) for x, y in zip(wrong.get_xdata(), wrong.get_ydata(), strict=True) if x + 1 in planned]
    assert len(on_both) > 20
    assert all(y == pytest.approx(planned[x + 1]) for x, y in on_both)


def test_the_table_and_the_sentence_are_the_rows(whole: pd.DataFrame) -> None:
    table = units_table(whole)
    assert list(table["update"]) == [1, 5, 13, 30, 100, 240]
    assert float(table["rate, moves as chosen"].iloc[3]) == 0
    assert "0 from update 30" in units_sentence(whole) and len(LANGUAGES) == 2
