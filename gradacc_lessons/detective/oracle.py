"""What a loop with known mistakes does to the parameters, computed without running it.

`Loop` is the reference loop with a switch for each way to go wrong; `predict` carries it out in plain numbers. The
parent process compares what the learner's loop did with these predictions, so the right answer never travels to
the process in which the learner's code runs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from gradacc_lessons.detective.scenarios import EPOCHS, Clip, Problem, Scenario, gradient, parts, problem
from gradacc_lessons.detective.wire import Array

CLIP_EPSILON = 1e-6
"""What torch.nn.utils adds to a length before it divides by it."""


@dataclass(frozen=True)
class Loop:
    """How a loop accumulates. The defaults are the right loop."""

    weight: Literal[
        "items",
        "examples",
        "equal",
        "one",
        "size",
        "count",
        "running",
        "running_epoch",
        "micro_batch_size",
        "micro_batch_examples",
        "window_examples",
        "window_items",
        "first_size",
        "epoch",
        "epoch_examples",
    ] = "items"
    """Factor of a micro-batch's mean loss: its share of the window's items or examples, 1/window, 1, 1/(k+1),
    its examples or items; 1/examples of the micro-batch; 1/window of that; 1/examples or items of the window …"""
    divisor: Literal["window", "configured", "full"] = "window"
    """Whether the short window is divided by its own length, by the configured N, or not at all: only full ones are."""
    twice: Literal["no", "window", "configured"] = "no"
    """What divides a second time: nothing, the window's length, or the configured N."""
    backward: Literal["each", "first", "last", "running_total", "rescaled"] = "each"
    """Which losses go backward: each, the window's first or last, their running total, or each with the buffer
    divided."""
    zero: Literal["window", "micro_batch", "last", "epoch", "never", "before_update"] = "window"
    """When gradients are set to zero: after each window, before each micro-batch, before the last one of a full
    window, when an epoch begins …"""
    update: Literal["window", "twice", "micro_batch", "before_backward"] = "window"
    """When the optimizer updates; "twice": two times per window, with the same gradient."""
    boundary: Literal["last", "first", "early", "late", "epoch"] = "last"
    """After which micro-batch a window is taken to be full: its last, its first, the last but one, the first of
    the next window, or the last of the epoch."""
    length: int | None = None
    """The number of micro-batches in a window, whatever N is; None where it is N."""
    longer: Literal[-1, 0, 1] = 0
    """How many micro-batches more than N a window has, every time."""
    start: Literal["clear", "keep"] = "clear"
    """What becomes of a gradient that is left over when the next epoch begins."""
    tail: Literal["update", "rest", "always", "none"] = "update"
    """Whether micro-batches that are left over get an update at the end of the epoch: yes; only if the epoch does not
    divide into full windows; yes, and there is one even if nothing is left over; no."""
    stop: bool = False
    """Whether the loop returns after its first window."""
    clip: Literal["window", "full", "micro_batch", "late", "sum_of_means", "sum_of_items"] = "window"
    """When gradients are clipped to max_norm; "full": in full windows only; the last two: while still a sum."""
    own_clip: tuple[Clip, float] | None = None
    """How and where the loop clips once per window at a threshold of its own; None where it does not."""
    schedule: Literal[
        "update", "full", "micro_batch", "before_micro_batch", "epoch", "update_and_epoch", "never", "before_update"
    ] = "update"
    """When the scheduler moves; "full": only after the update of a full window."""


@dataclass(frozen=True)
class Prediction:
    """What a loop leaves behind in one scenario."""

    ends: Array
    """Parameters at the end of each epoch, (epochs, parameters)."""
    updates: tuple[int, ...]
    """Updates in each epoch."""
    backwards: int
    """Times that a gradient passed through a micro-batch's graph."""
    after_updates: tuple[Array, ...]
    """Parameters after each update."""
    rates: tuple[float, ...]
    """Learning rate of each update."""


@lru_cache(maxsize=8192)
def predict(loop: Loop, scenario: Scenario) -> Prediction:
    """Carry out `loop` in `scenario`."""
    run = _Run(loop, scenario, problem(scenario))
    ends, updates = [], []
    for _ in range(EPOCHS):
        before = len(run.after_updates)
        run.epoch()
        ends.append(run.parameters.copy())
        updates.append(len(run.after_updates) - before)
    return Prediction(np.array(ends), tuple(updates), run.backwards, tuple(run.after_updates), tuple(run.rates))


@lru_cache(maxsize=65536)
def first_move(loop: Loop, scenario: Scenario) -> Array | None:
    """The parameters when they have changed for the first time; None if they do not in the first epoch.

    A fraction of the work of `predict`: the gradients until then are those at the start, and are computed once."""
    run = _Run(loop, scenario, problem(scenario))
    for index in range(len(scenario.sizes)):
        run.micro_batch(index)
        if run.after_updates and (move := first_change(run.after_updates, run.data.start)) is not None:
            return move
    return None


def first_change(after_updates: Iterable[Array], start: Array) -> Array | None:
    """The first of these parameters that differ from those at the start; None if all are the same."""
    return next((parameters for parameters in after_updates if not np.array_equal(parameters, start)), None)


@lru_cache(maxsize=1024)
def _gradient_at_start(scenario: Scenario, index: int) -> Array:
    return gradient(scenario, problem(scenario).start, index)


def clipped(vector: Array, scenario: Scenario) -> Array:
    """`vector` clipped as torch.nn.utils does it."""
    if scenario.clip_by == "value":
        return np.clip(vector, -scenario.max_norm, scenario.max_norm)
    if scenario.clip_by == "parameter":
        return np.concatenate([_shortened(part, scenario.max_norm) for part in parts(scenario, vector)])
    return _shortened(vector, scenario.max_norm, np.inf if scenario.clip_by == "largest" else 2)


def _shortened(vector: Array, max_norm: float, order: float = 2) -> Array:
    return vector * min(1.0, max_norm / (float(np.linalg.norm(vector, order)) + CLIP_EPSILON))


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
        self.configured, self.length = loop.length or scenario.accumulation_steps, len(scenario.sizes)
        self.size = self.configured + loop.longer
        kind, bound = loop.own_clip or (scenario.clip_by, scenario.max_norm)
        self.clipping = replace(scenario, clip_by=kind, max_norm=bound)
        self.parameters = data.start
        self.buffer = np.zeros_like(self.parameters)
        self.total = np.zeros_like(self.parameters)
        self.empty = True
        self.optimizer = _Optimizer(scenario.optimizer)
        self.ticks = self.backwards = 0
        self.after_updates: list[Array] = []
        self.rates: list[float] = []

    def epoch(self) -> None:
        """One call of the loop."""
        loop = self.loop
        if loop.zero == "epoch" or (loop.zero == "window" and loop.start == "clear"):
            self.clear()
        for index in range(self.length):
            self.micro_batch(index)
            if loop.stop and self.ends(index):
                break
        else:
            if loop.tail == "always" or (loop.tail == "rest" and self.length % self.size):
                self.update(self.window(self.length - 1))
        self.ticks += loop.schedule in ("epoch", "update_and_epoch")

    def micro_batch(self, index: int) -> None:
        """One turn of the loop's body: backward, and whatever else is due at this micro-batch."""
        loop, window, ends = self.loop, self.window(index), self.ends(index)
        if loop.zero == "micro_batch" or (loop.zero == "last" and (index + 1) % self.size == 0):
            self.clear()
        if loop.update == "before_backward" and ends:
            self.update(window)
        self.add(index, window)
        if loop.clip == "micro_batch":
            self.buffer = clipped(self.buffer, self.clipping)
        self.ticks += loop.schedule == "before_micro_batch"
        if loop.update == "micro_batch":
            self.update(window, clears=ends)
        elif loop.update in ("window", "twice") and ends:
            self.update(window)
        self.ticks += loop.schedule == "micro_batch"

    def window(self, index: int) -> range:
        """The window to which a micro-batch belongs, whatever the loop makes of it."""
        start = index // self.size * self.size
        return range(start, min(start + self.size, self.length))

    def ends(self, index: int) -> bool:
        """Whether the loop takes a window to be complete at this micro-batch."""
        if index == self.length - 1 and self.loop.tail == "update" and self.loop.update != "before_backward":
            return True
        if self.loop.boundary == "epoch":
            return index == self.length - 1
        ahead = {"last": 1, "first": 0, "early": 2, "late": 0}[self.loop.boundary]
        return (index + ahead) % self.size == 0 and (index > 0 or self.loop.boundary != "late")

    def clear(self) -> None:
        """zero_grad()."""
        self.buffer, self.empty = np.zeros_like(self.buffer), True

    def add(self, index: int, window: range) -> None:
        """One backward, or what the loop does in its place."""
        if index == window.start:
            self.total = np.zeros_like(self.buffer)
        pushed = self.gradient(index) * self.weight(index, window)
        if self.loop.backward == "running_total":
            self.total = self.total + pushed
            pushed = self.total
            self.backwards += index - window.start
        elif self.loop.backward in ("first", "last") and index != window[0 if self.loop.backward == "first" else -1]:
            return
        self.buffer, self.empty = self.buffer + pushed, False
        self.backwards += 1
        if self.loop.backward == "rescaled":
            self.buffer = self.buffer / len(window)

    def gradient(self, index: int) -> Array:
        """The gradient of a micro-batch's mean loss here."""
        if self.parameters is self.data.start:
            return _gradient_at_start(self.scenario, index)
        return gradient(self.scenario, self.parameters, index)

    def weight(self, index: int, window: range) -> float:
        """The factor of this micro-batch's mean loss."""
        loop, sizes = self.loop, self.scenario.sizes
        shared = loop.weight in ("items", "examples", "equal", "micro_batch_examples", "first_size")
        if loop.weight in ("items", "examples"):
            numbers = self.data.counts if loop.weight == "items" else sizes
            weight = numbers[index] / sum(numbers[window.start : window.stop])
        elif loop.weight in ("size", "count"):
            weight = sizes[index] if loop.weight == "size" else self.data.counts[index]
            weight /= self.configured if loop.divisor == "configured" else 1
        else:
            divisor = {
                "equal": len(window),
                "one": 1,
                "running": index - window.start + 1,
                "running_epoch": index + 1,
                "micro_batch_size": sizes[index],
                "micro_batch_examples": sizes[index] * len(window),
                "window_examples": sum(sizes[window.start : window.stop]),
                "window_items": sum(self.data.counts[window.start : window.stop]),
                "first_size": sizes[0] * len(window),
                "epoch": len(sizes),
                "epoch_examples": sum(sizes) / sizes[index],
            }
            weight = 1 / divisor[loop.weight]
        if shared and loop.divisor == "configured":
            weight *= len(window) / self.configured
        elif shared and loop.divisor == "full" and len(window) < self.size:
            weight = 1
        return weight / {"no": 1, "window": len(window), "configured": self.configured}[loop.twice]

    def update(self, window: range, *, clears: bool = True) -> None:
        """optimizer.step() with what stands around it; then zero_grad(), where the loop does that once a window."""
        loop = self.loop
        if loop.zero == "before_update":
            self.clear()
        full = len(window) == self.size
        if loop.clip == "window" or (loop.clip == "full" and full):
            self.buffer = clipped(self.buffer, self.clipping)
        elif loop.clip in ("sum_of_means", "sum_of_items"):
            means = loop.clip == "sum_of_means"
            total = len(window) if means else sum(self.data.counts[window.start : window.stop])
            self.buffer = clipped(self.buffer * total, self.clipping) / total
        self.ticks += loop.schedule == "before_update"
        for _ in range(2 if loop.update == "twice" else 1):
            self.rates.append(self.scenario.learning_rate * self.scenario.decay**self.ticks)
            if not self.empty:  # without a gradient torch's optimizers leave a parameter alone, momentum included
                self.parameters = self.parameters - self.rates[-1] * self.optimizer.direction(self.buffer)
            self.after_updates.append(self.parameters)
        self.ticks += loop.schedule in ("update", "update_and_epoch") or (loop.schedule == "full" and full)
        if clears and loop.zero == "window":
            self.clear()
