"""What every exhibit of the museum has."""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from textwrap import dedent
from typing import Any, ClassVar, Literal, get_args

from gradacc_lessons.text import Language, Text

Kind = Literal["bug", "fixed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Instrument = Literal["diagnose", "examine", "trace"]
INSTRUMENTS: tuple[Instrument, ...] = get_args(Instrument)


class Exhibit(ABC):
    """One public bug, rebuilt small in code of the course's own.

    `bug` and `fixed` are what a visitor reads: they differ in what the bug was, and in nothing else.
    """

    project: ClassVar[str]
    """Whose bug it was, as people call it: "nanoGPT"."""
    year: ClassVar[int]
    """When it was reported."""
    thread: ClassVar[str]
    """The address of the public issue or pull request."""
    title: ClassVar[Text]
    """The bug in a few words."""
    symptom: ClassVar[Text]
    """What the user saw, as the thread tells it; its numbers are theirs."""
    number_name: ClassVar[Text]
    """What `measure` gives, with its unit."""
    expected: ClassVar[tuple[float, float]]
    """What `measure` gives with the bug and after the fix, to within 5 %; 0 stands for rounding errors."""
    fix: ClassVar[Text]
    """What was changed."""
    explanation: ClassVar[Text]
    """Why it went wrong, and what the number says."""
    finding: ClassVar[str]
    """The id that the instrument gives the bug."""
    also: ClassVar[tuple[str, ...]] = ()
    """Ids that come with it, where one cause shows in two ways."""
    lesson: ClassVar[str]
    """The notebook (file stem) that explains it."""
    instrument: ClassVar[Instrument]
    """What finds it; `kinds` sets it."""
    bug: ClassVar[Callable[..., Any]]
    """The code with the bug."""
    fixed: ClassVar[Callable[..., Any]]
    """The same code without it."""

    @property
    def id(self) -> str:
        """The file's name, with hyphens: "nanogpt-168"."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    def about(self, language: Language = "en") -> dict[str, Any]:
        """What there is to say before it is run: id, project, year, title, symptom, instrument, finding, fix,
        explanation, lesson and thread."""
        texts = {name: getattr(self, name).to(language) for name in ("title", "symptom", "fix", "explanation")}
        facts = {name: getattr(self, name) for name in ("id", "project", "year", "instrument", "finding")}
        return facts | texts | {"lesson": self.lesson, "thread": self.thread}

    def code(self, kind: Kind) -> Callable[..., Any]:
        """What runs."""
        function: Callable[..., Any] = getattr(type(self), checked(kind))
        return function

    def source(self, kind: Kind) -> str:
        """What runs, as a visitor reads it."""
        return dedent(inspect.getsource(self.code(kind))).removeprefix("@staticmethod\n").strip() + "\n"

    @property
    def beside(self) -> str:
        """The functions and classes of its file that the code calls, as a visitor reads them; "" if there are none."""
        module = type(self).__module__
        shown = "".join(self.source(kind) for kind in KINDS)
        own = [value for value in vars(sys.modules[module]).values() if getattr(value, "__module__", None) == module]
        called = [value for value in own if value is not type(self) and f"{value.__name__}(" in shown]
        return "\n\n\n".join(inspect.getsource(value).strip() for value in called)

    @abstractmethod
    def measure(self, kind: Kind) -> float:
        """The number that gives the bug away."""

    @abstractmethod
    def inspect(self, kind: Kind) -> Any:
        """What the instrument says: its own result."""

    @abstractmethod
    def findings(self, result: Any) -> tuple[str, ...]:
        """The ids in what `inspect` gave."""

    @abstractmethod
    def said(self, result: Any) -> Text:
        """What `inspect` gave, in words."""


def checked(kind: Kind) -> Kind:
    """The kind itself; ValueError if it is neither "bug" nor "fixed"."""
    if kind not in KINDS:
        raise ValueError(f"an exhibit has the kinds {' and '.join(KINDS)}, not {kind!r}")
    return kind
