"""A learner goes through lesson 03 in a real JupyterLab: a prediction, bars that are measured, a budget, a choice."""

import pytest
from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

pytestmark = pytest.mark.long  # nbval runs its cells, tests/lessons its explorers
LESSON = "03_the_memory_wall.ipynb"
CELLS = ("setup", "predict-ask", "explorer-bytes", "explorer-budget", "quiz-show")
SIZE, STEPS, BUDGET = "Micro-batch size b", "Accumulation steps N", "Budget (MiB)"
BARS, LINE = 0, 1  # the explorers, from the top of the page
BARS_PICTURE, BUDGET_PICTURE = "Two panels of stacked bars", "a dashed orange line for the budget"


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_prediction_brings_the_bars_and_is_drawn_over_them(lesson):
    lesson.outputs().get_by_label("Your answer, in MiB:", exact=True).first.fill("98")
    lesson.page.keyboard.press("Enter")
    lesson.says("You predicted 98 MiB for b = 16.")
    assert "You predicted 98 MiB" in lesson.picture(BARS_PICTURE).get_attribute("alt")


def test_by_keyboard_another_b_is_measured(lesson):
    lesson.outputs().get_by_label("Tokens per example T", exact=True).first.select_option(label="32")
    lesson.says("b = 4, N = 2, AdamW, one tensor at a time, T = 32 tokens: the peak is")
    before = lesson.drawn(BARS_PICTURE)
    lesson.slider(SIZE, BARS).press("ArrowLeft")
    lesson.says("b = 3, N = 2, AdamW, one tensor at a time, T = 32 tokens: the peak is")
    assert lesson.drawn(BARS_PICTURE) != before


def test_the_budget_is_dragged_over_the_line(lesson):
    lesson.outputs().get_by_label("Tokens per example T", exact=True).last.select_option(label="32")
    lesson.says("Budget 64 MiB, AdamW, one tensor at a time, T = 32 tokens: every b up to 32 fits")
    before = lesson.drawn(BUDGET_PICTURE)
    lesson.slider(BUDGET).drag(0.0)
    lesson.says("Budget 8 MiB, AdamW, one tensor at a time, T = 32 tokens: not even b = 1 fits.")
    assert lesson.drawn(BUDGET_PICTURE) != before


def test_a_window_too_large_to_measure_is_refused_in_a_sentence(lesson):
    field = lesson.number_field(f"{STEPS} (number)", LINE)
    field.fill("32")
    field.press("Enter")
    lesson.says("16 x 32 = 512 examples per update take long to measure")


def test_a_wrong_answer_is_told_which_mistake_it_is(lesson):
    quiz = QuizPanel(lesson)
    assert "both times with the peak at the head of backward" in quiz.text()
    low, high = (float(words.split()[-1]) for words in quiz.text().split(" GiB at b = ")[:2])
    assert "Doubling the peak doubles parameters" in quiz.answer_number(2 * high)
    assert "Right" in quiz.answer_number(high + 2 * (high - low))
