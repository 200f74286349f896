"""A learner goes through lesson 04 in a real JupyterLab: a prediction, weights by keyboard, the trace of a tail."""

import pytest
from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

pytestmark = pytest.mark.long  # nbval runs its cells, tests/lessons its explorers
LESSON = "04_uneven_windows.ipynb"
CELLS = ("setup", "predict-ask", "explorer-weights", "explorer-tails", "quiz-show")
SIZE, STEPS, MICRO_BATCHES = "Micro-batch size b", "Accumulation steps N", "Micro-batches M"
WEIGHTS_PICTURE, TAILS_PICTURE = "the tokens of the first window side by side", "what .grad holds after each"


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_prediction_brings_the_windows_and_is_drawn_over_them(lesson):
    lesson.outputs().get_by_label("Your answer, in %:", exact=True).first.fill("20")
    lesson.page.keyboard.press("Enter")
    lesson.says("You predicted 20 %, for b = 1 and N = 8.")
    assert "You predicted 20 %" in lesson.picture(WEIGHTS_PICTURE).get_attribute("alt")


def test_by_keyboard_another_b_is_measured_and_tokens_bring_it_home(lesson):
    lesson.outputs().get_by_label("The model", exact=True).select_option(label="untrained")
    lesson.says("b = 1, N = 8, mean of means: over 20 windows the gradient of an untrained model")
    before = lesson.drawn(WEIGHTS_PICTURE)
    lesson.slider(SIZE).press("ArrowRight")
    lesson.says("b = 2, N = 8, mean of means: over 20 windows")
    lesson.outputs().get_by_label("Micro-batches weigh", exact=True).select_option(label="by their tokens")
    lesson.says(
        "b = 2, N = 8, weighted by tokens: in 20 windows the gradient of an untrained model is the full batch's"
    )
    assert lesson.drawn(WEIGHTS_PICTURE) != before


def test_a_window_that_takes_long_is_refused_in_a_sentence(lesson):
    field = lesson.number_field(f"{SIZE} (number)")
    field.fill("16")
    field.press("Enter")
    lesson.number_field(f"{STEPS} (number)").fill("16")
    lesson.page.keyboard.press("Enter")
    lesson.says("16 x 16 = 256 conversations per window")


def test_the_tail_is_traced(lesson):
    before = lesson.drawn(TAILS_PICTURE)
    lesson.outputs().get_by_label("The short window is", exact=True).select_option(label="divided by N")
    lesson.says("the updates apply 1, 1, 0.5, 1, 1, 0.5, where 1, 1, 1, 1, 1, 1 is right.")
    lesson.slider(MICRO_BATCHES).press("ArrowRight")
    lesson.says("M = 11, N = 4, 3 micro-batches in the last window")
    assert lesson.drawn(TAILS_PICTURE) != before


def test_a_wrong_answer_is_told_which_mistake_it_is(lesson):
    quiz = QuizPanel(lesson)
    short, long = (float(words.split()[-1]) for words in quiz.text().split(" tokens that count")[0].split(" and "))
    assert "The other way round" in quiz.answer_number(short / long)
    assert "Right" in quiz.answer_number(long / short)
