"""What a learner gets back about a loop."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import Any

from gradacc_lessons.text import Language, Text


class Outcome(Enum):
    """How a check ended."""

    CORRECT = "correct"
    WRONG = "wrong"
    NOT_ATTEMPTED = "not attempted"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


HEADINGS: dict[Outcome, Text] = {
    Outcome.CORRECT: Text("✔ Correct", "✔ Goed"),
    Outcome.WRONG: Text("✘ Not yet", "✘ Nog niet"),
    Outcome.NOT_ATTEMPTED: Text("… Not attempted", "… Nog niet begonnen"),
    Outcome.CRASHED: Text("⚠ Stopped with an error", "⚠ Gestopt met een fout"),
    Outcome.TIMED_OUT: Text("⏱ Out of time", "⏱ Tijd is op"),
}
_COLUMNS = {
    "epoch": Text("epoch", "epoch"),
    "update": Text("update", "update"),
    "gradient": Text("gradient applied (1 = right)", "toegepaste gradient (1 = goed)"),
}
_PRINTED = Text("Your loop printed:", "Je lus printte:")


@dataclass(frozen=True)
class Diagnosis:
    """Which mistake is in a loop, and what was measured to say so."""

    outcome: Outcome
    """CORRECT, WRONG, NOT_ATTEMPTED, CRASHED or TIMED_OUT."""
    said: Text
    """One or a few sentences: what is wrong and where."""
    faults: tuple[str, ...] = ()
    """Ids of the catalogue. Empty when nothing is wrong, or when it is wrong in a way that nobody has catalogued."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """What was measured; empty when the loop did not get that far. `trace` has a row per update: epoch, update,
    gradient (the sum of the weights with which micro-batches went into it; 1 is right) and weights (each of
    them). `updates`, `updates_expected`, `forwards`, `backwards` and `micro_batches` count over two epochs.
    `graphs_alive` is the most graphs that were kept at once, in micro-batches. `printed` is the beginning of what
    the loop printed, `seconds` how long it ran, `measured_in` the situation that trace and counts belong to."""
    language: Language = "en"
    """The language of `message`, and of what is shown."""

    @property
    def message(self) -> str:
        """What is wrong and where, in the language that was asked for."""
        return self.to(self.language)

    def to(self, language: Language) -> str:
        """The message in another language; ValueError names the languages there are."""
        return self.said.to(language)

    @property
    def correct(self) -> bool:
        """Whether the loop is right in the scope asked for."""
        return self.outcome is Outcome.CORRECT

    def _telling(self) -> Sequence[dict[str, Any]]:
        """The trace, if it shows that something is wrong: another number of updates, or a gradient that is not 1."""
        rows: Sequence[dict[str, Any]] = self.evidence.get("trace", ())
        if len(rows) == self.evidence.get("updates_expected") and all(_shown(row) == "1" for row in rows):
            return ()
        return rows

    def __str__(self) -> str:
        lines = [f"{HEADINGS[self.outcome].to(self.language)}. {self.message}"]
        if rows := self._telling():
            title = _COLUMNS["gradient"].to(self.language)
            lines.append(f"{title}: " + ", ".join(map(_shown, rows)))
        if self.evidence.get("printed") and not self.correct:
            lines += [_PRINTED.to(self.language), self.evidence["printed"].rstrip()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heading = escape(HEADINGS[self.outcome].to(self.language))
        paragraphs = "".join(f"<p>{escape(part)}</p>" for part in self.message.split("\n"))
        table = self._table()
        printed = "" if self.correct else self.evidence.get("printed", "")
        if printed:
            printed = f"<p>{escape(_PRINTED.to(self.language))}</p><pre>{escape(printed)}</pre>"
        return f'<div lang="{self.language}"><p><strong>{heading}</strong></p>{paragraphs}{table}{printed}</div>'

    def _table(self) -> str:
        rows = self._telling()
        if not rows:
            return ""
        head = "".join(f'<th scope="col">{escape(title.to(self.language))}</th>' for title in _COLUMNS.values())
        body = "".join(
            f"<tr><td>{row['epoch']}</td><td>{row['update']}</td><td>{_shown(row)}</td></tr>" for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(row: dict[str, Any]) -> str:
    return f"{row['gradient']:.3g}"
