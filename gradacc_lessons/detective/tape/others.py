"""Writes into tensors that are no gradients, and the learning rate."""

from collections.abc import Sequence

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer


class Writes:
    """Counts the tensors that were written to since the last look."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)
        self._versions = [tensor._version for tensor in self.tensors]

    def moved(self) -> int:
        """How many have another version than at the last look."""
        versions = [tensor._version for tensor in self.tensors]
        if versions == self._versions:
            return 0
        moved = sum(new != old for new, old in zip(versions, self._versions, strict=True))
        self._versions = versions
        return moved


class Rates:
    """Follows the learning rate, and the scheduler where one is given."""

    def __init__(self, optimizer: Optimizer | None, scheduler: LRScheduler | None) -> None:
        self.optimizers: list[Optimizer] = [] if optimizer is None else [optimizer]
        self.scheduler = scheduler
        self._rates = self._now()
        self._epoch = None if scheduler is None else scheduler.last_epoch

    @property
    def rate(self) -> float | None:
        """The learning rate of the first parameter group."""
        return self._rates[0][0] if self._rates and self._rates[0] else None

    def of(self, optimizer: Optimizer) -> float | None:
        """The learning rate of this optimizer, which is followed from now on."""
        if not any(optimizer is one for one in self.optimizers):
            self.optimizers.append(optimizer)
            self._rates = self._now()
        groups = optimizer.param_groups
        return float(groups[0]["lr"]) if groups and "lr" in groups[0] else None

    def moves(self) -> int:
        """How often the schedule moved since the last look, as far as can be seen."""
        rates, moves = self._now(), 0
        if self.scheduler is not None:
            moves, self._epoch = self.scheduler.last_epoch - (self._epoch or 0), self.scheduler.last_epoch
        elif rates != self._rates:
            moves = 1
        self._rates = rates
        return max(moves, 0)

    def _now(self) -> list[list[float]]:
        return [[float(group.get("lr", 0.0)) for group in one.param_groups] for one in self.optimizers]
