"""Values as they stand in a sentence, in both languages."""

from collections.abc import Mapping
from typing import Any

from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.formula import Number
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.number import written
from gradacc_lessons.quiz.questions import (
    ChoiceQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    PredictQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.text import LANGUAGES, Text, joined


def fill_texts(text: Text, values: Mapping[str, Any]) -> Text:
    """`fill`, where some of the values are texts themselves."""
    filled = []
    for language in LANGUAGES:
        here = {name: value.to(language) if isinstance(value, Text) else value for name, value in values.items()}
        filled.append(fill(text, here).to(language))
    return Text(*filled)


def predicted(question: PredictQuestion, value: float | str) -> Text:
    """A predicted or measured value, with its unit."""
    for option in question.options:
        if option.id == value:
            return option.text
    number = _number(value)
    return joined([number, question.unit]) if question.unit else number


def right(question: Question, variables: Mapping[str, Number]) -> Text:
    """The right answer to a question that has one, for a learner with these numbers; TypeError for other kinds."""
    match question:
        case ChoiceQuestion() | MultipleQuestion():
            return joined([option.text for option in question.options if option.correct], "; ")
        case SpotQuestion():
            lines = Text(*(f" {words.OR.to(to)} ".join(map(str, question.line)) for to in LANGUAGES))
            return fill_texts(words.LINE, {"lines": lines})
        case OrderQuestion():
            return _in_order(question)
        case NumberQuestion():
            number, formula = _number(question.answer.value(variables)), f"({question.answer.text})"
            return joined([number, *([question.unit] if question.unit else []), Text(formula, formula)])
        case _:
            raise TypeError(f"{question.id} is decided by running something, not by its text")


def _in_order(question: OrderQuestion) -> Text:
    names = {item.id: item.text for item in question.items}
    shown = [
        Text(*(f"{place}. {names[each].to(to).rstrip('.')}" for to in LANGUAGES))
        for place, each in enumerate(question.orders[0], start=1)
    ]
    order = joined(shown, "; ")
    return order if len(question.orders) == 1 else fill_texts(words.ONE_ORDER, {"order": order})


def _number(value: Any) -> Text:
    return Text(*(written(value, language) for language in LANGUAGES))
