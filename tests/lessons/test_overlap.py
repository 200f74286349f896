"""Lesson 06's masks: two kinds of Dice differ, over many seeds, and only the one of the examples adds up."""

import numpy as np
import pytest
import torch
from torch import nn

from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.overlap import (
    INK,
    batch_dice,
    masks_of,
    noisy,
    root_mean_square,
    sample_dice,
    trained_segmenter,
)
from gradacc_lessons.lessons.overlap_picture import SHOWN, MasksFigure, found_masks, show_masks
from gradacc_lessons.lessons.pairs import images_apart
from gradacc_lessons.lessons.training import gradient

SEEDS = range(20)
ROUNDING = 1e-12


def accumulated(loss_fn, seed: int, n: int):  # type: ignore[no-untyped-def]
    """(mean loss, gradient) of the same 32 masks in N micro-batches."""
    model, batch = trained_segmenter(seed), masks_of(32, seed)
    total = 0.0
    for piece in split(batch, 32 // n):
        loss = loss_fn(model, piece) / n
        loss.backward()
        total += float(loss.detach())
    return total, gradient(model)


def error(loss_fn, seed: int, n: int) -> float:  # type: ignore[no-untyped-def]
    full = accumulated(loss_fn, seed, 1)[1]
    return float((accumulated(loss_fn, seed, n)[1] - full).norm() / full.norm())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_two_differ_and_only_the_mean_of_the_examples_adds_up(seed: int) -> None:
    whole, mean = accumulated(batch_dice, seed, 1)[0], accumulated(sample_dice, seed, 1)[0]
    assert abs(whole - mean) > 1e-5
    for n in (2, 4, 8, 16, 32):
        assert error(sample_dice, seed, n) < ROUNDING
        assert error(batch_dice, seed, n) > 1e-3
    assert error(batch_dice, seed, 32) > 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_cut_into_single_examples_one_becomes_the_other(seed: int) -> None:
    loss, cut = accumulated(batch_dice, seed, 32)
    other, full = accumulated(sample_dice, seed, 1)
    assert loss == pytest.approx(other, rel=ROUNDING)
    assert float((cut - full).norm() / full.norm()) < ROUNDING


@pytest.mark.parametrize("seed", SEEDS)
def test_a_curve_would_not_show_it(seed: int) -> None:
    """The losses stay within a few percent while the gradients do not."""
    whole = accumulated(batch_dice, seed, 1)[0]
    for n in (4, 32):
        assert accumulated(batch_dice, seed, n)[0] == pytest.approx(whole, rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mean_of_roots_is_below_the_root_of_the_mean(seed: int) -> None:
    losses = [accumulated(root_mean_square, seed, n)[0] for n in (1, 4, 32)]
    assert losses[0] > losses[1] > losses[2]
    assert error(root_mean_square, seed, 32) > 1e-3


def test_both_kinds_are_the_ratios_that_they_say() -> None:
    images, masks = masks_of(5)
    model = nn.Identity()
    found = images.sigmoid()
    overlap, areas = (found * masks).sum(dim=(1, 2, 3)), (found + masks).sum(dim=(1, 2, 3))
    assert float(batch_dice(model, (images, masks))) == pytest.approx(float(1 - 2 * overlap.sum() / areas.sum()))
    assert float(sample_dice(model, (images, masks))) == pytest.approx(float((1 - 2 * overlap / areas).mean()))
    assert float(root_mean_square(model, (images, masks))) == pytest.approx(float((found - masks).norm()) / 320**0.5)


def test_an_empty_mask_that_is_found_empty_is_perfect() -> None:
    far = torch.full((1, 1, 8, 8), -60.0, dtype=torch.float64)
    for loss_fn in (batch_dice, sample_dice):
        assert float(loss_fn(nn.Identity(), (far, torch.zeros_like(far)))) == pytest.approx(0.0, abs=1e-9)


def test_masks_are_the_strokes_under_the_noise() -> None:
    images = images_apart(40, 2)
    seen, masks = noisy(images, 2)
    assert torch.equal(masks, (images > INK).double())
    assert 0.25 < float((seen - images).std()) < 0.35
    assert masks.sum(dim=(1, 2, 3)).min() > 0


def test_the_network_has_learned_and_each_caller_has_its_own() -> None:
    batch = masks_of(64)
    assert float(sample_dice(trained_segmenter(), batch).detach()) < 0.25
    changed = trained_segmenter()
    with torch.no_grad():
        next(changed.parameters()).zero_()
    assert sum(p.numel() for p in changed.parameters()) == 153
    assert float(sample_dice(trained_segmenter(), batch).detach()) < 0.25


def test_the_picture_shows_each_example_and_says_both_losses() -> None:
    data = found_masks()
    assert len(data) == SHOWN
    assert data["mean"].iloc[0] == pytest.approx(data["loss"].mean())
    assert data["pixels"].to_list() == [int(mask.sum()) for mask in data["mask"]]
    figure = MasksFigure()
    sentence = figure.draw(data)
    assert figure.figure is not None
    axes = figure.figure.axes
    assert len(axes) == 3 * SHOWN
    for column, row in data.iterrows():
        assert np.array_equal(axes[SHOWN + int(column)].images[0].get_array(), row["mask"])  # type: ignore[call-overload]
        assert axes[int(column)].get_title() == f"loss {row['loss']:.2f}"  # type: ignore[call-overload]
    for value in (data["mean"].iloc[0], data["batch"].iloc[0]):
        assert f"{value:.3f}" in sentence
    twin = show_masks()
    assert twin.sentence == sentence == figure.update(data) and len(twin.table) == SHOWN
    assert MasksFigure.description in twin.picture
