"""Progress on anything that takes longer than two seconds: a bar in a notebook, a line of text elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from gradacc_lessons.device import Place, place

SECONDS_OF_SILENCE = 2.0
Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int, label: str) -> Iterator[Item]:
    """Pass `items` on; from the third second on show how many of `total` are done."""
    shown = _Bar(total, label)
    for done, item in enumerate(items, start=1):
        yield item
        shown.at(done)
    shown.close()


def wait_with_progress(wait: Callable[[float], bool], text: Callable[[], str]) -> None:
    """Wait until `wait(seconds)` is true; a terminal shows `text()` every two seconds, a notebook has its own bar."""
    while not wait(SECONDS_OF_SILENCE):
        if place() is Place.TERMINAL:
            print(text(), file=sys.stderr)


class _Bar:
    def __init__(self, total: int, label: str) -> None:
        self._total, self._label = total, label
        self._began = time.monotonic()
        self._widget: Any = None

    def at(self, done: int) -> None:
        if time.monotonic() - self._began < SECONDS_OF_SILENCE:
            return
        if place() is Place.TERMINAL:
            print(f"\r{self._label}: {done} of {self._total}", end="", file=sys.stderr, flush=True)
            return
        if self._widget is None:
            import ipywidgets as widgets
            from IPython.display import display

            style = {"description_width": "initial"}
            self._widget = widgets.IntProgress(max=self._total, description=self._label, style=style)
            display(self._widget)
        self._widget.value = done

    def close(self) -> None:
        if self._widget is not None:
            self._widget.close()
        elif place() is Place.TERMINAL and time.monotonic() - self._began >= SECONDS_OF_SILENCE:
            print(file=sys.stderr)
