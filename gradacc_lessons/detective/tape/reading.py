"""Who wrote into the gradients, and what: told from tensor versions and a few of the values."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2
from typing import Literal

import torch
from torch import Tensor

from gradacc_lessons.detective.tape.gradients import Change

DIVISORS = 1024
"""A whole number up to this one, by which a gradient is divided, is a number of micro-batches or items."""
LEAST_SCALE = 2.0**-6
"""A division by less than 64 that moves the version is somebody's mean, not the undoing of a loss scale."""
FIRST_SCALE = 2.0**16
"""A GradScaler begins with this scale."""
SMALL_NORM = 1e-3
"""Nobody clips to less than this on purpose."""

Write = Literal["zero_grad", "unscale", "clip", "gradient", "all_reduce"]


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
    """Of zero_grad: no gradient is left. Of gradient: it was put where there was none."""
    finite: bool = True
    """Whether the probed entries were finite before."""
    norm: float | None = None
    """Of clip: the norm it left, where that was taken."""
    scaled: float | None = None
    """Of clip: how many times too long the gradient still was."""


class Reader:
    """Tells from one Change after the other what was done; knows which parameters have a gradient."""

    def __init__(self) -> None:
        self.live: set[int] = set()
        self._synchronised = False

    def accumulated(self, indices: set[int], *, synchronised: bool) -> None:
        """A backward added to these parameters' gradients; `synchronised` if it all-reduces them afterwards."""
        self.live |= indices
        self._synchronised = synchronised

    def read(self, change: Change) -> Iterator[Written]:
        """What was done, in the order in which it is most often done."""
        before = {index: values.double().cpu() for index, values in change.before.items()}
        after = {index: values.double().cpu() for index, values in change.after.items()}
        finite = all(bool(values.isfinite().all()) for values in before.values())
        common = [index for index in before if index in after]
        zeroed = [index for index in common if bool(before[index].any()) and not bool(after[index].any())]
        different = [index for index in common if index not in zeroed and not _same(before[index], after[index])]
        moved = set(change.moved)
        cleared = self.live.intersection(change.gone)
        if zeroed and not different:
            cleared |= moved & self.live
        if cleared:
            self.live -= cleared
            yield Written("zero_grad", len(cleared), complete=not self.live, finite=finite)
            moved -= cleared
        if self._synchronised and moved:
            self._synchronised = False
            yield Written("all_reduce", len(moved))
        elif different:
            yield from self._multiplied(change, [before[i] for i in different], [after[i] for i in different], moved)
        elif new := moved - self.live:
            self.live |= new
            yield Written("gradient", len(new), complete=True)
        elif any(index in moved and bool(before[index].any()) for index in common):
            # Written and left as it was: a clipping whose coefficient is 1.
            yield Written("clip", len(moved), 1.0, finite=finite)

    def _multiplied(
        self, change: Change, before: list[Tensor], after: list[Tensor], moved: set[int]
    ) -> Iterator[Written]:
        old, new = torch.cat(before), torch.cat(after)
        finite = bool(old.isfinite().all())
        # GradScaler's unscaling writes without moving the version, so what moved says nothing about how many.
        count = len(moved) or len(self.live)
        precision = 4 * max(torch.finfo(values.dtype).eps for values in change.after.values())
        factor = _factor(old, new, precision)
        if factor is None:
            clamped = finite and bool(((new.abs() <= old.abs()) & (new * old >= 0)).all())
            yield Written("clip" if clamped else "gradient", count, finite=finite)
        elif _is_power(factor) and (not moved or factor <= LEAST_SCALE):
            yield Written("unscale", count, 2.0 ** round(log2(factor)), finite=finite)
            if moved and change.scale is not None:  # a GradScaler moves no version, so somebody else did
                yield Written("clip", count, 1.0, finite=finite)
        elif not moved or factor < 0 or factor > 1 or _is_mean(factor):
            yield Written("gradient", count, factor, finite=finite)
        else:
            yield from _shortened(change, factor, count, finite)


def _shortened(change: Change, factor: float, count: int, finite: bool) -> Iterator[Written]:
    """A clipping, and with it an unscaling where one is certain: both may happen between two hooks."""
    norm = None if change.norm is None else float(change.norm)
    scale = change.scale if change.scale is not None else FIRST_SCALE
    unscaled = change.scale is not None and scale > 1 and factor * scale < 1 + 1e-3
    # What is clipped has the norm that somebody chose, so a round one; unscaled afterwards, it has that over the scale.
    too_early = norm is not None and norm < SMALL_NORM and not _is_round(norm) and _is_round(norm * scale)
    if too_early and (unscaled or change.scale is None):
        yield Written("clip", count, finite=finite, norm=(norm or 0.0) * scale, scaled=scale)
        yield Written("unscale", count, 1 / scale, finite=finite)
    elif unscaled:
        yield Written("unscale", count, 1 / scale, finite=finite)
        yield Written("clip", count, factor * scale, finite=finite, norm=norm)
    else:
        yield Written("clip", count, factor, finite=finite, norm=norm)


def _is_power(factor: float) -> bool:
    """Whether it is an exact 1/2, 1/4, 1/8 and so on: a loss scale is a power of two."""
    return 0 < factor <= 0.5 and abs(factor / 2.0 ** round(log2(factor)) - 1) < 1e-5


def _is_mean(factor: float) -> bool:
    """Whether it is one over a whole number: no coefficient of a clipping is, but a division for a mean is."""
    return factor * DIVISORS > 1 and abs(round(1 / factor) * factor - 1) < 1e-6


def _is_round(norm: float) -> bool:
    """Whether it has one or two digits that say something, as 0.5, 1 and 2.5 have; clipping is that exact."""
    return abs(float(f"{norm:.1e}") / norm - 1) < 1e-4


def _factor(old: Tensor, new: Tensor, precision: float) -> float | None:
    """The one number that turns `old` into `new`; None where there is none."""
    usable = old.isfinite() & (old != 0) & new.isfinite()
    if not bool(usable.any()):
        return None
    largest = int(old.nan_to_num(0, 0, 0).abs().argmax())
    factor = float(new[largest] / old[largest])
    wrong = (new[usable] - old[usable] * factor).abs()
    return factor if factor and bool((wrong <= precision * new[usable].abs()).all()) else None


def _same(before: Tensor, after: Tensor) -> bool:
    return torch.equal(before.nan_to_num(), after.nan_to_num())
