"""Lesson 05: BatchNorm's gradient error grows with N over many seeds, every other norm's stays at rounding."""

from dataclasses import replace
from itertools import islice, pairwise
from typing import get_args

import pytest
import torch

from gradacc_lessons.accumulation import accumulate
from gradacc_lessons.lessons.norms import (
    EPOCHS,
    LEARNING_RATE,
    Order,
    accuracies,
    accuracy,
    arranged,
    cuts,
    gradient_errors,
    in_words,
    recipe_for,
    refused,
    trained,
    updates_of_epoch,
    window_gradient,
    window_of,
)
from gradacc_lessons.lessons.rounding import ROUNDING
from gradacc_lessons.lessons.training import parameters, train
from gradacc_lessons.tasks import digits
from gradacc_lessons.tasks.digits import DigitsModel, DigitsNorm

SEEDS = range(20)
SINGLE = 5e-5
"""What float32 may leave of a difference that is none, over the whole gradient."""
OTHERS = get_args(DigitsNorm)[1:]


def grows(errors: list[float]) -> bool:
    return all(smaller < larger for smaller, larger in pairwise(errors))


def errors_of(model: DigitsModel, norm: DigitsNorm, epochs: int, seed: int, order: Order = "shuffled") -> list[float]:
    """Against the full batch of 64, from N = 2 to 32 by powers of two."""
    return [row["error"] for row in gradient_errors(model, norm, epochs, recipe_for(2, 32, seed), order)][:5]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("epochs", [0, 3])
def test_batchnorms_error_grows_with_n_and_no_other_norms_in_the_mlp(seed: int, epochs: int) -> None:
    assert grows(errors_of("mlp", "batch", epochs, seed))
    for norm in OTHERS:
        assert max(errors_of("mlp", norm, epochs, seed)) < ROUNDING


def check_untrained_cnn(seed: int) -> None:
    assert grows(errors_of("cnn", "batch", 0, seed))
    for norm in OTHERS:
        assert max(errors_of("cnn", norm, 0, seed)) < ROUNDING


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_the_untrained_cnn(seed: int) -> None:
    check_untrained_cnn(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS[4:])
def test_the_untrained_cnn_over_many_seeds(seed: int) -> None:
    check_untrained_cnn(seed)


def check_trained_cnn(seed: int) -> None:
    errors = errors_of("cnn", "batch", 3, seed)
    assert grows(errors[::2]), "from N = 2 to 8 to 32"
    assert errors[-1] > 2 * errors[0]
    for norm in OTHERS:
        assert max(errors_of("cnn", norm, 3, seed)) < ROUNDING


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS[2:])
def test_the_trained_cnn_over_many_seeds(seed: int) -> None:
    check_trained_cnn(seed)


@pytest.mark.parametrize("seed", SEEDS[:2])  # the two whose models other tests here have trained already
def test_the_trained_cnn(seed: int) -> None:
    check_trained_cnn(seed)


def check_float32(model: DigitsModel, norm: DigitsNorm, seed: int, epochs: int) -> None:
    task = digits(model, norm=norm)
    net = task.build_model(seed)
    for _ in islice(updates_of_epoch(net, task, recipe_for(64, 1, seed), "shuffled"), epochs):
        pass
    batch = window_of(task, 64, seed)
    full = window_gradient(net, task, batch, 64)
    for size in (32, 2, 1):
        assert (window_gradient(net, task, batch, size) - full).norm() < SINGLE * full.norm()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("norm", ["group", "layer"])
def test_float32_leaves_little_of_the_mlp_trained_or_not(norm: DigitsNorm, seed: int) -> None:
    for epochs in (0, 3):
        check_float32("mlp", norm, seed, epochs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("norm", ["group", "layer"])
def test_float32_leaves_little_of_the_untrained_cnn(norm: DigitsNorm, seed: int) -> None:
    check_float32("cnn", norm, seed, 0)


@pytest.mark.parametrize("norm", ["group", "layer"])
def test_float32_leaves_little_of_a_trained_cnn(norm: DigitsNorm) -> None:
    check_float32("cnn", norm, 0, 3)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS[1:])
@pytest.mark.parametrize("norm", ["group", "layer"])
def test_float32_leaves_little_of_trained_cnns(norm: DigitsNorm, seed: int) -> None:
    check_float32("cnn", norm, seed, 3)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_cnn_is_less_far_off_than_the_mlp_and_training_makes_both_worse(seed: int) -> None:
    last = {
        (model, epochs): errors_of(model, "batch", epochs, seed)[-1] for model in ("mlp", "cnn") for epochs in (0, 3)
    }  # type: ignore[arg-type]
    assert last["cnn", 0] < last["mlp", 0]
    assert last["cnn", 3] < last["mlp", 3]
    for model in ("mlp", "cnn"):
        assert last[model, 0] < last[model, 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_sorting_an_update_makes_batchnorms_error_larger(seed: int) -> None:
    shuffled, ordered = (errors_of("mlp", "batch", 3, seed, order) for order in get_args(Order))
    assert ordered[1] > shuffled[1] and ordered[2] > shuffled[2]  # micro-batches of 16 and of 8


def test_sorted_updates_have_the_same_examples_class_after_class() -> None:
    batch = window_of(digits(), 64)
    images, labels = arranged(batch, "sorted")
    assert labels.tolist() == sorted(batch[1].tolist())
    rows = [set(map(tuple, each.flatten(1).tolist())) for each in (images, batch[0])]
    assert rows[0] == rows[1]
    assert arranged(batch, "shuffled") is batch


def test_training_is_the_loop_of_the_course() -> None:
    """With shuffled updates, and for a norm that does not look, with sorted ones too."""
    task = digits("mlp", norm="group", dtype=torch.float64)
    *_, row = train(task, recipe_for(8, 8), 24)
    for order in get_args(Order):
        model = task.build_model()
        next(updates_of_epoch(model, task, recipe_for(8, 8), order))
        assert (parameters(model) - parameters(row["model"])).abs().max() < 1e-10


def test_cuts_divide_the_window_and_have_the_chosen_one() -> None:
    assert cuts(recipe_for(2, 32)) == [32, 16, 8, 4, 2, 1]
    assert cuts(recipe_for(6, 8)) == [24, 12, 6, 3]
    assert cuts(recipe_for(5, 3)) == [5]
    assert cuts(recipe_for(64, 1)) == [32, 16, 8, 4, 2, 1]
    for b, n in ((3, 20), (64, 24), (1, 7)):
        assert all(b * n % size == 0 for size in cuts(recipe_for(b, n)))


def test_torch_refuses_what_is_said_to_be_refused() -> None:
    for model in get_args(DigitsModel):
        for norm in get_args(DigitsNorm):
            task = digits(model, norm=norm)
            one = tuple(tensor[:1] for tensor in task.train)
            if refused(model, norm, 1):
                with pytest.raises(ValueError, match="more than 1 value per channel"):
                    accumulate(task.build_model(), [one], task.loss_sum, task.count)
            else:
                accumulate(task.build_model(), [one], task.loss_sum, task.count)


def test_accuracy_counts_and_leaves_the_model_as_it_is() -> None:
    task = digits("mlp", norm="batch")
    model = task.build_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    shares = [accuracy(model, [task.test], training=mode) for mode in (True, False)]
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    right = int((model.eval()(task.test[0]).argmax(dim=1) == task.test[1]).sum())
    assert shares[1] == right / 261 != shares[0]


def test_a_row_per_epoch_and_an_accuracy_that_rises() -> None:
    rows = list(accuracies(digits("mlp", norm="layer"), recipe_for(64, 1), "shuffled"))
    assert [row["epoch"] for row in rows] == list(range(1, EPOCHS + 1))
    assert rows[-1]["accuracy"] > max(0.8, rows[0]["accuracy"])


@pytest.mark.long
def test_frozen_statistics_of_untrained_weights_diverge_for_some_seeds_at_twice_the_learning_rate() -> None:
    task, ends = digits("cnn", norm="frozen batch"), {}
    for rate in (LEARNING_RATE, 2 * LEARNING_RATE):
        recipes = [replace(recipe_for(64, 1, seed), learning_rate=rate) for seed in range(4)]
        ends[rate] = [list(accuracies(task, recipe, "shuffled"))[-1]["accuracy"] for recipe in recipes]
    assert min(ends[LEARNING_RATE]) > 0.9
    assert min(ends[2 * LEARNING_RATE]) < 0.2


def test_a_trained_model_is_a_copy() -> None:
    with torch.no_grad():
        next(trained("mlp", "none", 0).parameters()).zero_()
    assert next(trained("mlp", "none", 0).parameters()).abs().max() > 0


def test_errors_are_told_in_percent_or_as_rounding() -> None:
    assert [in_words(error) for error in (9.243, 0.2154, 0.0312, 3e-16)] == [
        "924 %",
        "22 %",
        "3.1 %",
        "less than 1e-12",
    ]


@pytest.mark.parametrize("seed", SEEDS[:5])
def test_at_two_images_the_gradient_is_too_long_where_a_variance_is_near_zero(seed: int) -> None:
    task, net = digits("mlp", norm="batch", dtype=torch.float64), trained("mlp", "batch", 3, seed)
    assert isinstance(net, torch.nn.Sequential) and isinstance(net[2], torch.nn.BatchNorm1d)
    batch = window_of(task, 64, seed)
    full, parts = (window_gradient(net, task, batch, size).clone() for size in (64, 2))
    assert parts.norm() > 4 * full.norm()
    net[2].eps = 1e-2  # hides variances near zero
    full, parts = (window_gradient(net, task, batch, size).clone() for size in (64, 2))
    assert parts.norm() < 2 * full.norm()
