"""A bank that was damaged or tampered with is read as what stands in it or refused line by line, and quickly."""

import random
import re
from pathlib import Path
from time import process_time

import pytest
import yaml
from pydantic import BaseModel

from gradacc_lessons.quiz.bank import BankError, load_bank
from gradacc_lessons.quiz.check import check_banks
from gradacc_lessons.text import Text

SECONDS = 2.0
OWN = Path(__file__).parent / "banks"
BANKS = [OWN / "90_small.yaml", OWN / "91_order.yaml"]
PIECES = [
    "*a", "&a ", "!!python/object:os.system ", "<<: ", "- ", ": ", "{", "}", "[", "]", '"', "'", "#", "|", ">-", "\t",
    "\x00", "\x85", "é", "9" * 400, "** 9 ** 9 ** 9", "correct: true", "null", "~", "-1", ".inf", "1e999", "\n", "  ",
]  # fmt: skip


def mutated(text: str, chance: random.Random) -> str:
    lines, at = text.splitlines(keepends=True), chance.randrange(len(text))
    line, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(7):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + chance.choice(PIECES) + text[at:]
        case 2:
            return "".join(lines[:line] + lines[line + 1 :])
        case 3:
            return "".join([*lines[:line], lines[other], *lines[line:]])
        case 4:
            lines[line], lines[other] = lines[other], lines[line]
            return "".join(lines)
        case 5:
            return text[:at]
        case _:
            return text[:at] + chr(chance.randrange(32, 0x2FF)) + text[at + 1 :]


def strings(value: object) -> set[str]:
    """Every piece of text in data."""
    if isinstance(value, dict):
        return {text for each in (*value, *value.values()) for text in strings(each)}
    if isinstance(value, list):
        return {text for each in value for text in strings(each)}
    return {str(value).strip()}


def texts_of(value: object) -> set[str]:
    """Every text that a bank would show."""
    if isinstance(value, Text):
        return {value.en, value.nl}
    if isinstance(value, dict):
        return {text for each in value.values() for text in texts_of(each)}
    if isinstance(value, tuple | list):
        return {text for each in value for text in texts_of(each)}
    return texts_of(dict(value)) if isinstance(value, BaseModel) else set()


def mutate(folder: Path, times: int) -> None:
    chance, accepted = random.Random(0), 0
    for count in range(times):
        original = BANKS[count % len(BANKS)]
        path = folder / original.name
        path.write_text(mutated(original.read_text(encoding="utf-8"), chance), encoding="utf-8", errors="ignore")
        begun = process_time()
        try:
            bank = load_bank(path)
        except BankError as error:
            assert all(re.fullmatch(rf"{re.escape(str(path))}:\d+: .+: .+", each) for each in error.problems)
        else:
            accepted += 1
            # What it would show is what somebody else's reader finds in the file, and nothing that is not there.
            assert texts_of(bank) <= strings(yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader))
        assert process_time() - begun < SECONDS
    assert 0 < accepted < times * 0.8


def test_a_hundred_changed_banks_are_read_or_refused(tmp_path: Path) -> None:
    mutate(tmp_path, 100)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_ten_thousand_changed_banks_are_read_or_refused(tmp_path: Path) -> None:
    mutate(tmp_path, 10_000)


def test_the_check_of_a_changed_bank_never_ends_in_a_traceback(tmp_path: Path) -> None:
    chance = random.Random(1)
    for _ in range(10):
        path = tmp_path / BANKS[0].name
        path.write_text(mutated(BANKS[0].read_text(encoding="utf-8"), chance), encoding="utf-8", errors="ignore")
        assert all(problem.startswith(f"{path}:") for problem in check_banks(tmp_path))
