"""Lesson 02, the gradient's length: closed forms in float64, and what the explorer's controls do."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradacc_lessons import Recipe
from gradacc_lessons.lessons import scale
from gradacc_lessons.lessons.scale import (
    DIVISORS,
    ScaleFigure,
    explore_scale,
    gradient_of_full_batch,
    gradient_of_loop,
    scaling,
)
from gradacc_lessons.lessons.training import collect, training_windows
from gradacc_lessons.quiz.predictions import Predicted
from gradacc_lessons.tasks import digits

PATIENCE = 60.0  # seconds; only a hang comes near it
EQUAL = 1e-12  # float64 keeps 16 digits; sums of a few thousand terms lose two or three of them


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize(
    ("loss_scaling", "closed_form"),
    [("mean", lambda n: 1.0), ("none", lambda n: float(n)), ("twice", lambda n: 1 / n)],
)
def test_the_ratio_is_its_closed_form_at_every_n(model: Any, loss_scaling: Any, closed_form: Any) -> None:
    data = collect(scaling(digits(model, dtype=torch.float64), Recipe(4, 8, loss_scaling)))
    assert list(data["micro_batch"]) == list(range(1, 9))
    for n, ratio, cosine in zip(data["micro_batch"], data["ratio"], data["cosine"], strict=True):
        assert ratio == pytest.approx(closed_form(n), rel=EQUAL)
        assert cosine == pytest.approx(1, abs=EQUAL)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_running_divisor_gives_harmonic_weights_and_turns_the_gradient(seed: int) -> None:
    task, recipe = digits("mlp", dtype=torch.float64), Recipe(4, 8, "running", seed=seed)
    model, window = task.build_model(seed), next(training_windows(task, recipe))
    pieces = [gradient_of_full_batch(model, [batch], task) for batch in window]
    harmonic = torch.stack([piece / (k + 1) for k, piece in enumerate(pieces)]).sum(0)
    loop = gradient_of_loop(model, window, task, recipe)
    assert float((loop - harmonic).abs().max()) <= EQUAL
    last = collect(scaling(task, recipe)).iloc[-1]
    assert last["cosine"] < 0.999
    assert 1 < last["ratio"] < 8


def test_the_tips_end_where_the_loop_ends() -> None:
    """The plane is chosen so that the loop's arrow lies in it: its length and its angle are true for every divisor."""
    task = digits("mlp", dtype=torch.float64)
    for loss_scaling in ("mean", "none", "twice", "running"):
        last = collect(scaling(task, Recipe(8, 6, loss_scaling))).iloc[-1]  # type: ignore[arg-type]
        assert math.hypot(last["along"], last["across"]) == pytest.approx(last["ratio"], rel=1e-9)
        assert last["along"] == pytest.approx(last["ratio"] * last["cosine"], rel=1e-9)


def test_each_control_moves_the_run_and_impossible_values_are_refused_in_a_sentence() -> None:
    explorer = explore_scale()
    seen = set()
    for values in ({"micro_batch_size": 4}, {"accumulation_steps": 5}, *({"loss_scaling": v} for _, v in DIVISORS)):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
        assert explorer.values.items() >= values.items()
    assert len(explorer.data) == 5
    assert set(explorer.data["micro_batch_size"]) == {4}
    assert len(seen) == 5  # "nothing" is both where it began and one of the four
    for impossible, sentence in (
        ({"micro_batch_size": 64, "accumulation_steps": 32}, "64 x 32 = 2,048 examples per update"),
        ({"accumulation_steps": 0}, "whole number from 1 to 32"),
        ({"micro_batch_size": 1.5}, "whole number from 1 to 64"),
        ({"loss_scaling": "b"}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)
    assert explorer.values["accumulation_steps"] == 5


def test_one_micro_batch_is_right_whatever_it_is_divided_by() -> None:
    explorer = explore_scale()
    for _, value in DIVISORS:
        explorer.set(accumulation_steps=1, loss_scaling=value)
        explorer.wait(PATIENCE)
        assert "as long as the full batch's and points the same way" in explorer.sentence


@pytest.mark.parametrize("guess", [1.0, -3.0, 1e9])
def test_a_prediction_is_drawn_and_said_whatever_it_is(guess: float) -> None:
    data = collect(scaling(digits("mlp", dtype=torch.float64), Recipe(2, 2, "none"), guess))
    figure = ScaleFigure()
    assert figure.draw(data).endswith(f"You predicted {guess:g} for N = 8.")
    assert figure._guess_words.get_text() == f"your prediction: {guess:g}"
    n, height = figure._guess.get_data()
    assert list(n) == [1, 8]
    assert figure._guess.axes.get_ylim()[0] < height[-1] < figure._guess.axes.get_ylim()[1]


@pytest.mark.few(4)
@pytest.mark.parametrize("guess", [0.4, 0.6, 0.9, 1.0, 1.1, 1.6, 1.9, 2.2, 8.0])
def test_the_words_of_a_prediction_lie_on_no_line(guess: float) -> None:
    figure = ScaleFigure()
    figure.draw(collect(scaling(digits("mlp", dtype=torch.float64), Recipe(2, 8, "none"), guess)))
    figure.png()
    assert figure.figure is not None
    words = figure._guess_words.get_window_extent(figure.figure.canvas.get_renderer())  # type: ignore[attr-defined]
    ax = figure._guess.axes
    right = ax.transData.transform((8, 1.0))[1]
    assert not words.y0 < right < words.y1
    others = [text.get_window_extent() for text in ax.texts if text is not figure._guess_words]
    assert not any(words.overlaps(other) for other in others)


def test_the_explorer_asks_for_the_prediction_at_each_run(predicted: Callable[..., Predicted]) -> None:
    asked = predicted("scale-predict-ratio")
    explorer = explore_scale(asked)
    explorer.set(accumulation_steps=2)
    explorer.wait(PATIENCE)
    assert "predicted" not in explorer.sentence
    predicted("scale-predict-ratio", 2.5)
    explorer.start()
    explorer.wait(PATIENCE)
    assert "You predicted 2.5" in explorer.sentence


def test_the_static_twin_promises_round_numbers() -> None:
    twin = explore_scale().static()
    assert list(twin.table["N"]) == [1, 2, 4, 8]
    assert list(twin.table["length / full batch's"]) == [1.0, 2.0, 4.0, 8.0]
    assert "8 times as long" in twin.sentence


def test_an_error_in_the_experiment_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("the data <are> gone")

    monkeypatch.setattr(scale, "add_gradient", broken)
    explorer = explore_scale()
    explorer.start()
    with pytest.raises(RuntimeError, match="gone"):
        explorer.wait(PATIENCE)
    assert "RuntimeError: the data &lt;are&gt; gone" in explorer._message.value
