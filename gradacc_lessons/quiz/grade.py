"""Grading an answer: the same question, value and variables always give the same grade. Nothing is shown or kept.

Code questions are not graded here: they need a child process (see exercises).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.quiz import number, ordering, words
from gradacc_lessons.quiz.formula import Formula, Number
from gradacc_lessons.quiz.number import NotANumber, written
from gradacc_lessons.quiz.question_parts import Option
from gradacc_lessons.quiz.questions import (
    NAME_IN_BRACES,
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    PredictQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.text import LANGUAGES, Language, Text, joined

ROUNDING = 1e-9
"""Relative: two ways to compute one float64 answer differ by less, and no question asks for more digits."""


@dataclass(frozen=True)
class Grade:
    """What an answer is worth, and what to say about it."""

    fraction: float
    """Share of the question's points, 0 to 1."""
    correct: bool
    """Whether it is right in full."""
    feedback: Text
    """What to say to the learner."""
    mistake: str | None = None
    """Which misconception it shows: the ids of wrong options, "mistake-1", "line-3", "item-" and the id of the
    first that is out of place, a fault; None if unknown."""
    counted: bool = True
    """False: this was no answer (not a number, an option that does not exist), so nothing is recorded."""


def no_answer(why: Text) -> Grade:
    """Something that cannot be graded; it costs the learner nothing."""
    return Grade(0.0, False, why, counted=False)


def fill(text: Text, values: Mapping[str, Any]) -> Text:
    """`text` with each {name} replaced by its value, numbers written as the language writes them."""

    def in_language(language: Language) -> str:
        def one(match: Any) -> str:
            name = match.group(1)
            return written(values[name], language) if name in values else str(match.group(0))

        return NAME_IN_BRACES.sub(one, text.to(language))

    return Text(*(in_language(language) for language in LANGUAGES))


def close(value: float, right: float, tolerance: float, absolute: float = 0.0) -> bool:
    """Whether two numbers agree: within `tolerance` x |right|, or `absolute`, or the rounding of float64."""
    return math.isclose(value, right, rel_tol=0.0, abs_tol=max(abs(right) * max(tolerance, ROUNDING), absolute))


def grade(question: Question, value: Any, variables: Mapping[str, Number] | None = None) -> Grade:
    """Grade `value` as an answer to `question`.

    `value` is an option's id (choice), ids (multiple), a number or its text (number), a line number (spot), or all
    ids from first to last (order).
    `variables` are the learner's own numbers. TypeError for the kinds that something else must decide.
    """
    if isinstance(question, CodeQuestion | PredictQuestion):
        raise TypeError(f"{question.id} is decided by running something, not by its text")
    grader: Callable[..., Grade] = _GRADERS[type(question)]
    return grader(question, value, variables or {})


def grade_prediction(question: PredictQuestion, predicted: Any, measured: Any) -> Grade:
    """Compare what was predicted (as `committed` returned it) with what was measured."""
    if question.options:
        correct = predicted == measured
        names = {option.id: option.text for option in question.options}
        shown = [names.get(each, Text(str(each), str(each))) for each in (predicted, measured)]
    else:
        correct = close(float(predicted), float(measured), question.tolerance, question.absolute_tolerance)
        shown = [Text(*(written(each, to) for to in LANGUAGES)) for each in (predicted, measured)]
    said = question.feedback.correct if correct else question.feedback.wrong
    filled = [fill(said, {"predicted": shown[0].to(to), "measured": shown[1].to(to)}).to(to) for to in LANGUAGES]
    return Grade(float(correct), correct, Text(*filled))


def committed(question: PredictQuestion, value: Any) -> float | str:
    """A prediction in the form that is kept; NotANumber if it is none, or a number that cannot be measured."""
    if not question.options:
        return _possible(question, number.parse(value, question.unit))
    known = [option.id for option in question.options]
    if not isinstance(value, str) or value not in known:
        raise NotANumber(_options_are(known))
    return value


def as_json(question: Question, value: Any) -> Any:
    """An answer as it is kept."""
    if isinstance(question, OrderQuestion):
        return list(ordering.as_order(value) or ())
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, list | tuple | set | frozenset):
        return sorted({str(each)[:200] for each in value})
    return float(value)


def _possible(question: PredictQuestion, value: float) -> float:
    if question.least is not None and value < question.least:
        raise NotANumber(fill(words.TOO_SMALL, {"bound": question.least}))
    if question.most is not None and value > question.most:
        raise NotANumber(fill(words.TOO_LARGE, {"bound": question.most}))
    return value


def _choice(question: ChoiceQuestion, value: Any, _: Mapping[str, Number]) -> Grade:
    by_id = {option.id: option for option in question.options}
    option = by_id.get(value) if isinstance(value, str) else None
    if option is None:
        return no_answer(_options_are(by_id))
    return Grade(float(option.correct), option.correct, option.feedback, None if option.correct else option.id)


def _multiple(question: MultipleQuestion, value: Any, _: Mapping[str, Number]) -> Grade:
    by_id = {option.id: option for option in question.options}
    several = value if isinstance(value, list | tuple | set | frozenset) else [value]
    picked = {each for each in several if isinstance(each, str)}
    if not picked or not picked <= set(by_id) or not all(isinstance(each, str) for each in several):
        return no_answer(_options_are(by_id))
    right = {option.id for option in question.options if option.correct}
    wrong_picks = [option.id for option in question.options if option.id in picked - right]
    fraction = max(0.0, (len(picked & right) - len(wrong_picks)) / len(right))
    said = [_marked(option) for option in question.options if option.id in picked]
    if missed := len(right - picked):
        said.append(
            Text(
                f"You have not picked everything that is right: {missed} more.",
                f"Je hebt niet alles gekozen wat klopt: nog {missed}.",
            )
        )
    feedback = Text("\n" + "\n".join(each.en for each in said), "\n" + "\n".join(each.nl for each in said))
    return Grade(fraction, picked == right, feedback, ",".join(wrong_picks) or None)


def _marked(option: Option) -> Text:
    sign = "✓" if option.correct else "✗"
    return Text(f"{sign} {option.feedback.en}", f"{sign} {option.feedback.nl}")


def _number(question: NumberQuestion, value: Any, variables: Mapping[str, Number]) -> Grade:
    try:
        given = number.parse(value, question.unit)
    except NotANumber as error:
        return no_answer(error.sentence)
    values: dict[str, Any] = {**variables, "given": given}
    right = question.answer.value(variables)
    if agrees(question, given, question.answer, variables):
        return Grade(1.0, True, fill(question.feedback.correct, {**values, "answer": right}))
    for index, mistake in enumerate(question.mistakes, start=1):
        if agrees(question, given, mistake.formula, variables):
            return Grade(0.0, False, fill(mistake.feedback, values), f"mistake-{index}")
    return Grade(0.0, False, fill(question.feedback.wrong, values))


def agrees(question: NumberQuestion, given: float, formula: Formula, variables: Mapping[str, Number]) -> bool:
    """Whether `given` is that formula's value, within the question's tolerance."""
    return close(given, formula.value(variables), question.tolerance, question.absolute_tolerance)


def _order(question: OrderQuestion, value: Any, _: Mapping[str, Number]) -> Grade:
    order = ordering.as_order(value)
    names = {item.id: item.text for item in question.items}
    if not order or not set(order) <= {*names, ordering.NOTHING}:
        return no_answer(_options_are(names))
    if twice := next((each for each in order if each and order.count(each) > 1), None):
        places = [place for place, each in enumerate(order, start=1) if each == twice]
        return no_answer(_named(words.AT_TWO_PLACES, names[twice], first=places[0], second=places[1]))
    if missing := next((each for each in names if each not in order), None):
        return no_answer(_named(words.WITHOUT_A_PLACE, names[missing]))
    place = ordering.first_out_of_place(order, question.orders)
    if place is None:
        return Grade(1.0, True, question.feedback.correct)
    item = next(item for item in question.items if item.id == order[place])
    said = joined([_named(words.OUT_OF_PLACE, item.text, place=place + 1), item.feedback or question.feedback.wrong])
    return Grade(ordering.share_in_order(order, question.orders), False, said, f"item-{item.id}")


def _named(sentence: Text, name: Text, **places: int) -> Text:
    """A sentence about one of the things that are put in order."""
    return Text(*(fill(sentence, {"name": name.to(to).rstrip("."), **places}).to(to) for to in LANGUAGES))


def _spot(question: SpotQuestion, value: Any, _: Mapping[str, Number]) -> Grade:
    last = len(question.listing())
    try:
        line = number.parse(value)
    except NotANumber:
        line = 0.0
    if not (line.is_integer() and 1 <= line <= last):
        return no_answer(
            Text(
                f"Give the number of a line, 1 to {last}.",
                f"Geef het nummer van een regel, 1 tot en met {last}.",
            )
        )
    if int(line) in question.line:
        return Grade(1.0, True, question.feedback.correct)
    return Grade(0.0, False, question.lines.get(int(line), question.feedback.wrong), f"line-{int(line)}")


def _options_are(ids: Iterable[str]) -> Text:
    known = ", ".join(ids)
    return Text(f"Pick from these: {known}.", f"Kies hieruit: {known}.")


_GRADERS: dict[type, Callable[..., Grade]] = {
    ChoiceQuestion: _choice,
    MultipleQuestion: _multiple,
    NumberQuestion: _number,
    OrderQuestion: _order,
    SpotQuestion: _spot,
}
