"""A learner goes through lesson 08 in a real JupyterLab: a prediction, a sum by keyboard, a broken image moved."""

import re

import pytest
from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

pytestmark = pytest.mark.long  # nbval runs its cells, tests/lessons its explorers
LESSON = "08_mixed_precision.ipynb"
CELLS = ("setup", "predict-ask", "explorer-sum", "explorer-scaler", "quiz-show")
STEPS, BROKEN = "Accumulation steps N", "Broken micro-batch"
SUM_PICTURE, SCALER_PICTURE = "the relative error of the sum", "the loss scale in each window"


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_prediction_brings_the_sum_and_is_drawn_over_it(lesson):
    lesson.outputs().get_by_label("Your answer, in %:", exact=True).first.fill("10")
    lesson.page.keyboard.press("Enter")
    lesson.says("added up in bfloat16: the sum is 31 % off.")
    assert "You predicted 10 %" in lesson.picture(SUM_PICTURE).get_attribute("alt")


def test_by_keyboard_another_n_is_summed_and_a_float32_buffer_holds(lesson):
    before = lesson.drawn(SUM_PICTURE)
    lesson.slider(STEPS).press("ArrowLeft")
    lesson.says("511 equal pieces of 2,000 random entries")
    lesson.outputs().get_by_label("The sum is kept in", exact=True).select_option(label="float32")
    lesson.says("511 equal pieces of 2,000 random entries, added up in float32")
    assert lesson.drawn(SUM_PICTURE) != before


def test_a_broken_image_is_moved_and_another_loop_never_recovers(lesson):
    before = lesson.drawn(SCALER_PICTURE)
    lesson.slider(BROKEN).press("ArrowRight")
    lesson.says("micro-batch 3 of window 3 is broken. No update in window 3; the scale falls")
    lesson.outputs().get_by_label("The loop", exact=True).select_option(label="zero_grad only if there was an update")
    lesson.says("No update in windows 3, 4, 5, 6, 7, 8")
    assert lesson.drawn(SCALER_PICTURE) != before


def test_a_wrong_answer_is_told_which_mistake_it_is(lesson):
    quiz = QuizPanel(lesson)
    stands = re.search(r"A sum stands at ([\d,]+), which", quiz.text())
    assert stands is not None
    low = float(stands.group(1).replace(",", ""))
    assert "half the gap" in quiz.answer_number(low / 256)
    assert "Right" in quiz.answer_number(low / 128)
