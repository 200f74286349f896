"""The fast way to paint gives the picture that the slow way gives."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gradacc_lessons.ui import LiveFigure, step_up
from gradacc_lessons.ui.static import StaticTwin


class Two(LiveFigure):
    description = "Two lines & <one> text."

    def draw(self, data: pd.DataFrame) -> str:
        left, right = self.new_axes(1, 2)
        for ax in (left, right):
            ax.set(xlim=(0, 3), ylim=(0, 10))
        self._axes = left
        (self._line,) = left.plot([], [], "o-")
        self._text = right.text(1, 5, "")
        self.moves(self._line, self._text)
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        self._line.set_data(data["x"], data["y"])
        self._text.set_text(f"{data['y'].iloc[-1]}")
        self.set_limits(self._axes, y=(0, step_up(data["y"].max())))
        return "said"


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)))


def frame(*y: float) -> pd.DataFrame:
    return pd.DataFrame({"x": range(len(y)), "y": y})


@pytest.mark.parametrize("second", [frame(9, 1, 4), frame(400, 1, 30)])
def test_moving_artists_gives_the_same_picture_as_painting_everything(second: pd.DataFrame) -> None:
    figure = Two()
    figure.show(frame(1, 2, 3))
    before = pixels(figure.png())
    figure.show(second)
    moved = pixels(figure.png())
    figure.new_ground()
    assert np.array_equal(moved, pixels(figure.png()))
    assert not np.array_equal(before, moved)
    assert moved.shape == (400, 600, 3)


class Named(Two):
    def update(self, data: pd.DataFrame) -> str:
        said = super().update(data)
        self.changes_seldom(self._axes.legend([f"{len(data)} points"], loc="upper left"))
        return said


def test_a_legend_that_changes_leaves_nothing_of_the_old_one() -> None:
    figure, fresh, nameless = Named(), Named(), Two()
    figure.show(frame(1, 2, 3))
    figure.png()
    for shown in (figure, fresh, nameless):
        shown.show(frame(1, 2, 3, 4))
    assert np.array_equal(pixels(figure.png()), pixels(fresh.png()))
    assert not np.array_equal(pixels(fresh.png()), pixels(nameless.png()))


def test_a_picture_before_drawing_is_refused() -> None:
    with pytest.raises(RuntimeError, match="draw the figure before"):
        Two().png()


@given(st.floats(1e-12, 1e12))
def test_step_up_is_the_next_of_1_2_5(value: float) -> None:
    step = step_up(value)
    assert value <= step <= 2.5 * value * (1 + 1e-9)
    assert f"{step:.0e}"[0] in "125"


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_step_up_needs_a_positive_number(value: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        step_up(value)


def test_what_a_twin_shows_is_escaped() -> None:
    twin = StaticTwin("<img>", "a < b & <script>", pd.DataFrame({"<i>": ["<b>"]}))
    page = twin._repr_html_()
    assert "<script>" not in page and "<b>" not in page and "<i>" not in page
    assert "a &lt; b" in page
