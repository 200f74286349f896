"""Random numbers, drawn once for the whole batch and given again to the micro-batch whose rows they belong to.

One seed for every run isn't enough: the second micro-batch would get the mask of the first one's examples. And it
hides: a single dropout layer draws for the first chunk what it draws for the first rows of the whole batch.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

Layout = Literal["contiguous", "interleaved"]
"""How a dimension of f x B belongs to B examples: f after f, or B after B."""

_PURE = {
    "bernoulli", "bernoulli_", "binomial", "cauchy", "cauchy_", "exponential", "exponential_", "geometric",
    "geometric_", "log_normal", "log_normal_", "multinomial", "normal", "normal_", "normal_functional", "poisson",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random", "random_", "randperm", "uniform",
    "uniform_", "_standard_gamma", "_sample_dirichlet",
}  # fmt: skip
"""Operations whose results are random numbers and nothing else."""
_WITH_MASK = {"native_dropout", "_fused_dropout"}
"""Operations that give (output, mask)."""


@dataclass(frozen=True)
class _Draw:
    """One result of an operation that draws."""

    operation: Any
    """The overload that was dispatched."""
    result: Tensor
    """A copy of the random numbers, or of the mask."""
    settings: tuple[Any, ...]
    """Its arguments that are no tensors and no sizes."""


class Draws:
    """The random numbers of one run of the whole batch, and which of them each micro-batch gets."""

    def __init__(self, pieces: list[tuple[int, int]], layout: Layout = "contiguous") -> None:
        self._pieces, self._layout = pieces, layout
        self._examples = sum(size for _, size in pieces)
        self._recorded: list[_Draw] = []
        self._counts: dict[int, int] = {}
        self._piece: int | None = None
        self._next = 0
        self.missed = 0
        """How often a draw of a micro-batch had no counterpart in the run of the whole batch."""
        self.ambiguous = False
        """Whether some dimension had several rows for each example: their layout is a guess."""

    def start(self, piece: int | None) -> None:
        """A run begins: of the whole batch (None), which records, or of a micro-batch, which replays."""
        self._piece, self._next = piece, 0
        if piece is None:
            self._recorded = []

    def finish(self) -> None:
        """The run has ended."""
        if self._piece is not None and self._next != self._shares(self._piece)[1]:
            self.missed += 1

    def counted(self, piece: int, draws: int) -> None:
        """How often a free run of this micro-batch drew: if all of them together draw as often as the whole batch,
        it draws example by example."""
        self._counts[piece] = draws

    def drawn(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """What the operation gives in this run, in place of `result`."""
        name = operation._schema.name.removeprefix("aten::")
        if self._piece is None:
            return self._record(operation, name, args, kwargs, result)
        return self._replay(operation, name, args, kwargs, result)

    def _shares(self, piece: int) -> tuple[int, int]:
        """(first, number) of the recorded draws that a micro-batch replays."""
        whole = len(self._recorded)
        counts = [self._counts.get(k, whole) for k in range(len(self._pieces))]
        if all(count == whole for count in counts) or sum(counts) != whole:
            return 0, whole
        return sum(counts[:piece]), counts[piece]

    def _record(self, operation: Any, name: str, args: Any, kwargs: Any, result: Any) -> Any:
        if name == "randperm" and result.dim() == 1 and len(result) % self._examples == 0:
            result.copy_(self._within_pieces(result))
        kept = result[1] if name in _WITH_MASK else result
        self._recorded.append(_Draw(operation, kept.clone(), _settings(args, kwargs)))
        self._next += 1
        return result

    def _within_pieces(self, result: Tensor) -> Tensor:
        """A permutation that keeps each micro-batch's examples among themselves, as accumulation does."""
        times = len(result) // self._examples
        parts = [torch.randperm(times * size) + times * start for start, size in self._pieces]
        return torch.cat(parts).to(result)

    def _replay(self, operation: Any, name: str, args: Any, kwargs: Any, result: Any) -> Any:
        first, number = self._shares(self._piece or 0)
        self._next += 1
        if self._next > number:
            self.missed += 1
            return result
        recorded = self._recorded[first + self._next - 1]
        target = result[1] if name in _WITH_MASK else result
        rows = self._rows(name, recorded, operation, target, _settings(args, kwargs), number < len(self._recorded))
        if rows is None:
            self.missed += 1
            return result
        target.copy_(rows)
        if name in _WITH_MASK:
            p = args[1]
            result[0].copy_(args[0] * target / (1 - p) if p < 1 else torch.zeros_like(args[0]))
        return result

    def _rows(
        self, name: str, recorded: _Draw, operation: Any, target: Tensor, settings: tuple[Any, ...], whole: bool
    ) -> Tensor | None:
        """The rows of a recorded draw that belong to this micro-batch; None if they cannot be told."""
        source = recorded.result
        if operation is not recorded.operation or source.dim() != target.dim():
            return None
        start, size = self._pieces[self._piece or 0]
        if name == "randperm":
            return self._permuted(source, target, start, size)
        if not target.dtype.is_floating_point and target.dtype != torch.bool and settings != recorded.settings:
            return None  # indices up to B are no indices up to b
        differing = [k for k, (a, b) in enumerate(zip(source.shape, target.shape, strict=True)) if a != b]
        if not differing:
            return source
        if len(differing) > 1 or whole:
            return None
        return self._slice(source, differing[0], target.shape[differing[0]], start, size)

    def _slice(self, source: Tensor, dimension: int, wanted: int, start: int, size: int) -> Tensor | None:
        length = source.shape[dimension]
        if length % self._examples or wanted * self._examples != length * size:
            return None
        times = length // self._examples
        if times == 1:
            return source.narrow(dimension, start, size)
        self.ambiguous = True
        if self._layout == "contiguous":
            return source.narrow(dimension, start * times, wanted)
        folded: Tensor = source.unflatten(dimension, (times, self._examples)).narrow(dimension + 1, start, size)
        return folded.flatten(dimension, dimension + 1)

    def _permuted(self, source: Tensor, target: Tensor, start: int, size: int) -> Tensor | None:
        if len(source) == len(target):
            return source
        times = len(source) // self._examples
        if len(source) % self._examples or len(target) != times * size:
            return None
        return source[times * start : times * (start + size)] - times * start


def draws(operation: Any) -> bool:
    """Whether the results of an operation are random numbers that can be given again."""
    return operation._schema.name.removeprefix("aten::") in _PURE | _WITH_MASK


def _settings(args: Any, kwargs: Any) -> tuple[Any, ...]:
    plain = [value for value in args if isinstance(value, int | float | bool)]
    return (*plain, *(value for key, value in kwargs.items() if key in ("high", "low", "replacement")))
