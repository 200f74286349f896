"""Showing a quiz where it can be shown: as widgets in a notebook, as text elsewhere."""

from collections.abc import Sequence

from gradacc_lessons.device import Place, place
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.questions import ChoiceQuestion, NumberQuestion, SpotQuestion
from gradacc_lessons.quiz.quiz import Quiz


def show(quiz: Quiz, question_ids: Sequence[str]) -> None:
    """Show the questions: as widgets in a notebook, as text elsewhere."""
    if place() is Place.TERMINAL:
        print(as_text(quiz, question_ids))
        return
    from IPython.display import display

    from gradacc_lessons.quiz.view import QuizView

    display(QuizView(quiz, question_ids).box)


def as_text(quiz: Quiz, question_ids: Sequence[str]) -> str:
    """The questions, for reading without widgets."""
    language = quiz.language
    lines = [quiz.bank.title.to(language), words.OUTSIDE.to(language)]
    for question_id in question_ids:
        question = quiz.bank.question(question_id)
        unit = f" [{question.unit.to(language)}]" if isinstance(question, NumberQuestion) and question.unit else ""
        lines += ["", f"{question_id}: {quiz.prompt(question_id).to(language)}{unit}"]
        if isinstance(question, ChoiceQuestion) and question.code:
            lines += [f"     {line}" for line in question.code.rstrip().split("\n")]
        lines += [f"  {option.id}: {option.text.to(language)}" for option in quiz.options(question_id)]
        listing = question.listing() if isinstance(question, SpotQuestion) else []
        lines += [f"{number:>3}  {line}" for number, line in enumerate(listing, start=1)]
    return "\n".join(lines)
