"""A small, safe language for the arithmetic in question banks: never `eval`.

Numbers, names of variables, `+ - * / // % **`, parentheses, and min, max, ceil, floor, round, sqrt. Everything
else is refused when the formula is read, and sizes are bounded when it is computed.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Number = int | float

MAX_LENGTH = 200
"""Characters in one formula: more is not readable in a question, and bounds how deep it can nest."""
MAX_MAGNITUDE = 1e30
"""No value on the way may be larger: above every byte count or number of operations that a lesson asks for."""
MAX_EXPONENT = 64


class FormulaError(ValueError):
    """The formula cannot be read, or has no finite value; one sentence says why."""


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > MAX_EXPONENT:
        raise FormulaError(f"the exponent {exponent} is above {MAX_EXPONENT}")
    # Both numbers are bounded by now, so that this stays small enough to compute before it is looked at.
    value: Any = base**exponent
    if isinstance(value, complex):
        raise FormulaError("a root of a negative number has no real value")
    return float(value) if isinstance(value, float) else int(value)


def _round(value: Number, digits: int | None = None) -> Number:
    if digits is not None and abs(digits) > MAX_EXPONENT:
        raise FormulaError(f"round to {digits} digits is not allowed")
    return round(value, digits)


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    # name: (function, fewest arguments, most arguments)
    "min": (min, 2, 8),
    "max": (max, 2, 8),
    "ceil": (math.ceil, 1, 1),
    "floor": (math.floor, 1, 1),
    "round": (_round, 1, 2),
    "sqrt": (math.sqrt, 1, 1),
}


@dataclass(frozen=True)
class Formula:
    """One arithmetic expression, read and checked."""

    text: str
    """The expression as it was written."""
    names: frozenset[str]
    """The variables it needs."""
    tree: ast.expr
    """Its syntax, holding nothing but what is allowed."""

    def value(self, variables: Mapping[str, Number]) -> Number:
        """The formula's value; FormulaError if a variable is missing or the value is not finite or too large."""
        return _compute(self.tree, variables)


def read(text: str) -> Formula:
    """Parse and check `text`; FormulaError says in a sentence what is not allowed."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"the formula has {len(text)} characters; {MAX_LENGTH} are allowed")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FormulaError(f"{text!r} is not an arithmetic expression") from None
    names: set[str] = set()
    _check(tree, names)
    return Formula(text, frozenset(names), tree)


def _check(node: ast.expr, names: set[str]) -> None:
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            _bounded(value)
        case ast.Name(id=name) if name not in _FUNCTIONS:
            names.add(name)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            _check(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(left, names)
            _check(right, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            _, fewest, most = _FUNCTIONS[name]
            if not fewest <= len(arguments) <= most:
                raise FormulaError(f"{name} has {len(arguments)} arguments")
            for argument in arguments:
                _check(argument, names)
        case _:
            allowed = f"numbers, variables, + - * / // % **, {', '.join(_FUNCTIONS)}"
            raise FormulaError(f"{ast.unparse(node)!r} is not allowed here; a formula holds {allowed}")


def _compute(node: ast.expr, variables: Mapping[str, Number]) -> Number:
    try:
        match node:
            case ast.Constant(value=value):
                result = value
            case ast.Name(id=name):
                result = variables[name]
            case ast.UnaryOp(op=op, operand=operand):
                result = _UNARY[type(op)](_compute(operand, variables))
            case ast.BinOp(left=left, op=op, right=right):
                result = _BINARY[type(op)](_compute(left, variables), _compute(right, variables))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                result = _FUNCTIONS[name][0](*(_compute(argument, variables) for argument in arguments))
            case _:
                raise AssertionError("only what _check allows is ever computed")
    except KeyError as missing:
        raise FormulaError(f"there is no variable {missing.args[0]!r}") from None
    except ZeroDivisionError:
        raise FormulaError(f"{ast.unparse(node)!r} divides by zero") from None
    except FormulaError:
        raise
    except (OverflowError, ValueError, TypeError):
        raise FormulaError(f"{ast.unparse(node)!r} has no value") from None
    return _bounded(result)


def _bounded(value: Any) -> Number:
    if not (math.isfinite(value) and abs(value) <= MAX_MAGNITUDE):
        raise FormulaError(f"a value is not finite or above {MAX_MAGNITUDE:g}")
    number: Number = value
    return number
