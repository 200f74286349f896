"""A matplotlib figure that can be moved twenty times a second.

Axes, labels and grid are painted once; afterwards only the artists named as moving are painted over that ground
(blitting), which takes about a tenth of a full redraw. matplotlib's object API is used throughout: pyplot keeps
global state and may not be touched from two threads.
"""

import io
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

DOTS_PER_INCH = 100


class LiveFigure(ABC):
    """A picture of one kind of DataFrame. It computes nothing: what it shows stands in the data.

    A subclass says in `description` what is drawn (for readers who cannot see it), builds its axes in `draw` with
    `new_axes`, names what moves with `moves`, and moves it in `update`.
    """

    description: ClassVar[str]
    """One sentence: what the axes are and what is drawn, without the numbers of this run."""
    width, height = 600, 400
    """Size in pixels."""

    def __init__(self) -> None:
        self.figure: Figure | None = None
        self._moving: list[Artist] = []
        self._seldom: list[Artist] = []
        self._axes_ground: Any = None  # axes, ticks and titles
        self._ground: Any = None  # with what changes seldom over them

    @abstractmethod
    def draw(self, data: pd.DataFrame) -> str:
        """Build the figure for `data`; returns the sentence that says what it shows."""

    @abstractmethod
    def update(self, data: pd.DataFrame) -> str:
        """Move the artists to `data`; returns the sentence that says what it shows."""

    def show(self, data: pd.DataFrame) -> str:
        """Draw the first time, update afterwards."""
        return self.draw(data) if self.figure is None else self.update(data)

    def new_axes(self, rows: int = 1, columns: int = 1, **options: Any) -> list[Axes]:
        """A new figure of this class's size; its axes in reading order. `options` go to `Figure.subplots`."""
        inches = (self.width / DOTS_PER_INCH, self.height / DOTS_PER_INCH)
        self.figure = Figure(figsize=inches, dpi=DOTS_PER_INCH, layout="constrained", facecolor="white")
        FigureCanvasAgg(self.figure)
        self._moving, self._seldom = [], []
        self.new_ground()
        axes = list(self.figure.subplots(rows, columns, squeeze=False, **options).flat)
        for ax in axes:
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(True, color="#E4E4E4", linewidth=0.6)
            ax.set_axisbelow(True)
        return axes

    def moves(self, *artists: Artist) -> None:
        """These artists change between updates and are painted over the ground."""
        for artist in artists:
            artist.set_animated(True)
        self._moving.extend(artists)

    def forget_moving(self) -> None:
        """The artists named so far are gone; others will be named."""
        self._moving.clear()

    def changes_seldom(self, *artists: Artist) -> None:
        """Between axes and moving artists: painted now and kept until it is named anew. A legend, for example."""
        for artist in artists:
            artist.set_animated(True)
        self._seldom, self._ground = list(artists), None

    def new_ground(self) -> None:
        """Axes, ticks or titles changed: paint everything again next time. Costs ten moves or more: do it in steps."""
        self._axes_ground = self._ground = None

    def set_limits(
        self, ax: Axes, *, x: tuple[float, float] | None = None, y: tuple[float, float] | None = None
    ) -> None:
        """Set axis limits; the ground is repainted only if they differ from those it has."""
        if x is not None and tuple(ax.get_xlim()) != x:
            ax.set_xlim(*x)
            self.new_ground()
        if y is not None and tuple(ax.get_ylim()) != y:
            ax.set_ylim(*y)
            self.new_ground()

    def png(self) -> bytes:
        """The picture as it stands, PNG-encoded at the level that is fastest to make."""
        if self.figure is None:
            raise RuntimeError("draw the figure before asking for its picture")
        canvas: Any = self.figure.canvas
        if self._axes_ground is None:
            canvas.draw()
            self._axes_ground = canvas.copy_from_bbox(self.figure.bbox)
        if self._ground is None:
            canvas.restore_region(self._axes_ground)
            for artist in self._seldom:
                self.figure.draw_artist(artist)
            self._ground = canvas.copy_from_bbox(self.figure.bbox)
        canvas.restore_region(self._ground)
        for artist in self._moving:
            self.figure.draw_artist(artist)
        file = io.BytesIO()
        picture = Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba(), "raw", "RGBA", 0, 1)
        picture.convert("RGB").save(file, "PNG", compress_level=1)  # the ground is opaque, so alpha says nothing
        return file.getvalue()


def step_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, … at or above `value`: axis limits that change seldom.

    ValueError unless `value` is positive and finite.

    >>> step_up(0.7), step_up(3.0), step_up(51.0)
    (1.0, 5.0, 100.0)
    """
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"an axis needs a positive, finite limit; it was given {value}")
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * part for part in (1.0, 2.0, 5.0, 10.0) if value <= power * part)
