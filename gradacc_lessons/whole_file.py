"""Files that are written whole or not at all, and are nobody else's; and changes of several processes in turn."""

import errno
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

BUSY_SECONDS = 30
"""How long to wait for another process."""
LOCK = "lock.sqlite"


def write_whole(file: Path, raw: bytes, *, private: bool = False, over: bool = True) -> None:
    """Write `raw` to `file`: on the disk on return, whole or not at all. OSError names the file if the disk refuses.

    `private`: only its owner may read it. Without `over`, FileExistsError where there is a file; of two processes that
    write at once, the first one's stays.
    """
    fresh = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        if over:
            os.replace(fresh, file)
        else:
            _put_where_none_is(fresh, file)
        _keep_names(file.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        fresh.unlink(missing_ok=True)


def _keep_names(folder: Path) -> None:
    """Put on the disk what the files in the folder are called: without it a loss of power can take a new name away."""
    if os.name != "posix":
        return
    with suppress(OSError):  # a folder that may not be looked into, a disk that keeps no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_to_others(file: Path) -> bool:
    """Whether the group or everybody may do anything with the file; False where there are no such permissions."""
    return os.name == "posix" and bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _put_where_none_is(fresh: Path, file: Path) -> None:
    try:
        os.link(fresh, file)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        if file.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(file)) from None
        os.replace(fresh, file)


@contextmanager
def alone(folder: Path, patience: float = BUSY_SECONDS) -> Iterator[None]:
    """Hold every other process that asks for the same folder; OSError if the disk refuses.

    TimeoutError, an OSError too, if another process holds it for more than `patience` seconds. A lock of SQLite's own
    ends with its process.
    """
    lock = folder / LOCK
    if lock.exists() and lock.stat().st_size:
        # A lock holds nothing, and what it holds could keep SQLite from taking it. Emptied rather than removed, so
        # that no two processes can have a lock each.
        os.truncate(lock, 0)
    with ExitStack() as held:
        try:
            db = held.enter_context(closing(sqlite3.connect(lock, timeout=patience, isolation_level=None)))
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            raise (TimeoutError if busy else OSError)(None, str(error), str(lock)) from error
        yield
        db.execute("ROLLBACK")
