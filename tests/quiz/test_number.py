"""Numbers as people type them, in two countries."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradacc_lessons.quiz.number import NotANumber, parse, written
from gradacc_lessons.text import LANGUAGES, Text

EXAMPLES = Text("examples", "voorbeelden")
PERCENT = Text("%", "%")
RATE = Text("MiB/s", "MiB/s")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), (" 12 ", 12), ("+12", 12), ("-12", -12), ("\u221212", -12), ("- 12", -12), ("007", 7),
        ("1.5", 1.5), ("1,5", 1.5), (".5", 0.5), (",5", 0.5), ("12.", 12), ("0.125", 0.125), ("0,125", 0.125),
        ("1.2345", 1.2345), ("1,2345", 1.2345), ("1234.567", 1234.567), ("1234,567", 1234.567),
        ("12 800", 12800), ("12\u00a0800", 12800), ("12\u202f800", 12800), ("1'000", 1000), ("1_000", 1000),
        ("1,234,567", 1234567), ("1.234.567", 1234567), ("1,234.5", 1234.5), ("1.234,5", 1234.5),
        ("12,800.0", 12800), ("12.800,0", 12800), ("1 234,5", 1234.5),
        ("1e-3", 0.001), ("1.5E6", 1.5e6), ("1,5e6", 1.5e6), ("1.234e3", 1234), ("2e+2", 200),
        ("3/4", 0.75), ("-3/4", -0.75), ("3 / 4", 0.75), ("3\u20444", 0.75),
        ("12 examples", 12), ("12examples", 12), ("12 example", 12), ("12 Voorbeelden", 12), ("12 exa.", 12),
        ("3/4 examples", 0.75), ("1e3 voorbeeld", 1000), ("007,125", 7.125), ("\u0661\u0662", 12), ("\uff11\uff12", 12),
    ],
)  # fmt: skip
def test_what_can_be_read(text: str, value: float) -> None:
    assert parse(text, EXAMPLES) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "abc", "twelve", "1.2.3", "1,2,3", "1..2", "1.2,3.4", "e5", "-", "/4", "3/0", "1e999", "nan", "inf",
     "1,23,456", "<b>12</b>", "0x10", "12" * 60, "0,125,000", "0.125.000", "00,125,000", "0,125.5", "0.125,5"],
)  # fmt: skip
def test_what_is_no_number_gets_a_sentence(text: str) -> None:
    with pytest.raises(NotANumber) as error:
        parse(text)
    assert len(error.value.sentence.nl) > 20


@pytest.mark.parametrize(
    "text", ["1.234", "1,234", "12.500", "12,500", "999.999", "-1.234", "1.234 examples", "\u0661,234"]
)
def test_what_can_be_read_in_two_ways_is_asked_back(text: str) -> None:
    with pytest.raises(NotANumber, match="two ways") as error:
        parse(text, EXAMPLES)
    whole, decimal = error.value.sentence.en.split("write ")[1].split(" if you mean thousands, ")
    value = float(text.split()[0].strip("-").replace(",", "."))
    assert parse(whole) == value * 1000
    assert parse(decimal.split()[0]) == value  # the advice can be followed
    assert parse(error.value.sentence.nl.split("bedoelt, ")[1].split()[0]) == value


@pytest.mark.parametrize(
    "text", ["12 MB", "12 ex", "12 e", "12 voorbeeldige", "12 12", "1 2", "12 %", "12 =", "12-", "0 125"]
)
def test_an_unknown_unit_is_asked_back(text: str) -> None:
    with pytest.raises(NotANumber, match="wanted in examples"):
        parse(text, EXAMPLES)


def test_units_with_signs() -> None:
    assert parse("50%", PERCENT) == parse("50 %", PERCENT) == 50
    assert parse("12 MiB/s", RATE) == parse("12 mib/s", RATE) == 12
    with pytest.raises(NotANumber, match="alone"):
        parse("50%")


@pytest.mark.parametrize(
    "value", [3, 3.0, Fraction(3), np.float32(3), np.int64(3), np.array(3.0), torch.tensor(3), torch.tensor([3.0])]
)
def test_numbers_of_any_library_are_numbers(value: object) -> None:
    assert parse(value) == 3.0


@pytest.mark.parametrize("value", [None, True, [], [1, 2], {}, object(), torch.ones(2), float("nan"), float("inf"), 1j])
def test_other_objects_are_not(value: object) -> None:
    with pytest.raises(NotANumber):
        parse(value)


def number_or_sentence(answer: object) -> None:
    """`parse` raises nothing else: any other error fails the test."""
    try:
        assert abs(parse(answer)) < float("inf")
    except NotANumber as error:
        assert error.sentence.en and error.sentence.nl


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_a_sentence(text: str) -> None:
    number_or_sentence(text)


@settings(max_examples=1000)
@given(st.text(alphabet="0123456789.,+-eE/ _'\u2212\u2044\u00a0\u0660\u0663\u00b2", max_size=12))
def test_any_text_of_digits_and_marks_is_a_number_or_a_sentence(text: str) -> None:
    number_or_sentence(text)


@given(st.integers(0, 999), st.lists(st.integers(0, 999), min_size=1, max_size=3), st.sampled_from(".,"))
def test_groups_of_thousands_are_read_only_if_they_cannot_be_anything_else(
    first: int, rest: list[int], mark: str
) -> None:
    text = mark.join([str(first), *(f"{group:03}" for group in rest)])
    if len(rest) > 1 and first > 0:
        assert parse(text) == int(text.replace(mark, ""))
    elif len(rest) == 1 and first == 0:
        assert parse(text) == rest[0] / 1000
    else:
        with pytest.raises(NotANumber):
            parse(text)


OBJECTS = st.one_of(
    st.none(), st.booleans(), st.binary(max_size=4), st.integers(), st.floats(), st.complex_numbers(), st.decimals(),
    st.fractions(), st.dates(), st.lists(st.integers()), st.dictionaries(st.integers(), st.integers()),
)  # fmt: skip


@given(OBJECTS)
def test_any_object_is_a_number_or_a_sentence(answer: object) -> None:
    number_or_sentence(answer)


@given(st.integers(-(10**9), 10**9), st.sampled_from(LANGUAGES))
def test_whole_numbers_are_read_as_they_are_written(value: int, language: str) -> None:
    assert parse(written(value, language)) == value  # type: ignore[arg-type]
    if abs(value) >= 10**6:
        grouped = f"{value:,}"
        assert parse(grouped) == parse(grouped.replace(",", ".")) == parse(grouped.replace(",", " ")) == value


@given(st.floats(-1e12, 1e12, allow_nan=False), st.sampled_from(LANGUAGES))
def test_decimal_numbers_are_read_as_they_are_written_or_asked_back(value: float, language: str) -> None:
    try:
        assert parse(written(value, language)) == pytest.approx(value, rel=1e-5, abs=1e-300)  # type: ignore[arg-type]
    except NotANumber as error:
        assert "two ways" in error.sentence.en


def test_numbers_are_written_as_the_language_writes_them() -> None:
    assert (written(0.5, "en"), written(0.5, "nl"), written(32.0, "nl"), written(1536, "nl")) == (
        "0.5",
        "0,5",
        "32",
        "1536",
    )
    assert written(1 / 3, "nl") == "0,333333" and written("text", "nl") == "text"
