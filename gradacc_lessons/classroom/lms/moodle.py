"""Moodle XML: what `Question bank > Import > Moodle XML format` reads.

The sets of numbers of one question stand in a category of their own, so that a quiz can take a random one of them.
Source of the format: Moodle's own reader, question/format/xml/format.php in the repository moodle/moodle.
"""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence

from gradacc_lessons.classroom.lms.items import LmsItem
from gradacc_lessons.classroom.lms.markup import add, as_bytes, plain
from gradacc_lessons.text import Language, Text

TOP = "$course$/top/Gradient accumulation"
ALL_RIGHT, SOME_RIGHT = Text("Right.", "Goed."), Text("Partly right.", "Gedeeltelijk goed.")
NOT_RIGHT = Text("Not right.", "Niet goed.")
FULL = 100
DECIMALS = 5
"""Moodle knows shares such as 33.33333 by exactly so many."""


def moodle_xml(lesson: str, items: Sequence[LmsItem], language: Language) -> bytes:
    """The questions of one lesson as a file to import."""
    root, category = ET.Element("quiz"), ""
    sets = Counter(item.question for item in items)
    for item in items:
        wanted = f"{TOP}/{lesson}/{item.question}" if sets[item.question] > 1 else f"{TOP}/{lesson}"
        if wanted != category:
            category = wanted
            _text(add(add(root, "question", type="category"), "category"), category)
        _question(root, item, language)
    return as_bytes(root)


def _question(root: ET.Element, item: LmsItem, language: Language) -> None:
    made = add(root, "question", type="multichoice" if item.picks else "numerical")
    _text(add(made, "name"), item.id)
    _text(add(made, "questiontext", format="html"), item.prompt)
    _text(add(made, "generalfeedback", format="html"), "")
    add(made, "defaultgrade", plain(item.points))
    add(made, "penalty", "0")  # the first answer counts
    add(made, "hidden", "0")
    if item.picks:
        _multichoice(made, item, language)
    else:
        _numerical(made, item)
    for hint in item.hints:
        _text(add(made, "hint", format="html"), hint)


def _multichoice(made: ET.Element, item: LmsItem, language: Language) -> None:
    add(made, "single", "false" if item.several else "true")
    add(made, "shuffleanswers", "true" if item.shuffle else "false")
    add(made, "answernumbering", "abc")
    combined = {"correctfeedback": ALL_RIGHT, "partiallycorrectfeedback": SOME_RIGHT, "incorrectfeedback": NOT_RIGHT}
    for tag, text in combined.items():
        _text(add(made, tag, format="html"), text.to(language))
    share = FULL / sum(pick.right for pick in item.picks)
    for pick in item.picks:
        earned = share if pick.right else -share if item.several else 0.0
        answer = add(made, "answer", fraction=plain(round(earned, DECIMALS)), format="html")
        _text(answer, pick.text)
        _text(add(answer, "feedback", format="html"), pick.feedback)


def _numerical(made: ET.Element, item: LmsItem) -> None:
    assert item.right is not None
    answers = [(FULL, item.right), *((0, mistake) for mistake in item.mistakes)]
    for fraction, value in answers:
        answer = add(made, "answer", fraction=str(fraction), format="moodle_auto_format")
        _text(answer, plain(value.value))
        _text(add(answer, "feedback", format="html"), value.feedback)
        add(answer, "tolerance", plain(value.margin))
    other = add(made, "answer", fraction="0", format="moodle_auto_format")
    _text(other, "*")
    _text(add(other, "feedback", format="html"), item.otherwise)
    add(other, "tolerance", "0")
    add(made, "unitgradingtype", "0")
    add(made, "unitpenalty", "0")
    add(made, "showunits", "3")  # no units: the prompt says in which one
    add(made, "unitsleft", "0")


def _text(parent: ET.Element, text: str) -> None:
    add(parent, "text", text)
