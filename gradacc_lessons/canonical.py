"""One way to write a value as JSON, so that the same value always is the same bytes; and a strict way to read JSON.

Exports, submissions and certificates stand on it: what is signed or summed is what anybody else would write.
The form is that of RFC 8785 (JSON Canonicalization Scheme); whole numbers too large for it are written in full.
"""

import hashlib
import json
import math
import re
from collections import Counter
from decimal import Decimal
from typing import Any

MAX_BYTES = 4_000_000
"""What is larger is not read."""
MAX_DEPTH = 20
"""Lists and objects inside one another; nothing of the course nests half as deep."""
MAX_DIGITS = 1_000
"""Of a whole number. Python takes a time that grows with the square of them."""
_TOO_LARGE = 10**MAX_DIGITS
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # one that does not end is taken whole, and looked at once
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_TOO_DEEP = f"it nests deeper than {MAX_DEPTH} levels"
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """A value that JSON cannot hold, or text that is not the JSON we read; one sentence says why."""


def canonical(value: Any) -> bytes:
    """`value` as JSON: keys sorted, no spaces, UTF-8, numbers in their shortest form (1.0 is 1).

    Read again it is an equal value; of a float beyond 2**53, the whole number that its shortest digits say.

    Takes None, booleans, numbers, text, lists or tuples, and mappings whose keys are text. JsonError for anything
    else, for a number that is not finite, and for what nests deeper than MAX_DEPTH.
    """
    parts: list[str] = []
    _write(value, 0, parts)
    try:
        return "".join(parts).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError("a text holds half of a character (a lone surrogate)") from None


def digest(value: Any) -> str:
    """The SHA-256 of `canonical(value)`, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def read(raw: bytes, most_bytes: int = MAX_BYTES) -> Any:
    """The value of a JSON text in UTF-8; spaces and the order of keys are free, everything else is strict.

    JsonError for what is too large or too deep, a key that stands twice, NaN and Infinity, and what is not JSON.
    """
    if len(raw) > most_bytes:
        raise JsonError(f"it is larger than {most_bytes:,} bytes")
    try:
        _check_depth(raw)
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_decimal,
            parse_int=_whole,
        )
    except UnicodeDecodeError:
        raise JsonError("it is not UTF-8 text") from None
    except RecursionError:  # brackets that are never closed
        raise JsonError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise JsonError(f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    if _HALVES.search(raw):
        canonical(value)  # refuses halves that do not make a whole
    return value


def _check_depth(raw: bytes) -> None:
    """Before anything is built: taking the innermost level away, over and over, leaves nothing."""
    brackets = _TEXTS.sub(b"", raw).translate(_ONE_KIND, delete=_NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets:
        raise JsonError(_TOO_DEEP)


def _write(value: Any, depth: int, parts: list[str]) -> None:
    if depth == MAX_DEPTH and isinstance(value, list | tuple | dict):
        raise JsonError(_TOO_DEEP)
    if isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif value is None or isinstance(value, bool):
        parts.append(json.dumps(value))
    elif isinstance(value, int):
        if not -_TOO_LARGE < value < _TOO_LARGE:
            raise JsonError(f"a number has more than {MAX_DIGITS} digits")
        parts.append(str(int(value)))
    elif isinstance(value, float):
        parts.append(_number(value))
    elif isinstance(value, list | tuple):
        before = "["
        for item in value:
            parts.append(before)
            _write(item, depth + 1, parts)
            before = ","
        parts.append("]" if value else "[]")
    elif isinstance(value, dict):
        _write_object(value, depth, parts)
    else:
        raise JsonError(f"JSON cannot hold a {type(value).__name__}")


def _write_object(value: dict[Any, Any], depth: int, parts: list[str]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise JsonError(f"a key must be text, and {str(key)[:40]!r} is not")
    before = "{"
    # The RFC sorts by UTF-16, which differs from Python's own order beyond U+FFFF.
    for key in sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass")):
        parts.append(f"{before}{json.dumps(key, ensure_ascii=False)}:")
        _write(value[key], depth + 1, parts)
        before = ","
    parts.append("}" if value else "{}")


def _number(value: float) -> str:
    """The shortest digits that give the number back, as JavaScript lays them out."""
    if not math.isfinite(value):
        raise JsonError(f"JSON cannot hold the number {value}")
    if value == 0:
        return "0"
    shortest = Decimal(repr(float(value))).normalize()
    if 1e-6 <= abs(value) < 1e21:
        return f"{shortest:f}"
    sign, digits, _ = shortest.as_tuple()
    after = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{'.' if after else ''}{after}e{shortest.adjusted():+d}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise JsonError(f"the key {twice[:40]!r} stands twice in one object")
    return found


def _no_constant(name: str) -> None:
    raise JsonError(f"JSON cannot hold the number {name}")


def _decimal(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError(f"the number {text[:40]} is too large")
    return value


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise JsonError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)
