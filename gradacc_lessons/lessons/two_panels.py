"""What pictures with a panel on the left and one on the right share."""

from abc import abstractmethod
from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes

from gradacc_lessons.ui import LiveFigure


class TwoPanels(LiveFigure):
    """Two panels beside one another, each built by a method of its own and moved by `update`."""

    width, height = 820, 400
    arrangement: ClassVar[dict[str, Any]] = {}
    """What goes to `Figure.subplots`: shared axes, widths."""

    def draw(self, data: pd.DataFrame) -> str:
        """Build both panels."""
        left, right = self.new_axes(1, 2, **self.arrangement)
        self.draw_left(left)
        self.draw_right(right)
        return self.update(data)

    @abstractmethod
    def draw_left(self, ax: Axes) -> None:
        """Build the left panel, and name what moves in it."""

    @abstractmethod
    def draw_right(self, ax: Axes) -> None:
        """Build the right panel, and name what moves in it."""
