"""A planned window that really runs: what it takes, and how long."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from gradacc_lessons.device import seeded
from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.device_peak import device_peak
from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.loop import bring_state_into_being, one_update
from gradacc_lessons.memory.measure import TRACKED, measure_peak
from gradacc_lessons.memory.predict import TRACED_MICRO_BATCHES, built
from gradacc_lessons.optimizers import make_optimizer

ALLOCATOR = "the events of the CPU's allocator"
SHARE_OF_FREE_MEMORY = 0.8
"""A real window is run only if it needs no more of the free memory than this."""
WHERE_FREE_MEMORY_IS_UNKNOWN = 2**30
"""Bytes that any machine is taken to have."""


@dataclass(frozen=True)
class Measured:
    """The peak of a window that really ran."""

    peak_bytes: int
    """The most that was in use at one moment."""
    counter: str
    """Who counted."""
    micro_batches: int
    """How many of the window's micro-batches were run; those after the second repeat it."""


class Trial:
    """A model of its own, after its first update, on the device where it will be trained.

    The caller's generators, default dtype and objects are left as they were.
    """

    def __init__(self, forecast: Forecast) -> None:
        self._forecast, self._recipe = forecast, forecast.recipe
        self._device = torch.device(forecast.device or "cpu")
        self._before = _allocated(self._device)
        with seeded(self._recipe.seed):
            self._model = built(forecast.build_model, self._recipe).to(self._device)
        self._optimizer = make_optimizer(self._model, self._recipe)
        bring_state_into_being(self._optimizer, self._recipe)

    def peak(self, sizes: Sequence[int]) -> Measured:
        """Run one window with micro-batches of these sizes, at the longest examples, and count its memory."""
        with seeded(self._recipe.seed):  # around what is counted: it keeps the generator's state in memory
            window = [self._batch(size) for size in sizes]
            run = window[:TRACED_MICRO_BATCHES]
            peak, counter = self._counted(
                lambda: one_update(self._model, self._optimizer, run, self._forecast.loss_fn, self._recipe), window
            )
        return Measured(peak, counter, len(run))

    def seconds(self, size: int, times: int = 3) -> float:
        """The quickest of some forwards and backwards of a micro-batch of this size."""
        with seeded(self._recipe.seed):
            batch = self._batch(size)
            taken = [self._timed(batch) for _ in range(times + 1)][1:]  # the first one sets things up
        self._optimizer.zero_grad(set_to_none=self._recipe.set_to_none)
        return min(taken)

    def _timed(self, batch: Any) -> float:
        start = perf_counter()
        one_update(self._model, self._optimizer, [batch], self._forecast.loss_fn, self._recipe, lambda: None)
        _synchronize(self._device)
        return perf_counter() - start

    def _batch(self, size: int) -> Any:
        return tree_map_only(Tensor, lambda tensor: tensor.to(self._device), self._forecast.make_batch(size))

    def _counted(self, run: Callable[[], None], window: list[Any]) -> tuple[int, str]:
        if self._device.type == "cpu":
            return allocator_peak(run, bytes_in_use(self._model, self._optimizer, window)), ALLOCATOR
        # Without our tracker: while one looks on, autograd adds gradients in memory of their own.
        found = device_peak(run, self._device)
        if found is not None:
            return found.allocated_bytes - self._before, found.counter
        return measure_peak(run, model=self._model, optimizer=self._optimizer, inputs=window).peak_bytes, TRACKED


def fits_here(peak_bytes: int, device: torch.device | str | None) -> bool:
    """Whether this machine has so much memory free that a run with this peak is safe."""
    free = free_bytes(torch.device(device or "cpu"))
    if free is None:
        return peak_bytes <= WHERE_FREE_MEMORY_IS_UNKNOWN
    return peak_bytes <= free * SHARE_OF_FREE_MEMORY


def free_bytes(device: torch.device) -> int | None:
    """The free memory of the device, or of the machine with its limits; None where nobody says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) if torch.cuda.is_available() else 0
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    free: list[int] = []
    with suppress(OSError, ValueError, AttributeError):  # not every system knows the name, or has the function
        free.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # a container's limit, if there is one and it is a number
        group = Path("/sys/fs/cgroup")
        free.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return min(free, default=None)


def _allocated(device: torch.device) -> int:
    if device.type == "mps":
        return torch.mps.current_allocated_memory()
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
