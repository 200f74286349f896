"""A submission graded anew comes to what the live takes came to, whatever else stands in it."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradacc_lessons.canonical import canonical
from gradacc_lessons.progress import PASS_MARK, Progress
from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises import EXERCISES, UPDATES_PER_EPOCH
from gradacc_lessons.quiz.grade import Grade, no_answer
from gradacc_lessons.quiz.questions import Bank
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.quiz.regrade import regrade
from gradacc_lessons.text import Text

BANKS = Path(__file__).parent / "banks"
Record = dict[str, Any]


@cache
def check_code(exercise: str, source: str) -> Grade:
    return EXERCISES[exercise].check(build(source, EXERCISES[exercise].function))


def records(quiz: Quiz) -> list[Record]:
    """What a submission would hold, through JSON and back."""
    kept = quiz.progress.answers(quiz.lesson)
    return json.loads(canonical([{"question": a.question, "take": a.take, "value": a.value} for a in kept]))


def compared(quiz: Quiz, check: Callable[[str, str], Grade] | None = check_code) -> None:
    """Regrading gives the takes that the progress file has, and the verdicts that were said."""
    results = regrade(quiz.bank, records(quiz), quiz.progress.seed(), check)
    live = [take for take in quiz.progress.takes(quiz.lesson) if take.best]
    assert [(take.number, take.points, take.of) for take in results.takes] == [
        (take.number, take.points, take.of) for take in live
    ]
    assert results.share == quiz.score and results.refused == ()
    kept = quiz.progress.answers(quiz.lesson)
    assert [each.counts for each in results.answers] == [answer.counts for answer in kept]
    assert [each.grade.fraction for each in results.answers] == [answer.fraction for answer in kept]


def right_number(quiz: Quiz) -> float:
    drawn = quiz.variables("small-number")
    return drawn["b"] * drawn["n"]


def test_two_takes_of_every_kind_come_to_the_same(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {}
    monkeypatch.setattr("gradacc_lessons.quiz.quiz.source_of", sources.get)

    def code(source: str) -> Any:
        function = build(source, "updates_per_epoch")
        sources[function] = source
        return function

    quiz.answer("small-choice", "mean")
    quiz.answer("small-choice", "sums")  # practice
    quiz.answer("small-multiple", {"step", "forward", "zero"})
    quiz.answer("small-number", right_number(quiz) + 1)
    quiz.answer("small-predict", 12)
    quiz.answer("small-code", code(UPDATES_PER_EPOCH.wrong[0].source))
    compared(quiz)
    quiz.answer("small-code", code(UPDATES_PER_EPOCH.solution))
    quiz.answer("small-code", code(UPDATES_PER_EPOCH.wrong[1].source))
    quiz.retake()
    compared(quiz)
    quiz.answer("small-number", f"{right_number(quiz):g} examples")
    quiz.answer("small-spot", 5)
    quiz.answer("small-choice", "sums")
    compared(quiz)
    results = regrade(quiz.bank, records(quiz), quiz.progress.seed(), check_code)
    assert [each.grade.mistake for each in results.answers if each.question == "small-choice"] == ["mean", None, None]
    assert results.best is not None and results.best.number == 1 and not results.passed


ANSWERS = st.sampled_from(
    [
        ("small-choice", "sums"), ("small-choice", "mean"), ("small-choice", "?"), ("small-spot", 2), ("small-spot", 3),
        ("small-spot", "x"), ("small-multiple", ["zero", "step"]), ("small-multiple", ["zero", "forward"]),
        ("small-number", "right"), ("small-number", 7), ("small-number", "1.234"), ("small-predict", 3), ("retake", 0),
    ]
)  # fmt: skip


@settings(deadline=None, max_examples=30)  # each answer waits for the disk
@given(st.lists(ANSWERS, max_size=20))
def test_whatever_is_answered_comes_to_the_same(tmp_path_factory: pytest.TempPathFactory, answers: Any) -> None:
    progress = Progress(tmp_path_factory.mktemp("home") / "progress.sqlite")
    quiz = Quiz("90", bank_folder=BANKS, progress=progress)
    for question, value in answers:
        if question == "retake":
            quiz.retake()
        else:
            quiz.answer(question, right_number(quiz) if value == "right" else value)
    compared(quiz, check=None)


def test_another_learners_answers_are_right_for_nobody_else(small: Bank) -> None:
    def submitted(seed: str) -> list[Record]:
        for b in (4, 8, 16):
            for n in range(3, 13):
                copied = [{"question": "small-number", "take": 1, "value": b * n}]
                if regrade(small, copied, seed).share:
                    return copied
        raise AssertionError

    rights = [regrade(small, submitted("anna"), f"other {n}").share > 0 for n in range(100)]
    assert sum(rights) < 20


def test_nothing_that_a_record_claims_is_believed(small: Bank) -> None:
    claims = {"fraction": 1.0, "correct": True, "counts": True, "points": 100, "seed": "x", "first": True}
    forged = [
        {"question": "small-choice", "take": 1, "value": "mean", **claims},
        {"question": "small-choice", "take": 1, "value": "sums", **claims},
    ]
    results = regrade(small, forged, "seed")
    assert results.share == 0 and [each.counts for each in results.answers] == [True, False]


def test_what_is_no_answer_costs_nothing_and_the_next_one_counts(small: Bank) -> None:
    tried = [{"question": "small-spot", "take": 1, "value": value} for value in (None, [], {}, 99, "x", True, 5)]
    results = regrade(small, tried, "seed")
    assert [each.counts for each in results.answers] == [*[False] * 6, True]
    assert results.best is not None and results.best.points == 1


@pytest.mark.parametrize(
    "record",
    [
        None, 3, "small-choice", [], {}, {"question": None}, {"question": ["small-choice"], "take": 1},
        {"question": "other", "take": 1, "value": "sums"}, {"question": "small-choice", "value": "sums"},
        *({"question": "small-choice", "take": take, "value": 1} for take in (0, -1, 1.0, True, "1", 10**12, None)),
    ],
    ids=str,
)  # fmt: skip
def test_a_record_of_another_shape_is_refused_alone(small: Bank, record: Any) -> None:
    results = regrade(small, [record, {"question": "small-choice", "take": 2, "value": "sums"}], "seed")
    assert len(results.refused) == 1 and results.refused[0].startswith("answer 1: ")
    assert results.best is not None and (results.best.number, results.best.points) == (2, 1.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(["small-choice", "small-multiple", "small-number", "small-spot", "small-code"]), JSON)
def test_no_value_raises(small: Bank, question: str, value: Any) -> None:
    results = regrade(
        small, [{"question": question, "take": 1, "value": value}], "seed", lambda *_: no_answer(Text("", ""))
    )
    assert len(results.answers) == 1 and results.share < PASS_MARK


def test_each_source_is_run_once_and_never_without_a_way_to(small: Bank) -> None:
    ran: list[tuple[str, str]] = []

    def check(exercise: str, source: str) -> Grade:
        ran.append((exercise, source))
        return Grade(float(source == "good"), source == "good", Text("", ""))

    tries = [{"question": "small-code", "take": 1, "value": value} for value in ("bad", "good", "bad", "good", 3, None)]
    results = regrade(small, tries, "seed", check)
    assert ran == [("updates_per_epoch", "bad"), ("updates_per_epoch", "good")]
    assert [each.counts for each in results.answers] == [True, True, True, True, False, False]
    assert results.best is not None and results.best.points == 3
    assert regrade(small, tries, "seed").takes == ()


def test_thousands_of_takes_cost_what_their_answers_cost(small: Bank) -> None:
    def seconds(takes: list[int]) -> float:
        submitted = [{"question": "small-choice", "take": take, "value": "mean"} for take in takes]
        begun = process_time()
        assert len(regrade(small, submitted, "seed").takes) == len(set(takes))
        return process_time() - begun

    in_one = seconds([1] * 8_000)
    # Three times as long, and thirty times where each take looks at all answers.
    assert seconds(list(range(1, 8_001))) < 10 * max(in_one, 0.05)


def test_the_order_of_things_is_graded_too(progress: Progress) -> None:
    quiz = Quiz("91", bank_folder=BANKS, progress=progress)
    quiz.answer("order-lines", "one, three, two")
    quiz.answer("order-window", ["zero_grad", "forward", "backward", "clip", "update"])
    compared(quiz)
