"""Mixing that only the backward does: forward, every row is what it should be.

The gradients of every module's inputs and outputs are compared from the end of the run to its beginning, each
micro-batch's weighted as the last of them wants it. A module whose outputs get the right gradient and whose inputs do
not is suspect. To be sure that it is not the loss, by another way, the loss is then taken out: a sum over the
module's output takes its place.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from gradacc_lessons.detective.examination.rows import Cut, same
from gradacc_lessons.detective.examination.watch import NOBODY, Spot, Trail, Watcher


class Probe(Watcher):
    """In place of the loss: the sum of a module's output, each feature times a fixed number."""

    def __init__(self, modules: Mapping[str, nn.Module], module: str, whole: Trail) -> None:
        super().__init__(modules)
        self._module, self._whole = module, whole
        self._sum: Tensor | None = None

    @property
    def objective(self) -> Tensor | None:
        return self._sum

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        if spot.module != self._module or spot.side != "out" or not tensor.requires_grad:
            return tensor
        if spot not in self._whole.tensors or self._calls_in_forward is not None or tensor.dim() < 2:
            return tensor
        whole = self._whole.tensors[spot]
        dimension = 1 if tensor.dim() == 2 else tensor.dim() - 1
        wanted = torch.linspace(0.5, 1.5, whole.shape[dimension], dtype=tensor.dtype, device=tensor.device)
        part = (tensor * wanted).sum()
        self._sum = part if self._sum is None else self._sum + part
        return tensor


def suspect(whole: Trail, pieces: Sequence[Trail], cuts: Sequence[Cut]) -> str | None:
    """The module that seems to mix in its backward; NOBODY if it is the loss; None if nothing is seen to mix."""
    weights: list[float] | None = None
    for spot in reversed(whole.tensors):
        pairs = [_pair(spot, whole, piece, cut) for piece, cut in zip(pieces, cuts, strict=True)]
        known = [pair for pair in pairs if pair is not None]
        if len(known) < len(pairs):
            continue
        first = weights is None
        if weights is None:
            weights = [_scale(mine, right) for mine, right in known]
        if not all(_fits(m * w, right, cuts[0].tolerance) for (m, right), w in zip(known, weights, strict=True)):
            if first:
                return NOBODY
            return spot.module if spot.side == "in" else whole.parents.get(spot.module, NOBODY)
    return None


def _pair(spot: Spot, whole: Trail, piece: Trail, cut: Cut) -> tuple[Tensor, Tensor] | None:
    """The gradient in the micro-batch's run, and the rows of the other one that belong to it."""
    mine, theirs = piece.gradients.get(spot), whole.gradients.get(spot)
    if mine is None or theirs is None or spot not in piece.tensors:
        return None
    rows = cut.rows(piece.tensors[spot], whole.tensors[spot])
    if rows is None or not rows.agree:
        return None
    return mine, theirs.index_select(rows.dimension, rows.index)


def _scale(mine: Tensor, right: Tensor) -> float:
    """By what the gradient has to be multiplied, as well as that can be said with one number."""
    size = float(mine.square().sum())
    return float((mine * right).sum()) / size if size else 0.0


def _fits(mine: Tensor, right: Tensor, tolerance: float) -> bool:
    scale = max(float(right.abs().max()), float(mine.abs().max())) if right.numel() else 0.0
    return same(mine, right, tolerance) or bool(torch.all((mine - right).abs() <= tolerance * scale))
