"""Enter in a field for a number, in ipywidgets 7.7.1 and 8."""

from collections.abc import Callable
from threading import Lock, Timer
from time import monotonic
from typing import Any

import ipywidgets as widgets

SECONDS_AFTER_ENTER = 0.3
"""How long a number that was just typed may take to come after the key; both leave the browser at once."""


class Enter:
    """Calls `act` when Enter is pressed in `field`, once its value is what stood there at that moment.

    The field must have `continuous_update=False`. Then the browser tells of the key first and of a value that is new
    right after it, so that value is waited for; of the key alone it tells if the value was known already, for
    example because the field was left and entered again.
    """

    def __init__(self, field: widgets.Text) -> None:
        self.act: Callable[[], None] = lambda: None
        self._lock = Lock()  # the timer has a thread of its own
        self._waiting: Timer | None = None
        self._answered = -SECONDS_AFTER_ENTER
        field.on_msg(self._pressed)
        field.observe(self._act_once, names="value")

    def answered(self) -> None:
        """The value was answered with, by Enter or a button: a key that goes with it is no second answer."""
        self._take()
        self._answered = monotonic()

    def _pressed(self, _: widgets.Text, content: dict[str, Any], __: Any) -> None:
        with self._lock:
            if content.get("event") == "submit" and self._waiting is None:
                again = monotonic() - self._answered < SECONDS_AFTER_ENTER  # unless another value follows
                self._waiting = Timer(SECONDS_AFTER_ENTER, self._take if again else self._act_once)
                self._waiting.daemon = True
                self._waiting.start()

    def _act_once(self, *_: Any) -> None:
        if self._take():
            self.act()

    def _take(self) -> bool:
        """Whether a key was pressed and waits; no longer, after this."""
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.cancel()
        return waiting is not None
