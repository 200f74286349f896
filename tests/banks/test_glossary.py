"""The glossary: every row complete, every term once, in order, and the words of the quizzes among them."""

import re
from pathlib import Path

import pytest

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| Term ")
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_is_complete(row: list[str]) -> None:
    term, begrip, meaning, betekenis, lesson = row
    assert term and begrip
    for sentence in (meaning, betekenis):
        assert sentence[0].isupper() or sentence.startswith("`")
        assert sentence.endswith(".") and sentence.count(". ") == 0, "one plain sentence"
    assert meaning != betekenis
    assert re.fullmatch(r"0\d|1[0-6]", lesson)


def test_every_term_stands_once() -> None:
    terms = [row[0].casefold() for row in ROWS]
    assert len(terms) == len(set(terms))


def test_each_part_is_in_alphabetical_order() -> None:
    for part in GLOSSARY.read_text(encoding="utf-8").split("\n## ")[1:]:
        terms = re.findall(r"(?m)^\| (?!Term )([^|]+?) \|", part)
        assert terms == sorted(terms, key=str.casefold), part.splitlines()[0]


def test_every_lesson_but_the_museum_and_the_comparison_brings_a_term() -> None:
    # 09 shows known bugs again and 11 compares products by their own names.
    assert {int(row[4]) for row in ROWS} == set(range(17)) - {9, 11}


def test_the_words_that_the_course_fixes_are_there() -> None:
    terms = " ".join(row[0] for row in ROWS)
    for word in ("micro-batch", "window", "update", "effective batch", "N, accumulation steps"):
        assert word in terms
