"""The mailbox of an explorer and its one worker thread: of the runs that are wanted, the latest.

Callbacks and whoever waits run in the main thread, where the learner's interrupt may strike between any two lines.
So they hold the one lock, which an interrupt always gives back, and use no Event, Condition or Thread.start: those take
locks inside Python's own library, and an interrupt just there keeps them for ever.
"""

import _thread
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import RLock
from typing import Any

from gradacc_lessons.text import counted

SECONDS_BETWEEN_PICTURES = 0.05
SECONDS_BETWEEN_LOOKS = 0.005
"""How often whoever waits looks whether the worker has ended."""


@dataclass(frozen=True)
class Run:
    """One run of an experiment, ready to start."""

    rows: Callable[[], Iterator[dict[str, Any]]]
    """Starts it; yields one row per update (or per point)."""
    total: int
    """How many rows that will be, for the progress bar."""
    unit: str = "update"
    """What one row is, in the singular."""


class Worker:
    """Reads the rows of the latest run; looks between two rows whether a newer one waits.

    From its thread it calls `paint(run)` when there are new rows, `announce(words)` with how the run stands, and
    `fail(error)` with what ended it.
    """

    def __init__(
        self,
        paint: Callable[[Run], None],
        announce: Callable[[str], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self.lock = RLock()
        """Guards the mailbox, and whatever is kept with it."""
        self.rows: list[dict[str, Any]] = []
        """Of the latest run, as far as it has come."""
        self.complete = False
        """Whether that is all of them."""
        self.error: BaseException | None = None
        """What ended it, if something did."""
        self._paint, self._announce, self._fail = paint, announce, fail
        self._wanted: Run | None = None
        self._working = self._stopped = False

    @property
    def running(self) -> bool:
        """Whether a run is going on or waits."""
        return self._wanted is not None or self._working  # in this order: it is working before it takes what is wanted

    def post(self, run: Run) -> None:
        """Want this run, instead of any that is going on."""
        with self.lock:
            self.error, self.complete, self._stopped, self._wanted = None, False, False, run
            self._ensure_thread()

    def stop(self) -> None:
        """End the run after the row it is at."""
        self._stopped = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs; False if it still does after `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.lock:
            self._ensure_thread()  # an interrupt may have kept `post` from it
        while self.running:
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return True

    def _ensure_thread(self) -> None:
        if self._wanted is not None and not self._working:
            _thread.start_new_thread(self._work, ())

    def _work(self) -> None:
        with self.lock:
            if self._working:  # of two threads that were started for one run, the second has nothing to do
                return
            self._working = True
        while (run := self._next_run()) is not None:
            try:
                self._consume(run)
            except BaseException as error:  # also SystemExit: whoever waits must hear of it
                with self.lock:
                    self.error = error
                    self._fail(error)

    def _next_run(self) -> Run | None:
        with self.lock:
            run, self._wanted = self._wanted, None
            if run is None:
                self._working = False
            else:
                self.rows = []
            return run

    def _consume(self, run: Run) -> None:
        began, next_picture, shown = time.monotonic(), 0.0, 0
        self._announce("Running.")
        for row in run.rows():
            with self.lock:
                if self._wanted is not None or self._stopped:
                    break
                self.rows.append(row)
            if time.monotonic() >= next_picture:
                self._paint(run)
                shown = len(self.rows)
                next_picture = time.monotonic() + SECONDS_BETWEEN_PICTURES
        with self.lock:
            if self._wanted is not None:
                return
            self.complete = not self._stopped
        if shown < len(self.rows):
            self._paint(run)
        done = f"{counted(len(self.rows), run.unit)} in {time.monotonic() - began:.1f} s."
        self._announce(f"Done: {done}" if self.complete else f"Stopped after {done}")
