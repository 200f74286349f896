"""The folder with what was handed in. It is somebody else's work: links, names and sizes are not trusted."""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.submission import MOST_BYTES, too_large

MOST_FILES = 200_000
IGNORED = ("Thumbs.db", "desktop.ini", "__MACOSX")
"""What systems leave behind; so are names that begin with a dot."""


def files(folder: Path) -> list[str]:
    """The files in the folder and in folders inside it, sorted, as paths below it; links are listed, never followed.

    ClassError if there is no such folder, or far too much in it.
    """
    if not folder.is_dir():
        raise ClassError("no_folder", f"there is no folder {folder}", f"er is geen map {folder}")
    found, folders, seen = list[str](), [""], 0
    while folders:  # not by recursion: somebody's archive may nest deeper than Python's stack
        at = folders.pop()
        for name, is_folder in _entries(folder, at):
            (folders if is_folder else found).append(f"{at}/{name}" if at and name else at or name)
            seen += 1
        if seen > MOST_FILES:
            raise ClassError(
                "too_many",
                f"{folder} holds more than {MOST_FILES:,} files; name the folder with what was handed in",
                f"in {folder} staan meer dan {MOST_FILES} bestanden; noem de map met wat er is ingeleverd",
            )
    return sorted(found)


def _entries(folder: Path, at: str) -> Iterator[tuple[str, bool]]:
    """What is in the folder `at` below `folder`: names, and whether each is a folder.

    A folder that may not be looked into counts as a file of its own, which cannot be read either.
    """
    try:
        with os.scandir(os.path.join(folder, at)) as entries:
            for entry in islice(entries, MOST_FILES + 1):
                if not entry.name.startswith(".") and entry.name not in IGNORED:
                    yield entry.name, entry.is_dir(follow_symlinks=False)
    except OSError:
        if not at:
            raise
        yield "", False


def read_file(folder: Path, name: str) -> bytes:
    """The bytes of one file; ClassError if it is no plain file, too large, or not to be read.

    It is opened once, and what was opened is what is looked at: a link put in its place later changes nothing.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(folder / name, flags)
    except OSError:
        if os.path.islink(folder / name):
            raise _not_plain() from None
        raise _unreadable() from None
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise _not_plain()
        if about.st_size > MOST_BYTES:
            raise too_large()
        try:
            return stream.read(MOST_BYTES + 1)
        except OSError:  # a damaged disk, a share that has gone
            raise _unreadable() from None


def _unreadable() -> ClassError:
    return ClassError("unreadable", "It cannot be opened and read.", "Het is niet te openen en te lezen.")


def _not_plain() -> ClassError:
    return ClassError(
        "not_plain",
        "It is a link or a device, and was not opened.",
        "Het is een koppeling of een apparaat, en is niet geopend.",
    )


def shown(name: str) -> str:
    """A file's name as text that can be written anywhere: bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
