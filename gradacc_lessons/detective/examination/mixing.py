"""Where the rows of one example come to depend on the other examples of the batch.

Every module's inputs and outputs in the run of the whole batch are remembered. In a micro-batch's run they are compared
with the rows of its examples. Where a module gets the right rows and gives other ones, it mixes. It is then given the
remembered rows to go on with, so that the modules behind it can be judged as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gradacc_lessons.detective.examination.batches import copied

TOLERANCE = 1e-7
"""Of the largest number in a tensor: float64's rounding through a deep model is far below it."""
NATIVE_TOLERANCE = 1e-3
"""The same, for what runs in float32 or less."""

MOST_COLUMNS = 64
"""Numbers of a row that are looked at to find its like."""
Side = Literal["in", "out"]


@dataclass(frozen=True)
class Spot:
    """One tensor that goes into a module's call, or comes out of it."""

    module: str
    """The module's name."""
    call: int
    """Which of its calls, from 0."""
    side: Side
    """"in" or "out"."""
    position: int
    """Which of the tensors, from 0."""


@dataclass(frozen=True)
class Rows:
    """How a tensor of a micro-batch belongs to one of the whole batch."""

    dimension: int
    """The one that counts rows."""
    index: Tensor
    """The rows of the whole batch's tensor, in the order in which the micro-batch has them."""


@dataclass
class Mixed:
    """A spot at which rows depend on other rows, although everything before it does not."""

    spot: Spot
    """Where it shows."""
    blamed: str
    """The module that mixes: the spot's own, or the one whose forward calls it."""
    dimension: int
    """Which dimension counts the rows there."""
    source: "Right | None"
    """What was last right before it."""


@dataclass(frozen=True)
class Right:
    """A spot where rows were what they should be."""

    spot: Spot
    """Where."""
    dimension: int
    """Which dimension counts the rows there."""


@dataclass
class Trail:
    """What the run of the whole batch left: a copy of each tensor at each spot."""

    examples: int
    """B."""
    tensors: dict[Spot, Tensor] = field(default_factory=dict)
    """By spot, in the order of the run."""
    parents: dict[str, str] = field(default_factory=dict)
    """Which module's forward was running when a module was called; "" for the model, "-" for no module."""


class Watcher:
    """Hooks on modules for one forward. Calls a function with each tensor; what that returns goes on instead."""

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        self._modules = modules
        self._calls: dict[str, int] = {}
        self._running: list[tuple[str, int]] = []

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        """What goes on in place of the tensor."""
        raise NotImplementedError

    def entered(self, module: str, parent: str) -> None:
        """A module's forward begins, called by another's."""

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """The hooks are there for the body."""
        handles = []
        try:
            for name, module in self._modules.items():
                handles.append(module.register_forward_pre_hook(self._before(name), with_kwargs=True))
                handles.append(module.register_forward_hook(self._after(name), with_kwargs=True, always_call=False))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _before(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
            call = self._calls.get(name, 0)
            self._calls[name] = call + 1
            self.entered(name, self._running[-1][0] if self._running else "-")
            self._running.append((name, call))
            return self._through((args, kwargs), name, call, "in")

        return hook

    def _after(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
            while self._running and self._running[-1][0] != name:  # a forward that ended in a caught exception
                self._running.pop()
            if not self._running:
                return output
            _, call = self._running.pop()
            return self._through(output, name, call, "out")

        return hook

    def _through(self, value: Any, module: str, call: int, side: Side) -> Any:
        position, changed = 0, False

        def seen(tensor: Tensor) -> Tensor:
            nonlocal position, changed
            spot = Spot(module, call, side, position)
            position += 1
            if not tensor.is_floating_point() or tensor.layout != torch.strided:
                return tensor
            instead = self.at(spot, tensor)
            changed = changed or instead is not tensor
            return instead

        new = copied(value, seen)
        return new if changed else value


class Recorder(Watcher):
    """Keeps a copy of everything: for the run of the whole batch."""

    def __init__(self, modules: Mapping[str, nn.Module], examples: int) -> None:
        super().__init__(modules)
        self.trail = Trail(examples)

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        self.trail.tensors[spot] = tensor.detach().clone()
        return tensor

    def entered(self, module: str, parent: str) -> None:
        self.trail.parents.setdefault(module, parent)


class Finder(Watcher):
    """Compares a micro-batch's run with the trail, and puts it right wherever it leaves it."""

    def __init__(
        self, modules: Mapping[str, nn.Module], trail: Trail, piece: tuple[int, int], tolerance: float = TOLERANCE
    ) -> None:
        super().__init__(modules)
        self._trail, self._piece, self._tolerance = trail, piece, tolerance
        self._last: Right | None = None
        self.found: list[Mixed] = []

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        whole = self._trail.tensors.get(spot)
        if whole is None:
            return tensor
        rows = rows_of(tensor, whole, self._piece, self._trail.examples, self._tolerance)
        if rows is None:
            return tensor
        right = whole.index_select(rows.dimension, rows.index)
        if not _same(tensor, right, self._tolerance):
            blamed = spot.module if spot.side == "out" else self._trail.parents.get(spot.module, "-")
            self.found.append(Mixed(spot, blamed, rows.dimension, self._last))
            tensor = right.clone()
        self._last = Right(spot, rows.dimension)
        return tensor


class Bypass(Watcher):
    """Puts the remembered rows at the spots that mix, with a gradient that keeps to its row.

    In place of what was computed goes remembered * gate + (s - s.detach()): `s` is, for each row, the sum of what was
    last right before it, so what lies before still gets a gradient; `gate` is a tensor of ones, whose gradient says
    what the loss wants of these rows.
    """

    def __init__(
        self, modules: Mapping[str, nn.Module], trail: Trail, mixed: Sequence[Mixed], piece: tuple[int, int] | None
    ) -> None:
        super().__init__(modules)
        self._trail, self._piece = trail, piece
        self._mixed = {one.spot: one for one in mixed}
        self._sources = {one.source.spot: one.source for one in mixed if one.source is not None}
        self._sums: dict[Spot, Tensor] = {}
        self.gates = {one.spot: _gate(trail, one.spot) for one in mixed}

    @contextmanager
    def gated(self) -> Iterator[list[Tensor]]:
        """The hooks are there for the body, which gets the gates."""
        with self.hooked():
            yield list(self.gates.values())

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        one = self._mixed.get(spot)
        if one is not None:
            tensor = self._instead(one, tensor)
        if (source := self._sources.get(spot)) is not None:
            rows = tensor.movedim(source.dimension, 0)
            self._sums[spot] = rows.flatten(1).sum(1) if rows.dim() > 1 else rows
        return tensor

    def _instead(self, one: Mixed, tensor: Tensor) -> Tensor:
        right = self._remembered(one, tensor) * self.gates[one.spot]
        sums = self._sums.get(one.source.spot) if one.source is not None else None
        if sums is None or not sums.requires_grad or right.shape[one.dimension] % len(sums):
            return right
        shape = [1] * right.dim()
        shape[one.dimension] = -1
        sums = sums.repeat_interleave(right.shape[one.dimension] // len(sums)).view(shape)
        return right + (sums - sums.detach())

    def _remembered(self, one: Mixed, tensor: Tensor) -> Tensor:
        whole = self._trail.tensors[one.spot]
        if self._piece is None:
            return whole
        rows = rows_of(tensor, whole, self._piece, self._trail.examples, TOLERANCE)
        return whole if rows is None else whole.index_select(rows.dimension, rows.index)


def _gate(trail: Trail, spot: Spot) -> Tensor:
    whole = trail.tensors[spot]
    return torch.ones((), dtype=whole.dtype, device=whole.device, requires_grad=True)


def rows_of(tensor: Tensor, whole: Tensor, piece: tuple[int, int], examples: int, tolerance: float) -> Rows | None:
    """Which rows of the whole batch's tensor a micro-batch's tensor should have; None if that cannot be told."""
    if tensor.dim() != whole.dim():
        return None
    differing = [k for k, (a, b) in enumerate(zip(tensor.shape, whole.shape, strict=True)) if a != b]
    if len(differing) != 1:
        return None
    (dimension,) = differing
    first, size = piece
    length = whole.shape[dimension]
    if length % examples or tensor.shape[dimension] * examples != length * size:
        return None
    times = length // examples
    every = torch.arange(length, device=whole.device)
    block = every[first * times : (first + size) * times]
    turns = every.view(times, examples)[:, first : first + size].flatten()
    for index in (block, turns, _nearest(tensor, whole, dimension)):
        if _same(tensor, whole.index_select(dimension, index), tolerance):
            return Rows(dimension, index)
    return Rows(dimension, block)


def _nearest(tensor: Tensor, whole: Tensor, dimension: int) -> Tensor:
    """For each row of one tensor the row of the other that is most like it: rows may have changed places."""
    mine, theirs = (each.detach().movedim(dimension, 0).flatten(1).double() for each in (tensor, whole))
    if mine.shape[1] > MOST_COLUMNS:
        step = -(-mine.shape[1] // MOST_COLUMNS)
        mine, theirs = mine[:, ::step], theirs[:, ::step]
    return torch.cdist(mine, theirs, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)


def _same(tensor: Tensor, right: Tensor, tolerance: float) -> bool:
    scale = float(right.abs().max()) if right.numel() else 0.0
    difference = (tensor.detach() - right).abs()
    if not right.numel():
        return True
    return bool((difference <= tolerance * scale).logical_or(tensor.detach() == right).all())
