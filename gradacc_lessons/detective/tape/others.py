"""Writes into tensors that are no gradients, and the learning rate."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.optim.optimizer import Optimizer


class Writes:
    """Counts the tensors that were written to since the last look."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = list(tensors)
        self._versions = [tensor._version for tensor in self._tensors]

    def moved(self) -> int:
        """How many have another version than at the last look."""
        versions = [tensor._version for tensor in self._tensors]
        if versions == self._versions:
            return 0
        moved = sum(new != old for new, old in zip(versions, self._versions, strict=True))
        self._versions = versions
        return moved


class Rates:
    """Follows the learning rate, and the scheduler where one is given."""

    def __init__(self, optimizer: Optimizer | None, scheduler: Any) -> None:
        self._optimizers: list[Optimizer] = [] if optimizer is None else [optimizer]
        self._scheduler = getattr(scheduler, "scheduler", scheduler)  # Accelerate wraps it
        self._rates = self._now()
        self._moved = self._counter()

    @property
    def rate(self) -> float | None:
        """The learning rate of the first parameter group."""
        return next((rate for rates in self._rates for rate in rates), None)

    def of(self, optimizer: Optimizer) -> float | None:
        """The learning rate of this optimizer, which is followed from now on."""
        if not any(optimizer.param_groups is one.param_groups for one in self._optimizers):
            self._optimizers.append(optimizer)
            self._rates = self._now()
        return next((float(group["lr"]) for group in optimizer.param_groups if "lr" in group), None)

    def moves(self) -> int:
        """How often the schedule moved since the last look, as far as can be seen."""
        rates, counter = self._now(), self._counter()
        moves = int(rates != self._rates) if counter is None or self._moved is None else counter - self._moved
        self._rates, self._moved = rates, counter
        return max(moves, 0)

    def _counter(self) -> int | None:
        return getattr(self._scheduler, "last_epoch", None)

    def _now(self) -> list[list[float]]:
        return [[float(group["lr"]) for group in one.param_groups if "lr" in group] for one in self._optimizers]
