"""The peak of a run by a device's own counters, where it has any: CUDA and MPS."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class DevicePeak:
    """What the counters of a device said."""

    allocated_bytes: int
    """The most that tensors had in use on it at one moment, what was there before included."""
    reserved_bytes: int
    """The most that PyTorch had taken from it."""
    counter: str
    """Which counter `allocated_bytes` is from."""
    cannot_see: str
    """What that counter does not count."""


def device_peak(run: Callable[[], object], device: torch.device) -> DevicePeak | None:
    """Call `run()` and read the counters of the device; None for one that has none, such as the CPU.

    CUDA keeps its peak itself. MPS has no peak, only what is in use now: there it is asked after each operation.
    """
    if device.type == "cuda":
        return _cuda(run, device)
    if device.type == "mps":
        return _mps(run)
    run()
    return None


def _cuda(run: Callable[[], object], device: torch.device) -> DevicePeak:
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    run()
    torch.cuda.synchronize(device)
    return DevicePeak(
        torch.cuda.max_memory_allocated(device),
        torch.cuda.max_memory_reserved(device),
        "CUDA's own counter of allocated memory",
        "the CUDA context, and what other programs and libraries such as NCCL take from the card",
    )


def _mps(run: Callable[[], object]) -> DevicePeak:
    asked = _AfterEach(torch.mps.current_allocated_memory, torch.mps.driver_allocated_memory)
    with asked:
        run()
    allocated, reserved = asked.most
    return DevicePeak(
        allocated,
        reserved,
        "MPS's own counter of allocated memory, read after each operation",
        "what a kernel takes and gives back within one operation, and what other programs take",
    )


class _AfterEach(TorchDispatchMode):
    """Reads some counters after each operation; `most` is the largest that each of them said."""

    def __init__(self, *counters: Callable[[], int]) -> None:
        super().__init__()
        self._counters = counters
        self.most = tuple(counter() for counter in counters)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.most = tuple(max(most, counter()) for most, counter in zip(self.most, self._counters, strict=True))
        return result
