"""Progress as a short text with a checksum, to keep elsewhere or take to another machine; and taking such a text over.

Nothing that a learner has gets worse by taking a text over: of two takes with the same number the better one stays, and
every answer of the other is kept. Nothing here knows of files; `progress` keeps the file.
"""

import base64
import json
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.canonical import canonical, digest, read
from gradacc_lessons.progress_reading import can_be_read, read_predictions, read_setting, read_takes
from gradacc_lessons.progress_records import Take
from gradacc_lessons.progress_versions import VERSIONS, fresh
from gradacc_lessons.text import Text

NAME = "gradacc-progress"
VERSION = 1
"""Of the text's form. A newer one is refused with a sentence."""
CHECKSUM_DIGITS = 16
"""64 bits: what was copied wrongly is found; who wants to forge their own progress can do so in the file as well."""
LINE = 100
"""Characters in a line of the text."""
MAX_TEXT = 4_000_000
"""Characters of a text that is looked at."""
MAX_UNPACKED = 32_000_000
"""Bytes that it may unpack to: thousands of tries at an exercise."""

TABLES = {
    "settings": ("name", "value"),
    "takes": ("lesson", "take", "points", "questions", "at", "asked", "seed"),
    "answers": ("lesson", "question", "take", "first", "counts", "value", "fraction", "points", "at"),
    "predictions": ("lesson", "question", "value", "measured", "fraction", "at"),
    "reviews": ("lesson", "question", "round", "value", "fraction", "at"),
}
"""What is taken along. Where it is kept as JSON it stands in the text as what the JSON says."""
HELD_AS_JSON = {"answers": {"value"}, "takes": {"asked"}, "predictions": {"value", "measured"}, "reviews": {"value"}}

NOT_OURS = Text(
    f"This is no exported progress: that begins with {NAME}.",
    f"Dit is geen geëxporteerde voortgang: die begint met {NAME}.",
)
INCOMPLETE = Text(
    "This text is incomplete or was changed on its way: its checksum does not fit. Export again and copy all of it.",
    "Deze tekst is onvolledig of onderweg veranderd: de controlesom klopt niet. Exporteer opnieuw en kopieer alles.",
)
NEWER = Text(
    "This progress was exported by a newer version of the course. Update the course here, then import again.",
    "Deze voortgang is geëxporteerd door een nieuwere versie van de cursus. Werk de cursus hier bij en importeer dan"
    " opnieuw.",
)
UNREADABLE = Text(
    "This text arrived as it was sent, but holds what the course never writes, so nothing of it was taken over.",
    "Deze tekst is heel aangekomen, maar er staat iets in wat de cursus nooit schrijft; er is niets van overgenomen.",
)


class TextRefused(ValueError):
    """A text that cannot be taken over; `sentence` says why, in both languages."""

    def __init__(self, sentence: Text) -> None:
        super().__init__(sentence.en)
        self.sentence = sentence


@dataclass(frozen=True)
class TakenOver:
    """What a text has brought."""

    answers: int
    """Answers that were not here yet."""
    takes: int
    """Takes that are new here, or better than they were."""

    @property
    def sentence(self) -> Text:
        """The same in words."""
        if not self.answers and not self.takes:
            return Text("Nothing in it is new here.", "Er staat niets in dat hier nieuw is.")
        return Text(
            f"Taken over. New answers: {self.answers}; takes that are new or better now: {self.takes}.",
            f"Overgenomen. Nieuwe antwoorden: {self.answers}; pogingen die nieuw of nu beter zijn: {self.takes}.",
        )


def as_text(db: sqlite3.Connection) -> str:
    """Everything in an up-to-date database, as lines of LINE characters."""
    held = {table: [_exported(table, row) for row in _rows(db, table)] for table in TABLES}
    own_seed = read_setting(db, "seed")
    for take in held["takes"]:  # one that an older version began: its seed is said here, as the learner's may differ
        take[-1] = take[-1] if take[-1] is not None else own_seed
    packed = base64.urlsafe_b64encode(zlib.compress(canonical(held), 9)).decode()
    text = f"{NAME}-{VERSION}.{_checksum(packed)}.{packed}"
    return "".join(f"{text[at : at + LINE]}\n" for at in range(0, len(text), LINE))


def from_text(text: str) -> sqlite3.Connection:
    """The text as a database in memory, every row of it looked at; TextRefused says what is wrong with it."""
    memory = fresh(len(VERSIONS))
    try:
        _fill(memory, _unpacked(text))
        if can_be_read(memory):
            return memory
    except (sqlite3.Error, TypeError, ValueError, OverflowError, KeyError) as error:
        memory.close()
        raise error if isinstance(error, TextRefused) else TextRefused(UNREADABLE) from error
    memory.close()
    raise TextRefused(UNREADABLE)


def take_over(text: str, db: sqlite3.Connection) -> TakenOver:
    """Merge the text into an up-to-date database, inside the caller's transaction; TextRefused changes nothing."""
    with closing(from_text(text)) as other:
        before = {(lesson, take.number): take.share for lesson in _lessons(db) for take in read_takes(db, lesson)}
        for name, value in _rows(other, "settings"):
            db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, value))
        for lesson in _lessons(other):
            mine = {take.number: take for take in read_takes(db, lesson)}
            for take in read_takes(other, lesson):
                _merge_take(db, other, lesson, mine.get(take.number), take)
        answers = _add_missing(db, "answers", _rows(other, "answers"))
        _add_missing(db, "reviews", _rows(other, "reviews"))
        _merge_predictions(db, other)
        after = {(lesson, take.number): take.share for lesson in _lessons(db) for take in read_takes(db, lesson)}
    return TakenOver(answers, sum(before.get(take, -1.0) < share for take, share in after.items()))


def _unpacked(text: str) -> Any:
    squeezed = "".join(text[: MAX_TEXT + 1].split())
    name, _, rest = squeezed.partition(".")
    told, _, packed = rest.partition(".")
    form, _, version = name.rpartition("-")
    if form != NAME or not version.isascii() or not version.isdigit():
        raise TextRefused(NOT_OURS)
    if version != str(VERSION):
        raise TextRefused(NEWER)
    if len(text) > MAX_TEXT or told != _checksum(packed):
        raise TextRefused(INCOMPLETE)
    try:
        raw = zlib.decompressobj().decompress(base64.urlsafe_b64decode(packed), MAX_UNPACKED + 1)
        return read(raw, most_bytes=MAX_UNPACKED)
    except (ValueError, zlib.error):
        raise TextRefused(UNREADABLE) from None


def _checksum(packed: str) -> str:
    return digest(packed)[:CHECKSUM_DIGITS]


def _fill(memory: sqlite3.Connection, held: Any) -> None:
    for table, columns in TABLES.items():
        for row in held[table]:
            kept = [
                json.dumps(value) if column in HELD_AS_JSON.get(table, ()) and value is not None else value
                for column, value in zip(columns, row, strict=True)
            ]
            _insert(memory, table, kept)


def _exported(table: str, row: tuple[Any, ...]) -> list[Any]:
    as_json = HELD_AS_JSON.get(table, ())
    return [
        json.loads(value) if column in as_json and value is not None else value
        for column, value in zip(TABLES[table], row, strict=True)
    ]


def _rows(db: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    order = "1, 2" if table in ("settings", "takes") else "rowid"  # what was answered when is kept by its place alone
    return db.execute(f"SELECT {', '.join(TABLES[table])} FROM {table} ORDER BY {order}").fetchall()


def _insert(db: sqlite3.Connection, table: str, row: Iterable[Any]) -> None:
    columns = TABLES[table]
    db.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})", tuple(row))


def _lessons(db: sqlite3.Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT DISTINCT lesson FROM takes ORDER BY lesson")]


def _merge_take(
    db: sqlite3.Connection, other: sqlite3.Connection, lesson: str, mine: Take | None, theirs: Take
) -> None:
    """Begin the take as the better of the two did. With other numbers, the answers of the worse one are practice."""
    where = "WHERE lesson = ? AND take = ?"
    key = (lesson, theirs.number)
    better = mine is None or (theirs.share, len(theirs.best)) > (mine.share, len(mine.best))
    if better:
        row = other.execute(f"SELECT {', '.join(TABLES['takes'])} FROM takes {where}", key).fetchone()
        db.execute(f"DELETE FROM takes {where}", key)
        _insert(db, "takes", (*row[:-1], theirs.seed))
    if mine is not None and mine.seed != theirs.seed:
        db_of_the_worse = db if better else other
        db_of_the_worse.execute(f"UPDATE answers SET counts = 0 {where}", key)


def _add_missing(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> int:
    """Add the rows that are not here yet; how many. What counts in either place counts."""
    ids = [row[0] for row in db.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
    here = {_identity(table, row): number for row, number in zip(_rows(db, table), ids, strict=True)}
    added = 0
    for row in rows:
        known = here.get(_identity(table, row))
        if known is None:
            _insert(db, table, row)
            added += 1
        elif table == "answers" and row[TABLES[table].index("counts")]:
            db.execute("UPDATE answers SET counts = 1 WHERE id = ?", (known,))
    return added


def _identity(table: str, row: tuple[Any, ...]) -> bytes:
    """What makes two rows the same: all but whether it counts, which may have changed since."""
    exported = _exported(table, row)
    return canonical([value for column, value in zip(TABLES[table], exported, strict=True) if column != "counts"])


def _merge_predictions(db: sqlite3.Connection, other: sqlite3.Connection) -> None:
    """Of two predictions for one question, one that was measured; else the one that is here."""
    mine, theirs = read_predictions(db), read_predictions(other)
    latest = {row[:2]: row for row in _rows(other, "predictions")}
    for asked, row in latest.items():
        if asked not in mine or (mine[asked].measured is None and theirs[asked].measured is not None):
            _insert(db, "predictions", row)
