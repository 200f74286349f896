"""Every answer gets what it is worth and the words that belong to it, and no other's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.quiz.check import draws
from gradacc_lessons.quiz.grade import Grade, close, committed, fill, grade, grade_prediction
from gradacc_lessons.quiz.number import NotANumber
from gradacc_lessons.quiz.questions import Bank
from gradacc_lessons.text import LANGUAGES, Text


def graded(small: Bank, question_id: str, value: Any, **variables: int) -> Grade:
    return grade(small.question(question_id), value, variables)


# Choice


def test_each_option_gets_its_own_words(small: Bank) -> None:
    for option in small.question("small-choice").options:  # type: ignore[union-attr]
        result = graded(small, "small-choice", option.id)
        assert result.feedback == option.feedback and result.counted
        assert (result.correct, result.fraction) == (option.correct, float(option.correct))
        assert result.mistake == (None if option.correct else option.id)


@pytest.mark.parametrize("value", ["other", "", None, 3, ["sums"], object()])
def test_what_is_no_option_is_no_answer(small: Bank, value: Any) -> None:
    result = graded(small, "small-choice", value)
    assert not result.counted and "sums, mean, replaces" in result.feedback.en


# Multiple


@pytest.mark.parametrize(
    ("picked", "fraction", "mistake"),
    [
        (["step", "zero"], 1.0, None),
        (["step"], 0.5, None),
        ("zero", 0.5, None),
        (["step", "zero", "forward"], 0.5, "forward"),
        (["step", "forward"], 0.0, "forward"),
        (["forward", "backward"], 0.0, "forward,backward"),
        (["backward", "zero", "forward", "step"], 0.0, "forward,backward"),
    ],
)
def test_partial_credit_is_right_picks_less_wrong_picks(
    small: Bank, picked: Any, fraction: float, mistake: str | None
) -> None:
    result = graded(small, "small-multiple", picked)
    assert (result.fraction, result.correct, result.mistake) == (fraction, fraction == 1.0, mistake)


@given(st.sets(st.sampled_from(["step", "zero", "forward", "backward"]), min_size=1))
def test_partial_credit_for_any_picks(small: Bank, picked: set[str]) -> None:
    result = graded(small, "small-multiple", picked)
    right, wrong = len(picked & {"step", "zero"}), len(picked - {"step", "zero"})
    assert result.fraction == max(0, right - wrong) / 2
    assert result.correct == (picked == {"step", "zero"})
    for option in small.question("small-multiple").options:  # type: ignore[union-attr]
        for language in LANGUAGES:
            assert (option.feedback.to(language) in result.feedback.to(language)) == (option.id in picked)
    assert ("not picked everything" in result.feedback.en) == (right < 2)


@pytest.mark.parametrize("value", [[], ["step", "other"], ["step", 3], [["step"]], {"step": 1}, None, 3, "other"])
def test_picks_that_do_not_exist_are_no_answer(small: Bank, value: Any) -> None:
    assert not graded(small, "small-multiple", value).counted


# Number


def test_for_every_learner_right_is_right_and_each_mistake_gets_its_words(small: Bank) -> None:
    for drawn in draws(small.question("small-number")):  # type: ignore[arg-type]
        b, n = drawn["b"], drawn["n"]
        right = graded(small, "small-number", f"{b * n} examples", **drawn)  # type: ignore[arg-type]
        assert right.correct and right.feedback.en == f"{b} x {n} = {b * n}; you said {b * n}."
        added = graded(small, "small-number", b + n, **drawn)  # type: ignore[arg-type]
        assert (added.mistake, added.feedback.en) == ("mistake-1", f"You added {b} and {n}.")
        one = graded(small, "small-number", b, **drawn)  # type: ignore[arg-type]
        assert (one.mistake, one.feedback.nl) == ("mistake-2", "Dat is één micro-batch.")
        for wrong in (added, one, graded(small, "small-number", b * n + 1, **drawn)):  # type: ignore[arg-type]
            assert not wrong.correct and str(b * n) not in wrong.feedback.en.replace(str(b * n + 1), "")


def test_an_unknown_mistake_repeats_what_was_given_as_the_language_writes_it(small: Bank) -> None:
    result = graded(small, "small-number", "0.5", b=8, n=4)
    assert (result.feedback.en, result.mistake) == ("0.5 is not it. Multiply.", None)
    assert result.feedback.nl == "0,5 is het niet. Vermenigvuldig."


@pytest.mark.parametrize("value", ["", "many", "1.234", "32 MB", None, float("nan")])
def test_what_is_no_number_costs_nothing(small: Bank, value: Any) -> None:
    result = graded(small, "small-number", value, b=8, n=4)
    assert not result.counted and not result.correct and result.fraction == 0.0


def test_tolerances() -> None:
    assert close(0.1 + 0.2, 0.3, 0.0)  # rounding is nobody's mistake
    assert not close(0.3001, 0.3, 0.0) and close(0.3001, 0.3, 0.001)
    assert close(110.0, 100.0, 0.1) and not close(111.0, 100.0, 0.1) and close(-95.0, -100.0, 0.1)
    assert close(0.001, 0.0, 0.0, absolute=0.01) and not close(0.001, 0.0, 0.5)


# Spot


def test_each_line_gets_its_words(small: Bank) -> None:
    said = {line: graded(small, "small-spot", line) for line in range(1, 7)}
    assert [line for line, result in said.items() if result.correct] == [2, 5]
    assert said[3].feedback.en == "backward belongs there." and said[1].feedback.en == "That line is as it should be."
    assert [said[line].mistake for line in (1, 2, 3)] == ["line-1", None, "line-3"]
    assert graded(small, "small-spot", "5").correct and graded(small, "small-spot", 5.0).correct


@pytest.mark.parametrize("value", [0, 7, -1, 2.5, "two", None, True, [2]])
def test_lines_that_do_not_exist_are_no_answer(small: Bank, value: Any) -> None:
    result = graded(small, "small-spot", value)
    assert not result.counted and "1 to 6" in result.feedback.en


# Predictions


def test_a_prediction_is_graded_by_what_was_measured(small: Bank) -> None:
    question: Any = small.question("small-predict")
    near = grade_prediction(question, committed(question, "47 updates"), 48)
    assert near.correct and near.feedback.en == "47 it is, measured 48."
    far = grade_prediction(question, committed(question, 12.5), 48.0)
    assert not far.correct and far.fraction == 0.0 and far.feedback.nl == "12,5 was gezegd, gemeten 48."
    with pytest.raises(NotANumber):
        committed(question, "many")


@pytest.mark.parametrize(
    ("value", "en", "nl"),
    [
        (-3, "less than 1: predict", "Kleiner dan 1 kan"),
        ("0,5 updates", "less than 1:", "Kleiner dan 1 kan"),
        (1001, "more than 1000.5: predict", "Groter dan 1000,5 kan"),
    ],
)
def test_a_prediction_that_nothing_can_measure_is_refused_in_a_sentence(
    small: Bank, value: Any, en: str, nl: str
) -> None:
    question: Any = small.question("small-predict")
    with pytest.raises(NotANumber) as refused:
        committed(question, value)
    assert en in refused.value.sentence.en and nl in refused.value.sentence.nl
    assert committed(question, 1) == 1 and committed(question, 1000.5) == 1000.5


def test_a_guess_is_graded_by_what_happened(small: Bank) -> None:
    question: Any = small.question("small-guess")
    assert grade_prediction(question, "peak", "peak").feedback.nl == "Inderdaad De piek."
    wrong = grade_prediction(question, "mean", "peak")
    assert not wrong.correct and wrong.feedback.en == "Not The mean: The peak."
    assert committed(question, "mean") == "mean"
    with pytest.raises(NotANumber, match="peak, mean"):
        committed(question, "other")


def test_what_must_be_run_is_not_graded_as_text(small: Bank) -> None:
    for question_id in ("small-predict", "small-code"):
        with pytest.raises(TypeError, match=question_id):
            graded(small, question_id, 1)


def test_only_known_names_are_filled_in() -> None:
    text = Text("{a} {b} {} {a b} {{a}}", "{a:>9} {b.c}")
    assert fill(text, {"a": 0.5}) == Text("0.5 {b} {} {a b} {0.5}", "{a:>9} {b.c}")
