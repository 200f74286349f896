"""What a loop with known mistakes does to the parameters, computed without running it.

`Loop` is the reference loop with a switch for each way to go wrong; `predict` carries it out in plain numbers. The
parent process compares what the learner's loop did with these predictions, so the right answer never travels to
the process in which the learner's code runs.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np

from gradacc_lessons.detective.scenarios import EPOCHS, Problem, Scenario, gradient, problem
from gradacc_lessons.detective.wire import Array


@dataclass(frozen=True)
class Loop:
    """How a loop accumulates. The defaults are the right loop."""

    weight: Literal["items", "examples", "equal", "one", "running", "micro_batch_size", "epoch"] = "items"
    """Factor of a micro-batch's mean loss: its share of the window's items or examples, 1/window, 1, 1/(k+1) …"""
    divisor: Literal["window", "configured"] = "window"
    """Whether the short window is divided by its own length or by the configured N."""
    twice: bool = False
    """Whether the window's length divides a second time."""
    backward: Literal["each", "last", "running_total", "rescaled"] = "each"
    """Which losses go backward: each, the window's last, their running total, or each with the buffer divided."""
    zero: Literal["window", "micro_batch", "never", "before_update"] = "window"
    """When gradients are set to zero."""
    update: Literal["window", "micro_batch", "off_by_one", "before_backward"] = "window"
    """When the optimizer updates."""
    tail: Literal["update", "drop", "leak"] = "update"
    """What becomes of the short last window."""
    stop: bool = False
    """Whether the loop returns after its first window."""
    clip: Literal["window", "micro_batch", "late", "sum_of_means", "sum_of_items"] = "window"
    """When gradients are clipped to max_norm; the last two: while they are still a sum."""
    schedule: Literal["update", "micro_batch", "before_micro_batch", "epoch", "never", "before_update"] = "update"
    """When the scheduler moves."""


@dataclass(frozen=True)
class Prediction:
    """What a loop leaves behind in one scenario."""

    ends: Array
    """Parameters at the end of each epoch, (epochs, parameters)."""
    updates: tuple[int, ...]
    """Updates in each epoch."""
    backwards: int
    """Times that a gradient passed through a micro-batch's graph."""
    steps: tuple[Array, ...]
    """Parameters after each update."""
    rates: tuple[float, ...]
    """Learning rate of each update."""


@lru_cache(maxsize=8192)
def predict(loop: Loop, scenario: Scenario) -> Prediction:
    """Carry out `loop` in `scenario`."""
    run = _Run(loop, scenario, problem(scenario))
    ends, updates = [], []
    for _ in range(EPOCHS):
        before = len(run.steps)
        run.epoch()
        ends.append(run.parameters.copy())
        updates.append(len(run.steps) - before)
    return Prediction(np.array(ends), tuple(updates), run.backwards, tuple(run.steps), tuple(run.rates))


def clipped(vector: Array, scenario: Scenario) -> Array:
    """`vector` clipped as torch.nn.utils does it: to a length (hence the 1e-6), or entry by entry."""
    if scenario.clip_by == "value":
        return np.clip(vector, -scenario.max_norm, scenario.max_norm)
    return vector * min(1.0, scenario.max_norm / (float(np.linalg.norm(vector)) + 1e-6))


@dataclass
class _Optimizer:
    """SGD, SGD with momentum 0.9 and Adam on one flat vector."""

    name: str
    moments: list[Array] = field(default_factory=list)
    updates: int = 0

    def direction(self, gradient: Array) -> Array:
        """What one update takes off, per unit of learning rate."""
        if self.name == "sgd":
            return gradient
        self.updates += 1
        if self.name == "momentum":
            self.moments = [0.9 * self.moments[0] + gradient if self.moments else gradient]
            return self.moments[0]
        first, second = self.moments or [np.zeros_like(gradient), np.zeros_like(gradient)]
        self.moments = [0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2]
        unbiased = [m / (1 - beta**self.updates) for m, beta in zip(self.moments, (0.9, 0.999), strict=True)]
        return unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)


class _Run:
    """The state of one training run: parameters, gradient buffer, optimizer, schedule."""

    def __init__(self, loop: Loop, scenario: Scenario, data: Problem) -> None:
        self.loop, self.scenario, self.data = loop, scenario, data
        self.parameters = data.start.copy()
        self.buffer = np.zeros_like(self.parameters)
        self.total = np.zeros_like(self.parameters)
        self.optimizer = _Optimizer(scenario.optimizer)
        self.ticks = self.backwards = 0
        self.steps: list[Array] = []
        self.rates: list[float] = []

    def epoch(self) -> None:
        loop, size, length = self.loop, self.scenario.accumulation_steps, len(self.scenario.sizes)
        for index in range(length):
            place = index % size
            window = range(index - place, min(index - place + size, length))
            self.clear_before(index, place)
            if loop.update == "before_backward" and place == size - 1:
                self.update(window)
            self.add(index, window)
            if loop.clip == "micro_batch":
                self.buffer = clipped(self.buffer, self.scenario)
            self.ticks += loop.schedule == "before_micro_batch"
            due = self.due(index, window)
            if due:
                self.update(window)
            self.ticks += loop.schedule == "micro_batch"
            if loop.stop and due:
                break
        self.ticks += loop.schedule == "epoch"

    def clear_before(self, index: int, place: int) -> None:
        by_window = self.loop.zero == "window" and self.loop.update in ("window", "micro_batch")
        kept = self.loop.tail == "leak" and self.loop.update == "window" and index == 0
        if self.loop.zero == "micro_batch" or (by_window and place == 0 and not kept):
            self.buffer = np.zeros_like(self.buffer)
        if place == 0:
            self.total = np.zeros_like(self.buffer)

    def add(self, index: int, window: range) -> None:
        pushed = gradient(self.scenario, self.parameters, index) * self.weight(index, window)
        if self.loop.backward == "running_total":
            self.total = self.total + pushed
            self.buffer = self.buffer + self.total
            self.backwards += index - window.start + 1
            return
        if self.loop.backward == "last" and index != window[-1]:
            return
        self.buffer = self.buffer + pushed
        self.backwards += 1
        if self.loop.backward == "rescaled":
            self.buffer = self.buffer / len(window)

    def weight(self, index: int, window: range) -> float:
        loop, sizes = self.loop, self.scenario.sizes
        shared = loop.weight in ("items", "examples", "equal")
        if loop.weight in ("items", "examples"):
            numbers = self.data.counts if loop.weight == "items" else sizes
            weight = numbers[index] / sum(numbers[window.start : window.stop])
        else:
            divisor = {
                "equal": len(window),
                "one": 1,
                "running": index - window.start + 1,
                "micro_batch_size": sizes[index],
                "epoch": len(sizes),
            }
            weight = 1 / divisor[loop.weight]
        if shared and loop.divisor == "configured":
            weight *= len(window) / self.scenario.accumulation_steps
        return weight / len(window) if loop.twice else weight

    def due(self, index: int, window: range) -> bool:
        size = self.scenario.accumulation_steps
        if self.loop.update == "window":
            return index == window[-1] and (len(window) == size or self.loop.tail == "update")
        return self.loop.update == "micro_batch" or (self.loop.update == "off_by_one" and index % size == 0)

    def update(self, window: range) -> None:
        loop = self.loop
        if loop.zero == "before_update":
            self.buffer = np.zeros_like(self.buffer)
        if loop.clip == "window":
            self.buffer = clipped(self.buffer, self.scenario)
        elif loop.clip in ("sum_of_means", "sum_of_items"):
            means = loop.clip == "sum_of_means"
            total = len(window) if means else sum(self.data.counts[window.start : window.stop])
            self.buffer = clipped(self.buffer * total, self.scenario) / total
        self.ticks += loop.schedule == "before_update"
        self.rates.append(self.scenario.learning_rate * self.scenario.decay**self.ticks)
        self.parameters = self.parameters - self.rates[-1] * self.optimizer.direction(self.buffer)
        self.steps.append(self.parameters)
        self.ticks += loop.schedule == "update"
        # Inside a window nothing is cleared after an update, or step_every_micro_batch would be two mistakes.
        if loop.zero in ("window", "before_update") and loop.update != "micro_batch":
            self.buffer = np.zeros_like(self.buffer)
