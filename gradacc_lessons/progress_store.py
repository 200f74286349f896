"""One SQLite file that many processes share and that outlives kills, full disks, damage and new versions.

Connections are short, so that nothing is held across threads or a fork. If the disk refuses, work goes on in memory,
is said so in `notices`, and is written as soon as the disk takes it again.
"""

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from gradacc_lessons.text import Text

BUSY_SECONDS = 30
"""How long to wait for another notebook that is writing."""

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
)
"""The file's versions, each a step from the one before; `user_version` in the file says how many it has taken."""

Result = TypeVar("Result")
Action = Callable[[sqlite3.Connection], Result]


class Store:
    """The file. Safe to use from several threads, notebooks and processes at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._happened: list[Text] = []
        self._refused: Text | None = None
        self._lock = RLock()
        self._memory: sqlite3.Connection | None = None
        self._unsaved: list[Action[Any]] = []
        with self._lock:
            self._on_disk(self._prepare)

    @property
    def notices(self) -> list[Text]:
        """Sentences about what happened to the file, for the learner; empty if all is well."""
        return [*self._happened, *([self._refused] if self._refused else [])]

    def read(self, action: Action[Result]) -> Result:
        """What `action` finds, on the disk or, while that refuses, in memory."""
        with self._lock:
            if self._memory is None:
                done, result = self._on_disk(lambda: self._transaction(action, "DEFERRED"))
                if done:
                    return result
            return action(self._in_memory())

    def write(self, action: Action[Result]) -> Result:
        """Run `action` as one transaction that is on the disk on return; while that refuses, in memory."""
        with self._lock:

            def all_of_them(db: sqlite3.Connection) -> Result:
                for earlier in self._unsaved:
                    earlier(db)
                return action(db)

            done, result = self._on_disk(lambda: self._transaction(all_of_them, "IMMEDIATE"))
            if done:
                self._unsaved, self._memory, self._refused = [], None, None
                return result
            memory = self._in_memory()
            result = action(memory)
            self._unsaved.append(action)
            return result

    def _transaction(self, action: Action[Result], kind: str) -> Result:
        with closing(_connect(self.file)) as db:
            db.execute(f"BEGIN {kind}")
            try:
                result = action(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            return result

    def _on_disk(self, attempt: Callable[[], Result]) -> tuple[bool, Result]:
        """(True, the result), or (False, …) if the disk refuses. A file that was damaged or lost is made anew."""
        try:
            try:
                return True, attempt()
            except sqlite3.Error as error:
                if "locked" in str(error):
                    raise
                self._prepare()
                return True, attempt()
        except (OSError, sqlite3.Error) as error:
            self._refused = _not_kept(self.file, error)
            return False, None  # type: ignore[return-value]

    def _in_memory(self) -> sqlite3.Connection:
        if self._memory is None:
            # Only ever used under the lock; callbacks of widgets may come from several threads.
            memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            if not _copy_into(self.file, memory):
                memory = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
                _upgrade(memory)
            self._memory = memory
        return self._memory

    def _prepare(self) -> None:
        """Make the file what this version of the course can use, alone among all processes."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.file):
            version = _version(self.file)
            if version is None or version > len(VERSIONS):
                kept = _set_aside(self.file, "damaged" if version is None else "newer")
                self._happened.append(_set_aside_text(kept, newer=version is not None))
                version = 0
            elif 0 < version < len(VERSIONS):
                kept = _dated(self.file, f"version-{version}")
                with closing(_connect(self.file)) as old, closing(sqlite3.connect(kept)) as copy:
                    old.backup(copy)
                self._happened.append(_migrated(kept))
            if version < len(VERSIONS):
                with closing(_connect(self.file)) as db:
                    db.execute("PRAGMA journal_mode = WAL")
                    _upgrade(db)


def _connect(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    return db


def _upgrade(db: sqlite3.Connection) -> None:
    """Take the steps that the database has not taken, all or none of them."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        for step in VERSIONS[version:]:
            for statement in step.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(VERSIONS)}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(file: Path) -> int | None:
    """How many steps the file has taken; 0 if there is none yet, None if it is damaged."""
    if not file.exists():
        return 0
    try:
        with closing(_connect(file)) as db:
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                return None
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.OperationalError:
        raise  # locked, or the disk refuses: that says nothing about what is in it
    except sqlite3.DatabaseError:
        return None
    expected = set(re.findall(r"CREATE TABLE (\w+)", "".join(VERSIONS[:version])))
    return version if version > len(VERSIONS) or expected <= tables else None


def _copy_into(file: Path, memory: sqlite3.Connection) -> bool:
    """Copy what the disk holds into memory; False if it cannot be read or is of another version."""
    wal = _companions(file)[0]
    try:
        if not wal.exists() or wal.stat().st_size == 0:
            # All is in the file itself. "immutable" reads it without the shared memory that WAL mode would create.
            _backup(f"{file.absolute().as_uri()}?immutable=1", memory)
        else:
            with tempfile.TemporaryDirectory() as folder:
                for part in (file, wal):
                    shutil.copy(part, folder)
                _backup((Path(folder) / file.name).as_uri(), memory)
        return int(memory.execute("PRAGMA user_version").fetchone()[0]) == len(VERSIONS)
    except (OSError, sqlite3.Error):
        return False


def _backup(uri: str, memory: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(uri, uri=True)) as source:
        source.backup(memory)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold every other process that prepares the file. A lock of SQLite's own ends with its process."""
    with closing(sqlite3.connect(file.with_name("lock.sqlite"), timeout=BUSY_SECONDS, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield
        db.execute("ROLLBACK")


def _companions(file: Path) -> tuple[Path, Path]:
    return file.with_name(file.name + "-wal"), file.with_name(file.name + "-shm")


def _set_aside(file: Path, why: str) -> Path:
    kept = _dated(file, why)
    for part in (*_companions(file), file):
        if part.exists():
            part.rename(part.with_name(part.name.replace(file.name, kept.name)))
    return kept


def _dated(file: Path, why: str) -> Path:
    """A name beside the file that is still free."""
    day = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    names = [f"{file.stem}.{why}-{day}{more}{file.suffix}" for more in ("", *(f"-{n}" for n in range(2, 100)))]
    return next(path for path in map(file.with_name, names) if not path.exists())


def shown(file: Path) -> str:
    """Where `file` is, as it may stand in a notebook that is handed on: without anybody's name in it."""
    if home := os.environ.get("GRADACC_HOME"):
        folder, name = Path(home).expanduser(), "GRADACC_HOME"
    else:
        folder, name = Path.home(), "~"
    return f"{name}/{file.relative_to(folder).as_posix()}" if file.is_relative_to(folder) else str(file)


def _set_aside_text(kept: Path, *, newer: bool) -> Text:
    why_en = "was written by a newer version of the course" if newer else "is damaged"
    why_nl = "is door een nieuwere versie van de cursus geschreven" if newer else "is beschadigd"
    return Text(
        f"Your progress file {why_en}. It was kept as {shown(kept)}, and a new one was begun.",
        f"Je voortgangsbestand {why_nl}. Het is bewaard als {shown(kept)}, en er is een nieuw begonnen.",
    )


def _migrated(kept: Path) -> Text:
    return Text(
        f"Your progress file was of an older version and is now up to date. A copy was kept as {shown(kept)}.",
        f"Je voortgangsbestand was van een oudere versie en is nu bijgewerkt. Een kopie is bewaard als {shown(kept)}.",
    )


def _not_kept(file: Path, error: Exception) -> Text:
    why = getattr(error, "strerror", None) or str(error)
    return Text(
        f"Your answers are graded but cannot be saved in {shown(file.parent)} ({why}). Free some disk space, or set"
        " GRADACC_HOME to a folder you may write in; what you answer until then is saved once that works.",
        f"Je antwoorden worden nagekeken maar kunnen niet worden opgeslagen in {shown(file.parent)} ({why}). Maak"
        " schijfruimte vrij, of zet GRADACC_HOME op een map waarin je mag schrijven; wat je tot dan antwoordt wordt"
        " opgeslagen zodra dat lukt.",
    )
