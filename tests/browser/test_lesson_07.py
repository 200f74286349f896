"""A learner goes through lesson 07 in a real JupyterLab: a timeline, a prediction, a schedule, a wrong answer."""

import re

import pytest
from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

pytestmark = pytest.mark.long  # nbval runs its cells, tests/lessons its explorers
LESSON = "07_once_per_window.ipynb"
CELLS = ("setup", "explorer-timeline", "predict-ask", "explorer-units", "quiz-show")
SIZE, STEPS = "Micro-batch size b", "Accumulation steps N"
TIMELINE, UNITS = 0, 1  # the explorers, from the top of the page
TIMELINE_PICTURE, UNITS_PICTURE = "A timeline over the micro-batches", "the learning rate against the number of updates"


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_another_loop_is_traced_and_its_listing_shown(lesson):
    lesson.says("Micro-batches per update: 1, 1, 1, 1, 1, 1. Gradients zeroed within the window.")
    before = lesson.drawn(TIMELINE_PICTURE)
    lesson.outputs().get_by_label("Loop", exact=True).select_option(label="right: everything in its place")
    # The page has the right loop's words already, under the picture that stands beside the explorer.
    lesson.until(lambda: lesson.drawn(TIMELINE_PICTURE) != before, "the timeline is drawn anew")
    assert "the right loop: 20 micro-batches, 6 updates" in (
        lesson.picture(TIMELINE_PICTURE).get_attribute("alt") or ""
    )
    lesson.says("clip_grad_norm_(model.parameters(), max_norm)")


def test_by_keyboard_another_n_is_traced(lesson):
    lesson.slider(STEPS, TIMELINE).press("ArrowRight")
    lesson.says("b = 4, N = 5, the right loop: 20 micro-batches, 4 updates. Micro-batches per update: 5, 5, 5, 5.")


def test_a_prediction_brings_the_schedule_and_is_drawn_in_it(lesson):
    lesson.outputs().get_by_label("Your answer:", exact=True).first.fill("100")
    lesson.page.keyboard.press("Enter")
    lesson.says("its learning rate is highest at update 13, 100% of the planned, and 0 from update 30")
    assert "You predicted update 100." in (lesson.picture(UNITS_PICTURE).get_attribute("alt") or "")


def test_moved_once_per_update_it_is_the_plan(lesson):
    lesson.outputs().get_by_label("The schedule moves", exact=True).select_option(label="once per update: right")
    lesson.says("its learning rate is highest at update 100, 100% of the planned; the loss after 240 updates")


def test_a_wrong_answer_is_told_which_mistake_it_is(lesson):
    quiz = QuizPanel(lesson)
    asked = re.search(r"has (\d+) micro-batches of (\d+) images each, and N = (\d+)", quiz.text())
    assert asked is not None
    m, b, n = map(int, asked.groups())
    assert "That is how many are thrown away" in quiz.answer_number(b * m * (n - 1) / n)
    assert "Right" in quiz.answer_number(b * m / n)
