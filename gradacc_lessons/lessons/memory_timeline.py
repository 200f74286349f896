"""Lesson 03: the bytes of a run over time, as a picture with its words and a small table."""

from typing import Any, ClassVar

import pandas as pd

from gradacc_lessons.memory.profile import MemoryProfile
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.ui import LiveFigure, StaticTwin
from gradacc_lessons.ui.static import picture_html


class TimelineFigure(LiveFigure):
    """The picture of one memory profile. It is finished when it is drawn."""

    description: ClassVar[str] = (
        "Memory in use, in MiB, operation by operation: stacked areas for parameters, gradients, optimizer state, "
        "saved activations, inputs and temporaries. The ground is white in forward, grey in backward and darker in "
        "the update; a black triangle marks the peak."
    )

    def __init__(self, profile: MemoryProfile) -> None:
        super().__init__()
        self._profile = profile

    def draw(self, data: pd.DataFrame) -> str:
        """Draw the profile's own picture."""
        self.figure = self._profile.figure()
        width, height = self.figure.get_size_inches() * self.figure.dpi
        self.width, self.height = int(width), int(height)
        self.new_ground()
        return self._profile.sentence

    def update(self, data: pd.DataFrame) -> str:
        """Draw it anew."""
        return self.draw(data)


def timeline(profile: MemoryProfile) -> StaticTwin:
    """The picture of a profile, with its sentence and what the peak is made of."""
    figure = TimelineFigure(profile)
    sentence = figure.draw(profile.timeline)
    return StaticTwin(picture_html(figure, sentence), sentence, parts_table(profile))


def parts_table(profile: MemoryProfile) -> pd.DataFrame:
    """What the peak is made of, in MiB."""
    rows: list[dict[str, Any]] = [
        {"at the peak": name, "MiB": f"{size / MEBIBYTE:.1f}"} for name, size in profile.by_category.items()
    ]
    return pd.DataFrame(rows)
