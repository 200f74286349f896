"""A small model, data and an optimizer for loops under a tape."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons import Tape, trace

N, LENGTH, EPOCHS = 4, 10, 2
"""Accumulation steps, micro-batches in an epoch, epochs: the last window of an epoch has 2."""
WINDOWS = [4, 4, 2, 4, 4, 2]


class Net(nn.Module):
    """Two layers; it returns its loss if it is given labels."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8)), nn.Linear(8, 3)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Any:
        logits = self.head(torch.tanh(self.body(x)))
        return logits if labels is None else {"loss": F.cross_entropy(logits, labels), "logits": logits}


def net(seed: int = 0) -> Net:
    """The same model each time."""
    torch.manual_seed(seed)
    return Net()


def batches(length: int = LENGTH, size: int = 2, seed: int = 1) -> list[tuple[Tensor, Tensor]]:
    """`length` micro-batches of `size` examples."""
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(size, 6, generator=generator), torch.randint(3, (size,), generator=generator))
        for _ in range(length)
    ]


def cuts(length: int = LENGTH, n: int = N) -> Iterator[tuple[int, int, int]]:
    """For each micro-batch of one epoch: its place, the length of its window, and whether it is the last of it."""
    for i in range(length):
        window = min(n, length - i // n * n)
        yield i, window, int((i + 1) % n == 0 or i + 1 == length)


@contextmanager
def taped(model: nn.Module, *given: Any, **more: Any) -> Iterator[Tape]:
    """A tape that knows N and the length of an epoch."""
    with trace(model, *given, **{"accumulation_steps": N, "micro_batches_per_epoch": LENGTH, **more}) as tape:
        yield tape


def ids(tape: Tape) -> list[str]:
    """The ids of its findings."""
    return [finding.id for finding in tape.findings]


def lengths(tape: Tape) -> list[int]:
    """How many micro-batches each update applies."""
    return [len(window.fresh) for window in tape.windows if window.outcome == "updated"]


def kinds(tape: Tape, window: int) -> list[str]:
    """What happened in a window, in order."""
    return [event.kind for event in tape.windows[window - 1].events]
