"""Lesson 02, the surprise: curves that may blow up, in one picture."""

import math

import pytest

from gradacc_lessons.lessons.loss_curves import loss_curves


def test_the_sentence_tells_what_each_run_did() -> None:
    twin = loss_curves({"N = 1": [2.3, 1.0, 0.5], "N = 16": [2.3, 99.0, math.nan]})
    assert twin.sentence == (
        "N = 1 starts at 2.30 and ends at 0.50; N = 16 starts at 2.30, climbs to 99 and ends as no number."
    )
    assert list(twin.table["run"]) == ["N = 1", "N = 16"]
    assert list(twin.table["highest loss"]) == ["2.30", "99.00"]
    assert list(twin.table["last loss"]) == ["0.50", "nan"]


def test_the_order_of_runs_is_that_of_the_caller() -> None:
    twin = loss_curves({"b": [1.0, 2.0], "a": [3.0, 4.0]})
    assert list(twin.table["run"]) == ["b", "a"]
    assert list(twin.table["first loss"]) == ["1.00", "3.00"]
    assert list(twin.table["highest loss"]) == ["2.00", "4.00"]


@pytest.mark.parametrize("number", [0, 4])
def test_no_run_or_too_many_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"you gave {number}"):
        loss_curves({f"run {i}": [1.0] for i in range(number)})
