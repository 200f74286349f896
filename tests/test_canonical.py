"""One way to write a value: RFC 8785's own examples, and what goes in comes out."""

import hashlib
import json
import math
import struct
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.canonical import MAX_DEPTH, MAX_DIGITS, JsonError, canonical, digest, read

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
EXACT = st.floats(-(2.0**53), 2.0**53)  # a larger one has digits that it does not need
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | EXACT | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)

# RFC 8785, appendix B: the bits of a double, and how it is written.
NUMBERS_OF_THE_RFC = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "written"), NUMBERS_OF_THE_RFC.items())
def test_numbers_are_written_as_the_rfc_does(bits: str, written: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(value) == written.encode()


def test_keys_are_sorted_as_the_rfc_does() -> None:
    # The RFC's example: U+1F600 comes before U+FB33, as its UTF-16 begins with D83D.
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    written = canonical(dict.fromkeys(keys, 0)).decode()
    assert list(json.loads(written)) == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_text_keeps_its_umlauts_and_escapes_only_what_it_must() -> None:
    assert canonical("€$\u000f\nA'B\"\\/ë") == '"€$\\u000f\\nA\'B\\"\\\\/ë"'.encode()


@given(VALUES)
def test_what_is_written_is_read_back_as_the_same_value(value: Any) -> None:
    written = canonical(value)
    assert read(written) == value
    assert canonical(read(written)) == written
    assert digest(value) == hashlib.sha256(written).hexdigest()
    assert json.loads(written) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_back_as_itself(value: float) -> None:
    assert float(read(canonical(value))) == value
    assert canonical(read(canonical(value))) == canonical(value)


@given(VALUES)
def test_layout_and_order_of_keys_do_not_change_the_digest(value: Any) -> None:
    loose = json.dumps(value, indent=3, ensure_ascii=True).encode()
    assert digest(read(loose)) == digest(value)


def test_a_float_that_is_whole_is_that_number() -> None:
    assert digest({"points": 2.0}) == digest({"points": 2})
    assert digest({"points": True}) != digest({"points": 1})
    assert digest(("a",)) == digest(["a"])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ({1: "a"}, "a key must be text"),
        ({"a": {2, 3}}, "a set"),
        (b"a", "bytes"),
        ("\ud800", "half of a character"),
        ({"\ud800": 1}, "half of a character"),
        (10**MAX_DIGITS, f"{MAX_DIGITS} digits"),
    ],
    ids=str,
)
def test_what_json_cannot_hold_is_refused(value: Any, says: str) -> None:
    with pytest.raises(JsonError, match=says):
        canonical(value)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b'{"a": 1, "a": 1}', "'a' stands twice"),
        (b'{"x": [{"a": 1, "\\u0061": 2}]}', "'a' stands twice"),
        (b"[NaN]", "NaN"),
        (b"-Infinity", "-Infinity"),
        (b"1e999", "too large"),
        (b"1" * (MAX_DIGITS + 1), f"{MAX_DIGITS} digits"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), f"deeper than {MAX_DEPTH} levels"),
        (b"[" * 200_000, f"deeper than {MAX_DEPTH} levels"),
        (b'{"a":' * 100_000, f"deeper than {MAX_DEPTH} levels"),
        (b'"\xff"', "not UTF-8"),
        (b'"\\ud800"', "half of a character"),
        (b"", "not JSON"),
        (b"{} {}", "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b"[1, 2", "not JSON"),
        (b"'a'", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
    ],
    ids=lambda each: each[:24],
)
def test_what_is_not_strict_json_is_refused_in_a_sentence(raw: bytes, says: str) -> None:
    with pytest.raises(JsonError, match=says) as refused:
        read(raw)
    assert len(str(refused.value)) < 200


def test_what_is_too_large_is_not_read() -> None:
    assert read(b"[1]", most_bytes=3) == [1]
    with pytest.raises(JsonError, match="larger than 2 bytes"):
        read(b"[1]", most_bytes=2)


LAST_KEY_TWICE = b"{%s}" % b",".join(b'"%x":0' % min(number, 99_999) for number in range(100_001))


@pytest.mark.parametrize(
    "raw",
    [
        *(b'"\\' * 500_000, b'"' + b'\\"' * 500_000, b'"' * 999_999, b"[" * 999_999, b"[]" * 400_000),
        *(b'{"a":[' * 150_000, LAST_KEY_TWICE),
    ],
    ids=lambda each: each[:6].decode(),
)
def test_nothing_takes_long_to_refuse(raw: bytes) -> None:
    begun = process_time()
    with pytest.raises(JsonError):
        read(raw)
    assert process_time() - begun < 1


def test_the_deepest_that_is_read_is_the_deepest_that_is_written() -> None:
    value: Any = "[[[[{{{{"
    for _ in range(MAX_DEPTH // 2):
        value = [{"]": value, "}": 1}]
    assert read(canonical(value)) == value
    with pytest.raises(JsonError, match="deeper"):
        canonical([value])
    with pytest.raises(JsonError, match="deeper"):
        read(json.dumps([value]).encode())


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    try:
        value = read(raw)
    except JsonError:
        return
    assert read(canonical(value)) == value
