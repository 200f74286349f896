"""Whole numbers, and a model's few constants, keep their values among tensors without memory.

A loss asks its labels how many of them count, a model asks its mask whether anything is masked. The answer depends
on the batch alone, and the batch is known. A model computes the rates of its layers with `linspace`: they depend on
nothing. What depends on weights or activations is not known, and nobody invents it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._meta_registrations import _create_grouped_mm_output_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

from gradacc_lessons.nested import mapped, tensors_in

MOST_VALUES = 2**23
"""Larger tensors of whole numbers are left without values: they would take tens of MiB each."""
MOST_CONSTANTS = 4096
"""Nor do larger tensors of other numbers have values: constants that somebody asks for are few."""
_WITHOUT_NUMBERS = ("aten::empty", "aten::new_empty")
"""Operations after which the numbers are whatever was there."""
_OF_ONE_DTYPE = {
    torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default, torch.ops.aten.baddbmm.default,
    torch.ops.aten.convolution.default,
}  # fmt: skip
"""Products whose kernels refuse what their size rules accept."""


class KnownNumbers(TorchDispatchMode):
    """Above a FakeTensorMode: computes with known numbers for real, beside the fake tensors."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch's guard around each call costs more than what is done in it

    def __init__(self, fake: FakeTensorMode) -> None:
        super().__init__()
        self._fake = fake
        self.last: Any = None
        """The operation that was dispatched last: where following failed, if it failed."""
        self._values = WeakTensorKeyDictionary()

    def without_memory(self, batch: Any) -> Any:
        """The batch with fake tensors in place of the real ones; its whole numbers stay known."""
        return mapped(self._converted, batch)

    def _converted(self, tensor: Tensor) -> Tensor:
        if isinstance(tensor, FakeTensor):
            return tensor
        fake = self._fake.from_tensor(tensor)
        if _whole(tensor):
            with _disable_current_modes():
                self._values[fake] = tensor.clone()  # the caller's own numbers stay when the loss overwrites its batch
        return fake

    def has(self, tensor: Any) -> bool:
        """Whether the numbers in this fake tensor are known."""
        return isinstance(tensor, Tensor) and tensor in self._values

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.prim.device.default:
            return args[0].fake_device  # asked so often that the way through FakeTensorMode costs seconds
        self.last = func
        kwargs = kwargs or {}
        if func in _OF_ONE_DTYPE and len(dtypes := {arg.dtype for arg in args if isinstance(arg, Tensor)}) > 1:
            raise RuntimeError(f"{func} takes tensors of one dtype, not of {' and '.join(sorted(map(str, dtypes)))}")
        if func is torch.ops.aten._grouped_mm.default and args[0].dtype != torch.bfloat16:
            return _grouped_product(*args, **kwargs)
        if func is torch.ops.aten.masked_select.default and self._knows(args[1]):
            shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
            mask = self._for_real(torch.ops.aten.expand.default, (args[1], shape), {})
            func, args = torch.ops.aten.index.Tensor, (args[0].expand(shape), [mask])
        if func is torch.ops.aten.index.Tensor:
            args = args[0], [place for index in args[1] for place in self._places(index)]
        written = _written(func, args, kwargs) if func._schema.is_mutable else []
        if not all(isinstance(tensor, FakeTensor) for tensor in written):  # the caller's own, which must stay
            args, kwargs = self.without_memory((args, kwargs))
            written = _written(func, args, kwargs)
        if not all(self._knows(tensor) for tensor in tensors_in((args, kwargs))):  # most operations
            self._forget(written)
            return func(*args, **kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            return self._for_real(func, args, kwargs)
        if func is torch.ops.aten.nonzero.default:  # as large as the numbers say
            return self.without_memory(self._for_real(func, args, kwargs))
        result = func(*args, **kwargs)
        outcomes = tensors_in(result)
        if outcomes and all(_worth_knowing(tensor, func) for tensor in outcomes):
            for fake, value in zip(outcomes, tensors_in(self._for_real(func, args, kwargs)), strict=True):
                self._values[fake] = value
        else:
            self._forget(written)
        return result

    def forget_constants_in(self, tensors: Iterable[Tensor]) -> None:
        """These are a model's weights: what they held at first, zeros and ones too, says nothing about later."""
        self._forget([tensor for tensor in tensors if not _whole(tensor)])

    def _knows(self, tensor: Tensor) -> bool:
        return tensor in self._values or not isinstance(tensor, FakeTensor)

    def _places(self, index: Tensor | None) -> Sequence[Tensor | None]:
        """Where a known mask is true, as the numbers that index each of its dimensions; other indices stay."""
        if index is None or index.dtype != torch.bool or not self._knows(index):
            return [index]
        places: Sequence[Tensor] = self._for_real(torch.ops.aten.nonzero.default, (index,), {}).unbind(1)
        return [self._converted(place) for place in places]

    def _forget(self, tensors: list[Tensor]) -> None:
        """Views of them share their fate."""
        gone = {self._values[tensor].untyped_storage()._cdata for tensor in tensors if tensor in self._values}
        if gone:
            for tensor, value in list(self._values.items()):
                if value.untyped_storage()._cdata in gone:
                    del self._values[tensor]

    def _for_real(self, func: Any, args: Any, kwargs: Any) -> Any:
        real_args, real_kwargs = tree_map_only(FakeTensor, self._values.__getitem__, (args, kwargs))
        with unset_fake_temporarily():
            return func(*real_args, **real_kwargs)


def _grouped_product(
    a: Tensor, b: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: torch.dtype | None = None
) -> Any:
    """What a mixture's experts make. torch's own rule asks for bfloat16, as CUDA's kernel does; the CPU's does not."""
    return _create_grouped_mm_output_tensor(a, b, offs, out_dtype)


def _written(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors among its arguments that an operation writes into."""
    arguments = func._schema.arguments
    named = {**dict(zip((argument.name for argument in arguments), args, strict=False)), **kwargs}
    writes = {argument.name for argument in arguments if argument.alias_info and argument.alias_info.is_write}
    return tensors_in([value for name, value in named.items() if name in writes])


def _whole(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.numel() <= MOST_VALUES


def _worth_knowing(tensor: Tensor, func: Any) -> bool:
    """Whether what `func` makes of known numbers stays known: not what is drawn at random, whole numbers excepted."""
    if func.name().startswith(_WITHOUT_NUMBERS):
        return False
    return _whole(tensor) or (tensor.numel() <= MOST_CONSTANTS and torch.Tag.nondeterministic_seeded not in func.tags)
