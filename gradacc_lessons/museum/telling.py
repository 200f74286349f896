"""The museum in words: the list of exhibits, and a visit as somebody reads it."""

from collections.abc import Iterable
from difflib import ndiff

from gradacc_lessons.museum.exhibit import Exhibit
from gradacc_lessons.museum.visit import Seen, Visit
from gradacc_lessons.text import Language, Text

WORDS = {
    "symptom": Text("What the thread reports", "Wat de thread meldt"),
    "code": Text(
        "The code, rebuilt for this course (- with the bug, + after the fix)",
        "De code, nagebouwd voor deze cursus (- met de bug, + na de reparatie)",
    ),
    "number": Text("Measured here", "Hier gemeten"),
    "bug": Text("with the bug", "met de bug"),
    "fixed": Text("after the fix", "na de reparatie"),
    "says": Text("What {instrument} says", "Wat {instrument} zegt"),
    "fix": Text("The fix", "De reparatie"),
    "explanation": Text("Why", "Waarom"),
    "thread": Text("The thread", "De thread"),
    "lesson": Text(
        "Explained in lesson {lesson}. Both runs took {seconds} of computing.",
        "Uitgelegd in les {lesson}. Beide runs kostten {seconds} rekentijd.",
    ),
    "none": Text("nothing", "niets"),
    "visit": Text(
        "gradacc museum ID runs one and tells it; gradacc museum --all runs them all.",
        "gradacc museum ID draait er een en vertelt erover; gradacc museum --all draait ze allemaal.",
    ),
    "all": Text(
        "{found} of {number} exhibits: found by their instrument with the bug, and nothing after the fix.",
        "{found} van {number} stukken: met de bug gevonden door hun instrument, en na de reparatie niets.",
    ),
}  # fmt: skip
ROUNDING = 1e-9
"""What is below this is rounding, and told as 0."""


def number_in_words(number: float) -> str:
    """Three digits; what is only rounding is 0."""
    return "0" if abs(number) < ROUNDING else f"{number:.3g}"


def listed(collection: Iterable[Exhibit], language: Language) -> str:
    """A line for each exhibit: its id, the year, the instrument, and the bug."""
    rows = [(one.id, str(one.year), one.instrument, one.title.to(language)) for one in collection]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
    ]
    return "\n".join([*lines, "", WORDS["visit"].to(language)])


def told(visit: Visit, language: Language) -> str:
    """The exhibit as a visitor reads it: the report, the code, the number, the instrument, the fix, the thread."""
    one = visit.exhibit
    said = WORDS["says"].to(language).format(instrument=one.instrument)
    numbers = [f"{WORDS[kind].to(language)}: {number_in_words(seen.number)}" for kind, seen in _both(visit)]
    parts = [
        (f"{one.id}: {one.project}, {one.year}", one.title.to(language) + "."),
        (WORDS["symptom"].to(language), one.symptom.to(language)),
        (WORDS["code"].to(language), "\n\n".join(part for part in (one.beside, changed(one)) if part)),
        (f"{WORDS['number'].to(language)}: {one.number_name.to(language)}", "\n".join(numbers)),
        *((f"{said}, {WORDS[kind].to(language)}", seen.said.to(language)) for kind, seen in _both(visit)),
        (WORDS["fix"].to(language), one.fix.to(language)),
        (WORDS["explanation"].to(language), one.explanation.to(language)),
        (WORDS["thread"].to(language), one.thread),
    ]
    seconds = f"{visit.seconds:.1f} s"
    end = WORDS["lesson"].to(language).format(lesson=one.lesson, seconds=seconds)
    return "\n\n".join([*(f"{heading}\n{text}" for heading, text in parts), end])


def in_a_line(visit: Visit, language: Language) -> str:
    """What was found, and the two numbers."""
    bug, fixed = number_in_words(visit.bug.number), number_in_words(visit.fixed.number)
    found = [", ".join(seen.findings) or WORDS["none"].to(language) for _, seen in _both(visit)]
    return f"{bug} -> {fixed}  {visit.exhibit.instrument}: {found[0]} -> {found[1]}  ({visit.seconds:.1f} s)"


def summed_up(visits: list[Visit], language: Language) -> str:
    """How many were found as they should be."""
    return WORDS["all"].to(language).format(found=sum(one.found for one in visits), number=len(visits))


def changed(one: Exhibit) -> str:
    """The code with the bug, and what becomes of it: lines that go have a minus, lines that come a plus."""
    before, after = (one.source(kind).splitlines()[1:] for kind in ("bug", "fixed"))
    return "\n".join(line.rstrip() for line in ndiff(before, after) if not line.startswith("?"))


def _both(visit: Visit) -> tuple[tuple[str, Seen], tuple[str, Seen]]:
    return ("bug", visit.bug), ("fixed", visit.fixed)
