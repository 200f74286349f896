"""What a CPU kernel takes and gives back within one operation: copies in another layout, blocks for each thread.

That memory comes from the allocator, but no tensor that a tracker sees stands for it, and how much it is depends on
the processor. So a few kinds of operation are run once, small, under the allocator's eyes.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from gradacc_lessons.memory.allocator import allocator_peak
from gradacc_lessons.memory.walk import tensors_in

UNCOUNTED = {"aten::mkldnn_rnn_layer": "LSTM", "aten::mkldnn_rnn_layer_backward": "LSTM"}
"""Kernels that are not what they are predicted to be: operation -> the layer that people know it by."""

_LEADING = {
    "aten::convolution": 1,
    "aten::convolution_backward": 1,
    "aten::_scaled_dot_product_flash_attention_for_cpu": 2,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": 2,
}
"""Operations with scratch worth counting -> how many leading dimensions are alike: examples, or examples and heads."""
_WEIGHTS = {"aten::convolution": {1, 2}, "aten::convolution_backward": {2}}
"""Arguments that do not grow with the batch."""
PROBE_BYTES = 4 * 2**20
"""Scratch is linear in the batch. Larger operations are probed at about this size and twice it, and continued."""
LEAST = 2
"""A dimension is never cut to less: with one example, every layout is in order, and no copy is needed."""


@dataclass(frozen=True)
class _Shape:
    """A tensor without its numbers."""

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    """The dimensions, from the one with the largest stride to the one with the smallest."""
    dtype: torch.dtype

    def empty(self) -> Tensor:
        """A tensor of this shape and layout, without gaps."""
        return torch.empty_permuted(self.sizes, self.order, dtype=self.dtype).zero_()


@dataclass(frozen=True)
class Kernel:
    """One operation with what decides how much scratch it takes."""

    operation: Any
    """The overload that was dispatched."""
    arguments: tuple[Any, ...]
    """Its positional arguments, with a shape in place of each tensor."""
    options: tuple[tuple[str, Any], ...]
    """Its keyword arguments, likewise."""
    threads: int
    """How many threads it may use."""

    @property
    def leading(self) -> tuple[int, ...]:
        """The sizes that can be cut: examples; for attention, examples and heads."""
        return tuple(self.arguments[0].sizes[: _LEADING[self.operation.name()]])

    @property
    def bytes(self) -> int:
        """The size of its arguments."""
        return sum(prod(a.sizes) * a.dtype.itemsize for a in self.arguments if isinstance(a, _Shape))

    def with_leading(self, leading: tuple[int, ...]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and options for running it with these sizes instead."""
        weights = _WEIGHTS.get(self.operation.name(), set())
        instead = dict(zip(enumerate(self.leading), leading, strict=True))

        def thawed(value: Any, grows: bool = True) -> Any:
            if not isinstance(value, _Shape):
                return list(value) if isinstance(value, tuple) else value
            if not grows:
                return value.empty()
            sizes = (instead.get((k, size), size) for k, size in enumerate(value.sizes))  # broadcast ones stay
            return replace(value, sizes=tuple(sizes)).empty()

        arguments = [thawed(a, k not in weights) for k, a in enumerate(self.arguments)]
        return arguments, {key: thawed(value) for key, value in self.options}


def kernel(operation: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Kernel | None:
    """The kernel behind an operation on the CPU, if it is of a kind that takes scratch."""
    if operation.name() not in _LEADING or arguments[0].device.type != "cpu":
        return None
    frozen = tuple((key, _frozen(value)) for key, value in options.items())
    return Kernel(operation, tuple(map(_frozen, arguments)), frozen, torch.get_num_threads())


def scratch_bytes(kernel: Kernel) -> int:
    """The most that this kernel has in use at one moment beyond its arguments and its results."""
    whole = kernel.leading
    small = _cut(whole, kernel.bytes / PROBE_BYTES)
    k = max(range(len(whole)), key=lambda k: whole[k] / small[k])
    twice = (*small[:k], 2 * small[k], *small[k + 1 :])
    if twice[k] >= whole[k]:
        return _probed(kernel, whole)
    first, second = _probed(kernel, small), _probed(kernel, twice)
    return first + (second - first) * (prod(whole) - prod(small)) // (prod(twice) - prod(small))


def _cut(sizes: tuple[int, ...], times: float) -> tuple[int, ...]:
    """Smaller sizes, whose product is about so many times smaller; the first ones give way first."""
    cut = []
    for size in sizes:
        less = max(min(size, LEAST), min(size, int(size / times)))
        times /= size / less
        cut.append(less)
    return tuple(cut)


@cache
def _probed(kernel: Kernel, leading: tuple[int, ...]) -> int:
    arguments, options = kernel.with_leading(leading)
    results: list[Any] = []
    peak = allocator_peak(lambda: results.append(kernel.operation(*arguments, **options)), 0)
    return max(0, peak - sum(t.untyped_storage().nbytes() for t in tensors_in(results)))


def _frozen(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        strides = argument.stride()
        order = sorted(range(argument.dim()), key=lambda k: (-strides[k], k))
        return _Shape(tuple(argument.shape), tuple(order), argument.dtype)
    return tuple(argument) if isinstance(argument, list) else argument
