"""What a quiz asks: the shape of `quizzes/NN_snake_case.yaml`."""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from gradacc_lessons.quiz import formula
from gradacc_lessons.quiz.formula import Formula, Number
from gradacc_lessons.text import Text

Item = TypeVar("Item")
MAX_VALUES = 10_000
"""How many values one variable can take."""
MAX_ITEMS = 10
"""Things to put in order: more cannot be overlooked."""
MAX_ORDERS = 60
"""Accepted orders of one question: with more, almost anything is right."""

Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,59}$")]
Words = Annotated[str, StringConstraints(pattern=r"\S")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


class _Languages(_Strict):
    en: Words
    nl: Words


def _text(value: Any) -> Text:
    both = _Languages.model_validate(value)
    return Text(both.en.strip(), both.nl.strip())


def _formula(value: Any) -> Formula:
    # YAML reads `answer: 12` as a number; as a formula it is the text "12".
    return formula.read(str(value) if isinstance(value, int | float) else _Source(text=value).text)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _tuple_of_one(value: Any) -> Any:
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else _tuple(value)


class _Source(_Strict):
    text: Words


BankText = Annotated[Text, PlainValidator(_text), WithJsonSchema(_Languages.model_json_schema())]
BankFormula = Annotated[Formula, PlainValidator(_formula), WithJsonSchema({"type": ["string", "number"]})]
Several = Annotated[tuple[Item, ...], BeforeValidator(_tuple)]
Tolerance = Annotated[float, Field(ge=0, lt=float("inf"))]
Bound = Annotated[float, Field(allow_inf_nan=False)]


class Variable(_Strict):
    """A number that is drawn for each learner: from `choices`, or a whole number `from` .. `to`."""

    choices: Several[int | float] = ()
    start: int | None = Field(None, alias="from")
    stop: int | None = Field(None, alias="to")
    by: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _one_way(self) -> "Variable":
        ranged = self.start is not None and self.stop is not None
        if bool(self.choices) == ranged or (self.start is None) != (self.stop is None):
            raise ValueError("give either choices: [...] or from: and to:")
        if not 2 <= len(self.values()) <= MAX_VALUES:
            raise ValueError(f"{len(self.values()):,} values can be drawn; between 2 and {MAX_VALUES:,} are allowed")
        return self

    def values(self) -> Sequence[Number]:
        """Every value that it can take."""
        if self.choices or self.start is None or self.stop is None:
            return self.choices
        return range(self.start, self.stop + 1, self.by)


class Option(_Strict):
    """One thing to pick."""

    id: Id
    correct: bool = False
    text: BankText
    feedback: BankText
    """Why it is right; or, if it is wrong, the misconception behind it."""


class Guess(_Strict):
    """One thing to predict; what happens says whether it was right."""

    id: Id
    text: BankText


class OrderItem(_Strict):
    """One thing to put in its place."""

    id: Id
    text: BankText
    feedback: BankText | None = None
    """What to say if it is the first that is out of place; without it, the question's feedback for wrong answers."""


class Verdicts(_Strict):
    """What to say after an answer."""

    correct: BankText
    wrong: BankText


class Mistake(_Strict):
    """A wrong formula that is recognised by its value."""

    formula: BankFormula
    feedback: BankText


class _Question(_Strict):
    id: Id
    objective: Words
    """Which aim of the lesson it tests."""
    section: Words
    """The heading in the notebook to reread."""
    points: float = Field(1.0, gt=0, le=100)
    hints: Several[BankText] = ()
    """From a nudge to nearly all."""


class ChoiceQuestion(_Question):
    """Pick one."""

    kind: Literal["choice"]
    prompt: BankText
    code: Words | None = None
    """A listing that the prompt is about, shown as it stands."""
    options: Annotated[tuple[Option, ...], BeforeValidator(_tuple), AfterValidator(lambda o: _pickable(o, 1))]
    shuffle: bool = True
    """Options in an order of the learner's own; False keeps an order that means something."""


class MultipleQuestion(_Question):
    """Pick all that hold."""

    kind: Literal["multiple"]
    prompt: BankText
    options: Annotated[tuple[Option, ...], BeforeValidator(_tuple), AfterValidator(lambda o: _pickable(o, None))]
    shuffle: bool = True


class NumberQuestion(_Question):
    """Compute a number from the learner's own variables."""

    kind: Literal["number"]
    prompt: BankText
    variables: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")], Variable] = {}
    answer: BankFormula
    unit: BankText | None = None
    tolerance: Tolerance = 0.0
    """Relative to the answer."""
    absolute_tolerance: Tolerance = 0.0
    feedback: Verdicts
    mistakes: Several[Mistake] = ()


class OrderQuestion(_Question):
    """Put lines or events in order."""

    kind: Literal["order"]
    prompt: BankText
    items: Annotated[tuple[OrderItem, ...], BeforeValidator(_tuple), Field(min_length=3, max_length=MAX_ITEMS)]
    """In any order: each learner gets them shuffled."""
    orders: Annotated[
        tuple[Annotated[tuple[Id, ...], BeforeValidator(_tuple)], ...],
        BeforeValidator(_tuple),
        Field(min_length=1, max_length=MAX_ORDERS),
    ]
    """The accepted orders, each the ids of all items from first to last. The first is shown as the solution."""
    feedback: Verdicts

    @model_validator(mode="after")
    def _orders_of_the_items(self) -> "OrderQuestion":
        ids = [item.id for item in self.items]
        _different(ids, "items")
        for order in self.orders:
            if sorted(order) != sorted(ids):
                raise ValueError(f"the order {', '.join(order)} does not hold each of {', '.join(ids)} once")
            if self.orders.count(order) > 1:
                raise ValueError(f"the order {', '.join(order)} stands here twice")
        if len(self.orders) == math.factorial(len(ids)):
            raise ValueError("every order is accepted, so nobody can be wrong")
        return self


class SpotQuestion(_Question):
    """Find the faulty line in a listing."""

    kind: Literal["spot"]
    prompt: BankText
    code: Words
    line: Annotated[
        tuple[int, ...],
        BeforeValidator(_tuple_of_one),
        Field(min_length=1),
        WithJsonSchema(
            {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}, "minItems": 1}]}
        ),
    ]
    """The accepted lines, 1-based."""
    feedback: Verdicts
    lines: dict[int, BankText] = {}
    """What to say about a line that deserves its own words."""

    def listing(self) -> list[str]:
        """The lines that are shown."""
        return self.code.rstrip().split("\n")


class PredictQuestion(_Question):
    """Commit to a number or a choice before a run; what the run measured decides."""

    kind: Literal["predict"]
    prompt: BankText
    unit: BankText | None = None
    least: Bound | None = None
    """A number below this is refused: nothing can be measured there."""
    most: Bound | None = None
    """A number above this is refused."""
    tolerance: Tolerance = 0.0
    absolute_tolerance: Tolerance = 0.0
    options: Annotated[tuple[Guess, ...], BeforeValidator(_tuple), AfterValidator(lambda o: _guessable(o))] = ()
    feedback: Verdicts

    @model_validator(mode="after")
    def _bounds_of_a_number(self) -> "PredictQuestion":
        if self.options and not (self.least is None and self.most is None):
            raise ValueError("least: and most: are for a prediction that is a number; this one has options")
        if self.least is not None and self.most is not None and self.least >= self.most:
            raise ValueError(f"least: {self.least:g} is not below most: {self.most:g}")
        return self


class CodeQuestion(_Question):
    """Write a function; what is asked, and its hints, stand with the exercise."""

    kind: Literal["code"]
    exercise: Words
    prompt: BankText | None = None
    """Said before the exercise's own statement."""


Question = (
    ChoiceQuestion | MultipleQuestion | NumberQuestion | OrderQuestion | SpotQuestion | PredictQuestion | CodeQuestion
)


class Bank(_Strict):
    """The questions of one lesson."""

    lesson: Annotated[str, StringConstraints(pattern=r"^\d\d_[a-z0-9_]+$")]
    title: BankText
    objectives: Annotated[dict[Words, BankText], Field(min_length=1)]
    """The aims of the lesson."""
    questions: Annotated[
        tuple[Annotated[Question, Field(discriminator="kind")], ...],
        BeforeValidator(_tuple),
        Field(min_length=1),
    ]

    @property
    def counted(self) -> tuple[Question, ...]:
        """The questions that go towards the result: all but the predictions."""
        return tuple(question for question in self.questions if not isinstance(question, PredictQuestion))

    @property
    def predictions(self) -> tuple[PredictQuestion, ...]:
        """The predictions."""
        return tuple(question for question in self.questions if isinstance(question, PredictQuestion))

    def question(self, question_id: str) -> Question:
        """The question with this id; ValueError lists those there are."""
        for question in self.questions:
            if question.id == question_id:
                return question
        known = ", ".join(question.id for question in self.questions)
        raise ValueError(f"lesson {self.lesson} has no question {question_id!r}; it has {known}")


def _pickable(options: tuple[Option, ...], right: int | None) -> tuple[Option, ...]:
    marked = sum(option.correct for option in options)
    if right is not None and marked != right:
        raise ValueError(f"{marked} options are marked correct; a choice has exactly one")
    if not 1 <= marked < len(options):
        raise ValueError(f"{marked} of {len(options)} options are marked correct; at least one is right and one wrong")
    _different([option.id for option in options])
    return options


def _guessable(options: tuple[Guess, ...]) -> tuple[Guess, ...]:
    if len(options) == 1:
        raise ValueError("a prediction needs at least two options, or none for a number")
    _different([option.id for option in options])
    return options


def _different(ids: Sequence[str], what: str = "options") -> None:
    for one in ids:
        if ids.count(one) > 1:
            raise ValueError(f"two {what} have the id {one!r}")


NAME_IN_BRACES = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
"""A name in a text, to be filled in: {b}."""
