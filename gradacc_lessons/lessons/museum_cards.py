"""Lesson 09: an exhibit on two cards. One has the symptom and the listing, the other says what it was."""

from dataclasses import dataclass
from html import escape

from gradacc_lessons.lessons.museum_runs import numbers
from gradacc_lessons.museum.collection import exhibit
from gradacc_lessons.museum.exhibit import Exhibit
from gradacc_lessons.museum.telling import changed, number_in_words

OPEN_LATER = "Open this when you have an answer of your own"


@dataclass(frozen=True)
class Part:
    """One paragraph of a card."""

    heading: str
    """What it is about."""
    text: str
    """What it says."""
    form: str = "text"
    """How it is shown: "text", "code", or "link" for an address."""


@dataclass(frozen=True)
class Card:
    """What stands beside an exhibit; folded, so that there is time to think."""

    parts: tuple[Part, ...]
    """From the top."""
    folded: bool
    """Whether it is to be opened by who wants to see it."""

    def _repr_html_(self) -> str:
        page = "".join(f"<p><b>{escape(part.heading)}</b></p>{_html(part)}" for part in self.parts)
        return f"<details><summary>{OPEN_LATER}</summary>{page}</details>" if self.folded else page

    def __repr__(self) -> str:
        return "\n\n".join(f"{part.heading}\n{part.text}" for part in self.parts)


def _html(part: Part) -> str:
    text = escape(part.text)
    if part.form == "code":
        return f'<pre style="line-height:1.3" tabindex="0">{text}</pre>'
    return f'<p><a href="{text}">{text}</a></p>' if part.form == "link" else f"<p>{text}</p>"


def symptom(name: str) -> Card:
    """What the user saw, and the code with the bug, without saying what it is."""
    one = exhibit(name)
    code = Part("The code, rebuilt", _with_what_it_calls(one, one.source("bug")), "code")
    return Card((Part(f"What was seen ({one.project}, {one.year})", one.symptom.en), code), folded=False)


def answer(name: str, *, folded: bool = True) -> Card:
    """What the bug was: its number, its name, what was changed, why, and where to read on."""
    one = exhibit(name)
    return Card((Part("What it is", f"{one.title.en}."), _number(one), *_rest(one)), folded)


def _with_what_it_calls(one: Exhibit, code: str) -> str:
    return "\n\n\n".join(part for part in (one.beside, code) if part)


def _number(one: Exhibit) -> Part:
    own = numbers(one.id)
    bug, fixed = number_in_words(own["bug"]), number_in_words(own["fixed"])
    return Part("What gives it away", f"{one.number_name.en}: {bug} with the bug, {fixed} after the fix.")


def _rest(one: Exhibit) -> tuple[Part, ...]:
    return (
        Part("The change: - with the bug, + after the fix", _with_what_it_calls(one, changed(one)), "code"),
        Part("The fix", one.fix.en),
        Part("Why", one.explanation.en),
        Part("Found by", f"{one.instrument}, as {one.finding}; explained in lesson {one.lesson[:2]}"),
        Part("The thread", one.thread, "link"),
    )
