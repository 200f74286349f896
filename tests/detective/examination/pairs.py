"""Models and losses as people write them, with what `examine` has to find in each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

B = 8
"""Examples in a batch, if nothing else is said."""


@dataclass(frozen=True)
class Parts:
    """What `examine` is called with."""

    model: nn.Module
    """In the mode in which it is examined."""
    loss_fn: Callable[[Any, Any], Tensor]
    """loss_fn(model, batch)."""
    batch: Any
    """The whole batch."""
    micro_batch_size: int = 2
    """How it is cut."""
    options: dict[str, Any] = field(default_factory=dict)
    """count=, where it is given."""
    others: tuple[nn.Module, ...] = ()
    """Modules of the loss, which must be left alone as well."""


@dataclass(frozen=True)
class Pair:
    """A model and a loss with the verdict on them."""

    name: str
    """What it is."""
    build: Callable[[], Parts]
    """Makes it, from torch's seed 0."""
    causes: tuple[str, ...]
    """Their ids, in order."""
    additive: bool
    """Whether the gradients agree."""


PAIRS: list[Pair] = []
"""Those of the modules that were imported so far."""


def pair(*causes: str, additive: bool | None = None) -> Callable[[Callable[[], Parts]], Callable[[], Parts]]:
    """Adds the function to the table, under its name. Additive if there is no cause, unless it is said."""

    def kept(build: Callable[[], Parts]) -> Callable[[], Parts]:
        PAIRS.append(Pair(build.__name__, build, causes, not causes if additive is None else additive))
        return build

    return kept


def batch(features: int = 6, classes: int = 3, examples: int = B) -> tuple[Tensor, Tensor]:
    """Random rows with labels."""
    return torch.randn(examples, features), torch.randint(0, classes, (examples,))


def images(examples: int = B) -> tuple[Tensor, Tensor]:
    """Random images with labels."""
    return torch.randn(examples, 1, 8, 8), torch.randint(0, 4, (examples,))


def cross_entropy(model: nn.Module, data: Any) -> Tensor:
    """The mean that people write."""
    return nn.functional.cross_entropy(model(data[0]), data[1])


def mlp(*middle: nn.Module) -> nn.Sequential:
    """6 -> 8 -> 3."""
    return nn.Sequential(nn.Linear(6, 8), *middle, nn.Tanh(), nn.Linear(8, 3))


def cnn(norm: Callable[[int], nn.Module]) -> nn.Sequential:
    """Two convolutions, each with a norm behind it."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), norm(4), nn.ReLU(inplace=True), nn.Conv2d(4, 8, 3), norm(8), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip
