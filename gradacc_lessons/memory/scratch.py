"""What a CPU kernel takes and gives back within one operation: copies in another layout, blocks for each thread.

That memory comes from the allocator, but no tensor that a tracker sees stands for it, and how much it is depends on
the processor. So a few kinds of operation are run once, small, under the allocator's eyes.
"""

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from gradacc_lessons.memory.allocator import allocator_peak
from gradacc_lessons.memory.walk import tensors_in

UNCOUNTED = {"aten::mkldnn_rnn_layer": "LSTM", "aten::mkldnn_rnn_layer_backward": "LSTM"}
"""Kernels that are not what they are predicted to be: operation -> the layer that people know it by."""

_BATCHED = {
    "aten::convolution": (0,),
    "aten::convolution_backward": (0, 1),
    "aten::_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (0, 1, 2, 3, 4, 5),
}
"""Operations with scratch worth counting -> which of their arguments have the examples along dimension 0."""
PROBE_BYTES = 4 * 2**20
"""Scratch is linear in the batch. Larger operations are probed at about this size and twice it, and continued."""


@dataclass(frozen=True)
class _Shape:
    """A tensor without its numbers."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    def with_examples(self, examples: int) -> "_Shape":
        return _Shape((examples, *self.sizes[1:]), self.strides, self.dtype)

    def empty(self) -> Tensor:
        return torch.empty_strided(self.sizes, self.strides, dtype=self.dtype).zero_()


@dataclass(frozen=True)
class Kernel:
    """One operation with what decides how much scratch it takes."""

    operation: Any
    """The overload that was dispatched."""
    arguments: tuple[Any, ...]
    """Its positional arguments, with a shape in place of each tensor."""
    options: tuple[tuple[str, Any], ...]
    """Its keyword arguments."""
    threads: int
    """How many threads it may use."""

    @property
    def examples(self) -> int:
        """The size of the batch."""
        return int(self.arguments[0].sizes[0])

    @property
    def bytes(self) -> int:
        """The size of its arguments."""
        return sum(prod(a.sizes) * a.dtype.itemsize for a in self.arguments if isinstance(a, _Shape))


def kernel(operation: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Kernel | None:
    """The kernel behind an operation on the CPU, if it is of a kind that takes scratch."""
    if operation.name() not in _BATCHED or arguments[0].device.type != "cpu":
        return None
    shapes = tuple(_frozen(argument) for argument in arguments)
    return Kernel(operation, shapes, tuple(options.items()), torch.get_num_threads())


def scratch_bytes(kernel: Kernel) -> int:
    """The most that this kernel has in use at one moment beyond its arguments and its results."""
    whole = kernel.examples
    small = max(1, whole * PROBE_BYTES // max(kernel.bytes, 1))
    if 2 * small >= whole:
        return _probed(kernel, whole)
    first, second = _probed(kernel, small), _probed(kernel, 2 * small)
    return first + (second - first) * (whole - small) // small


@cache
def _probed(kernel: Kernel, examples: int) -> int:
    batched = _BATCHED[kernel.operation.name()]
    arguments = [_thawed(a, examples if k in batched else None) for k, a in enumerate(kernel.arguments)]
    results: list[Any] = []
    peak = allocator_peak(lambda: results.append(kernel.operation(*arguments, **dict(kernel.options))), 0)
    return max(0, peak - sum(t.untyped_storage().nbytes() for t in tensors_in(results)))


def _frozen(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return _Shape(tuple(argument.shape), argument.stride(), argument.dtype)
    return tuple(argument) if isinstance(argument, list) else argument


def _thawed(argument: Any, examples: int | None) -> Any:
    if not isinstance(argument, _Shape):
        return list(argument) if isinstance(argument, tuple) else argument
    return (argument if examples is None else argument.with_examples(examples)).empty()
