"""What a learner's function returns for many arguments, asked in the detective's child process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gradacc_lessons.detective import client
from gradacc_lessons.detective.sending import NotPortableError, portable
from gradacc_lessons.quiz.formula import Number

TIME_LIMIT = 5.0
"""Seconds for all calls together; arithmetic takes none."""
Call = tuple[Number, ...]
Problem = Literal["timed_out", "not_implemented", "raised", "ended"]


@dataclass(frozen=True)
class Returned:
    """What came back."""

    values: list[float | None]
    """One per call; None for what is not a number."""
    problem: Problem | None = None
    """Why there is nothing to judge; None if every call returned."""
    detail: str = ""
    """The error, or how the process ended, in words."""
    line: int | None = None
    """The line of the learner's code where it happened, if that is known."""


def call_in_child(function: Callable[..., Any], calls: Sequence[Call]) -> Returned:
    """Call `function` with each tuple of arguments, in a process that can be ended."""
    try:
        source = portable(function)
    except NotPortableError as error:
        return Returned([], "raised", str(error))
    try:
        reply = client.ask_for("values", source, TIME_LIMIT, calls=[list(call) for call in calls])
    except client.WorkerError as error:
        return Returned([], "ended", str(error))
    if reply.reason == "time":
        return Returned([], "timed_out")
    said = reply.header or {}
    values = said.get("values")
    if said.get("status") == "raised":
        return _raised(said)
    if isinstance(values, list) and len(values) == len(calls):
        return Returned([_number(value) for value in values])
    return Returned([], "ended", reply.reason or f"exit code {reply.code}")


def _raised(said: dict[str, Any]) -> Returned:
    kind, text, line = str(said.get("type")), str(said.get("text", "")), said.get("line")
    problem: Problem = "not_implemented" if kind == "NotImplementedError" else "raised"
    return Returned([], problem, f"{kind}: {text}" if text else kind, line if isinstance(line, int) else None)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
