"""Lesson 01, the training: curves that lie on one another, and what stops them from doing so."""

import math
import time
from itertools import islice
from typing import Any

import pandas as pd
import pytest
import torch

from gradacc_lessons import Recipe
from gradacc_lessons.lessons.same_training import (
    LEARNING_RATES,
    TrainingFigure,
    compare_training,
    drift_limits,
    explore_training,
)
from gradacc_lessons.lessons.training import collect, train, training_windows
from gradacc_lessons.tasks import digits

PATIENCE = 60.0  # seconds; only a hang comes near it
CUTS = [(32, 1), (8, 4), (1, 32)]
ROUNDING = 1e-10  # one update differs by about 1e-16; forty of them at this learning rate stay far below this


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_in_float64_three_cuts_of_32_give_the_same_curve(model: Any) -> None:
    recipes = [Recipe(b, n, learning_rate=0.3, precision="float64") for b, n in CUTS]
    data = collect(compare_training(digits(model, dtype=torch.float64), recipes, updates=40))
    assert data["relative_difference"].max() <= ROUNDING
    curves = data.pivot(index="update", columns="cut", values="loss")
    assert list(curves.columns) == ["1 x 32", "32 x 1", "8 x 4"]
    assert (curves.max(axis=1) - curves.min(axis=1)).max() <= ROUNDING
    assert curves["32 x 1"].iloc[-1] < 0.8 * curves["32 x 1"].iloc[0]  # and it does train


def test_float32_drifts_far_more_than_float64() -> None:
    def drift(precision: Any) -> float:
        recipes = [Recipe(b, n, learning_rate=0.3, precision=precision) for b, n in CUTS[:2]]
        task = digits("cnn", dtype=getattr(torch, precision))
        return float(collect(compare_training(task, recipes, updates=20))["relative_difference"].max())

    assert drift("float32") > 1e4 * drift("float64")


@pytest.mark.parametrize(("b", "n"), [(5, 7), (50, 3), (64, 24)])
def test_two_cuts_see_the_same_examples_in_each_update(b: int, n: int) -> None:
    task = digits()
    for cut, whole in islice(
        zip(training_windows(task, Recipe(b, n)), training_windows(task, Recipe(b * n, 1)), strict=False), 60
    ):
        assert torch.equal(torch.cat([labels for _, labels in cut]), torch.cat([labels for _, labels in whole]))


def test_each_epoch_is_another_order_of_the_same_examples() -> None:
    windows = list(islice(training_windows(digits(), Recipe(256, 1)), 12))
    first, second = (torch.cat([w[0][0] for w in half]).flatten(1) for half in (windows[:6], windows[6:]))
    assert not torch.equal(first, second)
    assert torch.equal(first.sum(1).sort().values, second.sum(1).sort().values)


def test_a_row_of_training_counts_examples_and_measures_before_clipping() -> None:
    rows = list(train(digits(), Recipe(100, 2, max_norm=1e-3), updates=9))
    assert [row["examples"] for row in rows] == [200, 400, 600, 800, 1000, 1200, 1400, 1536, 1736]
    assert all(row["gradient_norm"] > 1e-2 for row in rows)


@pytest.mark.parametrize(
    ("measured", "limits"),
    [
        ([0.0, 0.0], (1e-9, 1e-5)),
        ([0.0, 3e-17, 2e-16], (1e-17, 1e-15)),
        ([0.0, 4e-8, 6e-6], (1e-8, 1e-5)),
        ([0.0, 1e-8], (1e-8, 1e-6)),
        ([2e-8, 0.03, 4.0, math.inf, math.nan], (1e-8, 1e1)),
    ],
)
def test_the_axis_of_drift_fits_what_was_measured_in_steps(measured: list[float], limits: tuple[float, float]) -> None:
    assert drift_limits(pd.Series(measured), (1e-9, 1e-5)) == pytest.approx(limits)


@pytest.mark.parametrize(
    ("losses", "in_words", "in_the_picture"),
    [
        ([2.3, 3.0, 0.5], "A: 0.500, B: 0.500;", ""),
        ([2.3, 7.26, 3.5, 0.5], "A: 0.500 (it had climbed to 7.3), B: 0.500;", "↑ up to 7.3 at update 2"),
        ([4.0] * 99 + [5.0], "A: 5.000 (it had climbed to 5.0), B: 0.500;", "↑ up to 5.0 at update 100"),
    ],
)
def test_a_curve_that_leaves_the_axis_is_said_with_its_height(
    losses: list[float], in_words: str, in_the_picture: str
) -> None:
    rows = [
        {"update": update, "cut": cut, "learning_rate": 0.3, "loss": loss, "relative_difference": 0.0}
        for update, high in enumerate(losses, start=1)
        for cut, loss in (("A", high), ("B", 0.5))
    ]
    figure = TrainingFigure()
    sentence = figure.draw(pd.DataFrame(rows))
    assert f"updates at learning rate 0.3 the training losses are {in_words}" in sentence
    assert figure._above.get_text() == in_the_picture
    assert 0 <= figure._above.get_position()[0] <= 40
    figure.png()


def gap(seed: int, precision: Any) -> float:
    """How far the losses of two cuts of a CNN, at a high learning rate, ever lie apart."""
    recipes = [Recipe(b, n, learning_rate=LEARNING_RATES[1], precision=precision, seed=seed) for b, n in CUTS[:2]]
    data = collect(compare_training(digits("cnn", dtype=getattr(torch, precision)), recipes))
    whole, parts = (data.loc[data["cut"] == cut, "loss"].to_numpy() for cut in ("32 x 1", "8 x 4"))
    return float(abs(whole - parts).max())


def test_in_float32_a_high_learning_rate_can_part_two_cuts_of_a_cnn_visibly() -> None:
    """When, how far and with which seed depends on the machine's rounding; that some of them do is the claim."""
    parts = next((seed for seed in (0, 1, 5) if gap(seed, "float32") > 0.1), None)
    assert parts is not None
    assert gap(parts, "float64") < 1e-9


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_in_float64_it_parts_none(seed: int) -> None:
    assert gap(seed, "float64") < 1e-9


def test_every_control_changes_the_run() -> None:
    explorer = explore_training()
    sentences = set()
    for values in (
        {},
        {"micro_batch_size": 16},
        {"accumulation_steps": 2},
        {"model": "cnn"},
        {"learning_rate": 0.5},
        {"precision": "float64"},
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        sentences.add(explorer.sentence)
        assert len(explorer.data) == 200
    assert len(sentences) == 6
    explorer.set(accumulation_steps=1)
    explorer.wait(PATIENCE)
    assert set(explorer.data["cut"]) == {"16 x 1"}


def test_a_slider_moved_during_training_stops_the_older_run() -> None:
    explorer = explore_training()
    explorer.set(micro_batch_size=1, accumulation_steps=32)
    while len(explorer.data) < 4:
        time.sleep(0.002)
    explorer.set(micro_batch_size=16, accumulation_steps=2)
    explorer.wait(PATIENCE)
    assert set(explorer.data["cut"]) == {"32 x 1", "16 x 2"}
    assert len(explorer.data) == 200


def test_a_window_larger_than_the_data_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="64 x 32 = 2,048 examples per update, but the data has 1,536"):
        explore_training().set(micro_batch_size=64, accumulation_steps=32)
