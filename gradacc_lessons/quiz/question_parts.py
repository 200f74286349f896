"""What questions are made of: texts in both languages, formulas, variables, and things to pick or to put in order."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import (
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
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,59}$")]
Words = Annotated[str, StringConstraints(pattern=r"\S")]


class Strict(BaseModel):
    """Takes the fields that it names, of their own types, and nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


class _Languages(Strict):
    en: Words
    nl: Words


def _text(value: Any) -> Text:
    both = _Languages.model_validate(value)
    return Text(both.en.strip(), both.nl.strip())


def _formula(value: Any) -> Formula:
    # YAML reads `answer: 12` as a number; as a formula it is the text "12".
    return formula.read(str(value) if isinstance(value, int | float) else _Source(text=value).text)


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def tuple_of_one(value: Any) -> Any:
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else as_tuple(value)


class _Source(Strict):
    text: Words


BankText = Annotated[Text, PlainValidator(_text), WithJsonSchema(_Languages.model_json_schema())]
BankFormula = Annotated[Formula, PlainValidator(_formula), WithJsonSchema({"type": ["string", "number"]})]
Several = Annotated[tuple[Item, ...], BeforeValidator(as_tuple)]
Tolerance = Annotated[float, Field(ge=0, lt=float("inf"))]
Bound = Annotated[float, Field(allow_inf_nan=False)]


class Variable(Strict):
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


class Option(Strict):
    """One thing to pick."""

    id: Id
    correct: bool = False
    text: BankText
    feedback: BankText
    """Why it is right; or, if it is wrong, the misconception behind it."""


class Guess(Strict):
    """One thing to predict; what happens says whether it was right."""

    id: Id
    text: BankText


class OrderItem(Strict):
    """One thing to put in its place."""

    id: Id
    text: BankText
    feedback: BankText | None = None
    """What to say if it is the first that is out of place; without it, the question's feedback for wrong answers."""


class Verdicts(Strict):
    """What to say after an answer."""

    correct: BankText
    wrong: BankText


class Mistake(Strict):
    """A wrong formula that is recognised by its value."""

    formula: BankFormula
    feedback: BankText
