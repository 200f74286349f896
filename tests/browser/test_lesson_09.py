"""A learner goes through lesson 09 in a real JupyterLab: a prediction, the museum at another N, a visit by keyboard."""

from browser.accessibility import check_accessibility
from browser.quiz_panel import QuizPanel

from gradacc_lessons.museum.collection import exhibits

LESSON = "09_bug_museum.ipynb"
CELLS = ("setup", "predict-ask", "explorer-hall", "explorer-tour", "quiz-show")
STEPS = "Accumulation steps N"
HALL_PICTURE, TOUR_PICTURE = "Right: the share of exhibits", "Left: the exhibit's own number"


def test_the_explorers_run_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_a_prediction_brings_the_museum_and_is_drawn_over_it(lesson):
    lesson.outputs().get_by_label("Your answer, in %:", exact=True).first.fill("40")
    lesson.page.keyboard.press("Enter")
    lesson.says("You predicted 40 %, for N = 1.")
    assert "You predicted 40 %" in lesson.picture(HALL_PICTURE).get_attribute("alt")


def test_by_keyboard_another_n_brings_the_bugs_back(lesson):
    lesson.says(f"N = 1: of {len(exhibits())} exhibits")
    before = lesson.drawn(HALL_PICTURE)
    lesson.slider(STEPS).press("ArrowRight")
    lesson.says(f"N = 2: of {len(exhibits())} exhibits")
    assert lesson.drawn(HALL_PICTURE) != before


def test_another_exhibit_is_visited(lesson):
    before = lesson.drawn(TOUR_PICTURE)
    label = "sentence-transformers (2023): Negatives do not add up"
    lesson.outputs().get_by_label("Exhibit", exact=True).select_option(label=label)
    lesson.says("the micro-batches' gradient is")
    assert lesson.drawn(TOUR_PICTURE) != before


def test_a_wrong_answer_is_told_which_mistake_it_is(lesson):
    quiz = QuizPanel(lesson)
    words = quiz.text()
    first = float(words.split("first loss in my log is ")[1].split(".")[0])
    logged = float(words.split("data in each update, it is ")[1].split(".")[0])
    assert "That is a difference" in quiz.answer_number(logged - first)
    assert "Right" in quiz.answer_number(logged / first)
