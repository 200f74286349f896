"""CSV as teachers have it: read in any of the usual ways of writing it, written so that no spreadsheet runs it."""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gradacc_lessons.classroom.problem import ClassError

MOST_BYTES = 20_000_000
STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""A spreadsheet may run what begins so."""
NOTHING = "-"
"""Alone it is how grade books write that there is no grade."""
_A_NUMBER = re.compile(r"-?(\d+(\.\d+)?)?", re.ASCII)
"""Below nothing, or NOTHING: no spreadsheet runs these."""


def bytes_of_table(file: Path) -> bytes:
    """The bytes of a table, read once; ClassError if it is too large."""
    with file.open("rb") as stream:
        raw = stream.read(MOST_BYTES + 1)  # what a device or a pipe says of its size is not true
    if len(raw) > MOST_BYTES:
        raise ClassError("table", f"{file} is too large for a table", f"{file} is te groot voor een tabel")
    return raw


def table_in(raw: bytes, file: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The names of a table's columns, and its rows by them, each behind the number of the line that it ends on.

    UTF-8 with or without a mark, UTF-16 with one, or else Windows-1252; commas, semicolons or tabs. Spaces around
    anything are taken away. ClassError, which names `file`, if it is no CSV.
    """
    text = _text_of(raw)
    heading = text.partition("\n")[0]
    delimiter = max(",;\t", key=heading.count)
    try:
        # Strict: a quote that is never closed would swallow everybody behind it.
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise ClassError("table", f"{file} is no CSV: {error}", f"{file} is geen CSV: {error}") from None
    columns = [name.strip() for name in reader.fieldnames or ()]
    return columns, [
        (line, {name.strip(): (value or "").strip() for name, value in row.items() if name is not None})
        for line, row in rows  # the name None has what stands beyond the last column
    ]


def _text_of(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def as_csv(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """A table as CSV with the mark by which Excel knows UTF-8, and with no cell that a spreadsheet would run."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(heading)
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8-sig")


def harmless(cell: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would take for a formula.

    >>> harmless("=1+1"), harmless("Ada")
    ("'=1+1", 'Ada')
    """
    runs = not _A_NUMBER.fullmatch(cell) and cell.lstrip(" \u00a0\ufeff").startswith(STARTS_A_FORMULA)
    return f"'{cell}" if runs else cell
