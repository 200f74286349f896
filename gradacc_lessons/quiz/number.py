"""Reading a number as a person types it, and writing one as a person reads it.

"1,5" and "1.5" are the same; so are "12800", "12 800", "12,800.0" and "1.28e4"; "3/4" is a number, and a unit may
follow. "1.234" and "1,234" are each a decimal number in one country and a thousand in another, so they are not
guessed at: the learner is asked. ("0.125", "1.2345", "1,234,567" and "1.234,5" can be read in one way only: nobody
groups a number that begins with 0, so "0,125" is a decimal number and "0,125,000" is none.)
"""

import math
import re
from fractions import Fraction
from numbers import Real
from typing import Any

from gradacc_lessons.text import Language, Text

MAX_LENGTH = 80
"""Characters in an answer, its unit included."""


class NotANumber(ValueError):
    """The answer cannot be read as a number; `sentence` says why, in both languages."""

    def __init__(self, sentence: Text) -> None:
        super().__init__(sentence.en)
        self.sentence = sentence


_SPACES = re.compile(r"[\s\u00a0\u2007\u2009\u202f_'\u2019]")
_SIGNED = r"[+-]?"
_FIRST_GROUP = r"(?!0)\d{1,3}"
_DIGITS = rf"(?:{_FIRST_GROUP}(?:{_SPACES.pattern}\d{{3}})+|\d+)"
_GROUPED = rf"{_FIRST_GROUP}(?:,\d{{3}})+(?:\.\d*)?|{_FIRST_GROUP}(?:\.\d{{3}})+(?:,\d*)?"
_MANTISSA = rf"(?:{_GROUPED}|{_DIGITS}(?:[.,]\d*)?|[.,]\d+)"
_NUMBER = re.compile(rf"({_SIGNED})\s*({_MANTISSA})([eE][+-]?\d{{1,4}})?(?![\d.,])")
_FRACTION = re.compile(rf"({_SIGNED})\s*(\d{{1,15}})\s*[/\u2044]\s*(\d{{1,15}})(?![\d.,])")
_AMBIGUOUS = re.compile(r"[1-9]\d{0,2}[.,]\d{3}")


def parse(answer: Any, unit: Text | None = None) -> float:
    """The finite number in `answer` (text, or any real number), without its unit; NotANumber says what is wrong."""
    if isinstance(answer, bool) or answer is None:
        raise NotANumber(_no_number(answer))
    if not isinstance(answer, str):
        return _finite(_float(answer, type(answer).__name__), answer)
    text = re.sub(r"\d", lambda digit: str(int(digit[0])), answer.replace("\u2212", "-").strip())  # of any script
    if len(text) > MAX_LENGTH:
        raise NotANumber(_no_number(text[:20] + "…"))
    if fraction := _FRACTION.match(text):
        value, rest = _from_fraction(fraction, answer), text[fraction.end() :]
    elif number := _NUMBER.match(text):
        value, rest = _from_digits(*number.groups()), text[number.end() :]
    else:
        raise NotANumber(_no_number(answer))
    _check_unit(rest.strip(), unit)
    return _finite(value, answer)


def written(value: Any, language: Language) -> str:
    """A number as it stands in a sentence of that language: at most six digits that count, no thousands."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    text = f"{number:.6g}"
    return text.replace(".", ",") if language == "nl" else text


def _float(value: Any, shown: str) -> float:
    """`value` (digits, an int, a float, a Fraction, one element of an array or a tensor) as a float."""
    try:
        return float(value)
    except Exception:  # what an object of any library raises when it is none is its own choice
        raise NotANumber(_no_number(shown)) from None


def _from_fraction(match: re.Match[str], answer: str) -> float:
    sign, above, below = match.groups()
    if int(below) == 0:
        raise NotANumber(_no_number(answer))
    value = float(Fraction(int(above), int(below)))
    return -value if sign == "-" else value


def _from_digits(sign: str, digits: str, exponent: str | None) -> float:
    if exponent is None and _AMBIGUOUS.fullmatch(digits):
        raise NotANumber(_two_ways(digits))
    digits = _SPACES.sub("", digits)
    if re.fullmatch(_GROUPED, digits) and not _AMBIGUOUS.fullmatch(digits):
        digits = digits.replace(next(mark for mark in digits if mark in ".,"), "")
    return _float(sign + digits.replace(",", ".") + (exponent or ""), digits)


def _check_unit(rest: str, unit: Text | None) -> None:
    if not rest:
        return
    given = rest.casefold().rstrip(".")
    for known in (unit.en.casefold(), unit.nl.casefold()) if unit else ():
        # "example" for "examples" is not worth a word; "M" for "MiB" is another unit.
        if given == known or (len(given) >= 3 and known.startswith(given)):
            return
    if unit is None:
        raise NotANumber(
            Text(
                f"Give the number alone; I do not know what {rest!r} after it means.",
                f"Geef alleen het getal; ik weet niet wat {rest!r} erachter betekent.",
            )
        )
    raise NotANumber(
        Text(
            f"The answer is wanted in {unit.en}, and I do not know {rest!r}: give the number alone.",
            f"Het antwoord wordt gevraagd in {unit.nl}, en {rest!r} ken ik niet: geef alleen het getal.",
        )
    )


def _finite(value: float, answer: Any) -> float:
    if not math.isfinite(value):
        raise NotANumber(_no_number(answer))
    return value


def _no_number(answer: Any) -> Text:
    return Text(
        f"{str(answer)!r} is not a number I can read. Write it like 12, 0.5, 3/4 or 1e-3.",
        f"{str(answer)!r} kan ik niet als getal lezen. Schrijf het als 12, 0,5, 3/4 of 1e-3.",
    )


def _two_ways(digits: str) -> Text:
    whole, decimal = re.sub("[.,]", "", digits), digits.replace(",", ".") + "0"
    return Text(
        f"{digits} can be read in two ways: write {whole} if you mean thousands, {decimal} if you mean a decimal.",
        f"{digits} kun je op twee manieren lezen: schrijf {whole} als je duizendtallen bedoelt, "
        f"{decimal.replace('.', ',')} als je een decimaal getal bedoelt.",
    )
