"""Whole numbers keep their values where tensors have no memory, and nothing else gets one."""

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.nn import functional as F

from gradacc_lessons import predict_peak
from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.known import MOST_VALUES, KnownNumbers
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
