"""Lesson 05's first explorer: every control moves the run, and the picture shows what the rows say."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons import norm_picture
from gradacc_lessons.lessons.norm_picture import (
    CURVES,
    HIGHEST,
    LOWEST,
    PREDICTED_FOR,
    NormsFigure,
    compare_norms,
    explore_norms,
    norms_sentence,
    norms_table,
    rows_of,
    single_image_left,
)
from gradacc_lessons.lessons.norm_table import summary
from gradacc_lessons.lessons.norms import EPOCHS, recipe_for
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.quiz.predictions import Predicted
from gradacc_lessons.tasks import digits

PATIENCE = 240.0  # seconds; only a hang comes near it


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """One run in the MLP."""
    return collect(compare_norms("mlp", "batch", recipe_for(8, 8), "shuffled", 0.5))


@pytest.fixture(scope="module")
def predicted_rows() -> pd.DataFrame:
    """The run that the prediction is about."""
    return collect(compare_norms("mlp", "batch", recipe_for(2, 32), "shuffled", 0.5))


def test_a_run_has_the_rows_that_it_says(rows: pd.DataFrame) -> None:
    assert len(rows) == rows_of("mlp", recipe_for(8, 8))
    gradients = rows[rows["kind"] == "gradient"]
    assert set(zip(gradients["norm"], gradients["epochs"], strict=True)) == set(CURVES)
    assert list(rows[rows["kind"] == "training"]["epoch"]) == list(range(1, EPOCHS + 1))


def test_the_picture_shows_what_the_rows_say(rows: pd.DataFrame) -> None:
    figure = NormsFigure()
    assert figure.draw(rows) == norms_sentence(rows)
    batch = rows[(rows["norm"] == "batch") & (rows["epochs"] == 3)].set_index("micro_batch_size")["cosine"]
    assert dict(zip(*figure._curves["batch", 3].get_data(), strict=True)) == batch.to_dict()
    assert list(figure._ring.get_data()[1]) == [batch[8]]
    assert list(figure._live.get_data()[1]) == [100 * rows["accuracy"].iloc[-1]]
    means = [100 * cell.mean for cell in summary("mlp", "batch", "sorted").values()]
    assert list(figure._stored["sorted"][0].get_ydata()) == means


def test_the_picture_grows_with_the_run(rows: pd.DataFrame) -> None:
    figure = NormsFigure()
    for end in (1, 3, 20, len(rows)):
        assert figure.show(rows[:end]) == norms_sentence(rows[:end])
        assert figure.png()


@pytest.mark.parametrize("guess", [0.5, -1.0, 1.0])
def test_a_prediction_is_drawn_inside_the_picture(predicted_rows: pd.DataFrame, guess: float) -> None:
    figure = NormsFigure()
    sentence = figure.draw(predicted_rows.assign(prediction=guess))
    at, height = figure._guess.get_data()
    assert list(at)[-1] == PREDICTED_FOR and LOWEST < height[-1] < HIGHEST
    assert sentence.endswith(f"You predicted a cosine of {guess:g} for b = {PREDICTED_FOR}.")
    assert "You predicted" not in figure.update(predicted_rows.assign(prediction=None))
    assert len(figure._guess.get_data()[0]) == 0


@pytest.mark.parametrize(
    "other", [{"b": 8, "n": 8}, {"n": 16}, {"model": "cnn"}, {"order": "sorted"}, {"chosen_norm": "group"}]
)
def test_a_prediction_is_hidden_where_it_is_not_about(predicted_rows: pd.DataFrame, other: dict[str, Any]) -> None:
    figure = NormsFigure()
    assert "You predicted" in figure.draw(predicted_rows)
    assert "You predicted" not in figure.update(predicted_rows.assign(**other))
    assert len(figure._guess.get_data()[0]) == 0 and not figure._guess_words.get_text()


@pytest.mark.parametrize(("model", "norm", "b"), [("mlp", "group", 1), ("cnn", "batch", 1), ("mlp", "batch", 15)])
def test_a_window_of_one_micro_batch_without_a_half_is_the_full_batch(
    monkeypatch: pytest.MonkeyPatch, model: Any, norm: Any, b: int
) -> None:
    monkeypatch.setattr(norm_picture, "accuracies", lambda *_: iter([{"epoch": 1, "accuracy": 0.5, "as_trained": 0.5}]))
    rows = collect(compare_norms(model, norm, recipe_for(b, 1), "shuffled"))
    assert len(rows) == rows_of(model, recipe_for(b, 1)) - EPOCHS + 1
    assert rows["error"].max() == 0 and rows["cosine"].min() == pytest.approx(1)
    figure = NormsFigure()
    for end in (1, len(rows)):
        assert "the micro-batch is the full batch" in figure.show(rows[:end])
    assert list(norms_table(rows)["b"]) == [b]


def test_on_the_right_no_colour_is_that_of_a_norm(rows: pd.DataFrame) -> None:
    figure = NormsFigure()
    figure.draw(rows)
    norms = {line.get_color() for line in figure._curves.values()}
    assert not norms & {line.get_color() for line, _ in figure._stored.values()}
    assert len({line.get_markerfacecolor() for line, _ in figure._stored.values()}) == 2


def test_the_sentence_says_the_gradient_and_the_accuracy_beside_the_stored_ones(rows: pd.DataFrame) -> None:
    said = norms_sentence(rows)
    assert said.startswith("MLP with BatchNorm, b = 8, N = 8, shuffled: after 3 epochs the accumulated gradient has a")
    assert "stored runs of this cut have" in said
    whole = norms_sentence(rows.assign(n=1, b=64))
    assert "the micro-batch is the full batch" in whole
    other = norms_sentence(rows.assign(n=4))
    assert "the stored runs have 64 images per update, this one has 32" in other


def test_the_table_has_a_row_per_cut(rows: pd.DataFrame) -> None:
    table = norms_table(rows)
    assert list(table["b"]) == [32, 16, 8, 4, 2, 1]
    assert table["BatchNorm: cosine"].iloc[-1] == "refused"
    assert set(table["each other norm: error"]) == {"less than 1e-12"}


def test_each_control_moves_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm_picture, "accuracies", lambda *_: iter([{"epoch": 1, "accuracy": 0.5, "as_trained": 0.5}]))
    explorer = explore_norms()
    seen = set()
    for values in (
        {"micro_batch_size": 16},
        {"accumulation_steps": 2},
        {"norm": "layer"},
        {"order": "sorted"},
        {"model": "cnn"},
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
        assert explorer.values.items() >= values.items()
    assert len(seen) == 5
    assert explorer.sentence.startswith("CNN with LayerNorm, b = 16, N = 2, sorted: ")
    for impossible, sentence in (
        ({"micro_batch_size": 0}, "whole number from 1 to 64"),
        ({"accumulation_steps": 65}, "whole number from 1 to 64"),
        ({"norm": "spectral"}, "must be one of"),
        ({"model": "mlp", "norm": "batch", "micro_batch_size": 1}, "with b = 1 every micro-batch is 1 image"),
        (
            {"model": "mlp", "norm": "batch", "micro_batch_size": 5, "accumulation_steps": 13},
            "b = 5 and N = 13 the last",
        ),
        ({"micro_batch_size": 64, "accumulation_steps": 64}, "but the data has 1,536"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_what_is_left_of_the_data_is_seen_before_torch_refuses_it() -> None:
    for b, n in ((5, 1), (5, 13), (1, 8)):  # 1,536 = 5 x 307 + 1 = 65 x 23 + 41
        parts = [part for window in split(digits().train, b * n) for part in split(window, b)]
        assert min(len(images) for images, _ in parts) == 1 and single_image_left(recipe_for(b, n))
    assert not single_image_left(recipe_for(8, 8)) and not single_image_left(recipe_for(3, 32))
    run = compare_norms("mlp", "batch", recipe_for(3, 32), "sorted")  # of 256 test images 1 is left
    assert collect(run)["as_trained"].notna().sum() == EPOCHS
    with pytest.raises(ValueError, match="choose another b or N, another norm, or the CNN"):
        explore_norms().set(micro_batch_size=5, accumulation_steps=1)


def test_it_waits_for_the_prediction_and_draws_it(predicted: Callable[..., Predicted]) -> None:
    explorer = explore_norms(predicted("norm-predict-cosine"))
    assert explorer.waiting
    explorer = explore_norms(predicted("norm-predict-cosine", 0.4))
    assert not explorer.waiting
    explorer.start()
    explorer.wait(PATIENCE)
    assert explorer.sentence.endswith("You predicted a cosine of 0.4 for b = 2.")
    assert len(explorer.data) == explorer._bar.max


def test_an_error_in_the_run_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no <norm> today")

    monkeypatch.setattr(norm_picture, "gradient_errors", broken)
    explorer = explore_norms()
    explorer.start()
    with pytest.raises(RuntimeError, match="today"):
        explorer.wait(PATIENCE)
    assert "no &lt;norm&gt; today" in explorer._message.value
