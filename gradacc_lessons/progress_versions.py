"""The versions of the progress file: the tables of each, how to get from one to the next, which one a database has.

Nothing here knows of files; `progress_store` keeps the file.
"""

import sqlite3
from contextlib import closing

VERSIONS = (
    """
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE takes (lesson TEXT NOT NULL, take INTEGER NOT NULL, points REAL NOT NULL,
        questions INTEGER NOT NULL, at TEXT NOT NULL, PRIMARY KEY (lesson, take));
    CREATE TABLE answers (id INTEGER PRIMARY KEY, lesson TEXT NOT NULL, question TEXT NOT NULL,
        take INTEGER NOT NULL, first INTEGER NOT NULL, counts INTEGER NOT NULL, value TEXT NOT NULL,
        fraction REAL NOT NULL, points REAL NOT NULL, at TEXT NOT NULL);
    CREATE INDEX answers_by_question ON answers (lesson, take, question);
    """,
    """
    CREATE TABLE predictions (id INTEGER PRIMARY KEY, lesson TEXT NOT NULL, question TEXT NOT NULL,
        value TEXT NOT NULL, measured TEXT, fraction REAL, at TEXT NOT NULL);
    """,
    """
    ALTER TABLE takes ADD COLUMN asked TEXT;
    """,
    """
    ALTER TABLE takes ADD COLUMN seed TEXT;
    """,
    """
    CREATE TABLE reviews (id INTEGER PRIMARY KEY, lesson TEXT NOT NULL, question TEXT NOT NULL,
        round INTEGER NOT NULL, value TEXT NOT NULL, fraction REAL NOT NULL, at TEXT NOT NULL);
    """,
)
"""The file's versions, each a step from the one before; `user_version` in the file says how many it has taken."""

Columns = tuple[tuple[str, str, int, str | None, int], ...]


def upgrade(db: sqlite3.Connection, to: int = len(VERSIONS)) -> None:
    """Take the steps up to version `to` that the database has not taken, all or none of them."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        for step in VERSIONS[version:to]:
            for statement in step.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {to}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def fresh(version: int) -> sqlite3.Connection:
    """A database in memory as that version of the course makes it."""
    # Only ever used under a lock; callbacks of widgets may come from several threads.
    memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    upgrade(memory, version)
    return memory


def version_of(db: sqlite3.Connection) -> int | None:
    """How many steps the database has taken; None if its tables are not those that these steps make."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > len(VERSIONS):
        return version
    tables = _tables(db)
    if version <= 0:
        return 0 if version == 0 and not tables else None
    with closing(fresh(version)) as right:
        return version if _tables(right).items() <= tables.items() else None


def _tables(db: sqlite3.Connection) -> dict[str, Columns]:
    """What can be read like a table: its columns as name, type, whether it must have a value, default, key."""
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    query = 'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)'
    return {name: tuple(db.execute(query, (name,))) for name in names}
