"""From the rows of the progress file to records, and whether everything in it can be read.

A row that no version of the course wrote is Unreadable: for SQLite it is sound, for a learner the file is damaged.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from gradacc_lessons.progress_records import (
    MOST_TAKES,
    Answer,
    LessonResult,
    Prediction,
    Review,
    Take,
    best_answers,
    by_take,
    result_of,
    take_from,
)

_REVIEW = "question, round, value, fraction, at"
_PREDICTION = "value, measured, fraction"
"""The columns that such a record is made of."""


class Unreadable(sqlite3.DatabaseError):
    """A row holds what the course never writes."""


def can_be_read(db: sqlite3.Connection) -> bool:
    """Whether every row of an up-to-date database can be."""
    try:
        for (lesson,) in db.execute("SELECT lesson FROM takes UNION SELECT lesson FROM answers").fetchall():
            read_takes(db, lesson)
        read_predictions(db)
        with _unreadable("reviews"):
            for row in db.execute(f"SELECT {_REVIEW} FROM reviews"):
                _review(row)
        for (name,) in db.execute("SELECT name FROM settings").fetchall():
            read_setting(db, name)
    except Unreadable:
        return False
    return True


def read_setting(db: sqlite3.Connection, name: str) -> str | None:
    """A setting's value, None if it was never set."""
    row = db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    with _unreadable("settings"):
        return _text(row[0]) if row else None


def read_takes(db: sqlite3.Connection, lesson: str) -> list[Take]:
    """Every take of a lesson, in order, with what it has earned."""
    answers = by_take(read_answers(db, lesson))
    query = "SELECT take, points, questions, at, asked, seed FROM takes WHERE lesson = ? ORDER BY take"
    rows, own = db.execute(query, (lesson,)).fetchall(), read_setting(db, "seed") or ""
    with _unreadable("takes"):
        return [_take(row, answers.get(row[0], []), own) for row in rows]


def read_results(db: sqlite3.Connection) -> list[LessonResult]:
    """One line for each lesson whose quiz was begun; of its takes, the best."""
    lessons = [row[0] for row in db.execute("SELECT DISTINCT lesson FROM takes ORDER BY lesson")]
    return [result_of(lesson, read_takes(db, lesson)) for lesson in lessons]


def read_seed(db: sqlite3.Connection, lesson: str, take: int) -> str | None:
    """What a take's numbers were drawn from; None if it has not begun, or before versions that kept it."""
    begun = db.execute("SELECT seed FROM takes WHERE lesson = ? AND take = ?", (lesson, take)).fetchone()
    if begun is None:
        return None
    with _unreadable("takes"):
        return _text(begun[0]) if begun[0] is not None else read_setting(db, "seed")


def read_answers(db: sqlite3.Connection, lesson: str) -> list[Answer]:
    """Every answer to a lesson's questions, oldest first."""
    query = (
        "SELECT question, take, first, counts, value, fraction, points, at FROM answers WHERE lesson = ? ORDER BY id"
    )
    with _unreadable("answers"):
        return [
            Answer(_text(q), _number(t), bool(f), bool(c), json.loads(v), _share(s), _number(p), _moment(at))
            for q, t, f, c, v, s, p, at in db.execute(query, (lesson,)).fetchall()
        ]


def read_reviews(db: sqlite3.Connection, lesson: str) -> list[Review]:
    """Every answer to a question of a lesson that came back, oldest first."""
    query = f"SELECT {_REVIEW} FROM reviews WHERE lesson = ? ORDER BY id"
    with _unreadable("reviews"):
        return [_review(row) for row in db.execute(query, (lesson,)).fetchall()]


def read_prediction(db: sqlite3.Connection, lesson: str, question: str) -> Prediction | None:
    """The latest that is known about a prediction; None if none was made."""
    query = f"SELECT {_PREDICTION} FROM predictions WHERE lesson = ? AND question = ? ORDER BY id DESC LIMIT 1"
    row = db.execute(query, (lesson, question)).fetchone()
    with _unreadable("predictions"):
        return None if row is None else _prediction(row)


def read_predictions(db: sqlite3.Connection) -> dict[tuple[str, str], Prediction]:
    """The latest that is known about each prediction, by lesson and question."""
    rows = db.execute(f"SELECT lesson, question, {_PREDICTION} FROM predictions ORDER BY id").fetchall()
    with _unreadable("predictions"):
        return {(lesson, question): _prediction(row) for lesson, question, *row in rows}


def _review(row: Sequence[Any]) -> Review:
    question, number, value, share, at = row
    return Review(_text(question), _number(number), json.loads(value), _share(share), _moment(at))


def _prediction(row: Sequence[Any]) -> Prediction:
    value, measured, fraction = row
    outcome = None if measured is None else _predicted(json.loads(measured))
    return Prediction(_predicted(json.loads(value)), outcome, None if fraction is None else _share(fraction))


def _take(row: tuple[Any, ...], answers: list[Answer], own_seed: str) -> Take:
    take, points, questions, began, kept, seed = row
    if not 1 <= _number(take) <= MOST_TAKES:
        raise ValueError(take)
    asked = _asked_once(take, _number(points), _number(questions), answers) if kept is None else json.loads(kept)
    if not isinstance(asked, dict):
        raise TypeError(kept)
    return take_from(
        take,
        {name: _number(each) for name, each in asked.items()},
        answers,
        _text(began),
        own_seed if seed is None else _text(seed),
    )


def _asked_once(take: int, points: float, questions: int, answers: list[Answer]) -> dict[str, float]:
    """What a take asked that an older version began: of questions without an answer only the sum is known."""
    asked = {question: answer.points for question, answer in best_answers(answers, take).items()}
    unknown = max(questions - len(asked), 0)
    rest = points - sum(asked.values())
    return asked | {f"unknown {k}": rest / unknown for k in range(unknown)}


@contextmanager
def _unreadable(table: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:  # JSON of ten thousand brackets is a RecursionError
        raise Unreadable(f"the table {table} holds {error}") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _moment(value: Any) -> str:
    datetime.fromisoformat(_text(value))
    return str(value)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise TypeError(value)
    return value


def _share(value: Any) -> float:
    if not 0 <= _number(value) <= 1:
        raise ValueError(value)
    return float(value)


def _predicted(value: Any) -> Any:
    return value if isinstance(value, str) else _number(value)
