"""Answers and misconceptions in words, for whoever reads about them later."""

from typing import Any

from gradacc_lessons.classroom import report_words as say
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.number import written
from gradacc_lessons.quiz.questions import (
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.quiz.sentences import fill_texts
from gradacc_lessons.text import LANGUAGES, Text, joined

LONGEST = 200
"""Characters of an answer that is shown as it came."""


def shown_answer(question: Question, value: Any) -> Text:
    """An answer as it reads; whatever else somebody handed in, cut short."""
    match question:
        case ChoiceQuestion() | MultipleQuestion() | OrderQuestion():
            things = question.items if isinstance(question, OrderQuestion) else question.options
            names = {thing.id: thing.text for thing in things}
            given = value if isinstance(value, list) else [value]
            return joined([names.get(str(each), _as_it_came(each)) for each in given], "\n")
        case NumberQuestion():
            number = _number(value)
            return joined([number, question.unit]) if question.unit and not isinstance(value, str) else number
        case SpotQuestion():
            return fill_texts(words.LINE, {"lines": _number(value)})
        case CodeQuestion():
            return fill(say.FUNCTION, {"digest": f"{str(value)[:12]}…"})
        case _:
            return _as_it_came(value)


def _number(value: Any) -> Text:
    return Text(*(written(value, to)[:LONGEST] for to in LANGUAGES))


def _as_it_came(value: Any) -> Text:
    shown = str(value)[:LONGEST]
    return Text(shown, shown)


def named_mistake(question: Question, mistake: str) -> Text:
    """A misconception in words: the option that was picked, the wrong formula, the line, the fault."""
    match question:
        case ChoiceQuestion() | MultipleQuestion():
            found = [option.text for option in question.options if option.id == mistake]
        case NumberQuestion():
            found = [
                Text(f"`{each.formula.text}`: {each.feedback.en}", f"`{each.formula.text}`: {each.feedback.nl}")
                for number, each in enumerate(question.mistakes, start=1)
                if mistake == f"mistake-{number}"
            ]
        case SpotQuestion():
            found = [
                fill(words.LINE_NUMBER, {"line": number, "code": f"`{line.strip()}`"})
                for number, line in enumerate(question.listing(), start=1)
                if mistake == f"line-{number}"
            ]
        case OrderQuestion():
            found = [
                Text(f"first out of place: {item.text.en}", f"als eerste niet op zijn plaats: {item.text.nl}")
                for item in question.items
                if mistake == f"item-{item.id}"
            ]
        case CodeQuestion():
            wrong = exercise(question.exercise).wrong
            found = [each.message for each in wrong if each.fault == mistake and each.message]
        case _:
            found = []
    return found[0] if found else _as_it_came(mistake)
