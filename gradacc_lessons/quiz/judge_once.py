"""How lesson 07's exercises are judged: check after check, and the first that fails names the mistake."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gradacc_lessons.quiz.call_in_child import call_in_child
from gradacc_lessons.quiz.exercise import Exercise, Group, all_hold, build, did_not_return, some_hold
from gradacc_lessons.quiz.grade import Grade

SECONDS = 20.0
"""For a few small models, on a slow machine as well."""
TOLERANCE = 1e-9
"""Relative: float64 sums in another order differ by far less, and no mistake here is as small."""
Numbers = list[float]
Outcomes = list[list[Numbers | None]]
"""A list for each group of calls."""
Trial = Callable[[Callable[..., Any]], Callable[..., Numbers]]


@dataclass(frozen=True)
class StagedCheck:
    """A function that is tried out in the process it lives in. Each check takes for granted that those before it hold,
    so who makes several mistakes is told of one, repairs it, and is told of the next."""

    trial: Trial
    """Makes of a function one that returns the numbers of a call."""
    groups: tuple[Group, ...]
    """The visible checks, in the order in which they build on one another."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        calls = [call for group in self.groups for call in group.calls]
        returned = call_in_child(self.trial(function), calls, _numbers, SECONDS)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        right = _by_group(self.groups, self.trial, exercise.solution, exercise.function)
        came = _cut(self.groups, returned.values)
        failing = [k for k, (one, other) in enumerate(zip(came, right, strict=True)) if not _equal(one, other)]
        if not failing:
            return all_hold(len(self.groups))
        first = failing[0]
        for wrong in exercise.wrong:
            theirs = _by_group(self.groups[: first + 1], self.trial, wrong.source, exercise.function)
            same = _equal(theirs[first], came[first])
            if wrong.message and same and all(map(_equal, theirs[:first], right[:first])):
                return Grade(0.0, False, wrong.message, wrong.fault)
        return some_hold(len(self.groups) - len(failing), len(self.groups), self.groups[first])


@cache
def _by_group(groups: tuple[Group, ...], trial: Trial, source: str, name: str) -> Outcomes:
    """What one of the exercise's own functions does, group by group."""
    tried = trial(build(source, name))
    return _cut(groups, [tried(*call) for group in groups for call in group.calls])


def _cut(groups: tuple[Group, ...], values: Sequence[Numbers | None]) -> Outcomes:
    """The outcomes of all calls, group by group."""
    left = iter(values)
    return [[next(left) for _ in group.calls] for group in groups]


def _equal(values: Sequence[Numbers | None], right: Sequence[Numbers | None]) -> bool:
    return all(_close(each, other) for each, other in zip(values, right, strict=True))


def _close(value: Numbers | None, right: Numbers | None) -> bool:
    if value is None or right is None or len(value) != len(right):
        return False
    if not all(map(math.isfinite, value + right)):  # repr, as a nan equals nothing
        return list(map(repr, value)) == list(map(repr, right))
    return math.dist(value, right) <= TOLERANCE * math.hypot(*right)


def _numbers(value: Any) -> Numbers | None:
    """What came back, if it is a list of numbers."""
    if not isinstance(value, list) or any(not isinstance(each, int | float) for each in value):
        return None
    return [float(each) for each in value]
