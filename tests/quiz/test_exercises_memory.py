"""Lesson 03's choice of b and N is measured: what is said of every b and N, and what is not."""

import re
from typing import Any

import pytest

from gradacc_lessons.quiz.exercise import NOT_ATTEMPTED
from gradacc_lessons.quiz.exercises_memory import BUDGET_MEBIBYTES, CHOOSE_FOR_BUDGET, TARGET, run_and_judge
from gradacc_lessons.text import LANGUAGES

DIVISORS = [size for size in range(1, TARGET + 1) if TARGET % size == 0]


def returning(value: Any) -> Any:
    return CHOOSE_FOR_BUDGET.check(lambda: value)


def test_of_all_equal_micro_batches_one_choice_is_right() -> None:
    grades = {size: run_and_judge(size, TARGET // size) for size in DIVISORS}
    assert [size for size, grade in grades.items() if grade.correct] == [12]
    assert {grades[size].mistake for size in DIVISORS if size < 12} == {"n_too_large"}
    assert [grades[size].mistake for size in DIVISORS if size > 12] == [
        "forgets_what_stays",
        "over_budget",
        "over_budget",
    ]


def test_a_batch_that_is_too_large_hears_by_how_much_it_was_measured() -> None:
    said = run_and_judge(16, 3).feedback
    assert re.search(r"Measured: 13 MiB too much", said.en) and re.search(r"Gemeten: 13 MiB te veel", said.nl)


@pytest.mark.parametrize("value", [(12.0, 4), [12, 4], (12, 4.0)])
def test_ways_to_be_right(value: Any) -> None:
    assert returning(value).correct


@pytest.mark.parametrize(
    "value", [None, 12, (12,), (12, 4, 1), ("12", "4"), (12.5, 4), (0, 4), (-12, -4), (True, 48), {12: 4}, (None, 4)]
)
def test_what_is_no_pair_of_whole_numbers_is_told_so(value: Any) -> None:
    grade = returning(value)
    assert grade.mistake == "no_pair" and grade.counted and not grade.correct


def test_a_huge_choice_is_not_run() -> None:
    assert returning((10**6, 1)).mistake == "misses_target"


def test_what_raises_or_is_unfinished_is_told_apart() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    def unfinished() -> None:
        x = 1
        raise NotImplementedError(x)

    assert CHOOSE_FOR_BUDGET.check(broken).mistake == "crashed"
    grade = CHOOSE_FOR_BUDGET.check(unfinished)
    assert not grade.counted and grade.feedback == NOT_ATTEMPTED


def test_no_message_gives_the_answer_away() -> None:
    for size in DIVISORS:
        if size != 12:
            for language in LANGUAGES:
                said = run_and_judge(size, TARGET // size).feedback.to(language)
                assert not {"12", "4"} & set(re.findall(r"\d+", said)), said
    for hint in CHOOSE_FOR_BUDGET.hints:
        assert not re.findall(r"\d+", hint.en + hint.nl)


def test_the_statement_has_the_numbers_that_are_measured() -> None:
    for language in LANGUAGES:
        assert {str(TARGET), str(BUDGET_MEBIBYTES)} <= set(re.findall(r"\d+", CHOOSE_FOR_BUDGET.statement.to(language)))
    assert f"{TARGET} examples" in CHOOSE_FOR_BUDGET.starter and f"{BUDGET_MEBIBYTES} MiB" in CHOOSE_FOR_BUDGET.starter
