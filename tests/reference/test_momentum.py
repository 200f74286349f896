"""The corrected momentum weighs a window as the momentum weighs a batch; the running mean follows, the gradient not."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.norms import arranged, recipe_for
from gradacc_lessons.lessons.running_statistics import weight_of_window
from gradacc_lessons.lessons.training import training_windows
from gradacc_lessons.reference.momentum import correct_momentum, corrected_momentum
from gradacc_lessons.tasks import digits

SEEDS = range(20)
WITHIN = 0.02
"""What is promised of the running mean, relative to its length, with the weights held fixed."""
WINDOWS = 5


@given(st.floats(0, 1), st.integers(1, 256))
def test_n_moves_leave_what_one_move_leaves(momentum: float, n: int) -> None:
    assert (1 - corrected_momentum(momentum, n)) ** n == pytest.approx(1 - momentum, abs=1e-12)
    assert 0 <= corrected_momentum(momentum, n) <= momentum + 1e-15


@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_a_window_weighs_as_much_as_a_batch_in_torchs_own_layer(n: int) -> None:
    assert weight_of_window(0.1, n) == pytest.approx(1 - 0.9**n, abs=1e-12)
    assert weight_of_window(corrected_momentum(0.1, n), n) == pytest.approx(0.1, abs=1e-12)


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_running_mean_is_the_full_batchs_with_the_weights_held_fixed(model: str, seed: int) -> None:
    """After every window, at every layer, for shuffled and for sorted images."""
    task = digits(model, norm="batch", dtype=torch.float64)  # type: ignore[arg-type]
    stream = training_windows(task, recipe_for(64, 1, seed))
    windows = [next(stream)[0] for _ in range(WINDOWS)]
    for order, size in (("shuffled", 2), ("sorted", 16)):
        full, parts, plain = (task.build_model(seed) for _ in range(3))
        assert correct_momentum(parts, 64 // size) == (1 if model == "mlp" else 2)
        for window in windows:
            images = arranged(window, order)[0]  # type: ignore[arg-type]
            with torch.no_grad():
                full(images)
                for (part,) in split((images,), size):
                    parts(part)
                    plain(part)
            assert max(distances(parts, full)) < WITHIN
            assert min(distances(plain, full)) > WITHIN


def distances(model: nn.Module, full: nn.Module) -> list[float]:
    pairs = zip(model.named_buffers(), full.named_buffers(), strict=True)
    return [float((a - b).norm() / b.norm()) for (name, a), (_, b) in pairs if name.endswith("running_mean")]


class HomeMade(nn.Module):
    """Somebody's own norm."""

    def __init__(self, momentum: float | None) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(4))


class Student(nn.Module):
    """Its momentum is the share of the teacher that stays, and no business of ours."""

    momentum = 0.996


def test_every_module_with_running_statistics_is_corrected_and_no_other() -> None:
    norms = [nn.BatchNorm1d(4), nn.BatchNorm2d(4, momentum=0.3), HomeMade(0.2), HomeMade(1), HomeMade(None)]
    assert correct_momentum(nn.Sequential(*norms, Student(), nn.GroupNorm(2, 4)), 8) == 4
    assert [norm.momentum for norm in norms] == [*(corrected_momentum(m, 8) for m in (0.1, 0.3, 0.2, 1)), None]
    assert Student().momentum == 0.996


def test_a_plain_mean_over_equal_micro_batches_needs_no_correction() -> None:
    features = torch.randn(64, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    full, parts = (nn.BatchNorm1d(4, momentum=None, dtype=torch.float64) for _ in range(2))
    full(features)
    for part in features.split(8):
        parts(part)
    assert (full.running_mean - parts.running_mean).abs().max() < 1e-12  # type: ignore[operator]


@pytest.mark.parametrize(("momentum", "n"), [(-0.1, 2), (1.1, 2), (float("nan"), 2), (0.1, 0)])
def test_impossible_values_are_refused_in_a_sentence(momentum: float, n: int) -> None:
    with pytest.raises(ValueError, match=r"a momentum is a number from 0 to 1|at least 1 micro-batch"):
        corrected_momentum(momentum, n)
