"""One known mistake in a loop that accumulates gradients."""

from dataclasses import dataclass
from textwrap import dedent

from gradacc_lessons.detective.scenarios import Scope
from gradacc_lessons.text import Text


@dataclass(frozen=True)
class Fault:
    """A mistake, how it is told to a learner, and a loop that makes it and no other."""

    id: str
    """Stable; shared with quizzes, exercises and messages."""
    title: Text
    """The mistake in a few words."""
    message: Text
    """What is wrong and where to look; it does not give the repaired line."""
    hints: tuple[Text, ...]
    """From vague to concrete."""
    lesson: str
    """The notebook (file stem) that teaches it."""
    scope: Scope
    """The weakest scope in which it shows."""
    source: str
    """A complete `train_epoch` with exactly this mistake."""


def listing(source: str) -> str:
    """A listing as it is shown: no indentation before `def`, one newline at the end."""
    return dedent(source).strip() + "\n"
