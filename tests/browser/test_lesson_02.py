"""A learner goes through lesson 02 in a real JupyterLab: the missing 1/N, optimizers that hide it, a fault chooser."""

import re

import pytest
from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

pytestmark = pytest.mark.long  # nbval runs its cells, tests/lessons its explorers
LESSON = "02_scale_the_loss.ipynb"
CELLS = ("setup", "predict", "explorer-scale", "explorer-adam", "explorer-faults", "quiz-show")
SIZE, STEPS = "Micro-batch size b", "Accumulation steps N"
SCALE, OPTIMIZERS, FAULTS = 0, 1, 2  # the explorers, from the top of the page
SCALE_PICTURE, FAULT_PICTURE = "laid tip to tail", "a blue ring where it belongs"
UPDATES = 80


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_it_runs_without_a_prediction_if_the_learner_wants_it(lesson):
    button = lesson.button("Run without a prediction")
    button.focus()
    lesson.page.keyboard.press("Enter")
    lesson.says("b = 8, N = 8, each loss divided by nothing: the gradient is 8 times as long as the full batch's")
    lesson.until(lambda: button.count() == 0, "the button runs it again from now on")


def test_by_keyboard_the_gradient_is_n_times_too_long_for_the_new_n(lesson):
    before, slider = lesson.drawn(SCALE_PICTURE), lesson.slider(STEPS, SCALE)
    slider.press("ArrowRight")
    assert lesson.until(lambda: slider.value == 9, "the slider moves")
    lesson.says("b = 8, N = 9, each loss divided by nothing: the gradient is 9 times as long as the full batch's")
    assert lesson.drawn(SCALE_PICTURE) != before
    assert lesson.number_field(f"{STEPS} (number)", SCALE).input_value() == "9"


def test_by_mouse_too_whatever_the_micro_batch_size(lesson):
    lesson.slider(STEPS, SCALE).drag(1.0)
    lesson.says("b = 8, N = 32, each loss divided by nothing: the gradient is 32 times as long")
    lesson.slider(SIZE, SCALE).drag(0.0)
    lesson.says("b = 1, N = 32, each loss divided by nothing: the gradient is 32 times as long")


def test_dividing_by_n_makes_it_right(lesson):
    lesson.outputs().get_by_label("Each loss divided by", exact=True).select_option(label="N (right)")
    lesson.says("each loss divided by N: the gradient is as long as the full batch's and points the same way")


@pytest.mark.long  # lesson 01 does it each time
def test_a_slider_moved_during_training_stops_the_older_run(lesson):
    field = lesson.number_field(f"{SIZE} (number)", OPTIMIZERS)
    field.fill("32")
    field.press("Enter")
    lesson.until(lambda: 2 <= trained(lesson, "b = 32, N = 16") < UPDATES, "a run goes on and is not done")
    lesson.slider(STEPS, OPTIMIZERS).press("ArrowLeft")
    lesson.until(lambda: 1 <= trained(lesson, "b = 32, N = 15") < UPDATES, "the newer run goes on instead")
    lesson.until(lambda: trained(lesson, "b = 32, N = 15") == UPDATES, "the newer run goes to its end")
    assert trained(lesson, "b = 32, N = 16") == 0


def trained(lesson, cut):
    """How many updates of that cut the live picture shows; the static twin's sentence comes after the live one."""
    live = next(line for line in lesson.text_in_outputs().splitlines() if "updates the right run's loss" in line)
    return int(re.search(r"after (\d+) updates", live)[1]) if f"{cut}:" in live else 0


def test_a_chosen_fault_shows_its_loop_and_is_named(lesson):
    choice = lesson.outputs().get_by_label("Mistake", exact=True).last
    titles = choice.locator("option").all_inner_texts()
    assert len(titles) >= 16
    before = lesson.drawn(FAULT_PICTURE)
    choice.select_option(index=1)
    lesson.until(lambda: lesson.drawn(FAULT_PICTURE) != before, "the picture changes")
    choice.select_option(index=0)
    lesson.until(lambda: "diagnose says: " in fault_sentence(lesson), "the fault is diagnosed")


def fault_sentence(lesson):
    """The live sentence of the fault chooser, under its picture."""
    return lesson.picture(FAULT_PICTURE).get_attribute("alt")


def test_a_wrong_answer_is_told_which_mistake_it_is_and_a_right_one_that_it_is_right(lesson):
    quiz = QuizPanel(lesson)
    n, rate = map(float, re.search(r"N = (\d+) and plain SGD with learning rate ([\d.]+);", quiz.text()).groups())
    assert "That would make up for dividing twice" in quiz.answer_number(rate / n)
    assert "Right" in quiz.answer_number(rate * n)


@pytest.mark.long  # lesson 01 does it each time
def test_after_a_restart_of_the_kernel_the_answers_are_still_there(lesson):
    lesson.restart_kernel()
    lesson.run_cells("setup", "predict", "quiz-show")
    quiz = QuizPanel(lesson)
    assert "Question 2 of" in quiz.text()
    quiz.press("Previous")
    lesson.until(lambda: "answered: not right" in quiz.text(), "the first question is shown with its answer")
    lesson.until(lambda: quiz.number().input_value() != "", "the answer stands in its field")
    assert float(quiz.number().input_value()) > 0
