"""GradCache gives the full batch's gradient: one encoder or two, ragged, with dropout, at one micro-batch's memory."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons import measure_peak
from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.pairs import contrastive_loss, embed, info_nce, pairs_of
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.reference.grad_cache import grad_cache, random_state, set_random_state
from gradacc_lessons.tasks import digits

ROUNDING = 1e-12  # relative; float64 keeps 16 digits, and sums lose a few
SEEDS = range(20)


class TwoTowers(nn.Module):
    """An encoder of images and one of texts, and a temperature that is learned, as in CLIP."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Dropout(dropout), nn.Linear(16, 6))
        self.text = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Dropout(dropout), nn.Linear(16, 6))
        self.scale = nn.Parameter(torch.tensor(1.5))

    def embed(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return self.image(batch[0]), self.text(batch[1])

    def loss(self, images: Tensor, texts: Tensor) -> Tensor:
        scores = self.scale.exp() * F.normalize(images) @ F.normalize(texts).T
        return F.cross_entropy(scores, torch.arange(len(scores)))


def towers(seed: int, dropout: float = 0.0) -> tuple[TwoTowers, tuple[Tensor, Tensor]]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = TwoTowers(dropout).double()
        return model, (torch.randn(24, 12).double(), torch.randn(24, 5).double())


def off(model: nn.Module, full: Tensor) -> float:
    """How far `.grad` is from the full batch's, relative to its length."""
    return float((gradient(model) - full).norm() / full.norm())


def embedded_with_all_graphs(model: TwoTowers, window: list[tuple[Tensor, ...]], seed: int) -> Tensor:
    """The gradient with every graph alive at once: what the second pass has to reproduce, masks included."""
    torch.manual_seed(seed)
    images, texts = zip(*(model.embed(batch) for batch in window), strict=True)
    model.loss(torch.cat(images), torch.cat(texts)).backward()
    full = gradient(model).clone()
    model.zero_grad()
    return full


@pytest.mark.parametrize("seed", SEEDS)
def test_one_encoder_of_two_views(seed: int) -> None:
    model, pairs = digits("mlp", dtype=torch.float64).build_model(seed), pairs_of(32, seed)
    whole = contrastive_loss(model, pairs)
    whole.backward()
    full = gradient(model).clone()
    for b in (16, 8, 5, 1):
        model.zero_grad()
        loss = grad_cache(model, split(pairs, b), embed, info_nce)
        assert off(model, full) < ROUNDING
        assert loss == pytest.approx(float(whole.detach()), rel=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_two_encoders_and_a_temperature_with_dropout_too(seed: int, dropout: float) -> None:
    model, batch = towers(seed, dropout)
    for b in (8, 7, 1):
        window = split(batch, b)
        full = embedded_with_all_graphs(model, window, seed)
        torch.manual_seed(seed)
        grad_cache(model, window, TwoTowers.embed, model.loss)
        assert off(model, full) < ROUNDING
        assert model.scale.grad is not None and float(model.scale.grad) != 0.0
        model.zero_grad()


def test_encoders_may_give_other_numbers_of_rows() -> None:
    """Questions with two answers each, one of them a hard negative: twice as many rows from the second encoder."""
    model, (questions, texts) = towers(0)
    batch = (questions, torch.stack([texts, texts.flip(0)], dim=1))  # (24, 12) and (24, 2, 5)

    def embed_all(net: nn.Module, part: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return model.image(part[0]), model.text(part[1].flatten(0, 1))

    def loss_fn(asked: Tensor, answers: Tensor) -> Tensor:
        return F.cross_entropy(asked @ answers.T, 2 * torch.arange(len(asked)))

    loss_fn(*embed_all(model, batch)).backward()
    full = gradient(model).clone()
    for b in (10, 1):
        model.zero_grad()
        grad_cache(model, split(batch, b), embed_all, loss_fn)
        assert off(model, full) < ROUNDING


@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_micro_batches_may_have_any_sizes(sizes: list[int]) -> None:
    model, _ = towers(0)
    generator = torch.Generator().manual_seed(sum(sizes))
    window = [
        tuple(torch.randn(size, width, generator=generator, dtype=torch.float64) for width in (12, 5)) for size in sizes
    ]
    full = embedded_with_all_graphs(model, window, 0)
    grad_cache(model, window, TwoTowers.embed, model.loss)
    # One pair alone has no negatives, and then there is nothing to learn.
    assert float((gradient(model) - full).norm()) <= ROUNDING * max(float(full.norm()), 1.0)


def test_other_masks_in_the_second_pass_would_be_seen() -> None:
    model, batch = towers(0, dropout=0.3)
    window = split(batch, 8)
    full = embedded_with_all_graphs(model, window, 0)
    torch.manual_seed(1)
    grad_cache(model, window, TwoTowers.embed, model.loss)
    assert off(model, full) > 0.01


def test_the_generator_ends_where_one_pass_leaves_it() -> None:
    model, batch = towers(0, dropout=0.3)
    torch.manual_seed(7)
    for piece in split(batch, 8):
        model.embed(piece)
    once = torch.get_rng_state()
    torch.manual_seed(7)
    grad_cache(model, split(batch, 8), TwoTowers.embed, model.loss)
    assert torch.equal(torch.get_rng_state(), once)


def test_what_the_loss_draws_is_not_drawn_again() -> None:
    """Noise in the loss: the generators end where embedding once, and the loss, leave them."""
    model, batch = towers(0, dropout=0.3)

    def noisy(images: Tensor, texts: Tensor) -> Tensor:
        return model.loss(images + 0.1 * torch.randn_like(images), texts)

    with torch.random.fork_rng():
        torch.manual_seed(5)
        embeddings = [model.embed(part) for part in split(batch, 8)]
        noisy(*map(torch.cat, zip(*embeddings, strict=True)))
        once = torch.rand(3)
        torch.manual_seed(5)
        grad_cache(model, split(batch, 8), TwoTowers.embed, noisy)
        assert torch.equal(torch.rand(3), once)


def test_an_embedding_that_the_loss_leaves_out_gets_no_gradient() -> None:
    model, batch = towers(0)
    grad_cache(model, split(batch, 8), TwoTowers.embed, lambda images, texts: images.square().mean())
    full = gradient(model)
    model.zero_grad()
    model.embed(batch)[0].square().mean().backward()
    assert (gradient(model) - full).norm() / full.norm() < ROUNDING


def test_a_frozen_encoder_gets_no_gradient_and_the_other_its_own() -> None:
    model, batch = towers(0)
    model.image.requires_grad_(False)
    full = embedded_with_all_graphs(model, split(batch, 24), 0)
    grad_cache(model, split(batch, 6), TwoTowers.embed, model.loss)
    assert all(parameter.grad is None for parameter in model.image.parameters())
    assert off(model, full) < ROUNDING


def test_it_adds_to_what_is_there() -> None:
    model, batch = towers(0)
    window = split(batch, 6)
    grad_cache(model, window, TwoTowers.embed, model.loss)
    once = gradient(model).clone()
    grad_cache(model, iter(window), TwoTowers.embed, model.loss)
    assert off(model, 2 * once) < ROUNDING


def test_running_statistics_move_twice_and_a_batch_norm_is_not_repaired() -> None:
    """As its docstring says: the examples of the encoder must not see one another."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8)).double()
    twin = deepcopy(model)
    batch = (torch.randn(16, 12).double(), torch.randn(16, 12).double())

    def embed_both(net: nn.Module, pair: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return net(pair[0]), net(pair[1])

    info_nce(*embed_both(twin, batch)).backward()
    grad_cache(model, split(batch, 4), embed_both, info_nce)
    assert off(model, gradient(twin)) > 0.01
    assert int(model[1].num_batches_tracked) == 2 * 2 * 4


def test_a_window_without_micro_batches_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 micro-batch"):
        grad_cache(nn.Linear(1, 1), [], lambda model, batch: (model(batch),), info_nce)


def test_it_keeps_the_activations_of_one_micro_batch_and_every_embedding() -> None:
    task = digits("cnn")
    model = task.build_model()
    pairs = (task.train[0][:64], task.train[0][64:128])

    def peak(run: Callable[[], object]) -> int:
        found = measure_peak(run, model=model, inputs=pairs)
        model.zero_grad()
        return found.peak_bytes

    def plain() -> None:
        for batch in split(pairs, 8):
            (contrastive_loss(model, batch) / 8).backward()

    whole = peak(lambda: contrastive_loss(model, pairs).backward())
    small = peak(plain)
    cached = peak(lambda: grad_cache(model, split(pairs, 8), embed, info_nce))
    every_embedding = 2 * 2 * 64 * 10 * 4  # two views, and the gradient of each
    assert whole > 3 * small
    assert small < cached < small + 3 * every_embedding + 64 * 64 * 4


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_devices_own_generator_is_kept_too() -> None:
    state = random_state()
    first = torch.rand(4, device="cuda")
    set_random_state(state)
    assert torch.equal(first, torch.rand(4, device="cuda"))
