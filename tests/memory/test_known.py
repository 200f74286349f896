"""Whole numbers keep their values where tensors have no memory, and nothing else gets one."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.nn import functional as F
from torch.utils._python_dispatch import _disable_current_modes

from gradacc_lessons import predict_peak
from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.known import MOST_CONSTANTS, MOST_VALUES, KnownNumbers
from gradacc_lessons.memory.loop import bring_state_into_being, one_update
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe


@pytest.fixture
def known():
    with FakeTensorMode(allow_non_fake_inputs=True) as fake, KnownNumbers(fake) as known:
        yield known


NUMBERS = [[3, -100, 5], [-100, -100, 1]]
LABELS = torch.tensor(NUMBERS)


def test_what_follows_from_the_batch_is_known(known):
    labels = known.without_memory(LABELS)
    assert int((labels != -100).sum()) == 3
    assert bool((labels == 5).any())
    assert int(labels[:, 1:].clamp(min=0).sum().item()) == 6
    assert torch.equal(labels.new_tensor([1]).cpu(), labels.new_tensor([1]).cpu())


def test_a_mask_chooses_as_many_as_it_says(known):
    labels = known.without_memory(LABELS)
    assert labels[labels != -100].shape == (3,)
    assert (labels != -100).nonzero().shape == (3, 2)


def test_nested_batches_keep_their_shape(known):
    batch = known.without_memory({"ids": LABELS, "more": [LABELS, "text", 3]})
    assert batch["more"][1:] == ["text", 3]
    assert int(batch["more"][0].max()) == 5


def test_what_depends_on_weights_is_not_invented(known):
    weights = torch.randn(4)
    for question in (lambda: weights.sum().item(), lambda: bool(weights.argmax() == 2)):
        with pytest.raises(DataDependentOutputException):
            question()
    with pytest.raises(DynamicOutputShapeException):
        weights[weights > 0]


def test_a_number_that_is_overwritten_with_an_unknown_one_is_forgotten(known):
    labels = known.without_memory(LABELS)
    assert known.has(labels)
    labels.copy_(torch.randn(2, 3))
    assert not known.has(labels)


def test_one_that_is_overwritten_with_a_known_one_has_its_new_value(known):
    labels = known.without_memory(LABELS)
    labels.add_(1)
    assert int(labels.max()) == 6


def test_the_callers_batch_is_untouched(known):
    known.without_memory(LABELS).add_(1)
    assert LABELS.tolist() == NUMBERS


def test_logits_are_chosen_by_a_known_mask(known):
    labels = known.without_memory(LABELS)
    logits = torch.randn(2, 3, 7)
    assert logits[labels != -100].shape == (3, 7)
    assert logits[:, 0][labels[:, 0] != -100].shape == (1, 7)
    assert logits[labels != -100, labels[labels != -100]].shape == (3,)


def test_constants_are_known(known):
    assert torch.linspace(0, 0.1, 3).tolist() == pytest.approx([0, 0.05, 0.1])
    rates = 2 * torch.arange(4) / 3.0
    assert rates[3].item() == float(rates[3:]) == 2.0
    assert int((torch.ones(7) * 3).sum()) == 21
    assert 1 / (10000 ** (torch.arange(0, 4, 2) / 4)).max().item() == pytest.approx(0.01)


@pytest.mark.parametrize(
    "made",
    [
        lambda: torch.rand(3), lambda: torch.ones(3).normal_(), lambda: torch.bernoulli(torch.full((3,), 0.5)),
        lambda: torch.empty(3), lambda: torch.ones(3).new_empty(3), lambda: torch.empty_like(torch.ones(3)),
        lambda: torch.empty(3, dtype=torch.long), lambda: torch.nn.functional.dropout(torch.ones(3)),
        lambda: torch.ones(3).requires_grad_() * torch.randn(3), lambda: torch.ones(MOST_CONSTANTS + 1),
    ],
)  # fmt: skip
def test_what_is_random_or_not_set_or_large_is_no_constant(known, made):
    assert not known.has(made())


def test_what_is_written_through_a_view_is_forgotten_in_all_of_it(known):
    whole, other, labels = torch.zeros(4), torch.ones(4), known.without_memory(LABELS)
    whole[1:2].copy_(torch.randn(1))
    labels[:, 0].copy_(torch.randn(2))
    assert not known.has(whole) and not known.has(labels)
    torch.randn(4).mul_(other)
    assert known.has(other), "it was only read"


def test_a_tensor_of_the_callers_is_not_written_into(known):
    with _disable_current_modes():
        mine = LABELS.clone(), torch.zeros(3)
    for tensor in mine:
        tensor.add_(1)
    assert [known.has(tensor) for tensor in mine] == [False, False]
    with _disable_current_modes():
        assert torch.equal(mine[0], LABELS) and not mine[1].any()


class DropPath(nn.Module):
    """As vision transformers are built: each layer is left out more often than the one before."""

    def __init__(self):
        super().__init__()
        rates = [rate.item() for rate in torch.linspace(0, 0.1, 4)]
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.Dropout(rate)) for rate in rates)
        self.scales = torch.linspace(1, 2, 4)

    def forward(self, x):
        for layer, scale in zip(self.layers, self.scales, strict=True):
            x = x + scale.item() * layer(x)
        return x


class AsksItsWeights(nn.Linear):
    def forward(self, x):
        return super().forward(x) if self.bias.abs().max() == 0 else x


class AsksItsStatistics(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x) * self.running_mean.max().item()


def of_squares(model, x):
    return model(x).square().mean()


def test_a_model_made_with_constants_is_predicted():
    assert predict_peak(DropPath, of_squares, lambda size: torch.ones(size, 32), Recipe(4, 2)).peak_bytes > 0


def zeroed():
    model = AsksItsWeights(32, 32)
    nn.init.zeros_(model.bias)
    return model


@pytest.mark.parametrize("made", [zeroed, lambda: AsksItsStatistics(32)])
def test_weights_and_statistics_are_no_constants(made):
    with pytest.raises(ValueError, match=r"asks what a tensor holds .* which depends on its weights, at line \d+ of"):
        predict_peak(made, of_squares, lambda size: torch.ones(size, 32), Recipe(4, 2))


def test_very_large_ones_are_left_without_values(known):
    assert not known.has(known.without_memory(torch.zeros(MOST_VALUES + 1, dtype=torch.uint8)))


def test_a_loss_over_the_chosen_logits_is_predicted():
    """Many losses look only at the tokens that count. How many those are, the batch says."""

    def build():
        return nn.Sequential(nn.Embedding(512, 128), nn.Linear(128, 512))

    def loss_fn(model, batch):
        counts = batch[1] != -100
        return F.cross_entropy(model(batch[0])[counts], batch[1][counts])

    def make_batch(size):
        labels = torch.arange(size * 256).reshape(size, 256) % 512
        return labels, labels.where(labels % 4 == 0, -100)

    recipe = Recipe(16, 2)
    model = build()
    optimizer = make_optimizer(model, recipe)
    window = [make_batch(16)] * 2
    bring_state_into_being(optimizer, recipe)
    real = allocator_peak(
        lambda: one_update(model, optimizer, window, loss_fn, recipe), bytes_in_use(model, optimizer, window)
    )
    predicted = predict_peak(build, loss_fn, make_batch, recipe).peak_bytes
    assert predicted == pytest.approx(real, rel=0.005)
    assert predicted < predict_peak(build, _all_tokens, make_batch, recipe).peak_bytes


def _all_tokens(model, batch):
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())
