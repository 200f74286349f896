"""What is graded so far, on the disk: an interrupted run goes on where it stopped, and memory holds an index only."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradacc_lessons.canonical import canonical, digest
from gradacc_lessons.classroom.grading import Graded
from gradacc_lessons.classroom.results import Status

NAME = "journal.jsonl"


@dataclass(frozen=True)
class Entry:
    """Of one graded file, what comparing it with the others takes."""

    at: int
    """Where its line begins in the journal."""
    seen: str
    """SHA-256 of the file's bytes."""
    status: Status
    """graded or refused: by itself."""
    learner: str | None
    """Whose it is; None if it was refused."""
    written: str
    """When it says it was written."""
    work: str
    """Digest of its answers; empty without any."""
    checksum: str
    """The submission's own."""
    fits: int
    """Questions with the learner's own numbers that were answered right."""


class Journal:
    """One line per graded file, in the order in which they were done, behind a line that says what they hold for."""

    def __init__(self, file: Path, what: dict[str, Any]) -> None:
        """Open the journal; one that holds for something else, another version or bank, begins anew."""
        self.file, self.entries = file, dict[str, Entry]()
        first = canonical({"what": digest(what)}) + b"\n"
        kept = self._load(first) if file.exists() else 0
        self._stream = file.open("r+b" if kept else "wb")
        if kept:
            self._stream.truncate(kept)  # what a kill cut off in the middle of a line
            self._stream.seek(kept)
        else:
            self._stream.write(first)

    def _load(self, first: bytes) -> int:
        """Fill the index; where the last whole line ends, 0 if the journal holds for something else."""
        end = 0
        with self.file.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n") or (end == 0 and line != first):
                    break
                if end:
                    try:
                        self._index(json.loads(line), end)
                    except (ValueError, KeyError, TypeError):
                        break
                end += len(line)
        return end

    def add(self, name: str, graded: bytes) -> None:
        """Keep the line of a graded file."""
        self._index(json.loads(graded), self._stream.tell())
        self._stream.write(graded)
        self._stream.flush()

    def _index(self, value: dict[str, Any], at: int) -> None:
        name = value.pop("name")
        del value["line"]
        self.entries[name] = Entry(at, **value)

    def lines(self, names: list[str]) -> Iterator[bytes]:
        """The results of these files as lines of results.jsonl, one at a time."""
        self._stream.flush()
        with self.file.open("rb") as kept:
            for name in names:
                kept.seek(self.entries[name].at)
                yield json.loads(kept.readline())["line"].encode()

    def close(self, *, done: bool = False) -> None:
        """Close the file; when all is done it is not needed any more."""
        self._stream.close()
        if done:
            self.file.unlink(missing_ok=True)


def line_of(name: str, graded: Graded) -> bytes:
    """A graded file as one line of the journal; `name` may be any name that a file can have."""
    result = graded.result
    kept = {
        "name": name,
        "line": result.line().decode(),
        "status": result.status,
        "learner": result.learner,
        "written": result.written or "",
        "seen": graded.seen,
        "work": graded.work,
        "checksum": graded.checksum,
        "fits": graded.fits,
    }
    return json.dumps(kept).encode("ascii") + b"\n"
