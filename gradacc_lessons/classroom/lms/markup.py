"""XML from text that may hold anything."""

import re
import xml.etree.ElementTree as ET

from gradacc_lessons.quiz.formula import Number

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def add(parent: ET.Element, tag: str, text: str | None = None, **attributes: str) -> ET.Element:
    """A new element at the end of `parent`."""
    made = ET.SubElement(parent, tag, {name: clean(value) for name, value in attributes.items()})
    made.text = clean(text) if text is not None else None
    return made


def clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return _NOT_IN_XML.sub("", text)


def as_bytes(root: ET.Element) -> bytes:
    """The document."""
    ET.indent(root)
    document: bytes = ET.tostring(root, "utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + document + b"\n"


def plain(number: Number) -> str:
    """A number as both systems read it: a point, no thousands, whole numbers without a point.

    >>> plain(4.0), plain(0.1), plain(12)
    ('4', '0.1', '12')
    """
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))
