"""Lesson 01 opens with a batch that a memory limit refuses.

A CPU has no small memory of its own to fill, so the limit is set here: on what autograd keeps between forward
and backward, counted live through PyTorch's public hooks on saved tensors. Where all the other bytes go is
lesson 03's subject.
"""

from contextlib import AbstractContextManager
from types import TracebackType

import torch
from torch import Tensor, nn

from gradacc_lessons.memory.sizes import MEBIBYTE


class MemoryLimit(AbstractContextManager["MemoryLimit"]):
    """Refuse, with a MemoryError, to keep more than `mebibytes` for backward inside the `with` block.

    Counts each piece of memory once, however many operations keep it, and not the model's own parameters.
    `peak_mebibytes` is the most that was kept at one moment.
    """

    def __init__(self, model: nn.Module, mebibytes: float) -> None:
        self.limit_bytes = mebibytes * MEBIBYTE
        self.kept_bytes = self.peak_bytes = 0
        self._model = model
        self._keepers: dict[int, int] = {}

    @property
    def peak_mebibytes(self) -> float:
        """The most that was kept at one moment, in MiB."""
        return self.peak_bytes / MEBIBYTE

    def __enter__(self) -> "MemoryLimit":
        self._own = {p.untyped_storage().data_ptr() for p in self._model.parameters()}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._keep, _Kept.tensor_of)
        self._hooks.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hooks.__exit__(kind, error, trace)

    def _keep(self, tensor: Tensor) -> "_Kept":
        return _Kept(self, tensor)

    def add(self, storage: int, size: int) -> None:
        """One more operation keeps this storage; MemoryError if it does not fit any more."""
        if storage in self._own:
            return
        new = 0 if self._keepers.get(storage) else size
        if self.kept_bytes + new > self.limit_bytes:
            raise MemoryError(
                f"forward wants to keep more than {self.limit_bytes / MEBIBYTE:g} MiB for backward: "
                "this batch does not fit"
            )
        self._keepers[storage] = self._keepers.get(storage, 0) + 1
        self.kept_bytes += new
        self.peak_bytes = max(self.peak_bytes, self.kept_bytes)

    def drop(self, storage: int, size: int) -> None:
        """One operation less keeps this storage."""
        if not self._keepers.get(storage):
            return
        self._keepers[storage] -= 1
        if not self._keepers[storage]:
            self.kept_bytes -= size


class _Kept:
    """A tensor that autograd keeps; autograd lets go of it when backward has passed, and so does the count."""

    def __init__(self, limit: MemoryLimit, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        self._limit: MemoryLimit | None = None
        self._storage, self._size = storage.data_ptr(), storage.nbytes()
        limit.add(self._storage, self._size)
        self._limit, self._tensor = limit, tensor

    def tensor_of(self) -> Tensor:
        return self._tensor

    def __del__(self) -> None:
        if self._limit is not None:
            self._limit.drop(self._storage, self._size)
