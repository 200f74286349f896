"""Looks at the gradients of a model between the events of its loop: their versions, and a few of their values."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

PROBES = 4
"""Parameters whose gradients are looked into."""
ENTRIES = 32
"""Entries of each that are looked at."""


@dataclass(frozen=True)
class Change:
    """What is different about the gradients since they were looked at last. Its tensors nobody has waited for yet."""

    gone: tuple[int, ...]
    """Parameters whose gradient is None now."""
    moved: tuple[int, ...]
    """Parameters whose gradient has another version, or is another tensor."""
    before: dict[int, Tensor]
    """Entries of the probed gradients, as they were."""
    after: dict[int, Tensor]
    """The same entries now; those whose gradient is None are missing."""
    norm: Tensor | None = None
    """The norm of the whole gradient now, where it was taken."""
    scale: float | None = None
    """The scale of the GradScaler that was given."""


class GradientWatch:
    """Looks at the gradients of `parameters` between the events of a loop."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = parameters
        self.probed = _probes(parameters)
        wanted = [index for index, parameter in enumerate(parameters) if parameter.requires_grad]
        self.outer = {*wanted[:1], *wanted[-1:]}
        """The first parameter and the last: one of them is among the first to get its gradient."""
        self.state: list[tuple[int, int] | None] = [None] * len(parameters)
        """Of each gradient, which tensor it is and its version; always this list."""
        self._values: dict[int, Tensor] = {}
        self.look()

    def accumulated(self, index: int, gradient: Tensor) -> None:
        """A backward has just added to the gradient of this parameter."""
        self.state[index] = (id(gradient), gradient._version)
        if index in self.probed:
            self._values[index] = _entries(gradient)

    def look(self, *, closely: bool = True, norm: bool = False, scale: float | None = None) -> Change | None:
        """What was written since the last look, backwards aside; None if nothing was.

        GradScaler writes without moving a version. Looking `closely` compares values as well. `norm` takes the norm
        of the whole gradient if a version moved; `scale` is handed on.
        """
        state = [
            None if (gradient := one.grad) is None else (id(gradient), gradient._version) for one in self.parameters
        ]
        if state == self.state and not closely:
            return None
        before, gone, moved = self._values, [], []
        for index, (old, new) in enumerate(zip(self.state, state, strict=True)):
            if old == new:
                continue
            if new is None:
                gone.append(index)
                continue
            moved.append(index)
        self.state[:] = state
        self._sample()
        # A copy, as the next backward renews our values.
        length = self._norm() if norm and moved else None
        return Change(tuple(gone), tuple(moved), before, dict(self._values), length, scale)

    def _norm(self) -> Tensor:
        return torch.nn.utils.get_total_norm([one.grad for one in self.parameters if one.grad is not None])

    def _sample(self) -> None:
        values = {}
        for index in self.probed:
            if (gradient := self.parameters[index].grad) is not None:
                values[index] = _entries(gradient)
        self._values = values


def _entries(gradient: Tensor) -> Tensor:
    row = gradient.detach()
    if type(row) is not Tensor:  # spread over ranks: the part of this one
        row = getattr(row, "to_local", lambda: row)()
    if row.layout is not torch.strided:
        return torch.zeros(0)
    while row.dim() > 1:
        row = row[0]
    return row[:ENTRIES].clone() if row.dim() else row.reshape(1).clone()


def _probes(parameters: Sequence[Tensor]) -> set[int]:
    """Vectors before matrices, as every entry of a bias gets a gradient; spread over the model."""
    wanted = [index for index, parameter in enumerate(parameters) if parameter.requires_grad]
    vectors = [index for index in wanted if parameters[index].dim() <= 1] or wanted
    if len(vectors) <= PROBES:
        return set(vectors)
    return {vectors[round(k * (len(vectors) - 1) / (PROBES - 1))] for k in range(PROBES)}
