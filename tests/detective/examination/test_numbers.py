"""The numbers of an examination against the same in plain loops: a copy of the model in float64, cut by hand."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from detective.examination import pairs_losses, pairs_models, pairs_norms
from detective.examination.pairs import Parts, batch, cnn, cross_entropy, images, mlp
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons import examine
from gradacc_lessons.detective.examination.batches import starts_of


def by_hand(parts: Parts, weights: list[float] | None = None) -> dict[str, tuple[float, float, float]]:
    """(relative error, cosine, ratio) by parameter: one backward, and a window's backwards from the same beginning."""

    def gradients(pieces: list[Any], factors: list[float]) -> dict[str, Tensor]:
        model = copy.deepcopy(parts.model).double()
        model.zero_grad()
        for piece, factor in zip(pieces, factors, strict=True):
            (parts.loss_fn(model, piece) * factor).backward()
        return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}

    data = tuple(part.double() if part.is_floating_point() else part for part in parts.batch)
    pieces = list(zip(*(part.split(parts.micro_batch_size) for part in data), strict=True))
    whole = gradients([data], [1.0])
    mine = gradients(pieces, weights or [1 / len(pieces)] * len(pieces))
    return {
        name: (
            float((mine[name] - whole[name]).norm() / whole[name].norm()),
            float(F.cosine_similarity(mine[name].flatten(), whole[name].flatten(), dim=0)),
            float(mine[name].norm() / whole[name].norm()),
        )
        for name in whole
    }


CASES: dict[str, Callable[[], Parts]] = {
    "batch norm": pairs_norms.cnn_with_batch_norm,
    "a home-made norm": pairs_norms.home_made_batch_norm,
    "InfoNCE": pairs_losses.info_nce,
    "ragged tokens": pairs_losses.ragged_tokens,
    "root mean square": pairs_losses.root_mean_square,
    "batch Dice": pairs_losses.dice_of_the_batch,
    "experts": pairs_models.mixture_of_experts_with_a_balance_loss,
}


@pytest.mark.parametrize("name", CASES)
def test_the_table_has_what_plain_loops_give(name: str) -> None:
    torch.manual_seed(3)
    parts = CASES[name]()
    found = examine(parts.model, parts.loss_fn, parts.batch, parts.micro_batch_size)
    wanted = by_hand(parts)
    checked = 0
    for row in found.table.itertuples():
        error, cosine, ratio = wanted[row.parameter]
        if error > 1e9:  # a gradient that is zero but for rounding, such as a bias before a batch norm
            continue
        if (row.relative_error, row.cosine, row.ratio) == (0.0, 1.0, 1.0):
            assert float(error) < 1e-6 or ratio > 1e-3  # told as equal: rounding on both sides
            continue
        assert (row.relative_error, row.cosine, row.ratio) == pytest.approx((error, cosine, ratio), rel=1e-6, abs=1e-9)
        checked += 1
    assert checked and set(found.table["parameter"]) == set(wanted)


@pytest.mark.parametrize("seed", range(20))
def test_layer_norm_and_group_norm_agree_to_rounding_and_batch_norm_does_not(seed: int) -> None:
    torch.manual_seed(seed)
    data = images()
    for norm in (lambda c: nn.GroupNorm(2, c), lambda c: nn.GroupNorm(1, c)):
        found = examine(cnn(norm), cross_entropy, data, 2)
        assert found.additive and found.relative_error < 1e-12
    found = examine(cnn(nn.BatchNorm2d), cross_entropy, data, 2)
    assert "batch_statistics" in found.causes and found.relative_error > 0.05


def test_info_nce_of_single_examples_has_no_gradient_left() -> None:
    torch.manual_seed(0)
    parts = pairs_losses.info_nce_by_single_examples()
    found = examine(parts.model, parts.loss_fn, parts.batch, 1)
    assert found.relative_error == pytest.approx(1.0) and set(found.table["ratio"]) == {0.0}


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.integers(0, 10_000))
def test_the_weights_are_the_counts_that_were_hidden(lengths: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    labels = torch.randint(0, 3, (len(lengths), 30))
    for k, length in enumerate(lengths):
        labels[k, length:] = -100

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(data[0]).flatten(0, 1), data[1].flatten())

    data = torch.randn(len(lengths), 30, 6), labels
    found = examine(mlp(), loss, data, 1)
    if len(set(lengths)) == 1:
        assert found.causes == () and found.additive
    else:
        assert found.causes == ("unequal_items",)
        assert found.evidence["item_weights"] == pytest.approx([length / sum(lengths) for length in lengths])
    assert examine(mlp(), loss, data, 1, count=lambda micro_batch: (micro_batch[1] >= 0).sum()).additive


def test_weights_that_no_tensor_of_the_batch_counts_are_found_as_well() -> None:
    """The class weights of the labels, which are in the loss alone."""
    torch.manual_seed(0)
    parts = pairs_losses.weighted_classes()
    found = examine(parts.model, parts.loss_fn, parts.batch, 2)
    weight, labels = torch.tensor([1.0, 2.0, 5.0]), parts.batch[1]
    wanted = weight[labels].view(4, 2).sum(1) / weight[labels].sum()
    assert found.evidence["item_weights"] == pytest.approx(wanted.tolist())


@given(st.integers(2, 200), st.data())
def test_micro_batches_cover_the_batch_once(examples: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, examples - 1))
    pieces = starts_of(examples, size)
    assert [k for first, number in pieces for k in range(first, first + number)] == list(range(examples))
    assert all(number == size for _, number in pieces[:-1]) and 1 <= pieces[-1][1] <= size


def test_the_error_of_all_parameters_together_is_that_of_one_long_vector() -> None:
    torch.manual_seed(0)
    model, data = mlp(nn.BatchNorm1d(8, affine=False)), batch()
    found = examine(model, cross_entropy, data, 4)
    copied = copy.deepcopy(model).double()
    whole = torch.autograd.grad(cross_entropy(copied, (data[0].double(), data[1])), list(copied.parameters()))
    halves = [
        torch.autograd.grad(cross_entropy(copied, (data[0][part].double(), data[1][part])), list(copied.parameters()))
        for part in (slice(0, 4), slice(4, 8))
    ]
    together = torch.cat([((a + b) / 2 - g).flatten() for g, a, b in zip(whole, *halves, strict=True)])
    size = torch.cat([g.flatten() for g in whole]).norm()
    assert found.relative_error == pytest.approx(float(together.norm() / size))
