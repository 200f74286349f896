"""Which known mistakes explain what a loop did: single ones, and combinations.

A loop is first explained where windows are full and equal; what explains it there is then carried to the situations
with clipping, a schedule, a short window and uneven micro-batches, adding the mistakes that only show there. An
explanation must predict the parameters in all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from gradacc_lessons.detective.oracle import Loop, predict
from gradacc_lessons.detective.scenarios import Scenario, problem
from gradacc_lessons.detective.wire import Array

TOLERANCE = 1e-6
"""Of the distance that the parameters travel. Rounding is at 1e-15, weights made in float32 at 1e-8; faults at 1e-3."""

Change = dict[str, Any]
CHANGES: dict[str, tuple[Change, ...]] = {
    "missing_scale": ({"weight": "one"},),
    "double_scale": ({"twice": True},),
    "running_scale": ({"weight": "running"},),
    "divided_by_micro_batch_size": ({"weight": "micro_batch_size"},),
    "divided_by_epoch_length": ({"weight": "epoch"},),
    "grad_divided_every_micro_batch": ({"backward": "rescaled", "weight": "one"},),
    "running_total_backward": ({"backward": "running_total"},),
    "mean_of_means": ({"weight": "equal"},),
    "examples_not_items": ({"weight": "examples"},),
    "zero_grad_every_micro_batch": ({"zero": "micro_batch"},),
    "backward_once_per_window": ({"backward": "last"},),
    "never_zero_grad": ({"zero": "never"},),
    "zero_grad_before_step": ({"zero": "before_update"},),
    "step_every_micro_batch": ({"update": "micro_batch"},),
    "no_accumulation": ({"update": "micro_batch", "zero": "micro_batch", "weight": "one"},),
    "step_before_backward": (
        {"update": "before_backward", "divisor": "configured"},
        {"update": "before_backward"},
    ),
    "window_off_by_one": ({"update": "off_by_one", "divisor": "configured"}, {"update": "off_by_one"}),
    "stops_after_first_window": ({"stop": True},),
    "tail_dropped": ({"tail": "drop"},),
    # Who lets the short window leak has usually divided by N all along; then that is no mistake of its own.
    "tail_leaks": ({"tail": "leak", "divisor": "configured"}, {"tail": "leak"}),
    "tail_underscaled": ({"divisor": "configured"},),
    "clip_every_micro_batch": ({"clip": "micro_batch"},),
    "clip_too_late": ({"clip": "late"},),
    "clip_before_scaling": ({"clip": "sum_of_means"}, {"clip": "sum_of_items"}),
    "scheduler_every_micro_batch": ({"schedule": "micro_batch"}, {"schedule": "before_micro_batch"}),
    "scheduler_once_per_epoch": ({"schedule": "epoch"},),
    "scheduler_never": ({"schedule": "never"},),
    "scheduler_before_update": ({"schedule": "before_update"},),
}
"""The switches of the parametric loop that each fault turns, one entry per way of writing it."""

_CLIP = tuple(name for name in CHANGES if name.startswith("clip_"))
_SCHEDULE = tuple(name for name in CHANGES if name.startswith("scheduler_"))
_TAIL = ("tail_dropped", "tail_leaks", "tail_underscaled")
_ITEMS = ("mean_of_means", "examples_not_items")
_ALWAYS = tuple(name for name in CHANGES if name not in (*_CLIP, *_SCHEDULE, *_TAIL, *_ITEMS))
_NEWS = {
    "windows": _ALWAYS,
    "clip": _CLIP,
    "large gradients": _CLIP,
    "schedule": _SCHEDULE,
    "tail": _TAIL,
    "short epoch": _TAIL,
    "items": _ITEMS,
    "counted": _ITEMS,
}
"""The faults that show for the first time in a scenario."""


@dataclass(frozen=True)
class Suspicion:
    """A set of faults and one way in which they are written."""

    faults: frozenset[str]
    """Their ids."""
    loop: Loop
    """What they make of the reference loop."""
    changed: frozenset[str] = frozenset()
    """The switches they turn."""

    def add(self, fault: str, change: Change) -> "Suspicion | None":
        """This and one more fault; None where they turn the same switch."""
        if self.changed & change.keys() or fault in self.faults:
            return None
        return Suspicion(self.faults | {fault}, replace(self.loop, **change), self.changed | change.keys())


INNOCENT = Suspicion(frozenset(), Loop())


@dataclass(frozen=True)
class Observation:
    """What was measured in one scenario."""

    scenario: Scenario
    """Where."""
    ends: Array
    """Parameters at the end of each epoch, (epochs, parameters)."""
    steps: Array
    """Parameters after each update, (updates, parameters); the first 64."""
    rates: Array
    """Learning rate of each update."""
    record: dict[str, Any]
    """Counts: updates per epoch, forwards, backwards, pushed (backwards that brought a gradient), graphs, and so on."""

    def agrees(self, loop: Loop) -> bool:
        """Whether `loop` leads to these parameters, within TOLERANCE of the distance travelled."""
        return any(close(self.ends, predict(loop, s).ends, s) for s in self.readings())

    @property
    def right(self) -> bool:
        """Whether the parameters are those of the right loop."""
        return self.agrees(Loop())

    def readings(self) -> Iterator[Scenario]:
        """The scenario; and, where the loop may clip at a threshold of its own, with the threshold it shows."""
        yield self.scenario
        if self.scenario.unless != "max_norm" or not len(self.steps) or not self.rates[0]:
            return
        applied = (problem(self.scenario).start - self.steps[0]) / self.rates[0]
        if np.isfinite(applied).all() and applied.any():
            yield replace(self.scenario, max_norm=float(np.linalg.norm(applied)))
            yield replace(self.scenario, max_norm=float(np.abs(applied).max()), clip_by="value")


def close(measured: Array, predicted: Array, scenario: Scenario) -> bool:
    """Equality of parameters, measured by how far the right loop moves them."""
    if measured.shape != predicted.shape:
        return False
    distance = float(np.abs(predict(Loop(), scenario).ends - problem(scenario).start).max())
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.abs(measured - predicted).max() <= TOLERANCE * distance)


def explain(observations: list[Observation]) -> tuple[list[Suspicion], Observation | None]:
    """All explanations that hold in every scenario, and None.

    When nothing explains some scenario: what held before its kind of scenario came up, and its observation. What
    holds only in a part of one kind may be a coincidence and is not kept.
    """
    held, before, kind = [INNOCENT], [], ""
    for index, observation in enumerate(observations):
        if _kind(observation.scenario) != kind:
            kind, before = _kind(observation.scenario), held if index else []
        seen = observations[: index + 1]
        fitting = [s for suspicion in held for s in _fitting(suspicion, seen)]
        if not fitting:
            return before, observation
        held = _unique(fitting)
    return held, None


def _kind(scenario: Scenario) -> str:
    return f"{scenario.scope} {scenario.needs or scenario.unless}"


def _fitting(suspicion: Suspicion, seen: list[Observation]) -> list[Suspicion]:
    """The suspicion itself when it predicts the last observation; otherwise what it becomes with one or two of the
    faults that this scenario is there to show. A fault that changes nothing is not looked for."""
    if seen[-1].agrees(suspicion.loop):
        return [suspicion]
    news = _NEWS.get(seen[-1].scenario.name, ())
    grown = (s for size in (1, 2) for faults in combinations(news, size) for s in _with(suspicion, faults))
    return [s for s in grown if all(o.agrees(s.loop) for o in reversed(seen))]


def likeliest(held: list[Suspicion], backwards: Callable[[Loop], bool]) -> list[frozenset[str]]:
    """The smallest sets of faults among the explanations; where parameters cannot tell, the backwards may."""
    counted = [s for s in held if backwards(s.loop)] or held
    size = min(len(s.faults) for s in counted)
    return list(dict.fromkeys(s.faults for s in counted if len(s.faults) == size))


def _with(suspicion: Suspicion, faults: Iterable[str]) -> Iterator[Suspicion]:
    faults = tuple(faults)
    for changes in product(*(CHANGES[fault] for fault in faults)):
        grown: Suspicion | None = suspicion
        for fault, change in zip(faults, changes, strict=True):
            grown = grown.add(fault, change) if grown is not None else None
        if grown is not None:
            yield grown


def _unique(suspicions: list[Suspicion]) -> list[Suspicion]:
    return list({(s.faults, s.loop): s for s in suspicions}.values())
