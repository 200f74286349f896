"""Lesson 05's exercises: norms of many kinds are measured, and momenta hear which formula they are."""

from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from gradacc_lessons.quiz.exercises_norm import CHOOSE_NORM, CORRECTED_MOMENTUM
from gradacc_lessons.reference import momentum as reference
from gradacc_lessons.text import LANGUAGES


class ScaledToOne(nn.Module):
    """Somebody's own norm within one image: its root mean square becomes 1."""

    def forward(self, features: Any) -> Any:
        return features / features.pow(2).mean(dim=(1, 2, 3), keepdim=True).sqrt()


class AlongTheBatch(nn.Module):
    """A batch norm under another name, without running statistics."""

    def forward(self, features: Any) -> Any:
        return features - features.mean(dim=0, keepdim=True)


class SquareFirst(nn.Module):
    """The variance with its sign turned: the root of a negative number."""

    def forward(self, features: Any) -> Any:
        mean, square = (part.mean(dim=(1, 2, 3), keepdim=True) for part in (features, features.pow(2)))
        return (features - mean) / (mean.pow(2) - square).sqrt()


class Remembers(nn.Module):
    """Normalises by what it has seen so far, this time included."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Any = 0.0

    def forward(self, features: Any) -> Any:
        self.seen = 0.5 * self.seen + features.detach().pow(2).mean()
        return features / self.seen.sqrt()


def forged(channels: int) -> Any:
    """Makes the measurement itself say that all is well, as far as it can."""
    import gradacc_lessons.quiz.judge_norm as judge

    judge.measure = lambda layer, channels: ["well"]  # type: ignore[assignment]


RIGHT = {
    "group": lambda channels: nn.GroupNorm(4, channels),
    "one group": lambda channels: nn.GroupNorm(1, channels),
    "instance": lambda channels: nn.InstanceNorm2d(channels, affine=True),
    "own": lambda channels: ScaledToOne(),
}
WRONG = {
    "batch_statistics": [lambda channels: nn.BatchNorm2d(channels), lambda channels: AlongTheBatch()],
    "undone": [
        lambda channels: nn.BatchNorm2d(channels).eval(),
        lambda channels: nn.Sequential(nn.GroupNorm(4, channels), nn.BatchNorm2d(channels).eval()),
    ],
    "no_norm": [
        lambda channels: nn.Sequential(),
        lambda channels: nn.BatchNorm2d(channels, track_running_stats=True).eval().requires_grad_(False).apply(frozen),
        lambda channels: nn.ReLU(),
    ],
    "no_module": [
        lambda channels: None,
        lambda channels: lambda features: features,
        lambda channels: "GroupNorm",
        forged,
    ],
    "not_finite": [lambda channels: SquareFirst()],
    "random": [
        lambda channels: nn.Sequential(nn.GroupNorm(4, channels), nn.Dropout(0.1)),
        lambda channels: Remembers(),
    ],
    "wrong_shape": [lambda channels: nn.Flatten(), lambda channels: nn.Conv2d(channels, 8, 1)],
    "crashed": [
        lambda channels: nn.GroupNorm(5, channels),
        lambda channels: nn.LayerNorm(channels),
        lambda channels: nn.GroupNorm(8, channels),  # divides 16 and not 12
    ],
}


def frozen(module: nn.Module) -> None:
    """Takes the batch away from a BatchNorm, whatever mode it is put into."""
    module.train = lambda mode=True: module  # type: ignore[method-assign]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", RIGHT)
def test_any_norm_within_one_image_is_right(name: str) -> None:
    grade = CHOOSE_NORM.check(RIGHT[name])
    assert grade.correct, grade.feedback.en


@pytest.mark.few(8)
@pytest.mark.parametrize(("fault", "function"), [(fault, each) for fault, every in WRONG.items() for each in every])
def test_what_is_wrong_is_named(fault: str, function: Callable[..., Any]) -> None:
    grade = CHOOSE_NORM.check(function)
    assert grade.mistake == fault, grade.feedback.en
    assert grade.counted and not grade.correct


def test_a_norm_that_looks_hears_how_far_off_the_gradient_is() -> None:
    said = CHOOSE_NORM.check(lambda channels: nn.BatchNorm2d(channels)).feedback
    assert "At b = 2 they differ by " in said.en and "Bij b = 2 verschillen ze " in said.nl


def test_what_is_evaluated_hears_that_a_training_loop_undoes_it() -> None:
    said = CHOOSE_NORM.check(lambda channels: nn.BatchNorm2d(channels).eval()).feedback
    assert "`model.train()`, which undoes it" in said.en and "dat ongedaan maakt" in said.nl


def test_a_difference_below_a_percent_is_not_called_none() -> None:
    both = CHOOSE_NORM.check(lambda channels: nn.Sequential(nn.InstanceNorm2d(channels), nn.BatchNorm2d(channels)))
    assert both.mistake == "batch_statistics"
    assert "differ by less than 1 % of" in both.feedback.en and "verschillen ze minder dan 1 % van" in both.feedback.nl


def test_no_message_and_no_hint_names_a_right_layer() -> None:
    said = [grade.feedback for grade in (CHOOSE_NORM.check(every[0]) for every in WRONG.values())]
    for text in (*said, *CHOOSE_NORM.hints, CHOOSE_NORM.statement):
        for language in LANGUAGES:
            assert not any(name in text.to(language) for name in ("GroupNorm(", "InstanceNorm", "LayerNorm("))


def test_the_reference_is_right_and_so_is_a_loop() -> None:
    assert CORRECTED_MOMENTUM.check(lambda m, n: reference.corrected_momentum(m, n)).correct

    def by_halving(momentum: float, accumulation_steps: int) -> float:
        low, high = 0.0, 1.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if 1 - (1 - middle) ** accumulation_steps > momentum else (middle, high)
        return (low + high) / 2

    assert CORRECTED_MOMENTUM.check(by_halving).correct


def test_an_unforeseen_formula_hears_where_and_not_what() -> None:
    grade = CORRECTED_MOMENTUM.check(lambda momentum, accumulation_steps: momentum / accumulation_steps**2)
    assert grade.mistake is None and "of 3 visible checks hold" in grade.feedback.en
    assert f"{reference.corrected_momentum(0.1, 4):.4f}" not in grade.feedback.en


def in_float32(momentum: float, accumulation_steps: int) -> Any:
    import torch

    return 1 - (1 - torch.tensor(momentum)) ** (1 / accumulation_steps)


def in_float64(momentum: float, accumulation_steps: int) -> Any:
    import torch

    return 1 - (1 - torch.tensor([momentum], dtype=torch.float64)) ** (1 / accumulation_steps)


@pytest.mark.parametrize("function", [in_float32, in_float64])
def test_a_right_formula_is_right_as_a_tensor_too(function: Callable[..., Any]) -> None:
    grade = CORRECTED_MOMENTUM.check(function)
    assert grade.correct, grade.feedback.en


def test_a_wrong_formula_is_wrong_as_a_tensor_too() -> None:
    def divided(momentum: float, accumulation_steps: int) -> Any:
        import torch

        return torch.tensor(momentum) / accumulation_steps

    assert CORRECTED_MOMENTUM.check(divided).mistake == "divided"


def test_a_power_before_a_division_is_named() -> None:
    for function in (lambda m, n: 1 - (1 - m) ** 1 / n, lambda m, n: (1 - m) ** 1 / n):
        grade = CORRECTED_MOMENTUM.check(function)
        assert grade.mistake and grade.mistake.startswith("precedence")
        assert "parentheses around the exponent" in grade.feedback.en
