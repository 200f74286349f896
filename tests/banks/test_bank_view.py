"""A listing that a choice is about reaches the learner, in the notebook and outside it."""

from html import escape

import pytest
from banks.course_content import all_banks

from gradacc_lessons import Quiz
from gradacc_lessons.quiz.show import as_text
from gradacc_lessons.quiz.view import QuizView

WITH_LISTING = [
    (lesson, each.id)
    for lesson, bank in all_banks().items()
    for each in bank.questions
    if each.kind == "choice" and each.code is not None
]


@pytest.mark.parametrize("language", ["en", "nl"])
@pytest.mark.parametrize(("lesson", "question_id"), WITH_LISTING)
def test_the_listing_is_shown(lesson: str, question_id: str, language: str) -> None:
    quiz = Quiz(lesson, language)
    code = quiz.bank.question(question_id).code
    shown = "".join(child.value for child in QuizView(quiz, [question_id]).box.children if hasattr(child, "value"))
    assert f"<pre>{escape(code.rstrip())}</pre>" in shown
    for line in code.splitlines():
        assert line in as_text(quiz, [question_id])


def test_there_are_choices_with_a_listing_and_choices_without() -> None:
    choices = [each for bank in all_banks().values() for each in bank.questions if each.kind == "choice"]
    assert 0 < len(WITH_LISTING) < len(choices)
