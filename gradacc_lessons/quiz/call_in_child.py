"""What a learner's function returns for many arguments, asked in the detective's child process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from math import inf
from typing import Any, Literal

from gradacc_lessons.detective import client
from gradacc_lessons.detective.sending import NotPortableError, portable
from gradacc_lessons.quiz.formula import Number

TIME_LIMIT = 5.0
"""Seconds for all calls together; arithmetic takes none."""
Call = tuple[Number | str, ...]
Problem = Literal["timed_out", "not_implemented", "raised", "ended"]


@dataclass(frozen=True)
class Returned:
    """What came back."""

    values: list[Any]
    """One per call, as it was read; None for what could not be read so."""
    problem: Problem | None = None
    """Why there is nothing to judge; None if every call returned."""
    detail: str = ""
    """The error, or how the process ended, in words."""
    line: int | None = None
    """The line of the learner's code where it happened, if that is known."""


def number(value: Any) -> float | None:
    """What came back, if it is a number; one that no float can hold is infinite."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    return value


def whole_pair(value: Any) -> tuple[int, int] | None:
    """What came back, if it is two whole numbers."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    pair = [each for each in map(number, value) if each is not None and float(each).is_integer()]
    return (int(pair[0]), int(pair[1])) if len(pair) == 2 else None


def followed_by(function: Callable[..., Any], then: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function for `call_in_child` that calls `function` and returns what `then` makes of its result, over there.

    For what cannot come back as it is, such as functions: `then` tries them out and returns numbers.
    """

    @wraps(function)  # it travels, and its lines are named, as the learner's own
    def both(*arguments: Any) -> Any:
        return then(function(*arguments))

    return both


def call_in_child(
    function: Callable[..., Any],
    calls: Sequence[Call],
    read: Callable[[Any], Any] = number,
    time_limit: float | None = None,
) -> Returned:
    """Call `function` with each tuple of arguments, in a process that can be ended; `read` takes what comes back.

    `time_limit` is in seconds for all calls together, TIME_LIMIT without one.
    """
    try:
        source = portable(function)
    except NotPortableError as error:
        return Returned([], "raised", str(error))
    try:
        reply = client.ask_for("values", source, time_limit or TIME_LIMIT, calls=[list(call) for call in calls])
    except client.WorkerError as error:
        return Returned([], "ended", str(error))
    if reply.reason == "time":
        return Returned([], "timed_out")
    said = reply.header or {}
    values = said.get("values")
    if said.get("status") == "raised":
        return _raised(said)
    if isinstance(values, list) and len(values) == len(calls):
        return Returned([read(value) for value in values])
    return Returned([], "ended", reply.reason or f"exit code {reply.code}")


def _raised(said: dict[str, Any]) -> Returned:
    kind, text, line = str(said.get("type")), str(said.get("text", "")), said.get("line")
    problem: Problem = "not_implemented" if kind == "NotImplementedError" else "raised"
    return Returned([], problem, f"{kind}: {text}" if text else kind, line if isinstance(line, int) else None)
