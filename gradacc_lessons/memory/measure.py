"""The memory of a run that really happens."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from gradacc_lessons.memory.device_peak import device_peak
from gradacc_lessons.memory.profile import MemoryProfile, profile_of
from gradacc_lessons.memory.tracker import Tracker
from gradacc_lessons.memory.uncounted import refuse_uncounted
from gradacc_lessons.memory.walk import Optimizers

TRACKED = "the tensors that are alive, operation by operation"
TRACKED_MISSES = "what a kernel takes and gives back within one operation, and what the libraries below PyTorch take"
WATCHED = "; while it is watched, gradients that meet in one tensor take room of their own"
"""Added to what a device's counter cannot see: autograd adds them in place only when no dispatch mode looks on."""


def measure_peak(
    run: Callable[[], object],
    *,
    model: nn.Module,
    optimizer: Optimizers = None,
    inputs: Any = (),
    device: torch.device | str | None = None,
) -> MemoryProfile:
    """Call `run()` and say how much memory it had in use at its peak, and for what.

    Let `run` do two windows at least: gradients and the optimizer's state exist only from the first update on.
    `inputs` are the batches (tensors, nested in lists, tuples or dicts) that exist before it starts; `device` is
    where to count, by default where the model is. `model` and `optimizer` are only looked at; there may
    be several optimizers, in a list.

    On CUDA and MPS `peak_bytes` is the device's own counter; elsewhere it is the tracker's count.

    CannotCount (a ValueError) for a run that would be counted wrong, such as one with the CPU's LSTM.
    """
    where = torch.device(device) if device is not None else _device_of(model)
    tracker = Tracker(model, optimizer, inputs)

    def watched() -> None:
        with tracker:
            run()

    on_device = device_peak(watched, where)
    refuse_uncounted(tracker.operations)
    timeline, parts, phase = profile_of(tracker)
    if on_device is None:
        return MemoryProfile(int(timeline["total"].max()), parts, phase, timeline, TRACKED, TRACKED_MISSES)
    peak, misses = on_device.allocated_bytes, on_device.cannot_see + WATCHED
    return MemoryProfile(peak, parts, phase, timeline, on_device.counter, misses, on_device.reserved_bytes)


def _device_of(model: nn.Module) -> torch.device:
    parameter = next(model.parameters(), None)
    return parameter.device if parameter is not None else torch.device("cpu")
