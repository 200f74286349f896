"""Whole numbers keep their values among tensors without memory.

A loss asks its labels how many of them count, a model asks its mask whether anything is masked. The answer depends
on the batch alone, and the batch is known. What depends on weights or activations is not, and nobody invents it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

from gradacc_lessons.memory.walk import tensors_in

MOST_VALUES = 2**23
"""Larger tensors of whole numbers are left without values: they would take tens of MiB each."""


class KnownNumbers(TorchDispatchMode):
    """Above a FakeTensorMode: computes with whole numbers and truth values for real, beside the fake tensors."""

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
        return tree_map_only(Tensor, self._converted, batch)

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
        if func is torch.ops.aten.masked_select.default and self._knows(args[1]):
            shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
            mask = self._for_real(torch.ops.aten.expand.default, (args[1], shape), {})
            func, args = torch.ops.aten.index.Tensor, (args[0].expand(shape), [mask])
        if func is torch.ops.aten.index.Tensor:
            args = args[0], [place for index in args[1] for place in self._places(index)]
        given = tensors_in((args, kwargs))
        if any(tensor.is_floating_point() for tensor in given):  # most operations: nothing is known, or will be
            if func._schema.is_mutable:
                self._forget(given)
            return func(*args, **kwargs)
        known = all(self._knows(tensor) for tensor in given)
        if func is torch.ops.aten._local_scalar_dense.default and known:
            return self._for_real(func, args, kwargs)
        if known and func is torch.ops.aten.nonzero.default:  # as large as the numbers say
            return self.without_memory(self._for_real(func, args, kwargs))
        result = func(*args, **kwargs)
        outcomes = tensors_in(result)
        if known and outcomes and all(_whole(tensor) for tensor in outcomes):
            for fake, value in zip(outcomes, tensors_in(self._for_real(func, args, kwargs)), strict=True):
                self._values[fake] = value
        elif func._schema.is_mutable:
            self._forget(given)
        return result

    def _knows(self, tensor: Tensor) -> bool:
        return tensor in self._values or not isinstance(tensor, FakeTensor)

    def _places(self, index: Tensor | None) -> Sequence[Tensor | None]:
        """Where a known mask is true, as the numbers that index each of its dimensions; other indices stay."""
        if index is None or index.dtype != torch.bool or not self._knows(index):
            return [index]
        places: Sequence[Tensor] = self._for_real(torch.ops.aten.nonzero.default, (index,), {}).unbind(1)
        return [self._converted(place) for place in places]

    def _forget(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            self._values.pop(tensor, None)

    def _for_real(self, func: Any, args: Any, kwargs: Any) -> Any:
        real_args, real_kwargs = tree_map_only(FakeTensor, self._values.__getitem__, (args, kwargs))
        with unset_fake_temporarily():
            return func(*real_args, **real_kwargs)


def _whole(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and not tensor.is_complex() and tensor.numel() <= MOST_VALUES
