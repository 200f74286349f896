"""Where the rows of one example come to depend on the other examples of the batch.

Every module's inputs and outputs in the run of the whole batch are remembered. In a micro-batch's run they are compared
with the rows of its examples. Where a module gets the right rows and gives other ones, it mixes. It is then given the
remembered rows to go on with, so that the modules behind it can be judged as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.detective.examination.rows import Cut, Rows
from gradacc_lessons.detective.examination.watch import NOBODY, Spot, Trail, Watcher, fingerprint


@dataclass(frozen=True)
class Source:
    """A spot where rows were what they should be."""

    spot: Spot
    """Where."""
    dimension: int
    """Which dimension counts the rows there."""


@dataclass(frozen=True)
class Mixed:
    """A spot at which rows depend on other rows, although everything before it does not."""

    spot: Spot
    """Where it shows."""
    blamed: str
    """The module that mixes: the spot's own, or the one whose forward calls it."""
    dimension: int
    """Which dimension counts the rows there."""
    dimensions: int
    """How many there are."""
    source: Source | None
    """What was last right before it."""


class Finder(Watcher):
    """Compares a micro-batch's run with the trail, and puts it right wherever it leaves it."""

    def __init__(
        self, modules: Mapping[str, nn.Module], trail: Trail, cut: Cut, drawn: Callable[[], Any] = lambda: None
    ) -> None:
        """`drawn()` tells which random numbers were drawn so far that the whole batch's run did not draw."""
        super().__init__(modules)
        self._trail, self._cut, self._drawn = trail, cut, drawn
        self._last: Source | None = None
        self._rows: Rows | None = None
        self._drawn_before: Any = None
        self.found: list[Mixed] = []

    def begun(self) -> None:
        self._drawn_before = self._drawn()

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        if self._calls_in_forward is not None or spot not in self._trail.tensors:
            return tensor
        whole = self._trail.tensors[spot]
        rows = self._cut.rows(tensor, whole, self._rows)
        if rows is None:
            return tensor
        drawn = self._drawn()
        if not rows.agree:
            if drawn == self._drawn_before:  # else its own random numbers may be the reason
                self.found.append(Mixed(spot, self._blamed(spot), rows.dimension, tensor.dim(), self._last))
            # What was computed stays in the graph: a loss that asks for gradients within itself finds one.
            tensor = whole.index_select(rows.dimension, rows.index) + (tensor - tensor.detach()).nan_to_num()
        self._last, self._rows, self._drawn_before = Source(spot, rows.dimension), rows, drawn
        return tensor

    def _blamed(self, spot: Spot) -> str:
        """Who mixes; the loss, if it gave the module other weights in this run than in that of the whole batch."""
        before = self._trail.weights.get((spot.module, spot.call))
        now = fingerprint(self._modules[spot.module])
        if spot.side == "out" and before is not None and len(before) == len(now):
            scale = max(map(abs, before), default=0.0)
            if any(abs(a - b) > self._cut.tolerance * scale for a, b in zip(before, now, strict=True)):
                return NOBODY
        return self._trail.blamed(spot)


class Bypass(Watcher):
    """Puts the remembered rows at the spots that mix, with a gradient that keeps to its row.

    In place of what was computed goes remembered * gate + (s - s.detach()): `s` is, for each row, the sum of what was
    last right before it, so what lies before still gets a gradient; `gate` is a one, whose gradient says what the
    loss wants of these rows.
    """

    def __init__(self, modules: Mapping[str, nn.Module], trail: Trail, mixed: Sequence[Mixed], cut: Cut | None) -> None:
        """`cut` None is the run of the whole batch."""
        super().__init__(modules)
        self._trail, self._cut = trail, cut
        self._mixed = {one.spot: one for one in mixed}
        self._sources = {one.source.spot: one.source for one in mixed if one.source is not None}
        self._sums: dict[Spot, Tensor] = {}
        self._rows: dict[Spot, Rows | None] = {}
        self._gates = {one.spot: _gate(trail.tensors[one.spot]) for one in mixed}

    @property
    def extra(self) -> list[Tensor]:
        return list(self._gates.values())

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        one = self._mixed.get(spot)
        if one is not None:
            tensor = self._instead(one, tensor)
        if (source := self._sources.get(spot)) is not None:
            rows = tensor.movedim(source.dimension, 0)
            self._sums[spot] = rows.flatten(1).sum(1) if rows.dim() > 1 else rows
            self._rows[spot] = None if self._cut is None else self._cut.rows(tensor, self._trail.tensors[spot])
        return tensor

    def _instead(self, one: Mixed, tensor: Tensor) -> Tensor:
        right = self._remembered(one, tensor) * self._gates[one.spot]
        sums = self._sums.get(one.source.spot) if one.source is not None else None
        if sums is None or not sums.requires_grad or right.shape[one.dimension] % len(sums):
            return right
        shape = [1] * right.dim()
        shape[one.dimension] = -1
        sums = sums.repeat_interleave(right.shape[one.dimension] // len(sums)).view(shape)
        return right + (sums - sums.detach())

    def _remembered(self, one: Mixed, tensor: Tensor) -> Tensor:
        whole = self._trail.tensors[one.spot]
        if self._cut is None:
            return whole
        before = self._rows.get(one.source.spot) if one.source is not None else None
        rows = self._cut.rows(tensor, whole, before)
        return whole if rows is None else whole.index_select(rows.dimension, rows.index)


def _gate(whole: Tensor) -> Tensor:
    return torch.ones((), dtype=whole.dtype, device=whole.device, requires_grad=True)
