"""What this learner has done: answers, predictions and settings, in one SQLite file that survives kills.

Every answer is on the disk before it is acknowledged, and answers are only ever added. What happens when the disk
refuses, or the file is damaged or of another version, is the store's business (progress_store).
"""

import json
import logging
import os
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from gradacc_lessons.home import expanded
from gradacc_lessons.progress_exchange import TakenOver, as_text, take_over
from gradacc_lessons.progress_notices import shown as shown
from gradacc_lessons.progress_reading import (
    can_be_read,
    read_answers,
    read_prediction,
    read_results,
    read_reviews,
    read_seed,
    read_setting,
    read_takes,
)
from gradacc_lessons.progress_records import PASS_MARK as PASS_MARK
from gradacc_lessons.progress_records import Answer as Answer
from gradacc_lessons.progress_records import LessonResult as LessonResult
from gradacc_lessons.progress_records import Prediction as Prediction
from gradacc_lessons.progress_records import Review as Review
from gradacc_lessons.progress_records import Take as Take
from gradacc_lessons.progress_records import passes as passes
from gradacc_lessons.progress_store import Store, read_copy
from gradacc_lessons.text import LANGUAGES, Language, Text

FILE_NAME = "progress.sqlite"
LOG = logging.getLogger(__name__)


class Progress:
    """The learner's file. Safe to use from several threads, notebooks and processes at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._store = Store(file, can_be_read)
        self._told: list[Callable[[], None]] = []

    def on_change(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told()` after each answer, prediction or setting that is kept through this object.

        Until what this returns is called. An error in `told` is its own to show: whoever answered did nothing wrong.
        """
        self._told.append(told)

        def forget() -> None:
            with suppress(ValueError):  # asked for twice
                self._told.remove(told)

        return forget

    def _tell(self) -> None:
        for told in list(self._told):
            try:
                told()
            except Exception:
                LOG.debug("a listener to the progress file failed", exc_info=True)

    @property
    def notices(self) -> list[Text]:
        """Sentences about what happened to the file, for the learner; empty if all is well."""
        return self._store.notices

    def setting(self, name: str) -> str | None:
        """A setting's value, None if it was never set."""
        return self._store.read(lambda db: read_setting(db, name))

    def set(self, name: str, value: str) -> None:
        """Keep a setting."""
        self._store.write(lambda db: db.execute("REPLACE INTO settings VALUES (?, ?)", (name, value)))
        self._tell()

    @property
    def saves(self) -> bool:
        """Whether the disk took what there was to keep, last time it was tried."""
        return self._store.saves

    @property
    def language(self) -> Language:
        """The language that the learner chose; English until then."""
        return _language(self.setting("language"))

    def seed(self, lesson: str | None = None, take: int = 0) -> str:
        """What the learner's own numbers follow from, in a take; without one, in the takes that begin from now.

        That is the code of the class that was joined; without a class, a seed of one's own, random at first use, then
        always the same. A take keeps what it was begun with.
        """
        if lesson is not None and (begun := self._store.read(lambda db: read_seed(db, lesson, take))):
            return begun
        return self.class_code or self._own_seed()

    @property
    def class_code(self) -> str | None:
        """The code of the class that was joined; None without one."""
        return self.setting("class") or None

    def join(self, code: str) -> None:
        """Join the class with this code: its numbers come in the takes that begin from now. ValueError if empty."""
        if not (code := code.strip()):
            raise ValueError("the class code is empty")
        self._own_seed()  # takes of before this was kept in them go on with it
        self.set("class", code)

    def _own_seed(self) -> str:
        fresh = secrets.token_hex(16)

        def keep(db: sqlite3.Connection) -> str:
            db.execute("INSERT OR IGNORE INTO settings VALUES ('seed', ?)", (fresh,))
            return str(db.execute("SELECT value FROM settings WHERE name = 'seed'").fetchone()[0])

        return self.setting("seed") or self._store.write(keep)

    def take(self, lesson: str) -> int:
        """The lesson's current take, 0 if its quiz was never begun."""
        row = self._store.read(
            lambda db: db.execute("SELECT MAX(take) FROM takes WHERE lesson = ?", (lesson,)).fetchone()
        )
        return int(row[0] or 0)

    def begin_take(self, lesson: str, take: int, asked: Mapping[str, float]) -> None:
        """Begin a take of a quiz that asks these questions for these points; beginning it twice changes nothing."""
        points, questions, kept, at = sum(asked.values()), len(asked), json.dumps(dict(asked)), _now()
        seed = self.seed()

        def begin(db: sqlite3.Connection) -> None:
            columns = "lesson, take, points, questions, at, asked, seed"
            insert = f"INSERT OR IGNORE INTO takes ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)"
            db.execute(insert, (lesson, take, points, questions, at, kept, seed))
            # A take that an older version began kept only the sums: the same sums are the same quiz.
            fill = "UPDATE takes SET asked = ? WHERE lesson = ? AND take = ? AND points = ? AND questions = ?"
            db.execute(f"{fill} AND asked IS NULL", (kept, lesson, take, points, questions))

        self._store.write(begin)
        self._tell()

    def takes(self, lesson: str) -> list[Take]:
        """Every take of the lesson's quiz that was begun, in order, with what it has earned."""
        return self._store.read(lambda db: read_takes(db, lesson))

    def add_answer(
        self, lesson: str, question: str, take: int, value: Any, fraction: float, points: float, *, retry: bool = False
    ) -> bool:
        """Keep an answer; True if it counts: the first in its take or, with `retry`, any. On disk on return."""
        at, kept = _now(), json.dumps(value)

        def add(db: sqlite3.Connection) -> bool:
            asked = (lesson, question, take)
            where = "WHERE lesson = ? AND question = ? AND take = ?"
            first = db.execute(f"SELECT 1 FROM answers {where}", asked).fetchone() is None
            db.execute(
                "INSERT INTO answers (lesson, question, take, first, counts, value, fraction, points, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*asked, first, first or retry, kept, fraction, points, at),
            )
            return first or retry

        counts = self._store.write(add)
        self._tell()
        return counts

    def answers(self, lesson: str) -> list[Answer]:
        """Every answer to the lesson's questions, oldest first."""
        return self._store.read(lambda db: read_answers(db, lesson))

    def add_prediction(self, lesson: str, question: str, prediction: Prediction) -> None:
        """Keep a prediction or, when it holds what was measured, its outcome."""
        measured = None if prediction.measured is None else json.dumps(prediction.measured)
        row = (lesson, question, json.dumps(prediction.value), measured, prediction.fraction, _now())
        insert = "INSERT INTO predictions (lesson, question, value, measured, fraction, at) VALUES (?, ?, ?, ?, ?, ?)"
        self._store.write(lambda db: db.execute(insert, row))
        self._tell()

    def prediction(self, lesson: str, question: str) -> Prediction | None:
        """The latest that is known about a prediction; None if none was made."""
        return self._store.read(lambda db: read_prediction(db, lesson, question))

    def add_review(self, lesson: str, question: str, number: int, value: Any, fraction: float) -> bool:
        """Keep an answer to a question that came back for the `number`-th time; True if it is the first to that."""
        at, kept = _now(), json.dumps(value)

        def add(db: sqlite3.Connection) -> bool:
            if any((each.question, each.round) == (question, number) for each in read_reviews(db, lesson)):
                return False
            columns = "lesson, question, round, value, fraction, at"
            row = (lesson, question, number, kept, fraction, at)
            db.execute(f"INSERT INTO reviews ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)
            return True

        first = self._store.write(add)
        self._tell()
        return first

    def reviews(self, lesson: str) -> list[Review]:
        """Every answer to a question of the lesson that came back, oldest first."""
        return self._store.read(lambda db: read_reviews(db, lesson))

    def export_text(self) -> str:
        """Everything that is kept, as a short text with a checksum, to keep elsewhere."""
        return self._store.read(as_text)

    def import_text(self, text: str) -> TakenOver:
        """Take over what `export_text` gave, here or elsewhere. What is here never gets worse, and twice is once.

        TextRefused, a ValueError, says what is wrong with the text; nothing is changed then.
        """
        taken = self._store.write(lambda db: take_over(text, db))
        self._tell()
        return taken

    def results(self) -> list[LessonResult]:
        """One line for each lesson whose quiz was begun; of its takes, the best."""
        return self._store.read(read_results)


def progress_file() -> Path:
    """Where progress is kept: in the folder GRADACC_HOME if that is set, else in the user's own data folder.

    ValueError if GRADACC_HOME begins with the ~ of nobody here.
    """
    if home := os.environ.get("GRADACC_HOME"):
        return expanded(home) / FILE_NAME
    from platformdirs import user_data_path

    return user_data_path("gradacc-lessons", appauthor=False) / FILE_NAME


def learner_progress() -> Progress:
    """The learner's progress; one object per file and process, so that lessons share what the disk refused."""
    return _progress(progress_file())


def chosen_language() -> Language:
    """The language that the learner chose in the lessons; English if none. Reads the file, and never makes one."""
    return _language(read_copy(progress_file(), can_be_read, lambda db: read_setting(db, "language")))


@cache
def _progress(file: Path) -> Progress:
    return Progress(file)


def summary(language: Language | None = None) -> str:
    """An overview to print: one line per lesson, then where it is kept, if it is, and what happened to the file."""
    progress = learner_progress()
    to = language or progress.language
    rows = progress.results()
    lines = [_row(row).to(to) for row in rows]
    if not rows:
        lines = [Text("You have not begun a quiz yet.", "Je bent nog aan geen quiz begonnen.").to(to)]
    lines.append("")
    if progress.saves:
        lines.append(Text("Kept in", "Bewaard in").to(to) + f" {shown(progress.file)}")
    return "\n".join([*lines, *(notice.to(to) for notice in progress.notices)])


def _row(row: LessonResult) -> Text:
    lesson, state = f"{row.lesson:<24}", row.state
    return Text(
        f"{lesson}{state.en}, take {row.takes}, last on {row.last}",
        f"{lesson}{state.nl}, poging {row.takes}, het laatst op {row.last}",
    )


def _language(chosen: str | None) -> Language:
    return next((language for language in LANGUAGES if language == chosen), "en")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
