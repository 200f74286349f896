"""A learner goes through lesson 06 in a real JupyterLab: a prediction, pairs that meet or not, verdicts, a mistake."""

import pytest
from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

pytestmark = pytest.mark.long  # nbval runs its cells, tests/lessons its explorers
LESSON = "06_not_a_sum.ipynb"
CELLS = ("setup", "predict-ask", "explorer-pairs", "explorer-losses", "quiz-show")
SIZE, STEPS = "Micro-batch size b", "Accumulation steps N"
PAIRS, VERDICT = 0, 1  # the explorers, from the top of the page
PAIRS_PICTURE, VERDICT_PICTURE = "a row for the first view of each pair", "A horizontal bar for each parameter"


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_prediction_brings_the_pairs_and_is_drawn_over_them(lesson):
    lesson.outputs().get_by_label("Your answer, in %:", exact=True).first.fill("40")
    lesson.page.keyboard.press("Enter")
    lesson.says("You predicted 40 % for 32 pairs in 4 micro-batches.")
    assert "You predicted 40 %" in lesson.picture(PAIRS_PICTURE).get_attribute("alt")


def test_by_keyboard_another_n_makes_other_blocks(lesson):
    before = lesson.drawn(PAIRS_PICTURE)
    lesson.slider(STEPS, PAIRS).press("ArrowRight")
    lesson.says("b = 8, N = 5, one backward per micro-batch: each of 40 pairs meets 7 of its 39 negatives.")
    assert lesson.drawn(PAIRS_PICTURE) != before


def test_grad_cache_lets_all_meet(lesson):
    lesson.outputs().get_by_label("Way to accumulate", exact=True).first.select_option(label="GradCache")
    lesson.says("GradCache: each of 40 pairs meets 39 of its 39 negatives.")
    lesson.says("The gradient is the full batch's, to rounding.")


def test_another_loss_gets_another_verdict(lesson):
    lesson.says("InfoNCE, b = 8, N = 4. It does not add up")
    before = lesson.drawn(VERDICT_PICTURE)
    lesson.outputs().get_by_label("Loss or model", exact=True).first.select_option(label="a model with LayerNorm")
    lesson.says("a model with LayerNorm, b = 8, N = 4. It adds up")
    assert lesson.drawn(VERDICT_PICTURE) != before


def test_a_model_that_cannot_run_on_one_example_is_a_sentence(lesson):
    lesson.outputs().get_by_label("Loss or model", exact=True).first.select_option(label="a model with BatchNorm")
    lesson.slider(SIZE, VERDICT).press("ArrowLeft", 7)
    lesson.says("a model with BatchNorm, b = 1, N = 4. It cannot be examined")


def test_a_wrong_answer_is_told_which_mistake_it_is(lesson):
    quiz = QuizPanel(lesson)
    assert "trains with InfoNCE at b = 1 and N = 512" in quiz.text()
    said = quiz.pick("The temperature is too low for so small a batch.")
    assert "Temperature stretches the differences" in said
