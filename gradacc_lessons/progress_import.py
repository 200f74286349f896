"""What somebody has to import: an exported text as editors and shells leave it, or a progress file itself."""

import codecs
from pathlib import Path
from typing import BinaryIO

from gradacc_lessons.progress_exchange import MAX_TEXT, TextRefused, as_text
from gradacc_lessons.progress_reading import can_be_read
from gradacc_lessons.progress_store import read_copy
from gradacc_lessons.text import Text

SQLITE = b"SQLite format 3\0"
"""How every file of SQLite's begins."""
NO_PROGRESS_FILE = Text(
    "This progress file cannot be read here: it is damaged, of another program, or of a newer version of the course.",
    "Dit voortgangsbestand is hier niet te lezen: het is beschadigd, van een ander programma, of van een nieuwere"
    " versie van de cursus.",
)


def text_from(stream: BinaryIO) -> str:
    """The text, in UTF-8 or, with the mark that says so, in UTF-16: what is too long is cut, and then refused."""
    raw = stream.read(MAX_TEXT + 1)
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return raw.decode("utf-16" if marked else "utf-8-sig", "replace")


def text_in(file: Path) -> str:
    """The text in a file; of a progress file, what it would export. TextRefused if that cannot be read."""
    with file.open("rb") as opened:
        if opened.read(len(SQLITE)) != SQLITE:
            opened.seek(0)
            return text_from(opened)
    text = read_copy(file, can_be_read, as_text)
    if text is None:
        raise TextRefused(NO_PROGRESS_FILE)
    return text
