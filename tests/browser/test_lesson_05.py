"""A learner goes through lesson 05 in a real JupyterLab: a prediction, another cut, running statistics, a mistake."""

import re

from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

LESSON = "05_batch_norm.ipynb"
CELLS = ("setup", "predict-ask", "explorer-norms", "explorer-statistics", "quiz-show")
SIZE, STEPS = "Micro-batch size b", "Accumulation steps N"
NORMS, STATISTICS = 0, 1  # the explorers, from the top of the page
NORMS_PICTURE, STATISTICS_PICTURE = "the cosine between the accumulated gradient", "how far the running mean (left)"


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_prediction_brings_the_picture_and_is_drawn_in_it(lesson):
    lesson.outputs().get_by_label("Your answer:", exact=True).first.fill("0.6")
    lesson.page.keyboard.press("Enter")
    lesson.says("You predicted a cosine of 0.6 for b = 2.")
    assert "You predicted a cosine of 0.6" in lesson.picture(NORMS_PICTURE).get_attribute("alt")


def test_by_keyboard_another_cut_is_trained(lesson):
    lesson.says("After 5 of 5 epochs")
    before = lesson.drawn(NORMS_PICTURE)
    lesson.slider(SIZE, NORMS).press("ArrowRight")
    lesson.says("MLP with BatchNorm, b = 3, N = 32, shuffled: after 3 epochs the accumulated gradient has a cosine of")
    assert lesson.drawn(NORMS_PICTURE) != before


def test_another_norm_has_the_full_batchs_gradient(lesson):
    lesson.outputs().get_by_label("Norm", exact=True).first.select_option(label="GroupNorm")
    lesson.says("has a cosine of 1.00 with the full batch's, and differs from it by less than 1e-12 of its length")


def test_one_value_per_mean_is_refused_in_a_sentence(lesson):
    lesson.outputs().get_by_label("Norm", exact=True).first.select_option(label="BatchNorm")
    field = lesson.number_field(f"{SIZE} (number)", NORMS)
    field.fill("1")
    field.press("Enter")
    lesson.says("with b = 1 every micro-batch is 1 image")


def test_the_running_statistics_follow_n(lesson):
    lesson.says("b = 8, N = 8, momentum 0.1, shuffled: the newest window weighs 0.57 in the running statistics")
    before = lesson.drawn(STATISTICS_PICTURE)
    lesson.slider(STEPS, STATISTICS).press("ArrowRight")
    lesson.says("b = 8, N = 9, momentum 0.1, shuffled: the newest window weighs 0.61 in the running statistics")
    assert lesson.drawn(STATISTICS_PICTURE) != before


def test_a_wrong_answer_is_told_which_mistake_it_is(lesson):
    quiz = QuizPanel(lesson)
    side, b, n = map(int, re.search(r"maps of (\d+) x \d+ pixels. With b = (\d+) and N = (\d+)", quiz.text()).groups())
    assert "One forward does not see the window." in quiz.answer_number(b * n * side * side)
    assert "Right" in quiz.answer_number(b * side * side)
