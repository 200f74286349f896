"""Lesson 00, the first slider: what it counts is what happens, and what it draws is what it counted."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.optim import Optimizer

from gradacc_lessons import Recipe
from gradacc_lessons.lessons import start
from gradacc_lessons.lessons.start import EpochFigure, count_epoch, epoch_table, explore_epoch
from gradacc_lessons.lessons.training import collect, train
from gradacc_lessons.palette import GUESS
from gradacc_lessons.quiz.predictions import Predicted
from gradacc_lessons.tasks import digits

PATIENCE = 60.0  # seconds; only a hang comes near it
CUTS = [(8, 4), (1, 64), (64, 1), (50, 7), (7, 5), (64, 24)]


def epoch(b: int, n: int, predicted: float | None = None) -> pd.DataFrame:
    return collect(count_epoch(digits(), Recipe(b, n, optimizer="adam", learning_rate=0.01), predicted))


@pytest.mark.parametrize(("b", "n"), CUTS)
def test_it_counts_the_forwards_backwards_and_updates_that_torch_sees(
    b: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {"forward": 0, "backward": 0, "update": 0}
    task, make_optimizer = digits(), start.make_optimizer

    def watched(model: torch.nn.Module, recipe: Recipe) -> Optimizer:
        optimizer = make_optimizer(model, recipe)
        model.register_forward_hook(lambda *_: add("forward"))
        next(model.parameters()).register_post_accumulate_grad_hook(lambda _: add("backward"))
        optimizer.register_step_post_hook(lambda *_: add("update"))
        return optimizer

    def add(what: str) -> None:
        seen[what] += 1

    monkeypatch.setattr(start, "make_optimizer", watched)
    rows = []
    for row in count_epoch(task, Recipe(b, n)):
        rows.append(row)
        assert (row["micro_batch"], row["micro_batch"], row["update"]) == tuple(seen.values())
    last = rows[-1]
    assert (last["micro_batch"], last["update"]) == (last["of"], last["of_updates"])
    assert last["examples"] == task.examples == 1536


@pytest.mark.parametrize(("b", "n"), [(8, 4), (7, 5)])
def test_it_trains_as_the_course_trains(b: int, n: int) -> None:
    task, recipe = digits(dtype=torch.float64), Recipe(b, n, optimizer="adam", learning_rate=0.01)
    counted = collect(count_epoch(task, recipe))
    expected = collect(train(task, recipe, recipe.updates_per_epoch(task.examples)))["loss"]
    sums = (counted["loss"] * counted["examples"].diff().fillna(b)).groupby(counted["window"]).sum()
    sizes = counted["examples"].diff().fillna(b).groupby(counted["window"]).sum()
    assert (sums / sizes).tolist() == pytest.approx(expected.tolist(), abs=1e-10)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
@pytest.mark.parametrize(("b", "n"), [(8, 4), (1, 1), (64, 1)])
def test_one_pass_is_enough_to_learn_something(b: int, n: int, seed: int) -> None:
    recipe = Recipe(b, n, optimizer="adam", learning_rate=start.LEARNING_RATE, seed=seed)
    loss = collect(count_epoch(digits(), recipe))["loss"]
    half = len(loss) // 2
    assert loss[half:].mean() < 0.75 * loss[:half].mean()


@settings(max_examples=15, deadline=None)
@given(b=st.integers(8, 64), n=st.integers(1, 24))
def test_blocks_fill_windows_without_a_gap_and_each_full_column_has_its_mark(b: int, n: int) -> None:
    data, figure = epoch(b, n), EpochFigure()
    figure.draw(data)
    tops = data.groupby("window")["position"].agg(["size", "max"])
    assert (tops["size"] == tops["max"]).all()
    assert (tops["max"].iloc[:-1] == n).all()
    assert len(figure._blocks.get_paths()) == data["micro_batch"].iloc[-1]
    assert list(figure._marks.get_xdata()) == list(range(1, data["update"].iloc[-1] + 1))


def test_a_window_that_is_still_filling_has_no_mark() -> None:
    data, figure = epoch(8, 4), EpochFigure()
    sentence = figure.draw(data.head(7))
    assert list(figure._marks.get_xdata()) == [1]
    assert sentence.startswith("7 micro-batches of 192, each with one forward and one backward, made 1 update:")
    figure.update(data.head(8))
    assert list(figure._marks.get_xdata()) == [1, 2]


@pytest.mark.parametrize(
    ("b", "n", "words"),
    [
        (8, 4, "192 micro-batches, each with one forward and one backward, made 48 updates: one after every 4 "),
        (64, 1, "24 micro-batches, each with one forward and one backward, made 24 updates: one after each micro-"),
        (64, 24, "24 micro-batches, each with one forward and one backward, made 1 update: "),
        (50, 7, "The last window is short, 3 micro-batches, and makes an update too."),
        (50, 5, "The last window is short, 1 micro-batch, and makes an update too."),
    ],
)
def test_the_sentence_says_what_was_counted(b: int, n: int, words: str) -> None:
    assert words in EpochFigure().draw(epoch(b, n))


def test_the_table_has_the_counts() -> None:
    assert epoch_table(epoch(50, 7)).iloc[0].to_dict() == {
        "b": 50,
        "N": 7,
        "digits seen": 1536,
        "micro-batches": 31,
        "updates": 5,
        "micro-batches in the last window": 3,
    }


@pytest.mark.parametrize("guess", [-0.5, -5.0, -1e308])
def test_a_prediction_below_nothing_is_named_at_the_edge_and_not_drawn_outside(guess: float) -> None:
    figure = EpochFigure()
    figure.draw(epoch(8, 4, guess))
    assert len(figure._guess.get_xdata()) == 0 and figure._axes[0].get_xlim()[0] == 0
    label = figure._guess_label
    assert label.get_text().strip() == f"← your prediction: {guess:g}"
    assert label.get_position()[0] == 0 and label.get_ha() == "left"


@pytest.mark.parametrize(
    ("guess", "right_of_axis"), [(48.0, False), (10.0, False), (72.0, False), (192.0, True), (4000.0, True)]
)
def test_the_prediction_is_drawn_where_it_was_made_unless_it_is_far_off_the_axis(
    guess: float, right_of_axis: bool
) -> None:
    figure = EpochFigure()
    figure.draw(epoch(8, 4, guess))
    assert list(figure._guess.get_xdata()) == ([] if right_of_axis else [guess, guess])
    assert figure._guess.get_color() == GUESS and figure._guess.get_linestyle() == "--"
    arrow = " →" if right_of_axis else ""
    assert figure._guess_label.get_text().strip() == f"your prediction: {guess:g}{arrow}"
    assert figure._axes[0].get_xlim()[1] < 2 * 48  # wide columns, whatever was predicted
    figure.update(epoch(8, 4))
    assert len(figure._guess.get_xdata()) == 0 and figure._guess_label.get_text() == ""


def test_every_control_changes_the_run_and_the_prediction_stays_with_its_setting(
    predicted: Callable[..., Predicted],
) -> None:
    explorer = explore_epoch(predicted("start-predict-updates", 40.0))
    seen: list[tuple[int, int]] = []
    for values in ({}, {"micro_batch_size": 16}, {"accumulation_steps": 3}):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        last = explorer.data.iloc[-1]
        seen.append((last["micro_batch"], last["update"]))
        assert (last["predicted_updates"] == 40.0) == (values == {})
    assert seen == [(192, 48), (96, 24), (96, 32)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"micro_batch_size": 0}, "Micro-batch size b must be a whole number from 1 to 64; you gave 0"),
        ({"accumulation_steps": 0}, "Accumulation steps N must be a whole number from 1 to 64; you gave 0"),
        ({"micro_batch_size": 64, "accumulation_steps": 64}, "64 x 64 = 4,096 examples per update, but the data has"),
    ],
)
def test_an_impossible_setting_is_refused_in_a_sentence(values: dict[str, Any], message: str) -> None:
    explorer = explore_epoch()
    with pytest.raises(ValueError) as error:
        explorer.set(**values)
    assert str(error.value).startswith(message)
    assert explorer.values == {"micro_batch_size": 8, "accumulation_steps": 4}
