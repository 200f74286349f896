"""What was missed comes back after 1, 3, 7 and 21 days, with other numbers, and changes no result."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, tzinfo
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from quiz.panel import one, press, said, shown, text_of

from gradacc_lessons.cli import main
from gradacc_lessons.progress import Answer, Progress, Review
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.quiz.review import DAYS, schedule
from gradacc_lessons.quiz.view import QuizView

BANKS = Path(__file__).parent / "banks"
TODAY = date(2026, 3, 25)


class Noon(datetime):
    """A clock that stands still: around midnight a question would be due one day later than the test expects."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.combine(TODAY, time(12)).astimezone(tz)


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("progress", "quiz.quiz"):
        monkeypatch.setattr(f"gradacc_lessons.{module}.datetime", Noon)


def at(day: int) -> str:
    """Noon of a day, counted from one day on, as it is kept: in UTC."""
    noon = datetime.combine(date(2026, 3, 20) + timedelta(days=day), time(12)).astimezone()  # over a change of clocks
    return noon.astimezone(tz=None).isoformat()


def answered(*days: tuple[int, float], counts: bool = True) -> list[Answer]:
    return [Answer("q", 1, True, counts, "x", fraction, 1.0, at(day)) for day, fraction in days]


def reviewed(*days: tuple[int, float]) -> list[Review]:
    return [Review("q", number, "x", fraction, at(day)) for number, (day, fraction) in enumerate(days, start=1)]


def due(answers: Iterable[Answer], reviews: Iterable[Review] = ()) -> int | None:
    """On which day the question comes back."""
    found = schedule(answers, reviews).get("q")
    return None if found is None else (found.on - date(2026, 3, 20)).days


def test_the_days_are_those_that_are_promised() -> None:
    assert DAYS == (1, 3, 7, 21)
    missed, rights, day = answered((0, 0.0)), [], 0
    for wait in DAYS:
        assert due(missed, reviewed(*rights)) == day + wait
        day += wait
        rights.append((day, 1.0))
    assert due(missed, reviewed(*rights)) is None
    assert due(missed, reviewed(*rights, (day + 50, 0.0))) == day + 51


def test_what_was_right_or_practice_does_not_come_back() -> None:
    assert due(answered((0, 1.0))) is None and due([]) is None
    assert due(answered((0, 0.0), counts=False)) is None
    assert due(answered((0, 0.5))) == 1


def test_a_wrong_answer_begins_anew_and_one_that_is_right_too_early_changes_nothing() -> None:
    assert due(answered((0, 0.0)), reviewed((1, 1.0), (4, 0.5))) == 5
    assert due(answered((0, 0.0), (0, 1.0))) == 1  # taken again at once
    assert due(answered((0, 0.0), (9, 1.0))) == 12  # taken again later: as good as a review
    assert due(answered((0, 0.0)), reviewed((30, 1.0))) == 33  # late is not too late


@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0.0, 0.5, 1.0])), max_size=12))
def test_it_comes_back_if_it_was_missed_and_not_before_the_next_day(days: list[tuple[int, float]]) -> None:
    days.sort(key=lambda each: each[0])
    back = due(answered(*days))
    wrong = [day for day, fraction in days if fraction < 1]
    assert (back is None) <= (len([day for day, _ in days if wrong and day > wrong[-1]]) >= len(DAYS) or not wrong)
    if back is not None:
        assert wrong and any(back == day + wait for day, _ in days for wait in DAYS) and back > wrong[-1]


# Taking it


@pytest.fixture
def missed(progress: Progress) -> Quiz:
    quiz = Quiz("90", bank_folder=BANKS, progress=progress)
    quiz.answer("small-choice", "mean")
    quiz.answer("small-number", 1)
    quiz.answer("small-spot", 5)
    quiz.answer("small-code", lambda *_: 0)
    quiz.answer("small-predict", 3)
    return quiz


def tomorrow(quiz: Quiz, days: int = 1):  # type: ignore[no-untyped-def]
    return quiz.reviewing(TODAY + timedelta(days=days))


def test_today_nothing_is_due_and_it_says_when(missed: Quiz, capsys: pytest.CaptureFixture[str]) -> None:
    missed.review()
    next_day = (TODAY + timedelta(days=1)).isoformat()
    assert capsys.readouterr().out == f"Nothing is due for review today. Come back on {next_day}.\n"


def test_what_is_due_is_asked_with_other_numbers_and_changes_no_result(missed: Quiz) -> None:
    before, points = missed.variables("small-number"), missed.result().points
    back = tomorrow(missed)
    assert [question.id for question in back.counted] == ["small-choice", "small-number"]
    many = {tuple(tomorrow(Quiz("90", bank_folder=BANKS, progress=missed.progress)).variables("small-number").items())}
    assert many == {tuple(back.variables("small-number").items())}  # the same until it is answered
    assert back.state("small-choice").en == "not answered yet" and not back.may_see_solution("small-choice")
    said_first = back.answer("small-choice", "sums")
    assert said_first.correct and said_first.counts
    assert not back.answer("small-choice", "mean").counts
    back.answer("small-number", "?")
    assert back.given("small-number") is None
    drawn = back.variables("small-number")
    assert back.answer("small-number", drawn["b"] * drawn["n"]).correct
    assert str(back.result()).startswith("Reviewed: 2 of 2, 2 right.")
    assert missed.result().points == points and missed.variables("small-number") == before
    assert [each.question for each in missed.progress.reviews("90_small")] == ["small-choice", "small-number"]


def test_numbers_are_new_each_time_it_comes_back(missed: Quiz) -> None:
    numbers = {tuple(missed.variables("small-number").values())}
    for number in range(1, 7):
        missed.progress.add_review("90_small", "small-number", number, 1.0, 0.0)
        numbers.add(tuple(tomorrow(missed).variables("small-number").values()))
    assert len(numbers) > 3


def test_it_is_shown_in_the_notebook_without_a_retake(missed: Quiz) -> None:
    back = tomorrow(missed)
    view = QuizView(back, [question.id for question in back.counted])
    radio = one(view, __import__("ipywidgets").RadioButtons)
    assert radio.value is None
    radio.value = "sums"
    press(view, "answer")
    assert said(view).startswith("✓ Right.")
    view.go(2)
    assert shown(view) == {"previous"} and "Reviewed: 1 of 2, 1 right." in said(view)
    assert text_of(view._ask.value) == ""


def test_it_is_taken_in_the_terminal(missed: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADACC_HOME", str(missed.progress.file.parent))
    command = ["quiz", "90", "--bank", str(BANKS), "--review"]
    assert "Nothing is due for review today." in CliRunner().invoke(main, command, catch_exceptions=False).output
    back = tomorrow(missed)
    monkeypatch.setattr(Quiz, "reviewing", lambda quiz: back)
    picked = str([option.id for option in back.options("small-choice")].index("sums") + 1)
    done = CliRunner().invoke(main, command, input=f"{picked}\nn\n", catch_exceptions=False)
    assert "Question 2 of 2" in done.output and "Reviewed: 1 of 2, 1 right." in done.output
