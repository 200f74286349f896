"""One figure that was measured, and the clock that measures it."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

PER_SECOND = {"s": 1.0, "ms": 1e3, "µs": 1e6}


class NotHere(Exception):
    """A benchmark that cannot run on this machine; the message begins with "not measured" and says why."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    """What was measured."""
    value: float
    """The figure, in `unit`."""
    unit: str
    """s, ms, µs, /s, MiB, GiB, %, runs, batches, or x for a ratio."""
    quartiles: tuple[float, float] | None = None
    """Half of the measurements lie between these two, in `unit`."""
    at_most: float | None = None
    """The goal, where less is better, in `unit`."""
    at_least: float | None = None
    """The goal, where more is better, in `unit`."""

    @property
    def measured(self) -> str:
        """The figure for people: "8.4 ms (8.1 to 9.6)"."""
        spread = "" if self.quartiles is None else f" ({_short(self.quartiles[0])} to {_short(self.quartiles[1])})"
        return f"{_short(self.value)} {self.unit}{spread}"

    @property
    def goal(self) -> str:
        """The goal for people; empty where there is none."""
        if self.at_most is not None:
            return f"at most {self.at_most:g} {self.unit}"
        return "" if self.at_least is None else f"at least {self.at_least:g} {self.unit}"

    @property
    def met(self) -> bool | None:
        """Whether the goal was met; None where there is none."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least


def median_row(
    what: str, values: Sequence[float], unit: str, *, at_most: float | None = None, at_least: float | None = None
) -> Row:
    """The median of values (ratios, or seconds if `unit` is one of time) with their quartiles."""
    low, middle, high = (PER_SECOND.get(unit, 1.0) * value for value in _quartiles(values))
    return Row(what, middle, unit, (low, high), at_most, at_least)


def row_95(what: str, seconds: Sequence[float], *, at_most: float | None = None) -> Row:
    """The milliseconds that 19 of 20 measurements do not exceed."""
    rank = -(-19 * len(seconds) // 20)
    return Row(what, PER_SECOND["ms"] * sorted(seconds)[rank - 1], "ms", at_most=at_most)


def in_turns(contenders: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """`rounds` times each contender in turn, after one turn to warm up; a contender returns its own seconds."""
    for contender in contenders.values():
        contender()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            seconds[name].append(contender())
    return seconds


def timed(action: Callable[[], object]) -> Callable[[], float]:
    """`action`, as a contender: it returns the seconds that it took."""

    def contender() -> float:
        began = time.perf_counter()
        action()
        return time.perf_counter() - began

    return contender


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def _short(value: float) -> str:
    """Two or three digits that mean something."""
    return f"{value:.0f}" if abs(value) >= 20 else f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}"
