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


RIGHT = {
    "group": lambda channels: nn.GroupNorm(4, channels),
    "one group": lambda channels: nn.GroupNorm(1, channels),
    "instance": lambda channels: nn.InstanceNorm2d(channels, affine=True),
    "own": lambda channels: ScaledToOne(),
}
WRONG = {
    "batch_statistics": [lambda channels: nn.BatchNorm2d(channels), lambda channels: AlongTheBatch()],
    "no_norm": [
        lambda channels: nn.Sequential(),
        lambda channels: nn.BatchNorm2d(channels, track_running_stats=True).eval().requires_grad_(False).apply(frozen),
        lambda channels: nn.ReLU(),
    ],
    "no_module": [lambda channels: None, lambda channels: lambda features: features, lambda channels: "GroupNorm"],
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


@pytest.mark.parametrize("name", RIGHT)
def test_any_norm_within_one_image_is_right(name: str) -> None:
    grade = CHOOSE_NORM.check(RIGHT[name])
    assert grade.correct, grade.feedback.en


@pytest.mark.parametrize(("fault", "function"), [(fault, each) for fault, every in WRONG.items() for each in every])
def test_what_is_wrong_is_named(fault: str, function: Callable[..., Any]) -> None:
    grade = CHOOSE_NORM.check(function)
    assert grade.mistake == fault, grade.feedback.en
    assert grade.counted and not grade.correct


def test_a_norm_that_looks_hears_how_far_off_the_gradient_is() -> None:
    said = CHOOSE_NORM.check(lambda channels: nn.BatchNorm2d(channels)).feedback
    assert "At b = 2 they differ by " in said.en and "Bij b = 2 verschillen ze " in said.nl


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
