"""The view, driven as a learner does: every control is moved, every button pressed, in both languages."""

import re
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import ipywidgets as widgets
import pytest
from quiz.panel import every, one, press, said, shown, text_of

from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz import fields
from gradacc_lessons.quiz.box import STYLE
from gradacc_lessons.quiz.enter import SECONDS_AFTER_ENTER
from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises import UPDATES_PER_EPOCH
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.quiz.view import QuizView
from gradacc_lessons.text import LANGUAGES

BANKS = Path(__file__).parent / "banks"
KINDS = ["small-choice", "small-multiple", "small-number", "small-spot", "small-code"]
IN_CORE_OF_BOTH = {
    "HTML", "ToggleButtons", "VBox", "HBox", "Button", "RadioButtons", "Checkbox", "Text", "Dropdown", "QuizBox",
}  # fmt: skip


@pytest.fixture
def view(quiz: Quiz) -> QuizView:
    return QuizView(quiz, KINDS)


def single(quiz: Quiz, question_id: str) -> QuizView:
    return QuizView(quiz, [question_id])


# Each kind of question


def test_a_choice_is_picked_answered_wrongly_and_rightly(quiz: Quiz) -> None:
    view = single(quiz, "small-choice")
    radio = one(view, widgets.RadioButtons)
    assert radio.value is None and {value for _, value in radio.options} == {"sums", "mean", "replaces"}
    press(view, "answer")
    assert said(view) == "Give an answer first." and quiz.given("small-choice") is None
    radio.value = "mean"
    press(view, "answer")
    assert said(view) == "✗ Not right. Nobody divides <u>here</u>; you do."
    assert "not right" in text_of(view._head.value)
    radio.value = "sums"
    press(view, "answer")
    assert said(view).startswith("✓ Right. Yes;") and "practice" in said(view)
    given = quiz.given("small-choice")
    assert given is not None and given.value == "mean"


def test_several_are_ticked(quiz: Quiz) -> None:
    view = single(quiz, "small-multiple")
    boxes = {box.description: box for box in every(view._place) if isinstance(box, widgets.Checkbox)}
    assert set(boxes) == {"The update", "zero_grad", "The forward", "The backward"}
    press(view, "answer")
    assert said(view) == "Give an answer first."
    for name in ("The update", "zero_grad", "The forward"):
        boxes[name].value = True
    press(view, "answer")
    assert "◐ Partly right: 50%." in said(view) and "✗ Every micro-batch has its own forward." in said(view)
    assert "partly right" in text_of(view._head.value)


def test_a_number_is_typed(quiz: Quiz) -> None:
    view = single(quiz, "small-number")
    field = one(view, widgets.Text)
    assert field.description == "Your answer, in examples:"
    drawn = quiz.variables("small-number")
    field.value = "many"
    press(view, "answer")
    assert said(view).startswith("○ Not an answer yet. 'many' is not a number")
    assert quiz.given("small-number") is None
    field.value = f"{drawn['b'] * drawn['n']} voorbeelden"
    press(view, "answer")
    assert said(view).startswith("✓ Right.")


def test_a_line_is_picked_in_a_listing_that_is_shown_as_text(quiz: Quiz) -> None:
    view = single(quiz, "small-spot")
    listing, choice = one(view, widgets.HTML), one(view, widgets.Dropdown)
    assert "<script>" not in listing.value and "# <script>alert(1)</script>" in text_of(listing.value)
    assert "5 if index % n < 1:" in text_of(listing.value) and choice.index == 0
    assert choice.options[0][0] == "choose a line"
    assert [value for _, value in choice.options[1:]] == [1, 2, 3, 5, 6]  # an empty line has no fault
    assert choice.options[3][0] == "line 3: " + "\u00a0" * 4 + "loss.backward()"
    press(view, "answer")
    assert said(view) == "Give an answer first." and quiz.given("small-spot") is None
    choice.value = 3
    press(view, "answer")
    assert said(view) == "✗ Not right. backward belongs there."


@pytest.fixture
def next_cell(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What is shown from here on is in a cell below."""
    numbers = count()

    def move_on() -> None:
        monkeypatch.setattr("gradacc_lessons.cell.running_cell", partial(str, next(numbers)))

    return move_on


def test_a_prediction_is_made_in_the_middle_of_a_lesson(quiz: Quiz, next_cell: Callable[[], None]) -> None:
    view = single(quiz, "small-predict")
    next_cell()
    assert view.buttons["answer"].description == "Predict" and shown(view) == {"answer"}
    one(view, widgets.Text).value = "47"
    press(view, "answer")
    assert "You predict 47 updates" in said(view) and quiz.prediction("small-predict") == 47.0
    assert "prediction made: 47 updates" in text_of(view._head.value)
    assert one(single(quiz, "small-predict"), widgets.Text).value == "47"
    quiz.measured("small-predict", 48)  # in a cell below
    assert said(view) == "✓ Right. 47 it is, measured 48." and shown(view) == set()
    assert "you predicted 47 updates, measured: 48 updates" in text_of(view._head.value)
    opened_later = single(quiz, "small-predict")
    assert said(opened_later) == said(view) and shown(opened_later) == set()
    guess = single(quiz, "small-guess")
    one(guess, widgets.RadioButtons).value = "mean"
    press(guess, "answer")
    assert quiz.prediction("small-guess") == "mean"
    assert one(single(quiz, "small-guess"), widgets.RadioButtons).value == "mean"


def test_a_function_is_checked_where_the_notebook_has_it(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    cells: dict[str, Any] = {}
    monkeypatch.setattr(fields, "_from_notebook", cells.get)
    view = single(quiz, "small-code")
    assert view.buttons["answer"].description == "Check updates_per_epoch"
    assert "raise NotImplementedError" in text_of(one(view, widgets.HTML).value)
    assert "as often as you like: nothing is lost" in text_of(one(view, widgets.HTML).value)
    press(view, "answer")
    assert "no function updates_per_epoch in this notebook yet" in said(view)
    for source, expected in (
        (UPDATES_PER_EPOCH.starter, "still as it was given"),
        (UPDATES_PER_EPOCH.wrong[0].source, "full windows only"),
        (UPDATES_PER_EPOCH.solution, "✓ Right. 3 of 3 visible checks hold."),
    ):
        cells["updates_per_epoch"] = build(source, "updates_per_epoch")
        press(view, "answer")
        view.wait(60)
        assert expected in said(view)
    press(view, "solution")
    assert "math.ceil" in said(view) and quiz.result().points == 3


def test_functions_are_looked_up_in_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    assert fields._from_notebook("f") is None  # no notebook at all
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    shell.run_cell("def f(): return 5")
    assert fields._from_notebook("f")() == 5 and fields._from_notebook("g") is None


def test_who_joins_a_class_in_mid_quiz_is_shown_its_numbers_before_they_are_graded(quiz: Quiz) -> None:
    view = single(quiz, "small-number")
    before, code = quiz.variables("small-number"), 0
    while quiz.variables("small-number") == before:  # by chance a class has the same ones
        Progress(quiz.progress.file).join(f"code {code}")  # another process
        code += 1
    one(view, widgets.Text).value = str(before["b"] * before["n"])
    press(view, "answer")
    drawn = quiz.variables("small-number")
    assert quiz.given("small-number") is None
    assert f"Micro-batches of {drawn['b']}, N = {drawn['n']}." in text_of(view._ask.value)
    one(view, widgets.Text).value = str(drawn["b"] * drawn["n"])
    press(view, "answer")
    assert said(view).startswith("✓ Right.")
    Progress(quiz.progress.file).join("later")
    assert quiz.variables("small-number") == drawn  # this take has begun


# Hints, solutions, moving on


def test_hints_come_one_by_one_and_stay(quiz: Quiz) -> None:
    view = single(quiz, "small-choice")
    for expected in (1, 2, 2):
        press(view, "hint")
        assert text_of(view._notes.value).count("Hint ") == expected
    assert "Look at <.grad> in between." in text_of(view._notes.value)


def test_only_the_buttons_that_do_something_are_shown(view: QuizView) -> None:
    assert shown(view) == {"answer", "hint", "next"}
    one(view, widgets.RadioButtons).value = "sums"
    press(view, "answer")
    assert shown(view) == {"answer", "hint", "next", "solution"}
    press(view, "solution")
    assert said(view) == "Solution: It adds the gradient to it."
    press(view, "next")
    assert shown(view) == {"answer", "previous", "next"} and said(view) == ""
    view.go(4)
    assert view.buttons["next"].description == "Result" and "solution" in shown(view)
    press(view, "next")
    assert shown(view) == {"previous", "retake"}
    press(view, "previous")
    assert view.question is not None and view.question.id == "small-code"
    view.go(-3)
    assert view.index == 0
    view.go(99)
    assert view.question is None


def test_the_whole_quiz_from_the_first_question_to_a_retake(view: QuizView, quiz: Quiz) -> None:
    quiz.answer("small-code", build(UPDATES_PER_EPOCH.solution, "updates_per_epoch"))
    one(view, widgets.RadioButtons).value = "sums"
    press(view, "answer")
    press(view, "next")
    for box in every(view._place):
        if isinstance(box, widgets.Checkbox):
            box.value = box.description in ("The update", "zero_grad")
    press(view, "answer")
    press(view, "next")
    assert text_of(view._head.value) == "Small & <b>bold</b> · Question 3 of 5 · not answered yet"
    one(view, widgets.Text).value = "1"
    press(view, "answer")
    press(view, "next")
    one(view, widgets.Dropdown).value = 5
    press(view, "answer")
    press(view, "next")
    press(view, "next")
    assert "✓ Passed. 7 of 8 points (87%); 80% passes." in said(view) and "Read again: Backward adds." in said(view)
    press(view, "retake")
    assert quiz.take == 2 and view.index == 0 and one(view, widgets.RadioButtons).value is None
    assert "not answered yet" in text_of(view._head.value) and said(view) == ""


def test_it_opens_where_the_learner_stopped(quiz: Quiz) -> None:
    quiz.answer("small-choice", "sums")
    quiz.answer("small-multiple", ["step"])
    restarted = Quiz("90", bank_folder=BANKS, progress=Progress(quiz.progress.file))
    view = QuizView(restarted, KINDS)
    assert view.question is not None and view.question.id == "small-number"
    press(view, "previous")
    ticked = {box.description for box in every(view._place) if isinstance(box, widgets.Checkbox) and box.value}
    assert ticked == {"The update"} and "partly right" in text_of(view._head.value)
    for question_id, value in (("small-number", 1), ("small-spot", 5)):
        quiz.answer(question_id, value)
    quiz.answer("small-code", build(UPDATES_PER_EPOCH.solution, "updates_per_epoch"))
    finished = QuizView(restarted, KINDS)
    assert finished.question is None and "of 8 points" in said(finished)


# Languages


def test_the_language_is_switched_live_and_nothing_that_was_put_in_is_lost(view: QuizView, quiz: Quiz) -> None:
    one(view, widgets.RadioButtons).value = "mean"
    press(view, "answer")
    press(view, "hint")
    view._language.value = "nl"
    radio = one(view, widgets.RadioButtons)
    assert radio.value == "mean" and "Het telt de gradient erbij op." in dict(radio.options)
    assert said(view) == "✗ Niet goed. Niemand deelt <u>hier</u>; dat doe jij."
    assert "Hint 1 van 2: Roep het twee keer aan." in text_of(view._notes.value)
    assert text_of(view._head.value) == "Klein & <b>vet</b> · Vraag 1 van 5 · beantwoord: niet goed"
    assert [view.buttons[name].description for name in ("answer", "hint", "next")] == ["Antwoord", "Hint", "Volgende"]
    assert 'lang="nl"' in view._ask.value and quiz.progress.language == "nl"
    assert view._language.description == "Language / Taal"  # never changes: the switch would lose the focus
    view._language.value = "en"
    assert said(view).startswith("✗ Not right.") and one(view, widgets.RadioButtons).value == "mean"


@pytest.mark.parametrize("question_id", [*KINDS, "small-predict", "small-guess"])
def test_every_kind_survives_a_switch_with_its_answer(quiz: Quiz, question_id: str) -> None:
    value = {
        "small-choice": "mean", "small-multiple": ["step", "zero"], "small-number": "12", "small-spot": 3,
        "small-predict": "47", "small-guess": "peak", "small-code": None,
    }[question_id]  # fmt: skip
    view = single(quiz, question_id)
    assert view._field is not None
    view._field.set(value)
    view._language.value = "nl"
    now = view._field.value()
    assert (sorted(now) if isinstance(now, list) else now) == value
    english = quiz.prompt(question_id).en
    assert text_of(view._ask.value) != english and "lang" in view._ask.value


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_languages_name_every_control_and_button(quiz: Quiz, language: Any) -> None:
    quiz.language = language
    for question_id in [*KINDS, "small-predict", "small-guess"]:
        view = single(quiz, question_id)
        for widget in every(view.box):
            named = isinstance(widget, widgets.Text | widgets.Checkbox | widgets.Dropdown | widgets.Button)
            if named and widget.layout.display != "none":
                assert widget.description.strip()


def test_one_language_switch_reaches_every_panel(quiz: Quiz, next_cell: Callable[[], None]) -> None:
    asked, whole = single(quiz, "small-predict"), QuizView(quiz, KINDS)
    next_cell()
    other = QuizView(Quiz("90", bank_folder=BANKS, progress=quiz.progress), KINDS)
    one(whole, widgets.RadioButtons).value = "mean"
    asked._language.value = "nl"
    for view in (asked, whole, other):
        assert view._language.value == "nl" and 'lang="nl"' in view._ask.value
    assert one(whole, widgets.RadioButtons).value == "mean"
    other._language.value = "en"
    assert asked.buttons["answer"].description == "Predict" and asked._language.value == "en"


def test_an_answer_in_one_panel_is_known_in_the_others(quiz: Quiz) -> None:
    asked, whole = single(quiz, "small-choice"), QuizView(quiz, KINDS)
    one(asked, widgets.RadioButtons).value = "sums"
    press(asked, "answer")
    assert "answered: right" in text_of(whole._head.value) and "solution" in shown(whole)
    assert said(whole) == ""  # it was not answered here


def test_a_retake_in_one_panel_gives_the_others_their_new_numbers(quiz: Quiz, next_cell: Callable[[], None]) -> None:
    asked, whole = single(quiz, "small-number"), QuizView(quiz, KINDS)
    next_cell()
    finished = single(quiz, "small-choice")
    one(finished, widgets.RadioButtons).value = "mean"
    press(finished, "answer")
    before = dict(quiz.variables("small-number"))
    one(asked, widgets.Text).value = str(before["b"] * before["n"])
    press(asked, "answer")
    assert said(asked).startswith("✓ Right.")
    while quiz.variables("small-number") == before:  # a few learners draw the same numbers twice
        whole.go(len(KINDS))
        press(whole, "retake")
        if quiz.variables("small-number") == before:
            quiz.answer("small-choice", "mean")
    now = quiz.variables("small-number")
    assert text_of(asked._ask.value) == quiz.prompt("small-number").en
    assert str(now["b"]) in text_of(asked._ask.value) and one(asked, widgets.Text).value == ""
    assert "not answered yet" in text_of(asked._head.value) and said(asked) == ""
    assert one(finished, widgets.RadioButtons).value is None and said(finished) == ""
    one(asked, widgets.Text).value = str(now["b"] * now["n"])
    press(asked, "answer")
    assert said(asked).startswith("✓ Right.")


def test_an_answer_to_the_numbers_of_an_earlier_take_is_not_graded(quiz: Quiz) -> None:
    view = single(quiz, "small-number")
    elsewhere = Quiz("90", bank_folder=BANKS, progress=Progress(quiz.progress.file))  # another notebook
    elsewhere.answer("small-choice", "mean")
    assert elsewhere.retake() == 2
    one(view, widgets.Text).value = "12"
    press(view, "answer")
    assert quiz.given("small-number") is None and one(view, widgets.Text).value == ""
    assert text_of(view._ask.value) == quiz.prompt("small-number").en
    one(view, widgets.Text).value = "12"
    press(view, "answer")
    assert quiz.given("small-number") is not None


def test_a_panel_that_fails_says_so_itself_and_all_others_are_told(
    quiz: Quiz, next_cell: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("<broken>")

    failing = single(quiz, "small-multiple")
    monkeypatch.setattr(failing, "_draw_outcome", broken)
    quiz.progress.on_change(broken)  # one without a guard of its own
    last = single(quiz, "small-spot")
    next_cell()
    answering = single(quiz, "small-choice")
    quiz.answer("small-spot", 5)
    one(answering, widgets.RadioButtons).value = "sums"
    press(answering, "answer")
    assert said(answering).startswith("✓ Right.") and quiz.given("small-choice") is not None
    assert "RuntimeError: <broken>" in said(failing)
    assert "answered: right" in text_of(last._head.value)


def test_a_cell_that_is_run_again_leaves_no_panel_behind_that_follows(
    quiz: Quiz, next_cell: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    next_cell()
    drawn: list[QuizView] = []
    draw = QuizView._draw_outcome
    monkeypatch.setattr(QuizView, "_draw_outcome", lambda view: (drawn.append(view), draw(view)))
    views = [single(quiz, "small-choice") for _ in range(40)]
    quiz.answer("small-choice", "sums")
    assert set(drawn) == {views[-1]} and len(quiz.progress._told) == 1
    one(views[0], widgets.RadioButtons).value = "mean"
    press(views[0], "answer")  # wherever it may still be shown, it works
    assert "✗ Not right." in said(views[0])


def test_panels_that_are_used_at_the_same_time_do_not_wait_for_one_another(quiz: Quiz) -> None:
    views = [single(quiz, "small-predict") for _ in range(2)]

    def use(view: QuizView) -> None:
        for number in range(10):
            view._language.value = ("en", "nl")[number % 2]
            one(view, widgets.Text).value = str(number)
            view.buttons["answer"].click()

    threads = [Thread(target=use, args=(view,), daemon=True) for view in views]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert quiz.prediction("small-predict") == 9.0


# Enter


def enter(field: widgets.Text, typed: str | None = None) -> None:
    """What the browser sends when Enter is pressed: the key, and then the text if it is new."""
    field._handle_msg({"content": {"data": {"method": "custom", "content": {"event": "submit"}}}, "buffers": []})
    if typed is not None:
        field.value = typed


def test_enter_answers_with_the_number_that_was_typed(quiz: Quiz) -> None:
    view = single(quiz, "small-number")
    field = one(view, widgets.Text)
    assert field.continuous_update is False
    field.value = "1"  # the field was left: that is no answer
    sleep(2 * SECONDS_AFTER_ENTER)
    assert said(view) == "" and quiz.given("small-number") is None
    enter(field, "12")
    given = quiz.given("small-number")
    assert given is not None and given.value == "12"
    answers = len(quiz.progress.answers(quiz.lesson))
    field.value = "13"
    sleep(2 * SECONDS_AFTER_ENTER)
    assert len(quiz.progress.answers(quiz.lesson)) == answers  # one Enter, one answer


def test_enter_answers_with_a_number_that_was_typed_before(quiz: Quiz) -> None:
    view = single(quiz, "small-number")
    field = one(view, widgets.Text)
    field.value = "12"
    enter(field)
    enter(field)
    deadline = monotonic() + 20
    while quiz.given("small-number") is None and monotonic() < deadline:
        sleep(0.01)
    sleep(2 * SECONDS_AFTER_ENTER)
    assert [answer.value for answer in quiz.progress.answers(quiz.lesson)] == ["12"]


@pytest.mark.parametrize("enter_first", [True, False])
def test_enter_and_a_click_at_once_are_one_answer(quiz: Quiz, enter_first: bool) -> None:
    view = single(quiz, "small-number")
    field = one(view, widgets.Text)
    field.value = "12"
    acts = [lambda: enter(field), lambda: press(view, "answer")]
    for act in acts if enter_first else reversed(acts):
        act()
    sleep(3 * SECONDS_AFTER_ENTER)
    assert [answer.value for answer in quiz.progress.answers(quiz.lesson)] == ["12"]
    assert "practice" not in said(view)
    enter(field)
    sleep(3 * SECONDS_AFTER_ENTER)
    assert "practice" in said(view)


def test_on_a_slow_disk_too_a_click_and_enter_are_one_answer(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = quiz.answer

    def slowly(question: str, value: Any) -> Any:
        sleep(2 * SECONDS_AFTER_ENTER)
        return kept(question, value)

    monkeypatch.setattr(quiz, "answer", slowly)
    view = single(quiz, "small-number")
    field = one(view, widgets.Text)
    field.value = "12"
    press(view, "answer")
    enter(field)
    sleep(3 * SECONDS_AFTER_ENTER)
    assert [answer.value for answer in quiz.progress.answers(quiz.lesson)] == ["12"]


def test_enter_right_after_a_click_answers_if_another_number_was_typed(quiz: Quiz) -> None:
    view = single(quiz, "small-number")
    field = one(view, widgets.Text)
    field.value = "12"
    press(view, "answer")
    enter(field, "13")
    assert [answer.value for answer in quiz.progress.answers(quiz.lesson)] == ["12", "13"]


def test_enter_is_not_an_answer_to_the_next_question(quiz: Quiz) -> None:
    view = QuizView(quiz, ["small-number", "small-predict"])
    enter(one(view, widgets.Text))
    press(view, "next")
    sleep(2 * SECONDS_AFTER_ENTER)
    assert said(view) == ""


# A check that takes long

SLOW = """
def updates_per_epoch(examples, micro_batch_size, accumulation_steps):
    import os, time
    while not os.path.exists({gate!r}):
        time.sleep(0.01)
    return -(-examples // (micro_batch_size * accumulation_steps))
"""


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The notebook has a function that comes back when this file is there."""
    path = tmp_path / "gate"
    monkeypatch.setattr("gradacc_lessons.quiz.call_in_child.TIME_LIMIT", 60.0)
    slow = build(SLOW.format(gate=str(path)), "updates_per_epoch")
    monkeypatch.setattr(fields, "_from_notebook", {"updates_per_epoch": slow}.get)
    return path


def test_a_check_blocks_no_control_no_second_view_and_no_second_notebook(quiz: Quiz, gate: Path) -> None:
    view = single(quiz, "small-code")
    press(view, "answer")
    assert said(view) == "Checking …"  # the button came back, and the function cannot until the gate is there
    with pytest.raises(TimeoutError, match="still going"):
        view.wait(0.01)
    press(view, "answer")  # pressed again: still one check
    press(view, "hint")
    assert "Hint 1 of 2" in text_of(view._notes.value) and said(view) == "Checking …"
    view._language.value = "nl"
    assert said(view) == "Aan het nakijken …"
    second = QuizView(Quiz("90", bank_folder=BANKS, progress=Progress(quiz.progress.file)), KINDS)
    one(second, widgets.RadioButtons).value = "sums"
    press(second, "answer")
    assert said(second).startswith("✓ Goed.")
    second.go(4)  # draws a question about code, while the process that checks code is busy
    assert "raise NotImplementedError" in text_of(one(second, widgets.HTML).value)
    assert not gate.exists() and said(view) == "Aan het nakijken …"
    gate.touch()
    view.wait(60)
    assert said(view).startswith("✓ Goed. 3 van 3") and "beantwoord: goed" in text_of(view._head.value)
    assert len([answer for answer in quiz.progress.answers(quiz.lesson) if answer.question == "small-code"]) == 1


def test_a_check_that_ends_while_something_else_is_shown_is_said_on_return(quiz: Quiz, gate: Path) -> None:
    view = QuizView(quiz, KINDS)
    view.go(4)
    press(view, "answer")
    press(view, "solution")
    assert "math.ceil" in said(view)
    press(view, "previous")
    assert said(view) == ""
    press(view, "next")
    assert said(view) == "Checking …"
    press(view, "next")
    assert "0 of 8 points" in said(view)
    gate.touch()
    view.wait(60)
    assert "3 of 8 points" in said(view)
    press(view, "previous")
    assert "3 of 3 visible checks hold" in said(view) and "answered: right" in text_of(view._head.value)


def test_a_check_counts_in_the_take_in_which_it_was_asked_for(quiz: Quiz, gate: Path) -> None:
    quiz.answer("small-choice", "sums")
    view = single(quiz, "small-code")
    press(view, "answer")
    assert quiz.retake() == 2
    gate.touch()
    view.wait(60)
    assert [take.points for take in quiz.progress.takes(quiz.lesson)] == [4.0, 0.0]


def test_an_error_in_a_check_is_shown_and_not_lost(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "_from_notebook", {"updates_per_epoch": len}.get)

    def broken(*_: Any) -> None:
        raise RuntimeError("<broken>")

    monkeypatch.setattr(quiz, "answer", broken)
    view = single(quiz, "small-code")
    press(view, "answer")
    view.wait(60)
    assert "RuntimeError: <broken>" in said(view) and "Your earlier answers are kept" in said(view)


# Safety


def test_texts_of_a_bank_are_never_markup(quiz: Quiz) -> None:
    for question_id in [*KINDS, "small-predict", "small-guess"]:
        for language in LANGUAGES:
            quiz.language = language
            view = single(quiz, question_id)
            for name in ("hint", "answer"):
                if name in shown(view):
                    view.buttons[name].click()
            for widget in every(view.box):
                if isinstance(widget, widgets.HTML) and not widget.value.startswith("<style>"):
                    tags = set(re.findall(r"</?([a-z]+)", widget.value))
                    assert tags <= {"div", "pre", "code", "br", "span"}, widget.value


def test_descriptions_are_escaped_and_their_code_is_set_as_code(quiz: Quiz) -> None:
    box = widgets.Checkbox(**fields.described("`N` < 4 & b"))
    assert box.description == "<code>N</code> &lt; 4 &amp; b"
    if widgets.__version__.startswith("8."):
        assert box.description_allow_html  # 7 needs no leave
    for question_id in [*KINDS, "small-predict"]:
        for widget in every(single(quiz, question_id).box):
            if isinstance(widget, widgets.Text | widgets.Checkbox | widgets.Dropdown):
                assert set(re.findall(r"</?([a-z]+)", widget.description)) <= {"code"}


def test_only_widgets_of_both_versions_are_used(quiz: Quiz) -> None:
    for question_id in [*KINDS, "small-predict", "small-guess"]:
        assert {type(widget).__name__ for widget in every(single(quiz, question_id).box)} <= IN_CORE_OF_BOTH


@pytest.mark.parametrize("name", ["answer", "hint", "solution", "next", "previous", "retake"])
def test_an_error_in_a_callback_is_shown_and_not_lost(view: QuizView, quiz: Quiz, name: str) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("<broken>")

    one(view, widgets.RadioButtons).value = "sums"
    for method in ("answer", "hint", "solution", "retake", "prompt", "result"):
        setattr(quiz, method, broken)
    if name == "next":
        view.index = 4
    if name == "retake":
        view.index = 5
    view.buttons[name].click()
    assert "RuntimeError: <broken>" in said(view) and "Your earlier answers are kept" in said(view)


def test_a_refusing_disk_is_said_in_the_view(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    quiz = Quiz("90", bank_folder=BANKS, progress=Progress(tmp_path / "file" / "progress.sqlite"))
    view = QuizView(quiz, KINDS)
    assert "cannot be saved" in said(view)
    one(view, widgets.RadioButtons).value = "sums"
    press(view, "answer")
    assert "✓ Right." in said(view) and said(view).count("cannot be saved") == 1


def test_what_is_said_has_its_place_before_anything_is_said(view: QuizView) -> None:
    """A screen reader announces what comes into a place that was there."""
    assert said(view) == "" and 'role="status"' in view._status.value
    assert view._status.layout.display is None and not re.search(r"gradacc-said[^}]*display: *none", STYLE)


def test_where_widgets_are_not_drawn_a_few_words_stand(view: QuizView) -> None:
    assert repr(view.box) == "Quiz 90_small: 5 questions. Run this cell to take it." and len(repr(view.box)) < 110


def test_moving_on_leaves_no_controls_behind(view: QuizView, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: set[str] = set()
    closed: set[str] = set()
    was_open, was_close = widgets.Widget.open, widgets.Widget.close

    def note_open(self: widgets.Widget) -> None:
        was_open(self)
        opened.add(self.model_id)

    def note_close(self: widgets.Widget) -> None:
        if self.comm is not None:
            closed.add(self.model_id)
        was_close(self)

    monkeypatch.setattr(widgets.Widget, "open", note_open)
    monkeypatch.setattr(widgets.Widget, "close", note_close)
    for index in (0, 2, 1, 3, 4, 0, 2):
        view.go(index)
    parts = [(widget, widget.layout, getattr(widget, "style", None)) for widget in every(view._place)]
    alive = {part.model_id for group in parts for part in group if part is not None}
    assert len(opened) > 40 and opened - closed - alive == set()
