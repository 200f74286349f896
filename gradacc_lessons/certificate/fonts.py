"""Fonts for a certificate: those that matplotlib brings, and for what they lack, whatever this computer has."""

import re
from functools import cache
from pathlib import Path

from matplotlib import font_manager

SERIF = ("STIXGeneral", "DejaVu Serif", "DejaVu Sans")
"""The first has the characters of most European languages; the others many more. All come with matplotlib."""
MONO = ("DejaVu Sans Mono",)
INVISIBLE = "\u200c\u200d\ufe0e\ufe0f "
"""What needs no glyph of its own."""


def families(text: str) -> tuple[str, ...]:
    """The font families that together show `text`, as far as any font here can; matplotlib takes them in order."""
    found, wanted = list(SERIF), _lacking(text, SERIF)
    for name in _others() if wanted else ():
        if wanted & _characters(name):
            found.append(name)
            wanted -= _characters(name)
    return tuple(found)


def not_shown(text: str) -> str:
    """The characters of `text` that no font here has: the picture shows boxes for them."""
    lacking = _lacking(text, families(text))
    return "".join(dict.fromkeys(char for char in text if ord(char) in lacking))


def _lacking(text: str, names: tuple[str, ...]) -> set[int]:
    wanted = {ord(char) for char in text if char not in INVISIBLE}
    return wanted.difference(*map(_characters, names))


def _others() -> list[str]:
    """The families of this computer, in an order that does not change."""
    return sorted(_files())


@cache
def _files() -> dict[str, str]:
    """A file of each family; without fonts of coloured pictures, and the one that has a box for everything."""
    found: dict[str, str] = {}
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda entry: (entry.style != "normal", entry.fname)):
        if not re.search(r"emoji|lastresort", Path(entry.fname).name, re.IGNORECASE):
            found.setdefault(entry.name, entry.fname)
    return found


@cache
def _characters(name: str) -> frozenset[int]:
    """The code points that a family has."""
    try:
        return frozenset(font_manager.get_font(_files()[name]).get_charmap())
    except (KeyError, RuntimeError, OSError):  # not here, or no outlines
        return frozenset()
