"""How long a learner waits for the explorers of lesson 01, which compute for real."""

import random
import time
from collections.abc import Iterator
from itertools import cycle
from threading import Event
from typing import Any

import ipywidgets as widgets

from benchmarks.kernel import in_kernel
from benchmarks.row import Row, median_row, row_95
from gradacc_lessons.lessons.same_gradient import explore_gradients
from gradacc_lessons.lessons.same_training import explore_training
from gradacc_lessons.ui import Explorer

HIGHEST = 32
"""The sliders move from 1 to this: 32 x 32 examples are two thirds of the data."""
SECONDS_OF_LOOKING = 0.2
"""How long a learner looks at a run before the next move."""
WAIT = 60
"""Seconds after which something is wrong."""


def gradients(quick: bool) -> list[Row]:
    """A slider recomputes real gradients.

    Lesson 01's first explorer, in a kernel: one slider moves (b or N in turn, to any place from 1 to 32), the gradient
    of the full batch and of its N micro-batches are computed anew in float64, and the picture follows. Timed until
    the first picture, which shows the first micro-batch, and until the last, which shows all N.
    """
    return in_kernel(measure_gradients, quick)


def first_point(quick: bool) -> list[Row]:
    """Live training starts anew.

    Lesson 01's second explorer, in a kernel: a slider moves while a run is training. Timed until the first picture of
    the new run: the older run has stopped, the data is shuffled, two models are built and have made an update.
    """
    return in_kernel(measure_first_point, quick)


def measure_gradients(quick: bool) -> list[Row]:
    """In the kernel: moves from a seeded random generator; each run ends before the next begins."""
    explorer = explore_gradients()
    pictures = FirstPicture(explorer)
    explorer.wait(WAIT)
    first, last = [], []
    for control, value in moves(4 if quick else 120):
        began = pictures.forget()
        explorer.set(**{control: value})
        explorer.wait(WAIT)
        last.append(time.perf_counter() - began)
        first.append(pictures.wait() - began)
    return [
        median_row("first picture, median", first, "ms"),
        median_row("picture of the whole window, median", last, "ms"),
        row_95("first picture, 19 of 20 within", first),
        row_95("picture of the whole window, 19 of 20 within", last, at_most=100),
    ]


def measure_first_point(quick: bool) -> list[Row]:
    """In the kernel: each move interrupts the run before it."""
    explorer = explore_training()
    pictures = FirstPicture(explorer)
    seconds = []
    for control, value in moves(3 if quick else 30):
        began = pictures.forget()
        explorer.set(**{control: value})
        seconds.append(pictures.wait() - began)
        time.sleep(SECONDS_OF_LOOKING)
    explorer.stop()
    explorer.wait(WAIT)
    return [
        median_row("first point of the new run, median", seconds, "ms", at_most=300),
        row_95("first point of the new run, 19 of 20 within", seconds),
    ]


def moves(count: int) -> Iterator[tuple[str, int]]:
    """Which slider goes where: b and N in turn, each to another place than it has."""
    places = random.Random(0)
    now = {"micro_batch_size": 8, "accumulation_steps": 4}
    for _, control in zip(range(count), cycle(now), strict=False):
        now[control] = places.choice([value for value in range(1, HIGHEST + 1) if value != now[control]])
        yield control, now[control]


class FirstPicture:
    """When the first picture of an explorer's newest run went out, seen where a learner sees it: in the HTML widget.

    Only a run's first picture can show exactly one row, so a late picture of the run before is not taken for it.
    """

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._seen = Event()
        self._at = 0.0
        for part in explorer.widget.children:
            if isinstance(part, widgets.HTML):
                part.observe(self._look, "value")
        explorer.start()
        self.wait()

    def forget(self) -> float:
        """Wait for a new one from now on; returns the time."""
        self._seen.clear()
        return time.perf_counter()

    def wait(self) -> float:
        """The time when the picture went out."""
        if not self._seen.wait(WAIT):
            raise TimeoutError(f"no picture within {WAIT} seconds")
        return self._at

    def _look(self, change: dict[str, Any]) -> None:
        now = time.perf_counter()
        if "<img" in change["new"] and not self._seen.is_set() and len(self._explorer.data) == 1:
            self._at = now
            self._seen.set()
