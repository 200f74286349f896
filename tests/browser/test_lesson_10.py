"""A learner goes through lesson 10 in a real JupyterLab: a prediction, a plane of points, a plan beside other rules."""

from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

LESSON = "10_fit_a_budget.ipynb"
CELLS = ("setup", "checkpoint-predict", "plane-explorer", "tuners-explorer", "quiz-show")
SIZE, STEPS, TARGET, BUDGET = "Micro-batch size b", "Accumulation steps N", "Target (examples)", "Budget (MiB)"
PLANE = 0  # the explorer, from the top of the page
PLANE_PICTURE, PLANNER_PICTURE = "Time of one update", "one line for the plan"


def type_number(lesson, label, explorer, number):
    """Fill the field beside a slider."""
    field = lesson.number_field(f"{label} (number)", explorer)
    field.fill(str(number))
    field.press("Enter")


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_prediction_brings_the_points_and_is_drawn_over_them(lesson):
    lesson.outputs().get_by_label("Your answer:", exact=True).first.fill("1.9")
    lesson.page.keyboard.press("Enter")
    lesson.says("You predicted 1.9 times.")
    assert "You predicted 1.9 times" in lesson.picture(PLANE_PICTURE).get_attribute("alt")


def test_another_window_is_cut_and_timed(lesson):
    before = lesson.drawn(PLANE_PICTURE)
    type_number(lesson, STEPS, PLANE, 1)
    lesson.says("b = 10, N = 1: ")
    lesson.until(lambda: lesson.drawn(PLANE_PICTURE) != before, "another picture")


def test_a_window_too_large_to_time_is_refused_in_a_sentence(lesson):
    type_number(lesson, STEPS, PLANE, 16)
    lesson.says("10 x 16 = 160 examples per update take long to time")


def test_another_budget_brings_another_plan(lesson):
    lesson.says("Target 40 examples, budget 48 MiB: the plan is 1 of 14 and 2 of 13 (N = 3)")
    before = lesson.drawn(PLANNER_PICTURE)
    lesson.slider(BUDGET).drag(0.0)
    lesson.says("budget 14 MiB: no window of 40 fits.")
    assert lesson.drawn(PLANNER_PICTURE) != before


def test_by_keyboard_another_target_is_reached_exactly(lesson):
    type_number(lesson, BUDGET, 0, 48)
    lesson.says("Target 40 examples, budget 48 MiB: the plan is")
    lesson.slider(TARGET).press("ArrowRight")
    lesson.says("Target 41 examples, budget 48 MiB: the plan is 2 of 14 and 1 of 13 (N = 3)")


def test_the_quiz_answers(lesson):
    assert "Question 1 of" in QuizPanel(lesson).text()
