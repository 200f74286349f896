"""A visit to one exhibit: it is run with the bug and after the fix, measured, and inspected."""

import time
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.museum.collection import exhibit
from gradacc_lessons.museum.exhibit import Exhibit, Kind
from gradacc_lessons.text import Language, Text


@dataclass(frozen=True)
class Seen:
    """One of the two runs of an exhibit."""

    number: float
    """What `measure` gave."""
    findings: tuple[str, ...]
    """The ids that the instrument reported."""
    said: Text
    """What the instrument said."""
    result: Any
    """The instrument's own result: a Diagnosis, an Examination or a Tape."""
    seconds: float
    """The processor time of the run and its inspection in this process; what `diagnose` runs in a process of its own
    is not in it."""


@dataclass(frozen=True)
class Visit:
    """What there was to see at an exhibit."""

    exhibit: Exhibit
    """Which one."""
    bug: Seen
    """The run with the bug."""
    fixed: Seen
    """The run after the fix."""

    @property
    def seconds(self) -> float:
        """The processor time of both runs. What is loaded once, such as data, is loaded before."""
        return self.bug.seconds + self.fixed.seconds

    @property
    def found(self) -> bool:
        """Whether the instrument found the bug, and nothing after the fix."""
        one = self.exhibit
        return set(self.bug.findings) == {one.finding, *one.also} and not self.fixed.findings

    def row(self, language: Language = "en") -> dict[str, Any]:
        """What a table shows of it: id, project, year, title, number_name, with_bug, after_fix, instrument, findings
        (as one text), thread and seconds. Numbers are numbers."""
        one = self.exhibit
        return {
            "id": one.id,
            "project": one.project,
            "year": one.year,
            "title": one.title.to(language),
            "number_name": one.number_name.to(language),
            "with_bug": self.bug.number,
            "after_fix": self.fixed.number,
            "instrument": one.instrument,
            "findings": ", ".join(self.bug.findings),
            "thread": one.thread,
            "seconds": self.seconds,
        }

    def details(self, language: Language = "en") -> dict[str, Any]:
        """All there is to tell: `about`, the row, the code, and what the instrument said of both runs."""
        one = self.exhibit
        said = {f"said_{name}": seen.said.to(language) for name, seen in (("bug", self.bug), ("fixed", self.fixed))}
        code = {"code_beside": one.beside} | {f"code_{kind}": one.source(kind) for kind in ("bug", "fixed")}
        return one.about(language) | self.row(language) | code | said | {"found": self.found}


def run_exhibit(name: str) -> Visit:
    """Run the exhibit with this id; ValueError names those there are."""
    return visit(exhibit(name))


def visit(one: Exhibit) -> Visit:
    """Run this exhibit: measured and inspected, with the bug and after the fix."""
    one.measure("fixed")  # what is loaded once is there from now on
    return Visit(one, _seen(one, "bug"), _seen(one, "fixed"))


def _seen(one: Exhibit, kind: Kind) -> Seen:
    began = time.process_time()
    number, result = one.measure(kind), one.inspect(kind)
    return Seen(number, one.findings(result), one.said(result), result, time.process_time() - began)
