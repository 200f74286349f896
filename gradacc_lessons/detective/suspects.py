"""Which known mistakes explain what a loop did: single ones, and combinations.

A loop is first explained where windows are full and equal; what explains it there is then carried to the situations
with clipping, a schedule, a short window and uneven micro-batches, adding the mistakes that only show there. An
explanation must predict the parameters in all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, groupby
from typing import Any

import numpy as np

from gradacc_lessons.detective.oracle import Loop, first_change, first_move, predict
from gradacc_lessons.detective.scenarios import Scenario, problem
from gradacc_lessons.detective.wire import Array

TOLERANCE = 1e-6
"""Of the distance that the parameters travel. Rounding is at 1e-15, weights made in float32 at 1e-8; faults at 1e-3."""

Change = dict[str, Any]
_DIVISORS: tuple[Change, ...] = ({"divisor": "configured"}, {})
_STARTS = ("keep", "clear")
_LEFT_OVER: tuple[Change, ...] = (
    *({"tail": tail, "start": start} for tail in ("none", "rest") for start in _STARTS),
    {"tail": "update"},
    {"tail": "always"},
)
"""What may become of the micro-batches that a shifted window leaves over when the epoch ends."""
_EXTRA: tuple[Change, ...] = ({}, {"tail": "rest"}, {"tail": "always"})
"""One more update when the epoch ends, by a loop that has made one for every micro-batch already."""
CHANGES: dict[str, tuple[Change, ...]] = {
    "missing_scale": ({"weight": "one"},),
    "double_scale": ({"twice": True},),
    "running_scale": ({"weight": "running"}, {"weight": "running_epoch"}),
    "divided_by_micro_batch_size": ({"weight": "micro_batch_size"},),
    "divided_by_epoch_length": ({"weight": "epoch"},),
    "grad_divided_every_micro_batch": ({"backward": "rescaled", "weight": "one"},),
    "running_total_backward": ({"backward": "running_total"},),
    "mean_of_means": ({"weight": "equal"},),
    "examples_not_items": ({"weight": "examples"},),
    "zero_grad_every_micro_batch": ({"zero": "micro_batch"}, {"zero": "micro_batch", "tail": "always"}),
    "backward_once_per_window": ({"backward": "last"},),
    "never_zero_grad": (
        {"zero": "never"},
        {"zero": "epoch"},
        {"zero": "never", "tail": "always"},
        {"zero": "epoch", "tail": "always"},
    ),
    "zero_grad_before_step": ({"zero": "before_update"},),
    "step_every_micro_batch": tuple({"update": "micro_batch"} | extra for extra in _EXTRA),
    # Who divides by N all the same has made one mistake, not two. Where windows end no longer matters.
    "no_accumulation": tuple(
        {"update": "micro_batch", "zero": "micro_batch", "boundary": "last"} | scale | extra
        for scale in ({"weight": "one"}, {}, {"weight": "equal", "divisor": "configured"})
        for extra in _EXTRA
    ),
    "step_before_backward": (
        *({"update": "before_backward", "tail": "none", "start": start} | by for start in _STARTS for by in _DIVISORS),
        # A test that is true one micro-batch early does the same, whatever the order of the lines.
        *({"boundary": "early"} | left | by for left in _LEFT_OVER for by in _DIVISORS),
    ),
    "window_off_by_one": tuple(
        {"boundary": boundary} | left | by for boundary in ("first", "late") for left in _LEFT_OVER for by in _DIVISORS
    ),
    "stops_after_first_window": ({"stop": True},),
    "tail_dropped": ({"tail": "none"},),
    # Who lets the short window leak has usually divided by N all along; then that is no mistake of its own.
    "tail_leaks": (
        {"tail": "none", "start": "keep", "divisor": "configured"},
        {"tail": "none", "start": "keep"},
    ),
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
_OFTEN_TOGETHER = (
    "missing_scale",
    "running_scale",
    "divided_by_epoch_length",
    "zero_grad_every_micro_batch",
    "never_zero_grad",
    "step_every_micro_batch",
    "no_accumulation",
    "step_before_backward",
    "window_off_by_one",
)
"""Beginners make three of these in one loop, and three are looked for when two do not explain it."""
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
        return Suspicion(self.faults | {fault}, replace(self.loop, **change), self.changed.union(change))


INNOCENT = Suspicion(frozenset(), Loop())


@dataclass(frozen=True)
class Observation:
    """What was measured in one scenario."""

    scenario: Scenario
    """Where."""
    ends: Array
    """Parameters at the end of each epoch, (epochs, parameters)."""
    after_updates: Array
    """Parameters after each update, (updates, parameters); the first 64."""
    rates: Array
    """Learning rate of each update."""
    record: dict[str, Any]
    """Counts: updates per epoch, forwards, backwards, pushed (backwards that brought a gradient), graphs, and so on."""

    def agrees(self, loop: Loop) -> bool:
        """Whether `loop` leads to these parameters, within TOLERANCE of the distance travelled."""
        return any(
            self._starts_as(loop, reading) and close(self.ends, predict(loop, reading).ends, reading)
            for reading in self.readings()
        )

    def _starts_as(self, loop: Loop, reading: Scenario) -> bool:
        """Whether the parameters change for the first time as those of `loop` do: a quick answer for most loops."""
        measured, predicted = self.first_change, first_move(loop, reading)
        if measured is None or predicted is None:
            return predicted is None  # what moves later than in the first epoch takes the full prediction
        return close(measured, predicted, reading, tolerance=100 * TOLERANCE)

    @cached_property
    def first_change(self) -> Array | None:
        """The parameters when they have changed for the first time; None if they never do."""
        return first_change(self.after_updates, problem(self.scenario).start)

    @property
    def right(self) -> bool:
        """Whether the parameters are those of the right loop."""
        return self.agrees(Loop())

    def readings(self) -> Iterator[Scenario]:
        """The scenario; and, where the loop may clip at a threshold of its own, with the threshold it shows."""
        yield self.scenario
        if self.scenario.unless != "max_norm" or not len(self.after_updates) or not self.rates[0]:
            return
        applied = (problem(self.scenario).start - self.after_updates[0]) / self.rates[0]
        if np.isfinite(applied).all() and applied.any():
            yield replace(self.scenario, max_norm=float(np.linalg.norm(applied)))
            yield replace(self.scenario, max_norm=float(np.abs(applied).max()), clip_by="value")


def close(measured: Array, predicted: Array, scenario: Scenario, tolerance: float = TOLERANCE) -> bool:
    """Equality of parameters, measured by how far the right loop moves them."""
    if measured.shape != predicted.shape:
        return False
    distance = _distance(scenario)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.abs(measured - predicted).max() <= tolerance * distance)


@lru_cache(maxsize=1024)
def _distance(scenario: Scenario) -> float:
    return float(np.abs(predict(Loop(), scenario).ends - problem(scenario).start).max())


def explain(observations: list[Observation]) -> tuple[list[Suspicion], Observation | None]:
    """All explanations that hold in every scenario, and None.

    When nothing explains some scenario: what held before its kind of scenario came up, and its observation. What
    holds only in a part of one kind may be a coincidence and is not kept.
    """
    held: list[Suspicion] = [INNOCENT]
    kinds = [list(group) for _, group in groupby(observations, lambda o: _kind(o.scenario))]
    seen: list[Observation] = []
    for number, kind in enumerate(kinds):
        held_before = held if number else []  # before the first kind, nothing has been explained
        for place, observation in enumerate(kind):
            # What no fault can be added in must be explained by what is added here.
            bound = [o for o in kind[place + 1 :] if o.scenario.name not in _NEWS]
            held = _unique([s for suspicion in held for s in _fitting(suspicion, observation, seen + bound)])
            if not held:
                return held_before, observation
            seen.append(observation)
    return held, None


def _kind(scenario: Scenario) -> str:
    return f"{scenario.scope} {scenario.needs or scenario.unless}"


def _fitting(suspicion: Suspicion, here: Observation, others: list[Observation]) -> list[Suspicion]:
    """The suspicion itself when it predicts what was observed here; otherwise what it becomes with one or two of the
    faults that this scenario is there to show, or with three that beginners make together, where that predicts the
    others too. A fault that changes nothing is not looked for."""
    if here.agrees(suspicion.loop):
        return [suspicion]
    news = _NEWS.get(here.scenario.name, ())
    sets = [*combinations(news, 1), *combinations(news, 2)]
    threes = combinations([fault for fault in news if fault in _OFTEN_TOGETHER], 3)
    return _that_fit(suspicion, sets, [here, *others]) or _that_fit(suspicion, threes, [here, *others])


def _that_fit(
    suspicion: Suspicion, sets: Iterable[tuple[str, ...]], observations: list[Observation]
) -> list[Suspicion]:
    grown = (s for faults in sets for s in _with(suspicion, faults))
    return [s for s in grown if all(o.agrees(s.loop) for o in observations)]


def likeliest(held: list[Suspicion], backwards: Callable[[Loop], bool]) -> list[frozenset[str]]:
    """The smallest sets of faults among the explanations; where parameters cannot tell, the backwards may."""
    counted = [s for s in held if backwards(s.loop)] or held
    size = min(len(s.faults) for s in counted)
    return list(dict.fromkeys(s.faults for s in counted if len(s.faults) == size))


@lru_cache(maxsize=8192)
def _with(suspicion: Suspicion, faults: tuple[str, ...]) -> tuple[Suspicion, ...]:
    """The suspicion and these faults, in all the ways of writing them that do not turn the same switch."""
    grown = [suspicion]
    for fault in faults:
        more = (one.add(fault, change) for one in grown for change in CHANGES[fault])
        grown = [one for one in more if one is not None]
    return tuple(grown)


def _unique(suspicions: list[Suspicion]) -> list[Suspicion]:
    return list({(s.faults, s.loop): s for s in suspicions}.values())
