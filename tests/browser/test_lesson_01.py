"""A learner goes through lesson 01 in a real JupyterLab: sliders, training, quiz, a kernel that is restarted."""

import re

from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

LESSON = "01_accumulate.ipynb"
CELLS = ("setup", "predict", "explorer-gradient", "explorer-training", "quiz-show")
SIZE, STEPS = "Micro-batch size b", "Accumulation steps N"
GRADIENT, TRAINING = 0, 1  # the explorers, from the top of the page
UPDATES = 100


def sentences(lesson):
    """Of each explorer, the sentence under its picture."""
    return [text for text in lesson.text_in_outputs().splitlines() if re.match(r"After \d+ (of|updates)", text)]


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_slider_moved_before_the_prediction_starts_the_run(lesson):
    assert "Predict first, above; or run without a prediction." in lesson.text_in_outputs()
    lesson.slider(STEPS, GRADIENT).press("ArrowRight")
    lesson.until(lambda: any("After 5 of 5" in text for text in sentences(lesson)), "five micro-batches are added")
    assert "Predict first, above; or run" not in lesson.text_in_outputs()


def test_by_keyboard_picture_sentence_and_number_change(lesson):
    slider, before = lesson.slider(SIZE, GRADIENT), lesson.drawn("Left: a dot")
    field = lesson.number_field(f"{SIZE} (number)", GRADIENT)
    assert field.input_value() == "8"
    slider.press("ArrowRight", times=2)
    lesson.until(lambda: field.input_value() == "10", "the number follows the slider")
    lesson.until(lambda: lesson.drawn("Left: a dot") != before, "the picture changes")


def test_by_mouse_the_sentence_follows(lesson):
    slider = lesson.slider(STEPS, GRADIENT)
    slider.drag(1.0)
    lesson.until(lambda: any("After 64 of 64" in text for text in sentences(lesson)), "64 micro-batches are added")
    slider.drag(0.0)
    lesson.until(lambda: any("After 1 of 1" in text for text in sentences(lesson)), "one micro-batch is added")


def test_the_number_field_moves_the_slider(lesson):
    field = lesson.number_field(f"{STEPS} (number)", GRADIENT)
    field.fill("7")
    field.press("Enter")
    lesson.until(lambda: lesson.slider(STEPS, GRADIENT).value == 7, "the slider follows the number")
    lesson.until(lambda: any("After 7 of 7" in text for text in sentences(lesson)), "the sentence follows")


def test_an_impossible_number_is_answered_with_a_sentence(lesson):
    field = lesson.number_field(f"{STEPS} (number)", GRADIENT)
    field.fill("0")
    field.press("Enter")
    lesson.until(
        lambda: f"{STEPS} must be a whole number from 1 to 64; you gave 0" in lesson.text_in_outputs(),
        "the explorer says what is possible",
    )
    lesson.until(lambda: field.input_value() == "7", "the field goes back to what was possible")


def test_a_slider_moved_during_training_stops_the_older_run(lesson):
    lesson.outputs().get_by_label("Model", exact=True).select_option(label="CNN with GroupNorm")
    lesson.until(lambda: 5 <= trained(lesson, "8 x 4") < UPDATES, "the CNN trains and is not done")
    lesson.slider(STEPS, TRAINING).press("ArrowRight")
    lesson.until(lambda: 1 <= trained(lesson, "8 x 5") < UPDATES, "the newer run trains instead")
    lesson.until(lambda: trained(lesson, "8 x 5") == UPDATES, "the newer run goes to its end")
    assert trained(lesson, "8 x 4") == 0


def trained(lesson, cut):
    """How many updates of that cut the live picture shows; the static twin's sentence comes after the live one."""
    live = next(text for text in sentences(lesson) if "the training losses are" in text)
    return int(re.match(r"After (\d+)", live)[1]) if f"{cut}:" in live else 0


def asked(quiz):
    """The learner's own two numbers in the first question."""
    return [int(number) for number in re.findall(r"\(w \* (\d+)\)", quiz.text())]


def test_a_wrong_answer_is_told_which_mistake_it_is_and_a_right_one_that_it_is_right(lesson):
    quiz = QuizPanel(lesson)
    first, second = asked(quiz)
    assert "That is the second gradient alone" in quiz.answer_number(second)
    said = quiz.answer_number(first + second)
    assert "Right" in said and "The second backward adds" in said
    assert "Your first answer is the one that counts" in said


def test_code_in_an_option_looks_like_code(lesson):
    quiz = QuizPanel(lesson)
    quiz.press("Next")
    code = quiz.box.locator(".widget-checkbox code")
    lesson.until(lambda: code.count() == 3, "the options with code in them are shown")
    assert sorted(code.all_inner_texts()) == [".grad", ".grad", "zero_grad"]
    assert "`" not in quiz.text()
    quiz.press("Previous")
    lesson.until(lambda: len(asked(quiz)) == 2, "the first question is back")


def test_after_a_restart_of_the_kernel_the_answers_are_still_there(lesson):
    second = asked(QuizPanel(lesson))[1]
    lesson.restart_kernel()
    lesson.run_cells("setup", "predict", "quiz-show")
    quiz = QuizPanel(lesson)
    assert "Question 2 of" in quiz.text()
    quiz.press("Previous")
    lesson.until(lambda: "answered: not right" in quiz.text(), "the first question is shown with its answer")
    assert quiz.number().input_value() == f"{second}"
