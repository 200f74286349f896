"""Lesson 03's choice of b and N is measured: what is said of every b and N, and what is not."""

import re
from typing import Any

import pytest

from gradacc_lessons.quiz.exercise import NOT_ATTEMPTED
from gradacc_lessons.quiz.exercises_memory import BUDGET_MEBIBYTES, CHOOSE_FOR_BUDGET, TARGET, run_and_judge
from gradacc_lessons.text import LANGUAGES

DIVISORS = [size for size in range(1, TARGET + 1) if TARGET % size == 0]
AROUND = (8, 12, 16, 24)
"""The right one, and on either side of it what each mistake leads to. Every window of 48 examples takes its time."""
MISTAKES = {size: "n_too_large" for size in DIVISORS if size < 12} | {
    12: None,
    16: "forgets_what_stays",
    24: "over_budget",
    48: "over_budget",
}
SOME = [size if size in AROUND else pytest.param(size, marks=pytest.mark.long) for size in DIVISORS]


def returning(value: Any) -> Any:
    return CHOOSE_FOR_BUDGET.check(lambda: value)


@pytest.mark.parametrize("size", SOME)
def test_of_all_equal_micro_batches_one_choice_is_right(size: int) -> None:
    grade = run_and_judge(size, TARGET // size)
    assert grade.correct == (size == 12)
    assert grade.mistake == MISTAKES[size]


def test_a_batch_that_is_too_large_hears_by_how_much_it_was_measured() -> None:
    said = run_and_judge(16, 3).feedback
    assert re.search(r"Measured: 13 MiB too much", said.en) and re.search(r"Gemeten: 13 MiB te veel", said.nl)


@pytest.mark.parametrize("value", [(12.0, 4), [12, 4], (12, 4.0)])
def test_ways_to_be_right(value: Any) -> None:
    assert returning(value).correct


@pytest.mark.parametrize(
    "value",
    [
        None, 12, (12,), (12, 4, 1), ("12", "4"), (12.5, 4), (0, 4), (-12, -4), (True, 48), {12: 4}, (None, 4),
        (10**400, 1), (1, -(10**400)), (float("inf"), 1), (float("nan"), 1),
    ],
)  # fmt: skip
def test_what_is_no_pair_of_whole_numbers_is_told_so(value: Any) -> None:
    grade = returning(value)
    assert grade.mistake == "no_pair" and grade.counted and not grade.correct


def test_a_huge_choice_is_not_run() -> None:
    for pair in ((10**6, 1), (10**300, 10**300)):
        grade = returning(pair)
        assert grade.mistake == "misses_target" and len(grade.feedback.en) < 120


def test_what_raises_or_is_unfinished_is_told_apart() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    def unfinished() -> None:
        x = 1
        raise NotImplementedError(x)

    assert CHOOSE_FOR_BUDGET.check(broken).mistake == "crashed"
    grade = CHOOSE_FOR_BUDGET.check(unfinished)
    assert not grade.counted and grade.feedback == NOT_ATTEMPTED


@pytest.mark.parametrize("size", SOME)
def test_no_message_gives_the_answer_away(size: int) -> None:
    grade = run_and_judge(size, TARGET // size)
    for language in () if grade.correct else LANGUAGES:
        said = grade.feedback.to(language)
        assert not {"12", "4"} & set(re.findall(r"\d+", said)), said


def test_no_hint_gives_the_answer_away() -> None:
    for hint in CHOOSE_FOR_BUDGET.hints:
        assert not re.findall(r"\d+", hint.en + hint.nl)


def test_the_statement_has_the_numbers_that_are_measured() -> None:
    for language in LANGUAGES:
        assert {str(TARGET), str(BUDGET_MEBIBYTES)} <= set(re.findall(r"\d+", CHOOSE_FOR_BUDGET.statement.to(language)))
    assert f"{TARGET} examples" in CHOOSE_FOR_BUDGET.starter and f"{BUDGET_MEBIBYTES} MiB" in CHOOSE_FOR_BUDGET.starter
