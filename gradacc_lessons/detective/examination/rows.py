"""Which rows of the whole batch's tensor a micro-batch's tensor has."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

TOLERANCE = 1e-7
"""Of the largest number in a tensor: float64's rounding through a deep model is far below it."""
NATIVE_TOLERANCE = 1e-3
"""The same for what runs in float32 or less."""
MOST_COLUMNS = 64
"""Numbers of a row that are looked at to find its like."""


@dataclass(frozen=True)
class Rows:
    """How a tensor of a micro-batch belongs to one of the whole batch."""

    dimension: int
    """The one that counts rows."""
    index: Tensor
    """The rows of the whole batch's tensor, in the order in which the micro-batch has them."""
    length: int
    """How many rows the whole batch's tensor has."""
    agree: bool
    """Whether their numbers do."""


@dataclass(frozen=True)
class Cut:
    """One micro-batch out of a batch."""

    first: int
    """Its first example."""
    size: int
    """How many it has."""
    examples: int
    """How many the whole batch has."""
    tolerance: float = TOLERANCE
    """How far numbers may be apart, of the largest one."""

    def rows(self, tensor: Tensor, whole: Tensor, before: Rows | None = None) -> Rows | None:
        """The rows of `whole` that the micro-batch's `tensor` has, or should have; None if they cannot be told.

        Several rows may belong to an example (tokens, views), one after the other or in turns, and rows may have
        changed places. Where none of these fits, rows are taken to lie as they did `before`.
        """
        with torch.no_grad(), _disable_current_modes():  # this is no part of the run
            return self._rows(tensor, whole, before)

    def _rows(self, tensor: Tensor, whole: Tensor, before: Rows | None) -> Rows | None:
        dimension = self._dimension(tensor, whole)
        if dimension is None:
            return None
        length = whole.shape[dimension]
        times = length // self.examples
        every = torch.arange(length, device=whole.device)
        block = every[self.first * times : (self.first + self.size) * times]
        if same(tensor, whole.index_select(dimension, block), self.tolerance):
            return Rows(dimension, block, length, True)
        turns = every.view(times, self.examples)[:, self.first : self.first + self.size].flatten()
        for index in (turns, _nearest(tensor, whole, dimension)):
            if same(tensor, whole.index_select(dimension, index), self.tolerance):
                return Rows(dimension, index, length, True)
        index = before.index if before is not None and before.length == length else block
        return Rows(dimension, index, length, False)

    def _dimension(self, tensor: Tensor, whole: Tensor) -> int | None:
        """The one dimension that is as much shorter as the micro-batch is."""
        if tensor.dim() != whole.dim():
            return None
        differing = [k for k, (a, b) in enumerate(zip(tensor.shape, whole.shape, strict=True)) if a != b]
        if len(differing) != 1:
            return None
        mine, theirs = tensor.shape[differing[0]], whole.shape[differing[0]]
        fitting = theirs % self.examples == 0 and mine * self.examples == theirs * self.size
        return differing[0] if fitting else None


def same(tensor: Tensor, right: Tensor, tolerance: float) -> bool:
    """Whether two tensors have the same numbers, but for rounding."""
    if not right.numel():
        return True
    tensor = tensor.detach()
    finite = right.isfinite()
    scale = float(right[finite].abs().max()) if bool(finite.any()) else 0.0
    close = (tensor - right).abs() <= tolerance * scale
    return bool((close | (tensor == right) | (tensor.isnan() & right.isnan())).all())


def _nearest(tensor: Tensor, whole: Tensor, dimension: int) -> Tensor:
    """For each row of one tensor the row of the other that is most like it."""
    mine, theirs = (each.detach().movedim(dimension, 0).double() for each in (tensor, whole))
    mine, theirs = (each.reshape(len(each), -1) for each in (mine, theirs))
    step = -(-mine.shape[1] // MOST_COLUMNS) or 1
    mine, theirs = mine[:, ::step], theirs[:, ::step]
    return torch.cdist(mine, theirs, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)
