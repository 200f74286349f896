"""Lesson 08's second picture: the loss scale from window to window, and what each update applies."""

from typing import ClassVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from gradacc_lessons import palette
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.ui import step_up

LOW, HIGH = 2.0**8, 2.0**20
"""The ends of the scale's axis: eight windows halve or double 65,536 that often at most."""
NEAR = 0.02
"""An update whose length is nearer than this to float32's is right. float16 keeps three digits, and a ReLU that it puts
on the other side of 0 turns an update by some percent, and hardly changes its length."""


class ScalerFigure(TwoPanels):
    """Left: the loss scale. Right: the length of the gradient that each update applies."""

    description: ClassVar[str] = (
        "Two panels over the windows. Left: the loss scale in each window, on an axis of powers of two; a blue disc "
        "where the weights moved, an orange cross where they did not; the window with the broken image is shaded grey. "
        "Right: the length of the gradient that each update applied, orange discs for this loop, with a triangle at "
        "the top where it is NaN, and blue rings for float32 without what is broken."
    )
    width, height = 860, 400

    def draw_left(self, ax: Axes) -> None:
        """The scale."""
        self._scale_axes = ax
        ax.set(xlim=(0.5, 8.5), ylim=(LOW, HIGH), xlabel="window", ylabel="loss scale (no unit)")
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.minorticks_off()
        ax.set_title("The scale in each window", fontsize=11)
        (self._band_left,) = ax.fill([], [], color=palette.GREY, alpha=0.25, lw=0)
        (self._line,) = ax.plot([], [], "-", color=palette.GREY, lw=1.2)
        (self._moved,) = ax.plot([], [], "o", color=palette.BLUE, ms=8, label="update")
        (self._skipped,) = ax.plot([], [], "X", color=palette.ORANGE, ms=10, label="no update")
        ax.legend(loc="lower left", fontsize=9, frameon=False)
        self.moves(self._band_left, self._line, self._moved, self._skipped)

    def draw_right(self, ax: Axes) -> None:
        """The updates."""
        self._update_axes = ax
        ax.set(xlim=(0.5, 8.5), xlabel="window", ylabel="length of the gradient applied")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_title("What each update applies", fontsize=11)
        (self._band_right,) = ax.fill([], [], color=palette.GREY, alpha=0.25, lw=0)
        (self._discs,) = ax.plot([], [], "o", color=palette.WRONG, ms=8, alpha=0.8, label="this loop", clip_on=False)
        (self._nans,) = ax.plot([], [], "v", color=palette.WRONG, ms=9, label="this loop, NaN")
        (self._rings,) = ax.plot(
            [], [], "o", mfc="none", mec=palette.RIGHT, ms=12, mew=1.8, label="float32", clip_on=False
        )
        ax.legend(loc="upper right", fontsize=9, frameon=False, ncols=3, columnspacing=1.2, handletextpad=0.3)
        self.moves(self._band_right, self._discs, self._nans, self._rings)

    def update(self, data: pd.DataFrame) -> str:
        """Move lines, discs and rings."""
        window, broken = data["window"], int(data["broken"].iloc[-1])
        made, nan = data["updated"], data["length"].isna()
        self._line.set_data(window, data["scale"])
        self._moved.set_data(window[made], data["scale"][made])
        self._skipped.set_data(window[~made], data["scale"][~made])
        top = 1.4 * step_up(max(0.5, data["right"].max(), data["length"].fillna(0).max()))
        self._discs.set_data(window[~nan & made], data["length"][~nan & made])
        self._nans.set_data(window[nan], [0.8 * top] * int(nan.sum()))
        self._rings.set_data(window[data["right"] > 0], data["right"][data["right"] > 0])
        for band, low, high in ((self._band_left, LOW, HIGH), (self._band_right, 0.0, top)):
            left = broken - 0.5
            corners = [(left, low), (left + 1, low), (left + 1, high), (left, high)] if broken else [(0, low)]
            band.set_xy(corners)
        self.set_limits(self._update_axes, y=(0.0, top))
        return scaler_sentence(data)


def scaler_sentence(data: pd.DataFrame) -> str:
    """Which windows had no update, what became of the scale, and whether the updates are float32's."""
    last = data.iloc[-1]
    where = (
        f"micro-batch {last['place']} of window {last['broken']} is broken" if last["broken"] else "nothing is broken"
    )
    return f"b = {last['b']}, N = {last['n']}; {where}. {_skips(data)} {_updates(data)}"


def _skips(data: pd.DataFrame) -> str:
    skipped = data.loc[~data["updated"], "window"]
    first, lowest, last = data["scale"].iloc[0], data["scale"].min(), data["scale"].iloc[-1]
    down = f"falls from {first:,.0f} to {lowest:,.0f}" if lowest < first else f"begins at {first:,.0f}"
    scale = f"the scale {down}" + (f" and is {last:,.0f} in window {len(data)}." if last > lowest else ".")
    if skipped.empty:
        return f"Every window has an update; {scale}"
    return f"No update in {'window' if len(skipped) == 1 else 'windows'} {', '.join(map(str, skipped))}; {scale}"


def _updates(data: pd.DataFrame) -> str:
    if data["length"].isna().any():
        first = data.loc[data["length"].isna(), "window"].iloc[0]
        return f"From window {first} on the weights are NaN."
    made = data[data["updated"]]
    if made.empty:
        return "Nothing has been learned."
    wrong = made[(made["length"] / made["right"] - 1).abs() > NEAR]
    if wrong.empty:
        which = "The update that was made is" if len(made) == 1 else f"The {len(made)} updates that were made are"
        return f"{which} as long as float32's, to within {100 * NEAR:g} %."
    first = wrong.iloc[0]
    return (
        f"The update of window {first['window']} is {first['length'] / first['right']:.2g} times as long as float32's."
    )


def scaler_table(data: pd.DataFrame) -> pd.DataFrame:
    """A row per window."""
    lengths = [
        "none" if not made else f"{each:.2g}" for made, each in zip(data["updated"], data["length"], strict=True)
    ]
    return pd.DataFrame(
        {
            "window": data["window"],
            "loss scale": [f"{each:,.0f}" for each in data["scale"]],
            "length applied": lengths,
            "length in float32": [f"{each:.2g}" if each else "none" for each in data["right"]],
        }
    )
