"""Which known mistakes explain what a loop did: single ones, and combinations.

A loop is first explained where windows are full and equal; what explains it there is then carried to the situations
with clipping, a schedule, a short window and uneven micro-batches, adding the mistakes that only show there. An
explanation must predict the parameters in all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, groupby
from typing import Any, Literal

import numpy as np

from gradacc_lessons.detective.changes import CHANGES, Change
from gradacc_lessons.detective.oracle import CLIP_EPSILON, Loop, first_change, first_move, predict
from gradacc_lessons.detective.scenarios import CLIPS, Clip, Scenario, parts, problem
from gradacc_lessons.detective.wire import Array

TOLERANCE = 1e-6
"""Of the distance that the parameters travel. Rounding is at 1e-15, weights made in float32 at 1e-8; faults at 1e-3."""

_CLIP = (*(name for name in CHANGES if name.startswith("clip_")), "max_norm_ignored")
_SCHEDULE = tuple(name for name in CHANGES if name.startswith("scheduler_"))
_TAIL = ("tail_dropped", "tail_leaks", "tail_underscaled", "tail_unscaled")
_FLUSH = ("tail_updated_differently",)
_ITEMS = ("mean_of_means", "examples_not_items")
_LENGTH = "accumulation_steps_ignored"
_ALWAYS = tuple(name for name in CHANGES if name not in (*_CLIP, *_SCHEDULE, *_TAIL, *_FLUSH, *_ITEMS, _LENGTH))
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
    "clip the tail": _FLUSH,
    "schedule the tail": _FLUSH,
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
Beginning = tuple[Array | None, tuple[Suspicion, ...]]
"""The parameters when they have changed for the first time, None if they do not in the first epoch; and the suspicions
that predict that."""
Many = Literal["few", "three"]
"""How many faults are added to a suspicion at once: one or two, or three that beginners make together."""


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
        same = any(
            self._starts_as(loop, reading) and close(self.ends, predict(loop, reading).ends, reading)
            for reading in self.readings(loop)
        )
        return same and self._pushed_as(loop)

    def _pushed_as(self, loop: Loop) -> bool:
        """Whether no more went backward than `loop` lets, if that is one micro-batch of each window: a loop that zeroes
        what the others brought leaves the same parameters."""
        few = loop.backward in ("first", "last")
        return not few or self.record["pushed"] <= predict(loop, self.scenario).backwards

    def _starts_as(self, loop: Loop, reading: Scenario) -> bool:
        """Whether the parameters change for the first time as those of `loop` do: a quick answer for most loops."""
        return self._begins(first_move(loop, reading), reading)

    def _begins(self, move: Array | None, reading: Scenario) -> bool:
        """Whether the parameters change for the first time to `move`, a prediction for `reading`."""
        if self.first_change is None or move is None:
            return move is None  # what moves later than in the first epoch takes the full prediction
        return close(self.first_change, move, reading, tolerance=100 * TOLERANCE)

    def begun_by(self, grown: "Iterable[Beginning]") -> list[Suspicion]:
        """Those that may have begun what was observed here."""
        own = self.scenario.unless == "max_norm"  # where a loop may clip at any threshold, its beginning is not enough
        return [s for move, ones in grown if own or self._begins(move, self.scenario) for s in ones]

    @cached_property
    def first_change(self) -> Array | None:
        """The parameters when they have changed for the first time; None if they never do."""
        return first_change(self.after_updates, problem(self.scenario).start)

    @property
    def right(self) -> bool:
        """Whether the parameters are those of the right loop."""
        return self.agrees(Loop())

    def readings(self, loop: Loop) -> Iterator[Scenario]:
        """The scenario; and, where `loop` may clip at a threshold of its own, with each threshold that it shows."""
        yield self.scenario
        if self.scenario.unless == "max_norm" and loop.own_clip is None:
            for kind, bound in self.thresholds(loop):
                yield replace(self.scenario, max_norm=bound, clip_by=kind)

    def thresholds(self, loop: Loop) -> list[tuple[Clip, float]]:
        """At what the first update was clipped, in each way of clipping, if `loop` is what clipped it."""
        start, moved = problem(self.scenario).start, first_move(loop, self.scenario)
        if moved is None or not len(self.after_updates) or not self.rates[0]:
            return []
        applied, whole = (start - self.after_updates[0]) / self.rates[0], (start - moved) / self.scenario.learning_rate
        if not np.isfinite(applied).all() or not applied.any():
            return []
        found: list[tuple[Clip, float]] = [("value", float(np.abs(applied).max()))]
        pairs = list(zip(parts(self.scenario, applied), parts(self.scenario, whole), strict=True))
        bounds = {
            "norm": [_bound(applied, whole)],
            "largest": [_bound(applied, whole, np.inf)],
            "parameter": [_bound(got, right) for got, right in pairs],
        }
        return found + [(kind, bound) for kind in CLIPS for bound in bounds.get(kind, ()) if bound is not None]


def _bound(applied: Array, whole: Array, order: float = 2) -> float | None:
    """The threshold at which torch's clipping makes `applied` of `whole`; None where it is not shorter."""
    left, length = float(np.linalg.norm(applied, order)), float(np.linalg.norm(whole, order))
    return left * (length + CLIP_EPSILON) / length if 0 < left < length * (1 - TOLERANCE) else None


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
    held, broken = _explain(observations, [INNOCENT, *_clipping(observations)])
    if broken is not None and not held:
        of_some_length, still_broken = _explain(observations, _of_a_fixed_length(observations))
        if of_some_length:
            return of_some_length, still_broken
    return held, broken


def _explain(observations: list[Observation], first: list[Suspicion]) -> tuple[list[Suspicion], Observation | None]:
    """As `explain`, of the loops that `first` may become."""
    held = first
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


def _clipping(observations: list[Observation]) -> list[Suspicion]:
    """Right loops that clip at thresholds of their own, low enough to show where gradients are small."""
    first = observations[0]
    if first.right or any(o.scenario.needs == "max_norm" for o in observations):
        return []
    loops = [Loop(own_clip=own) for own in first.thresholds(Loop())]
    return [Suspicion(frozenset(), loop) for loop in loops if first.agrees(loop)]


def _of_a_fixed_length(observations: list[Observation]) -> list[Suspicion]:
    """Loops whose windows have the same length whatever N is. Where it is the first scenario's N, that can only be
    seen in the next, so such a loop may have any other mistake there."""
    first = observations[0]
    other = {"tail", "start"}
    return [
        s
        for s in _with(INNOCENT, (_LENGTH,))
        if first.agrees(s.loop) or (s.loop.length == first.scenario.accumulation_steps and not s.changed & other)
    ]


def _kind(scenario: Scenario) -> str:
    return f"{scenario.scope} {scenario.needs or scenario.unless}"


def _fitting(suspicion: Suspicion, here: Observation, others: list[Observation]) -> list[Suspicion]:
    """The suspicion itself when it predicts what was observed here; otherwise what it becomes with one or two of the
    faults that this scenario is there to show, or with three that beginners make together, where that predicts the
    others too. A fault that changes nothing is not looked for."""
    if here.agrees(suspicion.loop):
        return [suspicion]
    return _that_fit(suspicion, "few", [here, *others]) or _that_fit(suspicion, "three", [here, *others])


def _that_fit(suspicion: Suspicion, many: Many, observations: list[Observation]) -> list[Suspicion]:
    begun = observations[0].begun_by(_grown(suspicion, many, observations[0].scenario))
    return [s for s in begun if all(o.agrees(s.loop) for o in observations)]


@lru_cache(maxsize=256)
def _grown(suspicion: Suspicion, many: Many, scenario: Scenario) -> tuple[Beginning, ...]:
    """What a suspicion becomes with the faults that show here, by what that does to the parameters first: thousands
    of them have a hundred beginnings between them."""
    news = _NEWS.get(scenario.name, ())
    threes = combinations([fault for fault in news if fault in _OFTEN_TOGETHER], 3)
    sets = [*combinations(news, 1), *combinations(news, 2)] if many == "few" else threes
    begun: dict[bytes | None, tuple[Array | None, list[Suspicion]]] = {}
    for one in (s for faults in sets for s in _with(suspicion, faults)):
        move = first_move(one.loop, scenario)
        begun.setdefault(None if move is None else move.tobytes(), (move, []))[1].append(one)
    return tuple((move, tuple(ones)) for move, ones in begun.values())


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
