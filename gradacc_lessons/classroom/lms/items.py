"""What a learning management system can ask of a bank: one option, several options, or a number.

* `choice` and `multiple` go as they are. In both systems a right pick earns its share and a wrong one costs as much,
  not below 0: the rule of this course.
* `number`: no system computes our formulas (Moodle's calculated type has neither ceil, // nor lists of values, and
  recognises no mistakes), so each question is written out with a few sets of drawn numbers, from which the system
  picks one for each learner.
* `spot` becomes a choice of lines, `order` a choice of whole orders, one of them right.
* `code` runs in a sandbox, and `predict` in the learner's notebook: both are left out, and named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gradacc_lessons.classroom.page import listing
from gradacc_lessons.quiz import draw, ordering, words
from gradacc_lessons.quiz.feedback import html
from gradacc_lessons.quiz.formula import Number
from gradacc_lessons.quiz.grade import ROUNDING, fill, grade
from gradacc_lessons.quiz.questions import (
    Bank,
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    PredictQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.quiz.sentences import fill_texts
from gradacc_lessons.text import Language, Text, joined

INSTANCES = 5
"""Sets of numbers that a question is written out with; fewer where there are fewer."""
WRONG_ORDERS = 4
TRIES = 200
"""Draws until enough different ones are found, or are taken not to exist."""
YOURS = Text("your answer", "jouw antwoord")
"""For {given} in feedback: the system does not fill it in."""


@dataclass(frozen=True)
class Pick:
    """One option."""

    id: str
    """Its id in the bank, or what it stands for."""
    text: str
    """HTML."""
    right: bool
    """Whether it is right."""
    feedback: str
    """HTML: what is said to who picks it."""


@dataclass(frozen=True)
class Value:
    """A number that is recognised."""

    value: Number
    """The number."""
    margin: float
    """How far from it an answer may be."""
    feedback: str
    """HTML: what is said to who gives it."""


@dataclass(frozen=True)
class LmsItem:
    """One question as a learning management system can ask it."""

    id: str
    """The question's id; with a number behind it if there are several sets of numbers."""
    question: str
    """Id of the question in the bank."""
    prompt: str
    """HTML."""
    points: float
    """What it is worth."""
    picks: tuple[Pick, ...] = ()
    """The options, if it asks for options."""
    several: bool = False
    """Whether more than one may be picked."""
    shuffle: bool = True
    """Whether the options may come in any order."""
    right: Value | None = None
    """The number, if it asks for a number, with what is said to who is right."""
    mistakes: tuple[Value, ...] = ()
    """Wrong numbers that are recognised."""
    otherwise: str = ""
    """HTML: what is said to any other number."""
    hints: tuple[str, ...] = ()
    """HTML, from a nudge to nearly all."""
    numbers: Mapping[str, Number] = field(default_factory=dict)
    """The numbers that were drawn for it."""


@dataclass(frozen=True)
class LeftOut:
    """A question that no system can ask."""

    question: str
    """Its id."""
    why: Text
    """The reason."""


NO_CODE = Text(
    "its answer is code, which is run in the sandbox: keep it in the course",
    "het antwoord is code, die in de sandbox draait: houd hem in de cursus",
)
NO_PREDICTION = Text(
    "what the learner's own run measures decides it: keep it in the notebook",
    "wat de leerling zelf meet beslist: houd hem in het notebook",
)


def items(bank: Bank, language: Language, instances: int = INSTANCES) -> list[LmsItem]:
    """Everything in a bank that can be asked, in its order, in one language; `instances` sets of numbers for each."""
    return [item for question in bank.questions for item in _items(question, language, instances)]


def left_out(bank: Bank) -> list[LeftOut]:
    """Everything in a bank that cannot be asked."""
    reasons: dict[type, Text] = {CodeQuestion: NO_CODE, PredictQuestion: NO_PREDICTION}
    return [LeftOut(each.id, reasons[type(each)]) for each in bank.questions if type(each) in reasons]


def _items(question: Question, to: Language, instances: int) -> Iterator[LmsItem]:
    match question:
        case ChoiceQuestion() | MultipleQuestion():
            yield _pick(question, to)
        case NumberQuestion():
            yield from _numbers(question, to, instances)
        case SpotQuestion():
            yield _spot(question, to)
        case OrderQuestion():
            yield _order(question, to)


def _hints(question: Question, to: Language, numbers: Mapping[str, Number]) -> tuple[str, ...]:
    return tuple(html(fill(hint, numbers).to(to)) for hint in question.hints)


def _pick(question: ChoiceQuestion | MultipleQuestion, to: Language) -> LmsItem:
    picks = tuple(
        Pick(option.id, html(option.text.to(to)), option.correct, html(option.feedback.to(to)))
        for option in question.options
    )
    code = question.code if isinstance(question, ChoiceQuestion) else None
    prompt = html(question.prompt.to(to)) + (listing(code.rstrip().split("\n"), numbered=False) if code else "")
    return LmsItem(
        question.id, question.id, prompt, question.points, picks, isinstance(question, MultipleQuestion),
        question.shuffle, hints=_hints(question, to, {}),
    )  # fmt: skip


def _numbers(question: NumberQuestion, to: Language, instances: int) -> Iterator[LmsItem]:
    sets: list[dict[str, Number]] = []
    for seed in range(TRIES):
        drawn = draw.variables(question.variables, draw.key(f"lms-{seed}", 1, question.id))
        if drawn not in sets:
            sets.append(drawn)
        if len(sets) == instances:
            break
    for number, drawn in enumerate(sets, start=1):
        yield _number(question, to, drawn, question.id if len(sets) == 1 else f"{question.id}-{number}")


def _number(question: NumberQuestion, to: Language, drawn: dict[str, Number], name: str) -> LmsItem:
    right = question.answer.value(drawn)

    def margin(value: Number) -> float:
        return max(abs(value) * max(question.tolerance, ROUNDING), question.absolute_tolerance)

    def said(text: Text, given: Number | None) -> str:
        shown = YOURS.to(to) if given is None else given
        return html(fill(text, {**drawn, "given": shown, "answer": right}).to(to))

    asked = [fill(question.prompt, drawn)]
    if question.unit:
        asked.append(fill_texts(words.NUMBER_IN, {"unit": question.unit}))
    values = [(each, each.formula.value(drawn)) for each in question.mistakes]
    return LmsItem(
        name, question.id, html(joined(asked, "\n").to(to)), question.points,
        right=Value(right, margin(right), said(question.feedback.correct, right)),
        mistakes=tuple(Value(value, margin(value), said(each.feedback, value)) for each, value in values),
        otherwise=said(question.feedback.wrong, None), hints=_hints(question, to, drawn), numbers=drawn,
    )  # fmt: skip


def _spot(question: SpotQuestion, to: Language) -> LmsItem:
    lines = question.listing()
    accepted = min(question.line)  # of several, one: neither system has two right options of which one is enough
    picks = []
    for number, line in enumerate(lines, start=1):
        if line.strip() and (number == accepted or number not in question.line):
            said = grade(question, number).feedback
            shown = fill(words.LINE_NUMBER, {"line": number, "code": f"`{line.strip()}`"})
            picks.append(Pick(f"line-{number}", html(shown.to(to)), number == accepted, html(said.to(to))))
    prompt = html(question.prompt.to(to)) + listing(lines, numbered=True)
    hints = _hints(question, to, {})
    return LmsItem(question.id, question.id, prompt, question.points, tuple(picks), shuffle=False, hints=hints)


def _order(question: OrderQuestion, to: Language) -> LmsItem:
    names = {item.id: item.text for item in question.items}
    orders: list[tuple[str, ...]] = [question.orders[0]]
    for seed in range(TRIES):
        order = ordering.shuffled(question, draw.key(f"lms-{seed}", 1, question.id))
        if order not in orders and order not in question.orders and len(orders) <= WRONG_ORDERS:
            orders.append(order)
    picks = []
    for number, order in enumerate(orders):
        lines = "".join(f"<li>{html(names[each].to(to))}</li>" for each in order)
        graded = grade(question, list(order))
        picks.append(Pick(f"order-{number}", f"<ol>{lines}</ol>", graded.correct, html(graded.feedback.to(to))))
    prompt, hints = html(question.prompt.to(to)), _hints(question, to, {})
    return LmsItem(question.id, question.id, prompt, question.points, tuple(picks), hints=hints)
