"""Lesson 05's first explorer: every control moves the run, and the picture shows what the rows say."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from gradacc_lessons.lessons import norm_picture
from gradacc_lessons.lessons.norm_picture import (
    CURVES,
    HIGHEST,
    LOWEST,
    PREDICTED_FOR,
    NormsFigure,
    compare_norms,
    explore_norms,
    last_sizes,
    norms_sentence,
    norms_table,
    rows_of,
)
from gradacc_lessons.lessons.norm_table import summary
from gradacc_lessons.lessons.norms import EPOCHS, recipe_for
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.quiz.predictions import Predicted

PATIENCE = 240.0  # seconds; only a hang comes near it


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """One run in the MLP."""
    return collect(compare_norms("mlp", "batch", recipe_for(8, 8), "shuffled", 0.5))


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


@pytest.mark.parametrize("guess", [0.5, -3.0, 1.0, 70.0])
def test_a_prediction_is_drawn_inside_the_picture_whatever_it_is(rows: pd.DataFrame, guess: float) -> None:
    figure = NormsFigure()
    sentence = figure.draw(rows.assign(prediction=guess))
    at, height = figure._guess.get_data()
    assert list(at)[-1] == PREDICTED_FOR and LOWEST < height[-1] < HIGHEST
    assert sentence.endswith(f"You predicted a cosine of {guess:g} for b = {PREDICTED_FOR}.")
    assert "You predicted" not in figure.update(rows.assign(prediction=None))
    assert len(figure._guess.get_data()[0]) == 0


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
        ({"model": "mlp", "norm": "batch", "micro_batch_size": 1}, "1 image has nothing to take statistics of"),
        ({"micro_batch_size": 64, "accumulation_steps": 64}, "but the data has 1,536"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_what_is_left_of_the_data_is_seen_before_torch_refuses_it() -> None:
    assert 1 in last_sizes(recipe_for(5, 1))  # 1,536 = 5 x 307 + 1
    assert 1 not in last_sizes(recipe_for(8, 8)) | last_sizes(recipe_for(3, 32))
    run = compare_norms("mlp", "batch", recipe_for(3, 32), "sorted")  # of 256 test images 1 is left
    assert collect(run)["as_trained"].notna().sum() == EPOCHS
    with pytest.raises(ValueError, match="leaves no single image"):
        explore_norms().set(micro_batch_size=5, accumulation_steps=1)


def test_it_waits_for_the_prediction_and_draws_it(predicted: Callable[..., Predicted]) -> None:
    explorer = explore_norms(predicted("norm-predict-cosine"))
    assert explorer.waiting
    explorer = explore_norms(predicted("norm-predict-cosine", 0.4))
    assert not explorer.waiting
    explorer.set(micro_batch_size=32, accumulation_steps=2)
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
