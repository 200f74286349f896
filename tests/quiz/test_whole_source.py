"""A function is kept with what it uses, so that its source alone does what the function did."""

import inspect
import math
import math as maths
from collections.abc import Callable
from enum import IntEnum
from fractions import Fraction as Part
from typing import Any

import numpy as np
import pytest

from gradacc_lessons.accumulation import split as cut
from gradacc_lessons.quiz.whole_source import whole_source

ROOM = 20_000
FACTOR, SEVERAL = 3, (1, 2.5, "x")
HUGE = "x" * 1000
ENDLESS, LOW, PAIR = math.inf, float("-inf"), (math.nan, (True, None))
RATES, BY_NAME, NONE = [0.1, [0.2, None]], {"a": [1, 2], 3: {"b": ()}}, []
KNOWN, FROZEN, EMPTY = {"x", "y", 2}, frozenset({1, (2, 3)}), set()
LOOP: list[Any] = []
LOOP.append(LOOP)
FIVE, COLOR = np.float64(5), IntEnum("Color", ["RED"]).RED  # type: ignore[attr-defined]


class Hostile:
    """Its __qualname__ and whatever else it is asked for raise."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class NoHash(type):
    __hash__ = None  # type: ignore[assignment]


class Unhashable(metaclass=NoHash):
    pass


HOSTILE = Hostile()


def halves(number: float) -> float:
    return number / FACTOR


def even(number: int) -> bool:
    return number == 0 or odd(number - 1)


def odd(number: int) -> bool:
    return number != 0 and even(number - 1)


class Counter:
    def __init__(self) -> None:
        self.total = 0


renamed = halves


def uses_imports(number: int) -> float:
    return math.ceil(maths.sqrt(number)) + float(Part(1, 2)) + len(SEVERAL)


def uses_helpers(number: int) -> Any:
    def inner() -> float:
        return renamed(number) + FACTOR

    return inner(), even(number), Counter().total


def uses_the_course(number: int) -> int:
    import torch

    return len(cut((torch.zeros(number, 1),), 2))


def uses_odd_constants(number: int) -> Any:
    return number < ENDLESS, number > LOW, math.isnan(PAIR[0]), PAIR[1], FIVE + 1, COLOR + 1


def uses_collections(number: int) -> Any:
    return RATES[1], BY_NAME["a"][0] + number, BY_NAME[3], NONE, number in KNOWN, "x" in KNOWN, (2, 3) in FROZEN, EMPTY


def uses_what_is_in_itself(number: int) -> Any:
    return number + FACTOR or LOOP


def uses_the_hostile(number: int) -> Any:
    return HOSTILE, number


def uses_the_unhashable(number: int) -> Any:
    return Unhashable, number


def uses_what_is_not_there(number: int) -> Any:
    return number or nowhere  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "function",
    [
        uses_imports,
        uses_helpers,
        uses_the_course,
        uses_odd_constants,
        uses_collections,
        uses_what_is_in_itself,
        uses_what_is_not_there,
    ],
)
def test_its_source_alone_does_the_same(function: Callable[..., Any]) -> None:
    namespace: dict[str, Any] = {"__name__": "elsewhere"}
    exec(whole_source(function, ROOM), namespace)
    assert namespace[function.__name__](10) == function(10)


def test_what_it_does_not_use_stays_out() -> None:
    source = whole_source(uses_imports, ROOM)
    assert "Counter" not in source and "halves" not in source and source.count("import math\n") == 1


def test_a_set_is_written_in_one_order() -> None:
    source = whole_source(uses_collections, ROOM)
    assert "KNOWN = set(['x', 'y', 2, ])\n" in source and "EMPTY = set([])\n" in source


def test_a_function_inside_another_takes_what_it_closes_over() -> None:
    number = 7

    def inside() -> int:
        return number + FACTOR

    namespace: dict[str, Any] = {}
    exec(whole_source(inside, ROOM), namespace)
    assert namespace["inside"]() == 10


def test_a_name_of_its_own_is_nobody_elses() -> None:
    def own() -> int:
        FACTOR = 5
        return FACTOR

    assert "FACTOR = 3" not in whole_source(own, ROOM)


def test_what_takes_too_much_room_is_left_out() -> None:
    def long() -> int:
        return len(HUGE)

    assert HUGE not in whole_source(long, ROOM)
    own = whole_source(uses_helpers, 150)
    assert own.startswith("def uses_helpers") and len(own) == 150


@pytest.mark.parametrize("function", [uses_the_hostile, uses_the_unhashable])
def test_what_cannot_be_looked_at_stays_out(function: Callable[..., Any]) -> None:
    assert whole_source(function, ROOM) == inspect.getsource(function)


def test_what_has_no_source_has_none() -> None:
    namespace: dict[str, Any] = {}
    exec("def made():\n    return 1\n", namespace)
    assert whole_source(namespace["made"], ROOM) == "" == whole_source(len, ROOM) == whole_source(3, ROOM)

    def itself() -> None:
        pass

    itself.__wrapped__ = itself  # type: ignore[attr-defined]
    assert whole_source(itself, ROOM) == ""
