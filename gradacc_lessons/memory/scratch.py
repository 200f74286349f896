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
from gradacc_lessons.nested import tensors_in

_ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
_BY_EXAMPLE = (
    "aten::convolution", "aten::convolution_backward", "aten::mse_loss", "aten::smooth_l1_loss", "aten::huber_loss",
    "aten::binary_cross_entropy_with_logits", "aten::soft_margin_loss_backward", "aten::masked_select",
    "aten::logsumexp",
    "aten::_softmax_backward_data", "aten::_log_softmax_backward_data", "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d_with_indices_backward", "aten::avg_pool2d_backward", "aten::avg_pool3d_backward",
    "aten::reflection_pad2d_backward", "aten::grid_sampler_2d_backward", "aten::im2col", "aten::col2im",
    "aten::native_batch_norm", "aten::native_batch_norm_backward", "aten::gelu_backward",
    "aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::channel_shuffle",
    "aten::median", "aten::nanmedian", "aten::median.dim", "aten::kthvalue", "aten::sort", "aten::sort.stable",
    "aten::_unique2", "aten::_fft_r2c", "aten::_fft_c2r", "aten::_fft_c2c",
    *(f"aten::{name}{turn}" for turn in ("", "_backward") for name in (
        "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d",
        "upsample_bicubic2d", "upsample_trilinear3d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    )),
)  # fmt: skip
_LEADING = dict.fromkeys(_BY_EXAMPLE, 1) | {_ATTENTION: 2, f"{_ATTENTION}_backward": 2}
"""Operations with scratch worth counting -> how many leading dimensions are alike: examples, or examples and heads."""
_WITH_MIXED_DTYPES = {"aten::where.self"} | {
    f"aten::{name}{turn}.Tensor" for name in ("add", "sub", "mul", "div") for turn in ("", "_")
}
"""Operations that first copy the tensors that have another dtype than the result."""
_IN_ANOTHER_DTYPE = {"aten::sum", "aten::sum.dim_IntList", "aten::mean", "aten::mean.dim", "aten::cumsum", "aten::abs"}
"""Operations that first copy a tensor of some dtypes: whole numbers to int64, say."""
_AS_IT_IS = {torch.float32, torch.float64, torch.int64}
"""The dtypes that they take as they are."""
_INDEXING = {"aten::index.Tensor", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}
_SHAPED_BY = {"aten::soft_margin_loss_backward": 1}
"""Arguments whose leading sizes can be cut, where that is not the first."""
_WEIGHTS = {"aten::convolution": {1, 2}, "aten::convolution_backward": {2}}
"""Arguments that do not grow with the batch."""
_UPSAMPLING = ("aten::upsample", "aten::_upsample")
"""Operations whose backward repeats the input's sizes as an argument."""
MAY_TAKE_SCRATCH = frozenset().union(_LEADING, _WITH_MIXED_DTYPES, _IN_ANOTHER_DTYPE, _INDEXING)
"""The names of all operations that `kernel` or `mask_bytes` says something about."""
PROBE_BYTES = 4 * 2**20
"""Scratch is linear in the batch. Larger operations are probed at about this size and twice it, and continued."""
LEAST = 2
"""A dimension is never cut to less: with one example, every layout is in order, and no copy is needed."""

LEAST_POINTWISE = 16
"""Nor is the batch of a convolution with 1 x 1 weights: below it, one thread takes another kernel."""


@dataclass(frozen=True)
class _Shape:
    """A tensor without its numbers."""

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    """The dimensions, from the one with the largest stride to the one with the smallest."""
    repeated: tuple[bool, ...]
    """Which dimensions only repeat one number (`expand`)."""
    dtype: torch.dtype

    def empty(self) -> Tensor:
        """A tensor of this shape and layout, without gaps."""
        kept = [1 if again else size for size, again in zip(self.sizes, self.repeated, strict=True)]
        # Every mask is true: one that chooses nothing ends a kernel before it begins.
        filled = torch.empty_permuted(kept, self.order, dtype=self.dtype).fill_(self.dtype == torch.bool)
        return filled.expand(self.sizes)


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
        return self._shaping.sizes[: _LEADING.get(self.operation.name(), 1)]

    @property
    def _shaping(self) -> _Shape:
        name = self.operation.name()
        if name in _WITH_MIXED_DTYPES:  # the others are broadcast to it
            return max((a for a in self.arguments if isinstance(a, _Shape)), key=lambda shape: prod(shape.sizes))
        shape: _Shape = self.arguments[_SHAPED_BY.get(name, 0)]
        return shape

    @property
    def least(self) -> int:
        """To how many examples it can be cut and still be the same kernel."""
        weights = _WEIGHTS.get(self.operation.name())
        if weights and self.threads == 1 and prod(self.arguments[min(weights)].sizes[2:]) == 1:
            return LEAST_POINTWISE
        return LEAST

    @property
    def bytes(self) -> int:
        """The size of its arguments."""
        return sum(prod(a.sizes) * a.dtype.itemsize for a in self.arguments if isinstance(a, _Shape))

    def with_leading(self, leading: tuple[int, ...]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and options for running it with these sizes instead."""
        name, dimensions = self.operation.name(), len(self._shaping.sizes)
        weights = _WEIGHTS.get(name, set())
        instead = {(k - dimensions, size): new for (k, size), new in zip(enumerate(self.leading), leading, strict=True)}

        def cut(sizes: tuple[int, ...]) -> tuple[int, ...]:  # counted from the last one; broadcast ones stay
            return tuple(instead.get((k - len(sizes), size), size) for k, size in enumerate(sizes))

        def thawed(value: Any, grows: bool = True) -> Any:
            if isinstance(value, _Shape):
                return (replace(value, sizes=cut(value.sizes)) if grows else value).empty()
            if isinstance(value, tuple):
                is_size = name.startswith(_UPSAMPLING) and len(value) == dimensions
                return list(cut(value) if is_size else value)
            return value

        arguments = [thawed(a, k not in weights) for k, a in enumerate(self.arguments)]
        return arguments, {key: thawed(value) for key, value in self.options}


def kernel(operation: Any, arguments: tuple[Any, ...], options: dict[str, Any], result: Any) -> Kernel | None:
    """The kernel behind an operation on the CPU that gave `result`, if it is of a kind that takes scratch."""
    if not _takes_scratch(operation.name(), arguments, options, result):
        return None
    if arguments[0].device.type != "cpu":
        return None
    frozen = tuple((key, _frozen(value)) for key, value in options.items())
    return Kernel(operation, _as_kept(operation.name(), arguments), frozen, torch.get_num_threads())


def _as_kept(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, frozen. What a batch's norm keeps for backward has the weights' dtype; a fake one the input's."""
    shapes = [_frozen(value) for value in arguments]
    if name == "aten::native_batch_norm_backward" and isinstance(shapes[2], _Shape):
        shapes[5:7] = (replace(kept, dtype=shapes[2].dtype) for kept in shapes[5:7])
    return tuple(shapes)


def _takes_scratch(name: str, arguments: tuple[Any, ...], options: dict[str, Any], result: Any) -> bool:
    if name in _IN_ANOTHER_DTYPE:
        dtype = arguments[0].dtype
        return dtype not in _AS_IT_IS or options.get("dtype") not in (None, dtype)
    if name in _WITH_MIXED_DTYPES:
        values = arguments[1:] if name == "aten::where.self" else arguments
        return any(isinstance(value, Tensor) and value.dim() and value.dtype != result.dtype for value in values)
    return name in _LEADING


def mask_bytes(operation: Any, arguments: tuple[Any, ...], result: Any) -> int:
    """What indexing with masks takes: the places where they are true, as numbers."""
    if operation.name() not in _INDEXING or arguments[0].device.type != "cpu":
        return 0
    masks = [index for index in arguments[1] if isinstance(index, Tensor) and index.dtype == torch.bool]
    chosen = result if operation.name() == "aten::index.Tensor" else arguments[2]
    rest = prod(arguments[0].shape[sum(mask.dim() for mask in masks) :])
    return sum(mask.dim() * (chosen.numel() // max(rest, 1)) * torch.int64.itemsize for mask in masks)


@cache
def scratch_bytes(kernel: Kernel) -> int:
    """The most that this kernel has in use at one moment beyond its arguments and its results."""
    whole = kernel.leading
    if not whole:  # a single number
        return _probed(kernel, whole)
    small = _cut(whole, kernel.bytes / PROBE_BYTES, kernel.least)
    k = max(range(len(whole)), key=lambda k: whole[k] / small[k])
    twice = (*small[:k], 2 * small[k], *small[k + 1 :])
    if twice[k] >= whole[k]:
        return _probed(kernel, whole)
    first, second = _probed(kernel, small), _probed(kernel, twice)
    return first + (second - first) * (prod(whole) - prod(small)) // (prod(twice) - prod(small))


def _cut(sizes: tuple[int, ...], times: float, least: int) -> tuple[int, ...]:
    """Smaller sizes, whose product is about so many times smaller; the first ones give way first."""
    cut = []
    for size in sizes:
        less = max(min(size, least), min(size, int(size / times)))
        times /= size / less
        cut.append(less)
    return tuple(cut)


@cache
def _probed(kernel: Kernel, leading: tuple[int, ...]) -> int:
    arguments, options = kernel.with_leading(leading)
    results: list[Any] = []
    given = {t.untyped_storage()._cdata for t in tensors_in((arguments, options))}
    peak = allocator_peak(lambda: results.append(kernel.operation(*arguments, **options)), 0)
    made = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors_in(results)}
    return max(0, peak - sum(size for storage, size in made.items() if storage not in given))


def _frozen(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        strides = argument.stride()
        order = sorted(range(argument.dim()), key=lambda k: (-strides[k], k))
        repeated = tuple(size > 1 and stride == 0 for size, stride in zip(argument.shape, strides, strict=True))
        return _Shape(tuple(argument.shape), tuple(order), repeated, argument.dtype)
    return tuple(argument) if isinstance(argument, list) else argument
