"""One SQLite file that many processes share and that outlives kills, full disks, damage and new versions.

Connections are short, so that nothing is held across threads or a fork. If the disk refuses, work goes on in memory,
is said so in `notices`, and is written as soon as the disk takes it again.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from gradacc_lessons.progress_notices import migrated, not_kept, set_aside
from gradacc_lessons.progress_versions import VERSIONS, fresh, upgrade, version_of
from gradacc_lessons.text import Text
from gradacc_lessons.whole_file import BUSY_SECONDS, alone

Result = TypeVar("Result")
Action = Callable[[sqlite3.Connection], Result]
Check = Callable[[sqlite3.Connection], bool]
"""Whether all that is in an up-to-date database can be read."""


class Store:
    """The file. Safe to use from several threads, notebooks and processes at once."""

    def __init__(self, file: Path, can_be_read: Check) -> None:
        self.file = file
        self._can_be_read = can_be_read
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

    @property
    def saves(self) -> bool:
        """Whether the disk took what there was to keep, last time it was tried."""
        return self._refused is None

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
            self._refused = not_kept(self.file, error)
            return False, None  # type: ignore[return-value]

    def _in_memory(self) -> sqlite3.Connection:
        if self._memory is None:
            self._memory = _copy(self.file, self._can_be_read) or fresh(len(VERSIONS))
        return self._memory

    def _prepare(self) -> None:
        """Make the file what this version of the course can use, alone among all processes."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with alone(self.file.parent):
            version = _version(self.file, self._can_be_read)
            if version is None or version > len(VERSIONS):
                kept = _set_aside(self.file, "damaged" if version is None else "newer")
                self._happened.append(set_aside(kept, newer=version is not None))
                version = 0
            elif 0 < version < len(VERSIONS):
                kept = _dated(self.file, f"version-{version}")
                with closing(_connect(self.file)) as old, closing(sqlite3.connect(kept)) as copy:
                    old.backup(copy)
                self._happened.append(migrated(kept))
            if version < len(VERSIONS):
                with closing(_connect(self.file)) as db:
                    db.execute("PRAGMA journal_mode = WAL")
                    upgrade(db)


def _connect(file: Path) -> sqlite3.Connection:
    db = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")
    return db


def _version(file: Path, can_be_read: Check) -> int | None:
    """How many steps the file has taken; 0 if there is none yet, None if it or what it holds is damaged."""
    if not file.exists():
        return 0
    try:
        with closing(_connect(file)) as db:
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                return None
            version = version_of(db)
            if version is None or version > len(VERSIONS):
                return version
            with closing(fresh(0)) as memory:
                db.backup(memory)
                upgrade(memory)
                return version if can_be_read(memory) else None
    except sqlite3.OperationalError:
        raise  # locked, or the disk refuses: that says nothing about what is in it
    except sqlite3.DatabaseError:
        return None


def read_copy(file: Path, can_be_read: Check, action: Action[Result]) -> Result | None:
    """What `action` finds in a copy of the file, None if it cannot be read. Leaves the disk as it is."""
    memory = _copy(file, can_be_read) if file.exists() else None
    if memory is None:
        return None
    with closing(memory):
        return action(memory)


def _copy(file: Path, can_be_read: Check) -> sqlite3.Connection | None:
    """What the disk holds, in memory and up to date; None if it cannot be read, is damaged or of a newer version."""
    memory, wal = fresh(0), _companions(file)[0]
    try:
        if not wal.exists() or wal.stat().st_size == 0:
            # All is in the file itself. "immutable" reads it without the shared memory that WAL mode would create.
            _backup(f"{file.absolute().as_uri()}?mode=ro&immutable=1", memory)
        else:
            with tempfile.TemporaryDirectory() as folder:
                for part in (file, wal):
                    shutil.copy(part, folder)
                _backup((Path(folder) / file.name).as_uri(), memory)
        version = version_of(memory)
        if version is not None and version <= len(VERSIONS):
            upgrade(memory)
            if can_be_read(memory):
                return memory
    except (OSError, sqlite3.Error):
        pass
    memory.close()
    return None


def _backup(uri: str, memory: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(uri, uri=True)) as source:
        source.backup(memory)


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
