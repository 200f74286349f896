"""The micro-batches' gradients, added up with weights, against the gradient of the whole batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from gradacc_lessons.detective.examination.gradients import Gradient
from gradacc_lessons.nested import named_tensors

Weights = tuple[float, ...]
MOST_ROWS = 40_000
"""Numbers of one gradient that a fit looks at; what it finds is then tried on all of them."""
MOST_TERMS = 20
"""Weights are told as whole numbers, as in 3 : 10 : 50, if the smallest is at most this."""


LEAST_WEIGHT = 1e-6
"""Less is rounding."""


@dataclass(frozen=True)
class Tolerance:
    """How far two gradients of one parameter may be apart."""

    relative: float
    """Of the length of the whole batch's gradient of this parameter."""
    added: float
    """Of the lengths of what was added up: numbers that cancel leave their rounding behind."""
    whole: float
    """Of the length of the whole gradient: a parameter whose gradient is zero has one of rounding."""


FLOAT64 = Tolerance(relative=1e-6, added=1e-9, whole=1e-12)
"""Rounding is below 1e-10 of any of them; causes show far above."""
NATIVE = Tolerance(relative=1e-2, added=1e-4, whole=1e-3)
"""For what runs in 16 bits only: the widest there is."""
FLOAT32 = Tolerance(relative=1e-5, added=1e-6, whole=1e-7)
"""For what runs in float32 only: the narrowest there is."""
TIMES_ROUNDING = 30.0
"""A tolerance is so many times the rounding that was measured."""
LITTLE = 1e-4
"""Of the whole gradient: a parameter with less may have a gradient of nothing but rounding."""


@dataclass(frozen=True)
class Compared:
    """Two gradients of one parameter."""

    name: str
    """The parameter's."""
    relative_error: float
    """|accumulated - whole| / |whole|; 0 where both are zero but for rounding."""
    cosine: float
    """Of the angle between them; 1 where both are zero."""
    ratio: float
    """|accumulated| / |whole|; 1 where both are zero."""
    agrees: bool
    """Whether they are the same but for rounding."""


def equal(number: int) -> Weights:
    """1/N each, as people divide."""
    return (1 / number,) * number


def ones(number: int) -> Weights:
    """1 each: what a sum wants."""
    return (1.0,) * number


def added(gradients: Sequence[Gradient], weights: Sequence[float]) -> Gradient:
    """The weighted sum, in float64."""
    total: list[Tensor | None] = [None] * len(gradients[0])
    for weight, gradient in zip(weights, gradients, strict=True):
        for k, part in enumerate(gradient):
            if part is None:
                continue
            if total[k] is None:
                total[k] = torch.zeros_like(part, dtype=torch.float64)
            total[k] += weight * part.double()  # type: ignore[operator]  # it was made above
    return tuple(total)


def added_in_their_own_dtype(gradients: Sequence[Gradient], weights: Sequence[float]) -> Gradient:
    """As `.grad` does it: each weighted gradient is rounded, and so is each sum."""
    total: list[Tensor | None] = [None] * len(gradients[0])
    for weight, gradient in zip(weights, gradients, strict=True):
        for k, part in enumerate(gradient):
            if part is not None:
                now = total[k]
                total[k] = part * weight if now is None else now + part * weight
    return tuple(total)


def compared(
    names: Sequence[str],
    whole: Gradient,
    pieces: Sequence[Gradient],
    weights: Sequence[float],
    tolerance: Tolerance = FLOAT64,
) -> list[Compared]:
    """Parameter by parameter; those that get no gradient in any run are left out."""
    return compared_sum(names, whole, added(pieces, weights), lengths(pieces, weights), tolerance)


def compared_sum(
    names: Sequence[str], whole: Gradient, total: Gradient, parts: Sequence[float], tolerance: Tolerance = FLOAT64
) -> list[Compared]:
    """The same for a sum that was made already, out of parts with these lengths."""
    everything = length(whole)
    found = []
    for name, full, mine, added_up in zip(names, whole, total, parts, strict=True):
        if full is None and mine is None:
            continue
        full = torch.zeros_like(mine) if full is None else full  # type: ignore[arg-type]  # one of them is there
        mine = torch.zeros_like(full) if mine is None else mine
        allowed = tolerance.added * added_up + tolerance.whole * everything
        found.append(_pair(name, full.double(), mine.double(), allowed, tolerance.relative))
    return found


def measured_tolerance(whole: Gradient, others: Sequence[Gradient]) -> Tolerance:
    """From gradients that are the same but for rounding; between FLOAT32 and NATIVE."""
    everything = length(whole) or 1.0
    relative = of_whole = 0.0
    for other in others:
        for part, again in zip(whole, other, strict=True):
            size, apart = length((part,)), distance((part,), (again,))
            if size > LITTLE * everything:
                relative = max(relative, apart / size)
            else:
                of_whole = max(of_whole, apart / everything)

    def between(least: float, measured: float, most: float) -> float:
        return min(max(least, TIMES_ROUNDING * measured), most)

    return Tolerance(
        between(FLOAT32.relative, relative, NATIVE.relative),
        between(FLOAT32.added, relative, NATIVE.added),
        between(FLOAT32.whole, of_whole, NATIVE.whole),
    )


def agree(rows: Sequence[Compared]) -> bool:
    """Whether every parameter's gradients do."""
    return all(row.agrees for row in rows)


def fits(whole: Gradient, pieces: Sequence[Gradient], weights: Sequence[float], tolerance: Tolerance = FLOAT64) -> bool:
    """Whether these weights make the micro-batches' gradients the whole one."""
    return agree(compared([""] * len(whole), whole, pieces, weights, tolerance))


def length(gradient: Gradient) -> float:
    """Of all parameters together."""
    return sqrt(sum(float(part.double().square().sum()) for part in gradient if part is not None))


def distance(one: Gradient, other: Gradient) -> float:
    """Between two gradients, of all parameters together."""
    total = 0.0
    for a, b in zip(one, other, strict=True):
        apart = a.double() - b.double() if a is not None and b is not None else (a if b is None else b)
        total += float(apart.double().square().sum()) if apart is not None else 0.0
    return sqrt(total)


def fitted(points: Sequence[tuple[Gradient, Sequence[Gradient]]], tolerance: Tolerance = FLOAT64) -> Weights | None:
    """Weights that make the micro-batches' gradients the whole one at all of these (whole, pieces).

    Each point is another value of the parameters: weights that fit all of them depend on the data alone. None if
    there are none, or if the points cannot tell, because there are no more numbers than weights.
    """
    columns, targets = [], []
    for whole, pieces in points:
        scale = max(length(whole), 1e-300)
        target, *rows = _rows_of([whole, *pieces])
        columns.append(torch.stack(rows, 1) / scale)
        targets.append(target / scale)
    matrix, right = torch.cat(columns), torch.cat(targets)
    if matrix.shape[0] < 2 * matrix.shape[1]:
        return None
    solved = torch.linalg.lstsq(matrix, right[:, None], driver="gelsd").solution[:, 0]
    weights = tuple(float(weight) for weight in solved)
    if min(weights) < -LEAST_WEIGHT:  # nothing that counts items
        return None
    return weights if all(fits(whole, pieces, weights, tolerance) for whole, pieces in points) else None


def none_fit(whole: Gradient, pieces: Sequence[Gradient], tolerance: Tolerance = FLOAT64) -> bool:
    """Whether one point tells that no weights fit; False if it has too few numbers to tell."""
    scale = max(length(whole), 1e-300)
    target, *rows = _rows_of([whole, *pieces])
    matrix = torch.stack(rows, 1) / scale
    if matrix.shape[0] < 2 * matrix.shape[1]:
        return False
    solved = torch.linalg.lstsq(matrix, target[:, None] / scale, driver="gelsd").solution[:, 0]
    return not fits(whole, pieces, solved.tolist(), tolerance)


def guesses(micro_batches: Sequence[Any]) -> dict[str, Weights]:
    """Weights that the batch suggests, by the code for them: examples, labels that count, true entries of a mask."""
    found: dict[str, Weights] = {}
    tensors = [dict(named_tensors(micro_batch)) for micro_batch in micro_batches]
    for name in tensors[0]:
        parts = [part[name] for part in tensors]
        if not parts[0].dim() or parts[0].is_complex():
            continue
        if not found:
            found[f"len({name})"] = _shares([len(part) for part in parts])
        if not parts[0].is_floating_point() and parts[0].dtype != torch.bool:
            found[f"({name} >= 0).sum()"] = _shares([float((part >= 0).sum()) for part in parts])
        found[f"{name}.sum()"] = _shares([float(part.double().sum()) for part in parts])
    return {name: weights for name, weights in found.items() if weights and min(weights) >= 0}


def _shares(counts: Sequence[float]) -> Weights:
    total = sum(counts)
    return tuple(count / total for count in counts) if total > 0 else ()


def as_ratio(weights: Sequence[float]) -> tuple[int, ...] | None:
    """Small whole numbers in the same proportion, if there are any."""
    least = min((abs(weight) for weight in weights if abs(weight) > 1e-9), default=0.0)
    if not least or min(weights) < -1e-9:
        return None
    for times in range(1, MOST_TERMS + 1):
        scaled = [weight / least * times for weight in weights]
        if all(abs(number - round(number)) < 1e-4 * max(number, 1) for number in scaled):
            return tuple(round(number) for number in scaled)
    return None


def _pair(name: str, full: Tensor, mine: Tensor, allowed: float, relative: float) -> Compared:
    full_length, length_of_mine = float(full.norm()), float(mine.norm())
    error = float((mine - full).norm())
    if full_length <= allowed and length_of_mine <= allowed:
        return Compared(name, 0.0, 1.0, 1.0, True)
    agrees = error <= relative * full_length + allowed
    if not full_length or not length_of_mine:
        infinite = float("inf")
        return Compared(
            name,
            error / full_length if full_length else infinite,
            0.0,
            length_of_mine / full_length if full_length else infinite,
            agrees,
        )
    cosine = float((full * mine).sum()) / full_length / length_of_mine
    return Compared(name, error / full_length, cosine, length_of_mine / full_length, agrees)


def lengths(pieces: Sequence[Gradient], weights: Sequence[float]) -> list[float]:
    """For each parameter, the lengths of the weighted parts, added."""
    return [
        sum(
            abs(weight) * float(part.double().norm())
            for weight, part in zip(weights, parts, strict=True)
            if part is not None
        )
        for parts in zip(*pieces, strict=True)
    ]


def _rows_of(gradients: Sequence[Gradient]) -> list[Tensor]:
    """Each gradient's numbers in one row, or some of them at even distances; zeros for what only others reach."""
    rows: list[list[Tensor]] = [[] for _ in gradients]
    for parts in zip(*gradients, strict=True):
        like = next((part for part in parts if part is not None), None)
        if like is None:
            continue
        for row, part in zip(rows, parts, strict=True):
            row.append((torch.zeros_like(like) if part is None else part).double().flatten().cpu())
    whole = [torch.cat(row) for row in rows]
    return [row[:: -(-len(row) // MOST_ROWS)] for row in whole]
