"""What a quiz asks: the shape of `quizzes/NN_snake_case.yaml`."""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from gradacc_lessons.quiz.question_parts import (
    BankFormula,
    BankText,
    Bound,
    Guess,
    Id,
    Mistake,
    Option,
    OrderItem,
    Several,
    Strict,
    Tolerance,
    Variable,
    Verdicts,
    Words,
    as_tuple,
    tuple_of_one,
)

MAX_ITEMS = 10
"""Things to put in order: more cannot be overlooked."""
MAX_ORDERS = 60
"""Accepted orders of one question: with more, almost anything is right."""


class _Question(Strict):
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
    options: Annotated[tuple[Option, ...], BeforeValidator(as_tuple), AfterValidator(lambda o: _pickable(o, 1))]
    shuffle: bool = True
    """Options in an order of the learner's own; False keeps an order that means something."""


class MultipleQuestion(_Question):
    """Pick all that hold."""

    kind: Literal["multiple"]
    prompt: BankText
    options: Annotated[tuple[Option, ...], BeforeValidator(as_tuple), AfterValidator(lambda o: _pickable(o, None))]
    shuffle: bool = True


class NumberQuestion(_Question):
    """Compute a number from the learner's own variables."""

    kind: Literal["number"]
    prompt: BankText
    variables: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")], Variable] = Field(
        default_factory=dict
    )
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
    items: Annotated[tuple[OrderItem, ...], BeforeValidator(as_tuple), Field(min_length=3, max_length=MAX_ITEMS)]
    """In any order: each learner gets them shuffled."""
    orders: Annotated[
        tuple[Annotated[tuple[Id, ...], BeforeValidator(as_tuple)], ...],
        BeforeValidator(as_tuple),
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
        BeforeValidator(tuple_of_one),
        Field(min_length=1),
        WithJsonSchema(
            {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}, "minItems": 1}]}
        ),
    ]
    """The accepted lines, 1-based."""
    feedback: Verdicts
    lines: dict[int, BankText] = Field(default_factory=dict)
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
    options: Annotated[tuple[Guess, ...], BeforeValidator(as_tuple), AfterValidator(lambda o: _guessable(o))] = ()
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


class Bank(Strict):
    """The questions of one lesson."""

    lesson: Annotated[str, StringConstraints(pattern=r"^\d\d_[a-z0-9_]+$")]
    title: BankText
    objectives: Annotated[dict[Words, BankText], Field(min_length=1)]
    """The aims of the lesson."""
    questions: Annotated[
        tuple[Annotated[Question, Field(discriminator="kind")], ...],
        BeforeValidator(as_tuple),
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
