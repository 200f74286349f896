"""The source of a function together with what it uses of its surroundings, so that it can be graded by itself.

In a notebook a function stands in one cell, and what it imports or calls in others. The names in it are followed:
modules and what comes out of them are imported again, functions of the learner's own and small constants are written
out, each before what uses it.
"""

import ast
import inspect
import math
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

LONGEST_CONSTANT = 200
"""Characters of a constant that is written out."""
_CONSTANTS: tuple[Any, ...] = (bool, int, float, str, bytes, type(None))
_BRACKETS: tuple[tuple[type, str, str], ...] = (
    (tuple, "(", ")"), (list, "[", "]"), (dict, "{", "}"), (set, "set([", "])"), (frozenset, "frozenset([", "])"),
)  # fmt: skip


def whole_source(function: Any, longest: int) -> str:
    """Source that defines the function, `longest` characters at most: then without its surroundings, or cut off.

    Empty where Python cannot tell the source.
    """
    own = _own_source(function)
    if not own:
        return ""
    try:
        whole = "\n".join(dict.fromkeys([*_surroundings(function, own, {function}), own]))
    except Exception:  # what a learner's objects do when they are looked at is their own choice
        whole = own
    return whole if len(whole) <= longest else own[:longest]


def _own_source(value: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError, ValueError):  # no file, no function, one that wraps itself
        return ""


def _surroundings(value: Any, source: str, seen: set[Any]) -> Iterator[str]:
    """Lines that give the names in a function's or class's source what they are now."""
    known = dict(vars(sys.modules.get(value.__module__) or object) if inspect.isclass(value) else {})
    if inspect.isfunction(inspect.unwrap(value)):
        known |= inspect.unwrap(value).__globals__ | inspect.getclosurevars(value).nonlocals
    try:
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError):  # as of a lambda in the middle of a call
        return
    code = getattr(inspect.unwrap(value), "__code__", None)
    local = {*code.co_varnames, *code.co_cellvars} if code is not None else set()
    for name in sorted((names - local) & set(known)):
        yield from _definition(name, known[name], seen)


def _definition(name: str, value: Any, seen: set[Any]) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield f"import {value.__name__}{_renamed(value.__name__, name)}"
    elif (constant := _constant(value)) is not None:
        if len(constant) <= LONGEST_CONSTANT:
            yield f"{name} = {constant}"
    elif (module := _importable(value)) is not None:
        yield f"from {module} import {value.__qualname__}{_renamed(value.__qualname__, name)}"
    elif inspect.isfunction(value) or inspect.isclass(value):
        if value in seen:
            return
        seen.add(value)
        if source := _own_source(value):
            yield from (*_surroundings(value, source, seen), source)
            if value.__name__ != name:
                yield f"{name} = {value.__name__}"


def _constant(value: Any, within: tuple[int, ...] = ()) -> str | None:
    """A constant as source, with those in a list, tuple, dict or set; None for whatever else, and for one in itself.

    Of a float64 of NumPy's or a member of an enum, its plain value.
    """
    for kind, opening, closing in _BRACKETS:
        if type(value) is kind:
            inside = None if id(value) in within else _inside(value, (*within, id(value)))
            return None if inside is None else f"{opening}{inside}{closing}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({float.__repr__(value)!r})"
    plain = next((kind for kind in _CONSTANTS if isinstance(value, kind)), None)
    return None if plain is None else str(plain.__repr__(value))


def _inside(value: Any, within: tuple[int, ...]) -> str | None:
    """What stands between a collection's brackets; None if something in it is no constant, or if it is long."""
    if len(value) > LONGEST_CONSTANT:
        return None
    parts: list[str] = []
    for each in value.items() if isinstance(value, dict) else zip(value, strict=True):
        sources = [_constant(part, within) for part in each]
        if None in sources:
            return None
        parts.append(": ".join(map(str, sources)))
    # A set's order differs from process to process.
    return "".join(f"{part}, " for part in (sorted(parts) if isinstance(value, set | frozenset) else parts))


def _renamed(known: str, name: str) -> str:
    return "" if known == name else f" as {name}"


def _importable(value: Any) -> str | None:
    """The module that a function or class can be imported from elsewhere too; None if it is of this notebook."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    home = sys.modules.get(module) if isinstance(module, str) else None
    if not isinstance(module, str) or home is None or module == "__main__" or not isinstance(name, str):
        return None
    file = getattr(home, "__file__", None)
    if getattr(home, name, None) is not value:
        return None
    installed = file is None or "site-packages" in file or file.startswith((sys.base_prefix, sys.prefix))
    return module if installed or module.split(".")[0] == "gradacc_lessons" else None
