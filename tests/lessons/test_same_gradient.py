"""Lesson 01, the gradient: equality in float64 and everything its explorer's controls can do."""

import re
from collections.abc import Callable

import pandas as pd
import pytest
import torch

from gradacc_lessons import Recipe
from gradacc_lessons.lessons.same_gradient import (
    ENTRIES,
    OUT_OF,
    GradientFigure,
    compare_gradients,
    explore_gradients,
    gradient_sentence,
)
from gradacc_lessons.lessons.training import collect, gradient
from gradacc_lessons.quiz.predictions import Predicted
from gradacc_lessons.tasks import digits

PATIENCE = 30.0  # seconds; only a hang comes near it
EQUAL = 1e-12  # float64 keeps 16 digits; sums of a few thousand terms lose two or three of them


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize(("b", "n"), [(32, 1), (8, 4), (1, 32), (5, 7)])
def test_the_last_micro_batch_completes_the_full_gradient(model: str, b: int, n: int) -> None:
    data = collect(compare_gradients(digits(model, dtype=torch.float64), Recipe(b, n)))  # type: ignore[arg-type]
    assert list(data["micro_batch"]) == list(range(1, n + 1))
    assert data["largest_difference"].iloc[-1] <= EQUAL
    assert data["length_ratio"].iloc[-1] == pytest.approx(1, abs=EQUAL)
    assert (data["relative_difference"].iloc[:-1] > 0.01).all()


def test_after_one_of_four_grad_holds_a_quarter_of_that_micro_batch_s_gradient() -> None:
    task = digits("mlp", dtype=torch.float64)
    alone = collect(compare_gradients(task, Recipe(8, 1))).iloc[-1]
    first = collect(compare_gradients(task, Recipe(8, 4))).iloc[0]
    lengths = [
        float(row["length_ratio"]) * _full_norm(recipe)
        for row, recipe in ((alone, Recipe(8, 1)), (first, Recipe(8, 4)))
    ]
    assert lengths[1] == pytest.approx(lengths[0] / 4, rel=1e-9)


def _full_norm(recipe: Recipe) -> float:
    task = digits("mlp", dtype=torch.float64)
    model = task.build_model(recipe.seed)
    task.loss_fn(model, tuple(tensor[: recipe.effective_batch_size] for tensor in task.train)).backward()
    return float(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm())


def test_both_sliders_move_the_run_and_the_prediction_is_drawn(predicted: Callable[..., Predicted]) -> None:
    asked = predicted("acc-predict-distance")
    explorer = explore_gradients(asked)
    explorer.start()
    explorer.wait(PATIENCE)
    without = explorer._picture.value
    predicted("acc-predict-distance", 4.0)
    explorer.start()
    explorer.wait(PATIENCE)
    assert explorer._picture.value != without
    assert set(explorer.data["predicted_ratio"]) == {4.0}
    explorer.set(micro_batch_size=3)
    explorer.wait(PATIENCE)
    assert "After 4 of 4 micro-batches" in explorer.sentence
    explorer.set(accumulation_steps=6)
    explorer.wait(PATIENCE)
    assert explorer.sentence == (
        "After 6 of 6 micro-batches, .grad is the full batch's gradient: the two are the same to rounding."
    )
    first = gradient_sentence(explorer.data.iloc[0])
    assert re.match(r"After 1 of 6 micro-batches, \.grad is 0\.\d+ times as long as .*, and \d+\.\d % away", first)


def test_the_dots_are_what_the_title_says() -> None:
    task, recipe = digits("mlp", dtype=torch.float64), Recipe(8, 4)
    last = collect(compare_gradients(task, recipe)).iloc[-1]
    model = task.build_model(recipe.seed)
    task.loss_fn(model, tuple(tensor[:32] for tensor in task.train)).backward()
    sizes = gradient(model).abs().sort(descending=True).values
    assert len(last["full"]) == ENTRIES == 250
    assert sizes[0] * min(abs(last["full"])) >= sizes[OUT_OF - 1]
    figure = GradientFigure()
    figure.draw(pd.DataFrame([last]))
    assert figure.figure is not None
    assert figure.figure.axes[0].get_title() == "250 of the 1,000 weights with the largest gradients"


def test_a_window_larger_than_the_data_is_refused_in_a_sentence() -> None:
    explorer = explore_gradients()
    with pytest.raises(ValueError, match="64 x 64 = 4,096 examples per update, but the data has 1,536"):
        explorer.set(micro_batch_size=64, accumulation_steps=64)


def test_the_static_twin_says_what_the_picture_shows() -> None:
    twin = explore_gradients().static()
    assert list(twin.table["micro-batches added"]) == [1, 2, 3, 4]
    assert twin.table["length of .grad / full"].iloc[-1] == "1.000"
    assert twin.table["relative difference"].iloc[-1] == "rounding only"
    assert "the same to rounding" in twin.sentence
