"""Showing a quiz where it can be shown: as widgets in a notebook, as text elsewhere."""

from collections.abc import Sequence

from gradacc_lessons.device import Place, place
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.questions import ChoiceQuestion, CodeQuestion, NumberQuestion, SpotQuestion
from gradacc_lessons.quiz.quiz import Quiz


def show(quiz: Quiz, question_ids: Sequence[str]) -> None:
    """Show the questions: as widgets in a notebook, as text elsewhere."""
    if not question_ids:
        print(quiz.result())
        return
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
        first, *rest = lines_of(quiz, question_id, numbered=False)
        lines += ["", f"{question_id}: {first}", *rest]
    return "\n".join(lines)


def lines_of(quiz: Quiz, question_id: str, *, numbered: bool = True) -> list[str]:
    """One question: what is asked, then what it is about and what can be picked, by number or by its id."""
    language, question = quiz.language, quiz.bank.question(question_id)
    unit = f" [{question.unit.to(language)}]" if isinstance(question, NumberQuestion) and question.unit else ""
    lines = [f"{quiz.prompt(question_id).to(language)}{unit}"]
    if isinstance(question, ChoiceQuestion) and question.code:
        lines += [f"     {line}" for line in question.code.rstrip().split("\n")]
    if isinstance(question, CodeQuestion) and numbered:
        lines += [f"     {line}" for line in exercise(question.exercise).starter.rstrip().split("\n")]
    for number, option in enumerate(quiz.options(question_id), start=1):
        lines.append(f"  {number if numbered else option.id}: {option.text.to(language)}")
    listing = question.listing() if isinstance(question, SpotQuestion) else []
    return lines + [f"{number:>3}  {line}" for number, line in enumerate(listing, start=1)]
