"""Lesson 03's second explorer: what fits really fits, and one more example does not."""

import math
import re
from typing import Any

import pytest

from gradacc_lessons.lessons.memory_budget import (
    BUDGETS,
    CURVE,
    LARGEST_WINDOW,
    MOST,
    TARGET,
    BudgetFigure,
    budget_sentence,
    budget_table,
    explore_budget,
    under_budget,
)
from gradacc_lessons.lessons.peaks import largest_that_fits, measured, predicted, recipe_for
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.memory.sizes import MEBIBYTE

PATIENCE = 120.0  # seconds; only a hang comes near it


def peak(b: int, n: int = 2, optimizer: str = "adamw") -> float:
    return measured(32, recipe_for(optimizer, b, n)).peak_bytes / MEBIBYTE


@pytest.mark.few(1)
@pytest.mark.parametrize(("optimizer", "budget"), [("adamw", 30), ("sgd", 20), ("adamw_foreach", 17)])
def test_the_largest_b_fits_when_it_is_measured_and_the_next_does_not(optimizer: str, budget: int) -> None:
    largest = largest_that_fits(32, recipe_for(optimizer, 1, 2), budget * MEBIBYTE, MOST)
    assert 1 <= largest < MOST
    assert peak(largest, 2, optimizer) <= budget < peak(largest + 1, 2, optimizer)


def test_the_ends_of_the_search() -> None:
    recipe = recipe_for("adamw", 1, 2)
    exact = {b: predicted(32, recipe_for("adamw", b, 2)).peak_bytes for b in (1, 2, 3, 5, 6)}
    assert largest_that_fits(32, recipe, exact[1] - 1, 6) == 0
    for b, size in exact.items():
        assert largest_that_fits(32, recipe, size, 6) == b
    assert largest_that_fits(32, recipe, 100 * exact[6], 6) == 6


def test_one_row_per_point_and_the_chosen_one_is_measured() -> None:
    data = collect(under_budget(32, recipe_for("adamw", 8, 1), "adamw", 30))
    assert list(data["what"]) == ["curve"] * len(CURVE) + ["at once", "largest", "chosen"]
    assert data["peak"].iloc[-1] == pytest.approx(peak(8, 1))
    # The curve is that of windows that accumulate: one gradient buffer above the chosen point with N = 1.
    assert data.set_index("b")["peak"].loc[8].iloc[0] == pytest.approx(peak(8, 2), rel=0.005)
    assert list(budget_table(data)["b"]) == sorted({*CURVE, int(data["b"].iloc[-2])})
    assert set(budget_table(data)["fits"]) == {"yes", "no"}


@pytest.mark.parametrize(
    ("b", "n", "budget", "said"),
    [
        (8, 4, 30, "Chosen: b = 8, N = 4, 32 examples per update; measured 22 MiB, 8 MiB to spare."),
        (16, 2, 30, "32 examples per update; measured 31 MiB, 1 MiB too much."),
        (4, 2, 30, "8 examples per update, not 32; measured"),
        (4, 2, 12, "AdamW, one tensor at a time, T = 32 tokens: not even b = 1 fits."),
        (4, 2, 160, f"every b up to {MOST} fits; for {TARGET} examples per update that takes N = 1."),
    ],
)
def test_the_sentence_says_what_fits_and_how_the_choice_stands(b: int, n: int, budget: int, said: str) -> None:
    assert said in budget_sentence(collect(under_budget(32, recipe_for("adamw", b, n), "adamw", budget)))


def test_n_is_1_where_the_whole_target_fits_at_once_and_not_beside_a_gradient() -> None:
    at_once, beside = (predicted(32, recipe_for("sgd", TARGET, n)).peak_bytes for n in (1, 2))
    budget = math.ceil(at_once / MEBIBYTE)
    assert at_once <= budget * MEBIBYTE < beside
    data = collect(under_budget(32, recipe_for("sgd", TARGET, 1), "sgd", budget))
    sentence, largest = budget_sentence(data), int(data["b"].iloc[-2])
    assert f"all 32 examples of an update fit at once, with N = 1; with N of 2 or more, b up to {largest} " in sentence
    assert "to spare" in sentence and "N = 2" not in sentence
    figure = BudgetFigure()
    figure.draw(data)
    assert at_once / MEBIBYTE not in list(figure._curve.get_ydata())  # the curve is that of N = 2 or more
    over = collect(under_budget(32, recipe_for("sgd", TARGET, 1), "sgd", budget - 1))
    assert "for 32 examples per update that takes N = 2." in budget_sentence(over)


def test_the_n_that_is_named_makes_the_target_of_the_largest_b() -> None:
    sentence = budget_sentence(collect(under_budget(32, recipe_for("adamw", 8, 4), "adamw", 25)))
    largest, n = map(int, re.search(r"b up to (\d+) fits; for 32 .* takes N = (\d+)", sentence).groups())  # type: ignore[union-attr]
    assert n == math.ceil(TARGET / largest)


def test_the_picture_follows_the_rows_as_they_come() -> None:
    rows = list(under_budget(32, recipe_for("adamw", 8, 4), "adamw", 30))
    figure = BudgetFigure()
    assert figure.draw(collect(rows[:2])).endswith("predicting.")
    assert not len(figure._largest.get_xdata()) and not len(figure._chosen.get_xdata())
    figure.update(collect(rows))
    assert list(figure._budget.get_ydata()) == [30, 30]
    assert max(figure._largest.get_ydata()) <= 30
    assert [list(values) for values in figure._chosen.get_data()] == [[8], [pytest.approx(peak(8, 4))]]
    figure.update(collect(under_budget(32, recipe_for("adamw", 8, 4), "adamw", BUDGETS[0])))
    assert not len(figure._largest.get_xdata())  # nothing fits
    assert figure.png().startswith(b"\x89PNG")


def test_each_control_moves_the_run_and_a_window_too_large_to_measure_is_refused() -> None:
    explorer = explore_budget()
    seen: set[Any] = set()
    for values in (
        {"length": 32},
        {"micro_batch_size": 8},
        {"accumulation_steps": 4},
        {"budget": 30},
        {"optimizer": "sgd"},
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
    assert len(seen) == 5
    for impossible, sentence in (
        ({"micro_batch_size": 32, "accumulation_steps": 4}, f"32 x 4 = 128 .* at most {LARGEST_WINDOW}"),
        ({"budget": 7}, "whole number from 8 to 160"),
        ({"accumulation_steps": 0}, "whole number from 1 to 32"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)
    assert explorer.values["budget"] == 30
