"""How long it takes from a slider's new value to the picture, when nothing has to be computed."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.kernel import in_kernel
from benchmarks.row import Row, in_turns, median_row, timed
from gradacc_lessons.palette import BLUE, GREEN, ORANGE
from gradacc_lessons.ui import Explorer, LiveFigure, NumberSlider, Run

POINTS = 100
LINES = (("left", BLUE, "-"), ("left", ORANGE, "--"), ("right", GREEN, "-"))
"""Panel, colour and line style of the three lines."""


def redraw(quick: bool) -> list[Row]:
    """A slider redraws two panels.

    The same two panels with three lines of 100 points, 600 x 400 pixels, in one kernel: the explorer moves the lines
    of the figure it has, `interactive_output` calls a function that makes a new figure and shows it inline, as most
    notebooks do. Both are timed from the slider's new value until the picture has been handed to the kernel's socket;
    the browser's part is not in it.
    """
    return in_kernel(measure, quick)


def measure(quick: bool) -> list[Row]:
    """In the kernel: both, in turns."""
    seconds = in_turns({"ours": _explorer(), "theirs": _interactive_output()}, rounds=4 if quick else 25)
    ratios = [theirs / ours for ours, theirs in zip(seconds["ours"], seconds["theirs"], strict=True)]
    return [
        median_row("explorer: slider to picture", seconds["ours"], "ms", at_most=40),
        median_row("interactive_output with a new inline figure", seconds["theirs"], "ms"),
        median_row("the explorer is faster by", ratios, "x", at_least=6),
    ]


def heights(phase: int) -> list[Any]:
    """The three lines at one value of the slider."""
    x = np.linspace(0, 6, POINTS)
    return [np.sin(x + phase / 10), np.cos(x + phase / 10), np.sin(x + phase / 10) ** 2]


def paint(left: Any, right: Any) -> list[Any]:
    """Both panels with their three lines, still flat."""
    for ax, name in ((left, "Left"), (right, "Right")):
        ax.set(xlim=(0, 6), ylim=(-1.2, 1.2), xlabel="time (s)", ylabel="height (m)")
        ax.set_title(name, fontsize=10)
        ax.grid(True, color="#E4E4E4", linewidth=0.6)
    panels, x = {"left": left, "right": right}, np.linspace(0, 6, POINTS)
    return [panels[side].plot(x, 0 * x, style, color=colour)[0] for side, colour, style in LINES]


class Waves(LiveFigure):
    """The panels, the explorer's way."""

    description = "Two panels: a sine and a cosine to the left, a squared sine to the right."

    def draw(self, data: pd.DataFrame) -> str:
        """Build both panels."""
        self._lines = paint(*self.new_axes(1, 2))
        self.moves(*self._lines)
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        """Move the three lines."""
        for line, y in zip(self._lines, data["heights"].iloc[-1], strict=True):
            line.set_ydata(y)
        return f"The phase is {data['phase'].iloc[-1]} tenths."


def _explorer() -> Callable[[], float]:
    def rows(phase: int) -> Iterator[dict[str, Any]]:
        yield {"phase": phase, "heights": heights(phase)}

    control = NumberSlider("phase", "Phase", 0, 10_000, 0)
    explorer = Explorer([control], lambda phase: Run(lambda: rows(phase), 1, "picture"), Waves, lambda data: data)

    def move() -> None:
        control.slider.value += 1
        explorer.wait(60)

    return timed(move)


def _interactive_output() -> Callable[[], float]:
    import ipywidgets as widgets
    import matplotlib.pyplot as plt
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    shell.run_line_magic("matplotlib", "inline")
    slider = widgets.IntSlider(value=0, min=0, max=10_000)

    def draw(phase: int) -> None:
        _, (left, right) = plt.subplots(1, 2, figsize=(6, 4), dpi=100)
        for line, y in zip(paint(left, right), heights(phase), strict=True):
            line.set_ydata(y)
        plt.show()

    widgets.interactive_output(draw, {"phase": slider})

    def move() -> None:
        slider.value += 1

    return timed(move)
