"""The folder with what was handed in. It is somebody else's work: links, names and sizes are not trusted."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

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
    found = []
    for name in _below(folder, PurePosixPath()):
        found.append(name)
        if len(found) > MOST_FILES:
            raise ClassError(
                "too_many",
                f"{folder} holds more than {MOST_FILES:,} files; name the folder with what was handed in",
                f"in {folder} staan meer dan {MOST_FILES} bestanden; noem de map met wat er is ingeleverd",
            )
    return sorted(found)


def _below(folder: Path, at: PurePosixPath) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in IGNORED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _below(folder / entry.name, at / entry.name)
            else:
                yield str(at / entry.name)


def read_file(folder: Path, name: str) -> bytes:
    """The bytes of one file; ClassError if it is no plain file, too large, or not to be read.

    It is opened once, and what was opened is what is looked at: a link put in its place later changes nothing.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(folder / name, flags)
    except OSError:
        if (folder / name).is_symlink():
            raise _not_plain() from None
        raise ClassError("unreadable", "It cannot be opened.", "Het is niet te openen.") from None
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise _not_plain()
        if about.st_size > MOST_BYTES:
            raise too_large()
        return stream.read(MOST_BYTES + 1)


def _not_plain() -> ClassError:
    return ClassError(
        "not_plain",
        "It is a link or a device, and was not opened.",
        "Het is een koppeling of een apparaat, en is niet geopend.",
    )


def shown(name: str) -> str:
    """A file's name as text that can be written anywhere: bytes that are no UTF-8 are written as escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
