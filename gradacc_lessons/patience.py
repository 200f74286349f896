"""Words for somebody who waits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer

PATIENCE = 2.0
"""Seconds that anybody waits without being told why."""


@contextmanager
def patience(say: Callable[[str], object], after: float = PATIENCE) -> Iterator[Callable[[str], None]]:
    """Gives the body a function that takes what is being done; `say` hears it only once the body takes long.

    >>> with patience(print) as tell:
    ...     tell("loading PyTorch")
    """
    lock, now, late = Lock(), "", False

    def tell(sentence: str) -> None:
        nonlocal now
        with lock:
            now = sentence
            if late:
                say(f"{sentence} ...")

    def grow_late() -> None:
        nonlocal late
        with lock:
            late = True
            if now:
                say(f"{now} ...")

    timer = Timer(after, grow_late)
    timer.daemon = True
    timer.start()
    try:
        yield tell
    finally:
        timer.cancel()
