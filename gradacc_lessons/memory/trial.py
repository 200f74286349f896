"""A planned window that really runs: what it takes, and how long."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from gradacc_lessons.device import seeded
from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.device_peak import device_peak
from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.loop import bring_state_into_being, in_precision, one_update, training_as_usual
from gradacc_lessons.memory.measure import TRACKED, measure_peak
from gradacc_lessons.memory.predict import TRACED_MICRO_BATCHES, built
from gradacc_lessons.nested import mapped
from gradacc_lessons.optimizers import make_optimizer

ALLOCATOR = "the events of the CPU's allocator"
SHARE_OF_FREE_MEMORY = 0.8
"""A real window is run only if it needs no more of the free memory than this."""
WHERE_FREE_MEMORY_IS_UNKNOWN = 2**30
"""Bytes that any machine is taken to have."""
DEVICES = ("cpu", "cuda", "mps")
MEMORY_OF_THE_MACHINE = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
"""Where Linux says how much memory this container may have, and has."""


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
        with seeded(self._recipe.seed), training_as_usual(self._recipe):
            self._model = built(forecast.build_model, self._recipe).to(self._device)
            self._optimizer = make_optimizer(self._model, self._recipe)
            bring_state_into_being(self._optimizer, self._recipe)

    def peak(self, sizes: Sequence[int]) -> Measured:
        """Run one window with micro-batches of these sizes, at the longest examples, and count its memory."""
        # Around what is counted: `seeded` keeps the generator's state in memory.
        with seeded(self._recipe.seed), training_as_usual(self._recipe):
            window = [self._batch(size) for size in sizes]
            run = window[:TRACED_MICRO_BATCHES]
            peak, counter = self._counted(
                lambda: one_update(self._model, self._optimizer, run, self._forecast.loss_fn, self._recipe), window
            )
        return Measured(peak, counter, len(run))

    def seconds(self, size: int, times: int = 3) -> float:
        """The quickest of some forwards and backwards of a micro-batch of this size."""
        with seeded(self._recipe.seed), training_as_usual(self._recipe):
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
        made = in_precision(self._forecast.make_batch(size), self._recipe)
        # Copies: a slice of a data set would count with all of it.
        return mapped(lambda tensor: tensor.to(self._device, copy=True), made)

    def _counted(self, run: Callable[[], None], window: list[Any]) -> tuple[int, str]:
        if self._device.type == "cpu":
            return allocator_peak(run, bytes_in_use(self._model, self._optimizer, window)), ALLOCATOR
        # Without our tracker: while one looks on, autograd adds gradients in memory of their own.
        found = device_peak(run, self._device)
        if found is not None:
            return found.allocated_bytes - self._before, found.counter
        return measure_peak(run, model=self._model, optimizer=self._optimizer, inputs=window).peak_bytes, TRACKED


def checked_device(device: torch.device | str | None) -> torch.device:
    """The device. ValueError, in one sentence, for one that nothing is planned for."""
    with suppress(RuntimeError):  # torch's, for a name that it does not know
        found = torch.device(device or "cpu")
        if found.type in DEVICES:
            return found
    raise ValueError(f"plans are made for {', '.join(DEVICES)}; not for the device {str(device)!r}")


def is_here(device: torch.device) -> bool:
    """Whether this machine has the device."""
    if device.type == "cuda":
        return torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count()
    return device.type != "mps" or torch.backends.mps.is_available()


def why_not_here(peak_bytes: int, device: torch.device) -> str | None:
    """Why no window with this peak can be run on this machine; None if one can."""
    if not is_here(device):
        name = device.type.upper() + ("" if device.index is None else f":{device.index}")
        return f"there is no {name} device here"
    if not fits_here(peak_bytes, device):
        return "this machine has not enough free memory to run a window"
    return None


def fits_here(peak_bytes: int, device: torch.device | str | None) -> bool:
    """Whether so much memory is free on a device of this machine that a run with this peak is safe."""
    free = free_bytes(torch.device(device or "cpu"))
    if free is None:
        return peak_bytes <= WHERE_FREE_MEMORY_IS_UNKNOWN
    return peak_bytes <= free * SHARE_OF_FREE_MEMORY


def free_bytes(device: torch.device) -> int | None:
    """The free memory of a device of this machine, or of the machine with its limits; None where nobody says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    free = [size for size in (_free_in_the_machine(), _free_in_the_container()) if size is not None]
    return min(free, default=None)


def _free_in_the_machine() -> int | None:
    """Bytes that can be had, the files that are only kept in memory for speed among them."""
    with suppress(OSError, KeyError, ValueError):
        return _numbers(MEMORY_OF_THE_MACHINE)["MemAvailable:"] * 1024
    with suppress(OSError, ValueError, AttributeError):  # not every system knows the name, or has the function
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _free_in_the_container() -> int | None:
    """What a container's limit leaves, if there is one. Files that it does not use at the moment make way."""
    with suppress(OSError, KeyError, ValueError):
        limit, used = (int((GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        return limit - used + _numbers(GROUP / "memory.stat")["inactive_file"]
    return None


def _numbers(file: Path) -> dict[str, int]:
    """The lines "name number" of a file."""
    lines = (line.split() for line in file.read_text().splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


def _allocated(device: torch.device) -> int:
    if device.type == "mps":
        return torch.mps.current_allocated_memory()
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
