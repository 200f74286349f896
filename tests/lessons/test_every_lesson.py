"""Every lesson as a page: its sections, questions and exercises are those of its bank."""

import re

import pytest
from lessons.notebook_cells import cells

from gradacc_lessons.authoring.files import lessons
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.questions import Bank, CodeQuestion, PredictQuestion

ENDS_WITH = ["Quiz", "Summary"]


@pytest.fixture(scope="module", params=[file.stem for file in lessons()])
def lesson(request: pytest.FixtureRequest) -> tuple[dict[str, str], Bank]:
    """A lesson's cells by id, and its bank."""
    return cells(request.param), load_bank(course_folder("quizzes") / f"{request.param}.yaml")


def calls(source: str) -> list[tuple[str, str]]:
    """What the page asks of the quiz, and of which question."""
    return re.findall(r'quiz\.(\w+)\("([^"]+)"', source)


def test_questions_point_at_sections_that_are_there_once(lesson: tuple[dict[str, str], Bank]) -> None:
    page, bank = lesson
    headings = [line[3:] for source in page.values() for line in source.splitlines() if line.startswith("## ")]
    assert len(set(headings)) == len(headings)
    assert headings[-2:] == ENDS_WITH
    assert {question.section for question in bank.questions} <= set(headings)


def test_every_question_that_the_page_names_is_in_its_bank(lesson: tuple[dict[str, str], Bank]) -> None:
    page, bank = lesson
    named = {question_id for source in page.values() for _, question_id in calls(source)}
    assert named and named <= {question.id for question in bank.questions}


def test_every_exercise_of_the_bank_is_handed_out_as_its_own_starter(lesson: tuple[dict[str, str], Bank]) -> None:
    """In the cell that answers; what it stands on may be in the code cells just before."""
    _, bank = lesson
    code = "\n\n\n".join(cells(bank.lesson, ("code",)).values()) + "\n"
    asked = [question for question in bank.questions if isinstance(question, CodeQuestion)]
    assert asked
    for question in asked:
        wanted = exercise(question.exercise)
        answer = f'quiz.answer("{question.id}", {wanted.function})\n'
        assert code.count(answer) == 1
        assert code[: code.index(answer)].endswith(f"\n{wanted.starter.strip()}\n\n\n")


def test_a_prediction_is_asked_for_before_anything_waits_for_it_and_measured_after(
    lesson: tuple[dict[str, str], Bank],
) -> None:
    page, bank = lesson
    order = [call for source in page.values() for call in calls(source)]
    kinds = {question.id: question for question in bank.questions}
    waits = [question_id for name, question_id in order if name == "predicted"]
    assert waits
    for question_id in waits:
        assert isinstance(kinds[question_id], PredictQuestion)
        places = [order.index((name, question_id)) for name in ("ask", "predicted", "measured")]
        assert places == sorted(places)
