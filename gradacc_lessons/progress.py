"""What this learner has done: answers, predictions and settings, in one SQLite file that survives kills.

Every answer is on the disk before it is acknowledged, and answers are only ever added. What happens when the disk
refuses, or the file is damaged or of another version, is the store's business (progress_store).
"""

import json
import os
import secrets
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from gradacc_lessons.progress_store import Store
from gradacc_lessons.progress_store import shown as shown
from gradacc_lessons.text import LANGUAGES, Language, Text

PASS_MARK = 0.8
"""The share of a lesson's points that passes it."""
FILE_NAME = "progress.sqlite"


@dataclass(frozen=True)
class Answer:
    """One answer as it was given."""

    question: str
    """Id of the question."""
    take: int
    """In which take of the lesson's quiz, from 1."""
    first: bool
    """Whether it was the first answer to the question in that take."""
    counts: bool
    """Whether it goes towards the result."""
    value: Any
    """The answer: what JSON can hold."""
    fraction: float
    """Share of the question's points that it is worth."""
    points: float
    """The question's points."""
    at: str
    """When: ISO 8601, UTC."""


@dataclass(frozen=True)
class Prediction:
    """What was predicted before a run, and what the run measured if it has been run."""

    value: Any
    """A number or an option's id."""
    measured: Any = None
    """The same, from the run; None before it."""
    fraction: float | None = None
    """1.0 if the prediction was right, 0.0 if not; None before the run."""


@dataclass(frozen=True)
class LessonResult:
    """One line of the overview."""

    lesson: str
    """Name of the lesson."""
    takes: int
    """How often the quiz was begun."""
    answered: int
    """Questions answered in the best take."""
    questions: int
    """Questions that take had."""
    best: float
    """Share of the points in the best take, 0 to 1."""
    passed: bool
    """Whether that reaches PASS_MARK."""
    last: str
    """Day of the last answer."""


class Progress:
    """The learner's file. Safe to use from several threads, notebooks and processes at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._store = Store(file)

    @property
    def notices(self) -> list[Text]:
        """Sentences about what happened to the file, for the learner; empty if all is well."""
        return self._store.notices

    def setting(self, name: str) -> str | None:
        """A setting's value, None if it was never set."""
        row = self._store.read(lambda db: db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone())
        return str(row[0]) if row else None

    def set(self, name: str, value: str) -> None:
        """Keep a setting."""
        self._store.write(lambda db: db.execute("REPLACE INTO settings VALUES (?, ?)", (name, value)))

    @property
    def language(self) -> Language:
        """The language that the learner chose; English until then."""
        chosen = self.setting("language")
        return next((language for language in LANGUAGES if language == chosen), "en")

    def seed(self) -> str:
        """What the learner's own numbers follow from: random at first use, then always the same."""
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

    def begin_take(self, lesson: str, take: int, points: float, questions: int) -> None:
        """Begin a take of a quiz with so many points and questions; beginning it twice changes nothing."""
        row = (lesson, take, points, questions, _now())
        self._store.write(lambda db: db.execute("INSERT OR IGNORE INTO takes VALUES (?, ?, ?, ?, ?)", row))

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

        return self._store.write(add)

    def answers(self, lesson: str) -> list[Answer]:
        """Every answer to the lesson's questions, oldest first."""
        query = (
            "SELECT question, take, first, counts, value, fraction, points, at FROM answers"
            " WHERE lesson = ? ORDER BY id"
        )
        rows = self._store.read(lambda db: db.execute(query, (lesson,)).fetchall())
        return [Answer(q, t, bool(f), bool(c), json.loads(v), s, p, at) for q, t, f, c, v, s, p, at in rows]

    def add_prediction(self, lesson: str, question: str, prediction: Prediction) -> None:
        """Keep a prediction or, when it holds what was measured, its outcome."""
        measured = None if prediction.measured is None else json.dumps(prediction.measured)
        row = (lesson, question, json.dumps(prediction.value), measured, prediction.fraction, _now())
        insert = "INSERT INTO predictions (lesson, question, value, measured, fraction, at) VALUES (?, ?, ?, ?, ?, ?)"
        self._store.write(lambda db: db.execute(insert, row))

    def prediction(self, lesson: str, question: str) -> Prediction | None:
        """The latest that is known about a prediction; None if none was made."""
        query = (
            "SELECT value, measured, fraction FROM predictions WHERE lesson = ? AND question = ?"
            " ORDER BY id DESC LIMIT 1"
        )
        row = self._store.read(lambda db: db.execute(query, (lesson, question)).fetchone())
        if row is None:
            return None
        return Prediction(json.loads(row[0]), None if row[1] is None else json.loads(row[1]), row[2])

    def results(self) -> list[LessonResult]:
        """One line for each lesson whose quiz was begun; of its takes, the best."""
        return self._store.read(_results)


def progress_file() -> Path:
    """Where progress is kept: in the folder GRADACC_HOME if that is set, else in the user's own data folder."""
    if home := os.environ.get("GRADACC_HOME"):
        return Path(home).expanduser() / FILE_NAME
    from platformdirs import user_data_path

    return user_data_path("gradacc-lessons", appauthor=False) / FILE_NAME


def learner_progress() -> Progress:
    """The learner's progress; one object per file and process, so that lessons share what the disk refused."""
    return _progress(progress_file())


@cache
def _progress(file: Path) -> Progress:
    return Progress(file)


def summary(language: Language | None = None) -> str:
    """An overview to print: one line per lesson, then where it is kept and what happened to the file."""
    progress = learner_progress()
    to = language or progress.language
    rows = progress.results()
    lines = [_row(row).to(to) for row in rows]
    if not rows:
        lines = [Text("You have not begun a quiz yet.", "Je bent nog aan geen quiz begonnen.").to(to)]
    lines.append("")
    lines.append(Text("Kept in", "Bewaard in").to(to) + f" {shown(progress.file)}")
    return "\n".join([*lines, *(notice.to(to) for notice in progress.notices)])


def _row(row: LessonResult) -> Text:
    share, mark = f"{row.best:4.0%}", f"{PASS_MARK:.0%}"
    width = f"{row.lesson:<24}{share}"
    return Text(
        f"{width}  {'passed' if row.passed else f'below the {mark} that passes'},"
        f" {row.answered} of {row.questions} questions, take {row.takes}, last on {row.last}",
        f"{width}  {'gehaald' if row.passed else f'onder de {mark} die nodig is'},"
        f" {row.answered} van {row.questions} vragen, poging {row.takes}, het laatst op {row.last}",
    )


def _results(db: sqlite3.Connection) -> list[LessonResult]:
    query = """
        WITH counted AS (  -- of a question's answers that count (code may be tried again), the best
            SELECT lesson, take, question, MAX(fraction) * MAX(points) AS points, MAX(at) AS at
            FROM answers WHERE counts GROUP BY lesson, take, question)
        SELECT takes.lesson, takes.questions, COUNT(question), COALESCE(SUM(counted.points), 0) / takes.points,
            COALESCE(MAX(counted.at), takes.at)
        FROM takes LEFT JOIN counted USING (lesson, take) GROUP BY takes.lesson, takes.take
        ORDER BY takes.lesson, takes.take"""
    takes: dict[str, list[Any]] = {}
    for row in db.execute(query):
        takes.setdefault(row[0], []).append(row)
    results = []
    for lesson, rows in takes.items():
        _, questions, answered, share, _ = max(rows, key=lambda row: row[3])
        last = max(row[4] for row in rows)[:10]
        passed = share >= PASS_MARK - 1e-9  # points are sums of floats
        results.append(LessonResult(lesson, len(rows), answered, questions, share, passed, last))
    return results


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
