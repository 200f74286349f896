"""How far a process grows while something runs: looked at often, because what was given back no longer shows."""

from contextlib import AbstractContextManager
from threading import Event, Thread
from typing import Any

EVERY = 0.02
"""Seconds from one look to the next."""


class Growth(AbstractContextManager["Growth"]):
    """`before` and `most`: the resident memory of this process, in bytes, before and at the most within the block."""

    def __init__(self) -> None:
        self.before = self.most = resident()
        self._ended = Event()
        self._looking = Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Growth":
        self._looking.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._looking.join()

    def _look(self) -> None:
        while not self._ended.wait(EVERY):
            self.most = max(self.most, resident())


def resident() -> int:
    """The bytes of this process that lie in memory now."""
    import psutil

    return int(psutil.Process().memory_info().rss)
