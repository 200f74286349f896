"""What a learner gets back: text that shows itself, in a notebook and out of it, with nothing in it taken as HTML."""

import re
from dataclasses import dataclass, replace
from html import escape

from gradacc_lessons.cell import number_of_cell
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.grade import Grade, fill
from gradacc_lessons.text import Language, Text, joined

_CODE = re.compile(r"`([^`\n]+)`")


def html(text: str) -> str:
    """Plain text as HTML: escaped, `code` between backticks set as code, lines kept apart."""
    return _CODE.sub(r"<code>\1</code>", escape(text)).replace("\n", "<br>")


@dataclass(frozen=True)
class Note:
    """A few words to the learner, and sometimes a piece of code."""

    message: Text
    """What is said, in both languages."""
    language: Language
    """The language in which it shows itself."""
    code: str = ""
    """Source to show below it."""

    @property
    def text(self) -> str:
        """What is said, in the note's language."""
        return self.message.to(self.language)

    def __str__(self) -> str:
        return f"{self.text}\n\n{self.code}" if self.code else self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        code = f"<pre>{escape(self.code)}</pre>" if self.code else ""
        return f"<div>{html(self.text)}{code}</div>"


@dataclass(frozen=True, repr=False)
class Feedback(Note):
    """What is said to an answer."""

    correct: bool | None = None
    """Whether the answer is right in full; None where that is not known yet (a prediction before its run)."""
    fraction: float = 0.0
    """Share of the question's points that it is worth."""
    counted: bool = True
    """False if it was no answer, so that nothing was recorded."""
    counts: bool = True
    """Whether it goes towards the result; False for a second answer in the same take."""
    mistake: str | None = None
    """Which misconception it shows, if that is known."""
    shown_in: int | None = None
    """The number of the cell that has shown it already; None if none has."""

    def _ipython_display_(self) -> None:
        if self.shown_in is None or self.shown_in != number_of_cell():
            raise NotImplementedError  # then IPython shows it as it shows any note


def shown(feedback: Feedback) -> Feedback:
    """Show it now, if a cell asks for it: a notebook shows only the last line of a cell by itself."""
    number = number_of_cell()
    if number is None:
        return feedback
    from IPython.display import display

    display(feedback)
    return replace(feedback, shown_in=number)


@dataclass(frozen=True, repr=False)
class Result(Note):
    """How a quiz stands."""

    points: float = 0.0
    """Points of this take."""
    of: float = 0.0
    """Points there are."""
    fraction: float = 0.0
    """Their share, 0 to 1."""
    best: float = 0.0
    """The share of the best take so far."""
    passed: bool = False
    """Whether the best take reaches the pass mark."""
    take: int = 1
    """Which take this is, from 1."""
    answered: int = 0
    """Questions that have an answer that counts."""
    questions: int = 0
    """Questions that count."""
    reread: tuple[str, ...] = ()
    """Headings of the notebook where this take lost points."""


def graded(grade: Grade, language: Language, *, practice: Text | None = None) -> Feedback:
    """A grade as the learner sees it: the verdict in a word and a sign, then the words of the bank.

    `practice` says why the answer does not go towards the result; without it, it does.
    """
    if not grade.counted:
        verdict = words.NO_ANSWER
    elif grade.correct:
        verdict = words.RIGHT
    elif grade.fraction > 0:
        verdict = fill(words.PARTLY, {"share": f"{grade.fraction:.0%}"})
    else:
        verdict = words.WRONG
    message = joined([verdict, grade.feedback, *([practice] if practice else [])])
    correct, counts = grade.correct if grade.counted else None, practice is None
    return Feedback(message, language, "", correct, grade.fraction, grade.counted, counts, grade.mistake)
