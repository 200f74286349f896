"""Who wrote into the gradients, and what: told from tensor versions and a few of the values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

PROBES = 8
"""Parameters whose gradients are looked into."""
ENTRIES = 32
"""Entries of each that are looked at."""
DIVISORS = 1024
"""A whole number up to this one, by which a gradient is divided, is a number of micro-batches or items."""
LEAST_SCALE = 2.0**-6
"""A division by less than 64 that moves the version is somebody's mean, not the undoing of a loss scale."""

Write = Literal["zero_grad", "unscale", "clip", "gradient"]


@dataclass(frozen=True)
class Change:
    """What is different about the gradients since they were looked at last."""

    gone: tuple[int, ...]
    """Parameters whose gradient is None now."""
    moved: tuple[int, ...]
    """Parameters whose gradient has another version, or is another tensor."""
    writes: int
    """The most by which a version moved."""
    before: dict[int, Tensor]
    """Entries of the probed gradients, as they were."""
    after: dict[int, Tensor]
    """The same entries now; those whose gradient is None are missing."""


@dataclass(frozen=True)
class Written:
    """One thing that was done to the gradients."""

    what: Write
    """What it was; "gradient" is a write of another kind."""
    tensors: int
    """How many parameters it concerned."""
    factor: float | None = None
    """What the probed entries were multiplied by; None if not by one number."""
    complete: bool = False
    """No gradient is left."""
    finite: bool = True
    """Whether the probed entries were finite before."""


class GradientWatch:
    """Looks at the gradients of `parameters` between the events of a loop."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self.parameters = parameters
        self.probed = _probes(parameters)
        self._state: list[tuple[int, int] | None] = [_state(parameter.grad) for parameter in parameters]
        self._values: dict[int, Tensor] = {}
        self._sample()

    def accumulated(self, index: int) -> None:
        """A backward has just added to the gradient of this parameter."""
        gradient = self.parameters[index].grad
        self._state[index] = _state(gradient)
        if index in self.probed and gradient is not None:
            self._values[index] = _entries(gradient)

    def look(self) -> Change:
        """What was written since the last look, backwards aside."""
        before, gone, moved, writes = self._values, [], [], 0
        for index, parameter in enumerate(self.parameters):
            old, new = self._state[index], _state(parameter.grad)
            if old == new:
                continue
            self._state[index] = new
            if new is None:
                gone.append(index)
                continue
            moved.append(index)
            writes = max(writes, new[1] - old[1] if old is not None and old[0] == new[0] else 1)
        self._sample()
        # A copy, as the next backward renews our values.
        return Change(tuple(gone), tuple(moved), writes, before, dict(self._values))

    def norm(self) -> Tensor:
        """The norm of the whole gradient, as it is now."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        return torch.nn.utils.get_total_norm([_local(gradient) for gradient in gradients])

    def _sample(self) -> None:
        values = {}
        for index in self.probed:
            if (gradient := self.parameters[index].grad) is not None:
                values[index] = _entries(gradient)
        self._values = values


class Reader:
    """Tells from one Change after the other what was done; knows which parameters have a gradient."""

    def __init__(self) -> None:
        self.live: set[int] = set()

    def accumulated(self, indices: set[int]) -> None:
        """A backward added to these parameters' gradients."""
        self.live |= indices

    def read(self, change: Change) -> Iterator[Written]:
        """What was done, in the order in which it is most often done."""
        before = {index: values.double().cpu() for index, values in change.before.items()}
        after = {index: values.double().cpu() for index, values in change.after.items()}
        finite = all(bool(values.isfinite().all()) for values in before.values())
        common = [index for index in before if index in after]
        zeroed = [index for index in common if bool(before[index].any()) and not bool(after[index].any())]
        others = [index for index in common if index not in zeroed]
        different = [index for index in others if not _same(before[index], after[index])]
        moved = set(change.moved)
        cleared = {index for index in change.gone if index in self.live}
        if zeroed and not different:
            cleared |= moved & self.live
        if cleared:
            self.live -= cleared
            yield Written("zero_grad", len(cleared), complete=not self.live, finite=finite)
            moved -= cleared
        if different:
            yield from self._multiplied(change, before, after, different, len(moved), finite)
        elif moved and not zeroed and any(index in moved and bool(before[index].any()) for index in others):
            # Written and left as it was: a clipping whose coefficient is 1.
            yield Written("clip", len(moved), 1.0, finite=finite)
        elif moved - self.live:
            self.live |= moved
            yield Written("gradient", len(moved), finite=finite)

    def _multiplied(
        self,
        change: Change,
        before: dict[int, Tensor],
        after: dict[int, Tensor],
        different: list[int],
        moved: int,
        finite: bool,
    ) -> Iterator[Written]:
        old = torch.cat([before[index] for index in different])
        new = torch.cat([after[index] for index in different])
        # GradScaler's unscaling writes without moving the version, so what moved is all that is known of a count.
        count = moved or len(self.live)
        factor = _factor(old, new, _precision(change, different))
        if factor is None:
            clamped = finite and bool(((new.abs() <= old.abs()) & (new * old >= 0)).all())
            yield Written("clip" if clamped else "gradient", count, finite=finite)
            return
        # No coefficient of a clipping is one over a whole number, but a division for a mean is.
        whole = factor > 1 / DIVISORS and abs(round(1 / factor) * factor - 1) < 1e-6
        power = 2.0 ** round(_log2(factor))
        exact = factor <= 0.5 and abs(factor / power - 1) < 1e-5
        if exact and (not moved or factor <= LEAST_SCALE):
            yield Written("unscale", count, power, finite=finite)
            if moved:
                yield Written("clip", moved, 1.0, finite=finite)
        elif not moved:
            yield Written("gradient", count, factor, finite=finite)
        else:
            yield Written("clip" if 0 < factor < 1 and not whole else "gradient", moved, factor, finite=finite)


def _factor(old: Tensor, new: Tensor, precision: float) -> float | None:
    """The one number that turns `old` into `new`; None where there is none."""
    usable = old.isfinite() & (old != 0) & new.isfinite()
    if not bool(usable.any()):
        return None
    largest = int((old.abs() * usable).argmax())
    factor = float(new[largest] / old[largest])
    wrong = (new[usable] - old[usable] * factor).abs()
    return factor if factor and bool((wrong <= precision * new[usable].abs()).all()) else None


def _precision(change: Change, indices: list[int]) -> float:
    return 4 * max(torch.finfo(change.after[index].dtype).eps for index in indices)


def _log2(value: float) -> float:
    return float(torch.tensor(abs(value), dtype=torch.float64).log2())


def _same(before: Tensor, after: Tensor) -> bool:
    return torch.equal(before.nan_to_num(), after.nan_to_num())


def _state(gradient: Tensor | None) -> tuple[int, int] | None:
    return None if gradient is None else (id(gradient), gradient._version)


def _entries(gradient: Tensor) -> Tensor:
    row = _local(gradient.detach())
    if row.layout is not torch.strided:
        return torch.zeros(0)
    while row.dim() > 1:
        row = row[0]
    return row.reshape(-1)[:ENTRIES].clone()


def _local(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor that is spread over ranks."""
    part: Any = getattr(tensor, "to_local", None)
    return part() if part is not None else tensor


def _probes(parameters: Sequence[Tensor]) -> set[int]:
    """Vectors before matrices, as every entry of a bias gets a gradient; spread over the model."""
    wanted = [index for index, parameter in enumerate(parameters) if parameter.requires_grad]
    vectors = [index for index in wanted if parameters[index].dim() <= 1] or wanted
    if len(vectors) <= PROBES:
        return set(vectors)
    return {vectors[round(k * (len(vectors) - 1) / (PROBES - 1))] for k in range(PROBES)}
