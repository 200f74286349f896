"""Lesson 06's first explorer: what micro-batches miss of a contrastive loss, over many seeds, and how it is drawn."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.lessons import contrastive
from gradacc_lessons.lessons.contrastive import (
    METHODS,
    PAIRS,
    PREDICTED_STEPS,
    PairsFigure,
    compared,
    divisors,
    error_against_steps,
    explore_pairs,
    pairs_sentence,
    pairs_table,
)
from gradacc_lessons.lessons.pairs import (
    TRAINED_PAIRS,
    contrastive_loss,
    embed,
    images_apart,
    info_nce,
    most_images,
    pairs_of,
    share_found,
    train_encoder,
    trained_encoder,
    two_views,
)
from gradacc_lessons.lessons.training import collect, gradient, parameters
from gradacc_lessons.reference.grad_cache import grad_cache
from gradacc_lessons.tasks import digits

PATIENCE = 60.0  # seconds; only a hang comes near it
SEEDS = range(20)
ROUNDING = 1e-12


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """The run that the lesson begins with."""
    return collect(error_against_steps(8, 4, "plain", 60.0))


@pytest.fixture(scope="module", params=SEEDS)
def of_seed(request: pytest.FixtureRequest) -> pd.DataFrame:
    """32 pairs with another encoder and other images, sorted by N."""
    return collect(error_against_steps(8, 4, "plain", seed=request.param)).sort_values("steps")


# What must hold, over many seeds


def test_the_error_grows_with_n_to_100_percent_where_each_pair_is_alone(of_seed: pd.DataFrame) -> None:
    errors = of_seed.set_index("steps")["plain_error"]
    assert list(errors.index) == [1, 2, 4, 8, 16, 32]
    assert errors[1] <= ROUNDING
    assert 0.2 < errors[2] < errors[4] < errors[8] < errors[16]
    assert errors[32] == 1.0


def test_the_loss_falls_to_nothing_though_nothing_is_learned(of_seed: pd.DataFrame) -> None:
    losses = of_seed.set_index("steps")["plain_loss"]
    assert losses.is_monotonic_decreasing
    assert losses[1] == pytest.approx(of_seed["full_loss"].iloc[0], rel=ROUNDING)
    assert losses[2] < 0.75 * losses[1] and losses[8] < 0.35 * losses[1]
    assert losses[32] == 0.0


def test_grad_cache_is_exact_at_every_n(of_seed: pd.DataFrame) -> None:
    assert (of_seed["grad_cache_error"] < ROUNDING).all()
    assert np.allclose(of_seed["grad_cache_loss"], of_seed["full_loss"], rtol=ROUNDING, atol=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_weights_of_the_micro_batches_give_the_full_gradient(seed: int) -> None:
    """It is no matter of a divisor: the best fit of all is still far away."""
    model, pairs = trained_encoder(seed), pairs_of(PAIRS, seed)

    def of(batch: Batch) -> Tensor:
        model.zero_grad()
        contrastive_loss(model, batch).backward()
        return gradient(model).clone()

    full, parts = of(pairs), torch.stack([of(batch) for batch in split(pairs, 8)])
    fitted = torch.linalg.lstsq(parts.T, full.unsqueeze(1)).solution
    assert float((parts.T @ fitted - full.unsqueeze(1)).norm() / full.norm()) > 0.2


# The data


def test_views_are_the_image_moved_by_at_most_a_pixel() -> None:
    images = images_apart(20, 3)
    for view in two_views(images, 3):
        assert view.shape == images.shape
        for image, moved in zip(images[:, 0], view[:, 0], strict=True):
            wide = torch.nn.functional.pad(image, (1, 1, 1, 1))
            shifts = [wide[r : r + 8, c : c + 8] for r in range(3) for c in range(3)]
            assert any(torch.equal(moved, shift) for shift in shifts)
    first, second = two_views(images, 3)
    assert not torch.equal(first, second)


def test_the_images_are_apart_from_those_that_were_trained_on() -> None:
    task = digits(dtype=torch.float64)
    assert most_images() == len(task.test[0])
    trained = {image.numpy().tobytes() for image in task.train[0]}
    assert not any(image.numpy().tobytes() in trained for image in images_apart(60))


def test_the_encoder_has_learned_and_each_caller_has_its_own() -> None:
    task = digits(dtype=torch.float64)
    pairs = two_views(task.train[0][:TRAINED_PAIRS], 0)
    fresh, trained = (float(contrastive_loss(m, pairs).detach()) for m in (task.build_model(0), trained_encoder()))
    assert trained < fresh / 3
    changed = trained_encoder()
    with torch.no_grad():
        next(changed.parameters()).zero_()
    assert float(contrastive_loss(trained_encoder(), pairs).detach()) == trained


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_training_feels_what_the_micro_batches_miss_and_grad_cache_trains_as_the_full_batch(seed: int) -> None:
    def plain(model: nn.Module, pairs: Batch) -> None:
        for batch in split(pairs, 8):
            (contrastive_loss(model, batch) / 8).backward()

    full = train_encoder(lambda model, pairs: contrastive_loss(model, pairs).backward(), 100, seed)
    cached = train_encoder(lambda model, pairs: grad_cache(model, split(pairs, 8), embed, info_nce), 100, seed)
    assert float((parameters(cached) - parameters(full)).abs().max()) < 1e-8  # a hundred updates magnify rounding
    assert share_found(cached) == share_found(full) > 0.25
    assert share_found(train_encoder(plain, 100, seed)) < 0.9 * share_found(full)


def test_alone_a_pair_trains_nothing() -> None:
    def alone(model: nn.Module, pairs: Batch) -> None:
        for batch in split(pairs, 1):
            contrastive_loss(model, batch).backward()

    untouched = digits("mlp", dtype=torch.float64).build_model(0)
    assert torch.equal(parameters(train_encoder(alone, 3)), parameters(untouched))


# The picture


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("b", [1, 3, 8, 24])
def test_cells_are_coloured_where_the_loss_compares(b: int, method: str) -> None:
    seen = compared(24, b, method)  # type: ignore[arg-type]
    for i in range(24):
        for j in range(24):
            assert seen[i, j] == (method == "grad_cache" or i // b == j // b)


def test_the_square_and_the_curves_show_the_rows(rows: pd.DataFrame) -> None:
    figure = PairsFigure()
    figure.draw(rows)
    cells = figure._cells.get_array()
    assert cells is not None and cells.shape == (32, 32)
    assert int((~np.ma.getmaskarray(cells)).sum()) == 4 * 8 * 8
    steps, errors = figure._errors["plain"].get_data()
    assert list(steps) == divisors(32) and list(errors) == list(100 * rows.sort_values("steps")["plain_error"])
    (x,), (y,) = figure._chosen.get_data()
    assert x == 4 and y > 100 * rows.iloc[0]["plain_error"]
    figure.update(rows.assign(method="grad_cache"))
    assert not np.ma.getmaskarray(figure._cells.get_array()).any()
    alphas = [figure._errors[method].get_alpha() for method in METHODS]
    assert alphas[0] < alphas[1] == 1.0


@pytest.mark.parametrize("guess", [0.0, 60.0, -5.0, 1000.0])
def test_a_prediction_is_drawn_inside_the_picture_whatever_it_is(rows: pd.DataFrame, guess: float) -> None:
    figure = PairsFigure()
    sentence = figure.draw(rows.assign(prediction=guess))
    at, height = figure._guess.get_data()
    low, high = figure._curves.get_ylim()
    assert at[-1] == PREDICTED_STEPS and low <= height[-1] < high
    assert figure._guess_words.get_text() == f"your prediction: {guess:g} %"
    assert sentence.endswith(f"You predicted {guess:g} % for {PAIRS} pairs in {PREDICTED_STEPS} micro-batches.")


def test_a_prediction_is_not_drawn_where_it_is_about_something_else(rows: pd.DataFrame) -> None:
    figure = PairsFigure()
    figure.draw(rows)
    assert len(figure._guess.get_data()[0]) == 2
    other = collect(error_against_steps(8, 2, "plain", 60.0))
    figure.update(other)
    assert not len(figure._guess.get_data()[0]) and not figure._guess_words.get_text()
    assert "You predicted" not in pairs_sentence(rows.assign(prediction=None))


def test_the_sentence_says_who_meets_whom_and_how_far_it_is_off(rows: pd.DataFrame) -> None:
    error = 100 * rows.iloc[0]["plain_error"]
    said = pairs_sentence(rows)
    assert "each of 32 pairs meets 7 of its 31 negatives" in said
    assert f"{error:.0f} % away" in said
    cached = pairs_sentence(rows.assign(method="grad_cache"))
    assert "meets 31 of its 31 negatives" in cached and "the full batch's, to rounding" in cached
    assert "Nothing is learned" in pairs_sentence(collect(error_against_steps(1, 8, "plain")))


def test_the_table_has_the_ends_and_at_most_six_rows() -> None:
    for b, n in ((8, 4), (1, 60), (7, 1), (2, 1)):
        table = pairs_table(collect(error_against_steps(b, n, "plain")))
        assert len(table) <= 6
        assert table["N"].iloc[0] == 1 and table["N"].iloc[-1] == b * n
        assert (table["N"] * table["b"] == b * n).all()
        assert set(table["with GradCache"]) == {"rounding only"}


# The explorer


def test_each_control_moves_the_run() -> None:
    explorer = explore_pairs()
    seen = set()
    for values in ({"micro_batch_size": 4}, {"accumulation_steps": 3}, {"method": "grad_cache"}):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
        assert explorer.values.items() >= values.items()
        assert list(explorer.data.iloc[0][["b", "n", "method"]]) == list(explorer.values.values())
        pairs = explorer.values["micro_batch_size"] * explorer.values["accumulation_steps"]
        assert len(explorer.data) == len(divisors(pairs))
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"micro_batch_size": 1, "accumulation_steps": 1}, "one pair alone has no negatives"),
        ({"micro_batch_size": 32, "accumulation_steps": 32}, "but the data has 261"),
        ({"micro_batch_size": 0}, "whole number from 1"),
        ({"method": "magic"}, "must be one of"),
    ],
)
def test_what_cannot_be_is_a_sentence(values: dict[str, int | str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        explore_pairs().set(**values)


def test_the_explorer_waits_for_the_prediction_and_draws_it(predicted: Callable[..., object]) -> None:
    explorer = explore_pairs(predicted("sum-predict-error"))  # type: ignore[arg-type]
    assert explorer.waiting and explorer.static().folded
    explorer = explore_pairs(predicted("sum-predict-error", 70))  # type: ignore[arg-type]
    explorer.start()
    explorer.wait(PATIENCE)
    assert explorer.sentence.endswith("You predicted 70 % for 32 pairs in 4 micro-batches.")


def test_an_error_in_the_run_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("no <pairs> left")

    monkeypatch.setattr(contrastive, "grad_cache", broken)
    explorer = explore_pairs()
    explorer.start()
    with pytest.raises(RuntimeError, match="left"):
        explorer.wait(PATIENCE)
    assert "no &lt;pairs&gt; left" in explorer._message.value
