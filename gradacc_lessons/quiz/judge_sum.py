"""How the exercises of lessons 06 and 08 are judged: by what they do to gradients and values, as each mistake does."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradacc_lessons.quiz.call_in_child import Call, call_in_child
from gradacc_lessons.quiz.exercise import Exercise, Group, all_hold, build, did_not_return, some_hold
from gradacc_lessons.quiz.grade import Grade
from gradacc_lessons.quiz.try_sum import Trial

SECONDS = 20.0
"""For a few small models, on a slow machine as well."""
Numbers = list[float]


@dataclass(frozen=True)
class TrialCheck:
    """A function that is tried out in the process it lives in: the numbers that show what it does decide."""

    trial: Trial
    """Makes of a function one that returns the numbers of a call."""
    groups: tuple[Group, ...]
    """The visible checks, the simplest first."""
    tolerance: float
    """How far the numbers of a call may be from the solution's, relative to their length."""
    same: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Other sources that make the same mistake, by its id."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        returned = call_in_child(self.trial(function), self._calls, _numbers, SECONDS)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        right = self.results(exercise.solution, exercise.function)
        if self._equal(returned.values, right):
            return all_hold(len(self.groups))
        for wrong in exercise.wrong:
            for source in (wrong.source, *self.same.get(wrong.fault, ())):
                if wrong.message and self._equal(returned.values, self.results(source, exercise.function)):
                    return Grade(0.0, False, wrong.message, wrong.fault)
        return self._unknown(returned.values, right)

    @property
    def _calls(self) -> list[Call]:
        return [call for group in self.groups for call in group.calls]

    def results(self, source: str, name: str) -> list[Numbers]:
        """What one of the exercise's own functions does, call by call."""
        tried = self.trial(build(source, name))
        return [tried(*call) for call in self._calls]

    def _equal(self, values: Sequence[Numbers | None], right: Sequence[Numbers]) -> bool:
        return all(self._close(each, other) for each, other in zip(values, right, strict=True))

    def _close(self, value: Numbers | None, right: Numbers) -> bool:
        if value is None or len(value) != len(right):
            return False
        if any(map(math.isnan, value + right)):
            return list(map(math.isnan, value)) == list(map(math.isnan, right))
        return math.dist(value, right) <= self.tolerance * math.hypot(*right)

    def _unknown(self, values: Sequence[Numbers | None], right: Sequence[Numbers]) -> Grade:
        """Wrong in a way that nobody foresaw: say where, and not what is expected."""
        at, holding, failing = 0, 0, None
        for group in self.groups:
            calls = slice(at, at + len(group.calls))
            good = self._equal(values[calls], right[calls])
            holding += good
            failing = failing or (None if good else group)
            at = calls.stop
        assert failing is not None
        return some_hold(holding, len(self.groups), failing)


def _numbers(value: Any) -> Numbers | None:
    """What came back, if it is a list of numbers."""
    if not isinstance(value, list) or any(each is None for each in value):
        return None
    return [float(each) for each in value]
