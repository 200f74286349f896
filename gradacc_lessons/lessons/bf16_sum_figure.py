"""Lesson 08's first picture: how far a sum is off after each piece, and what it holds in the end."""

from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from gradacc_lessons import palette
from gradacc_lessons.lessons.two_panels import TwoPanels

SMALLEST = 1e-10
"""Where an error of exactly zero stands on the logarithmic axis."""
EXACT = 1e-15
"""A relative error below this is none: the sum is the float64 sum."""
NAMES = {"bfloat16": "bfloat16", "kahan": "bfloat16 with Kahan's correction", "float32": "float32"}
WHAT = {
    "equal": "{n} equal pieces of 2,000 random entries",
    "noisy": "{n} noisy pieces of 2,000 random entries",
    "model": "the gradients of {n} micro-batches (b = {b}) of a digits model in bfloat16",
}


class SumFigure(TwoPanels):
    """Left: the error of the sum against the pieces added. Right: each entry's sum against what it should be."""

    description: ClassVar[str] = (
        "Left: the relative error of the sum, on a logarithmic axis, against the number of pieces added, also "
        "logarithmic: discs for the chosen buffer, at the bottom where it is exact, and a dotted grey line for a plain "
        "bfloat16 sum. Right: a dot for each of 250 entries, what it should be in the end on the horizontal axis and "
        "what the buffer holds on the vertical one; on the grey diagonal they are equal, and a dot nearer to the "
        "horizontal axis has stalled."
    )
    width, height = 820, 400

    def draw_left(self, ax: Axes) -> None:
        """The error, piece after piece."""
        ax.set(xscale="log", yscale="log", xlim=(0.9, 1300), ylim=(SMALLEST / 2, 3))
        ax.set(xlabel="pieces added", ylabel="relative error of the sum")
        ax.set_title("How far the sum is off, after each piece", fontsize=11)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.set_yticks([1, 1e-2, 1e-4, 1e-6, 1e-8, SMALLEST], ["100 %", "1 %", "1e-4", "1e-6", "1e-8", "0"])
        ax.minorticks_off()
        (self._plain,) = ax.plot([], [], ":", color=palette.GREY, lw=2, label="plain bfloat16")
        (self._chosen,) = ax.plot([], [], "o", color=palette.BLUE, ms=4, label="the chosen buffer")
        (self._guess,) = ax.plot([], [], "--", color=palette.GUESS, lw=1.8)
        self._guess_label = ax.text(1, 1, "", fontsize=9, color=palette.BLACK, verticalalignment="bottom")
        ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.5), fontsize=9, frameon=False)
        self.moves(self._plain, self._chosen, self._guess, self._guess_label)

    def draw_right(self, ax: Axes) -> None:
        """A dot per entry."""
        ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
        ax.set(xlabel="what the entry's sum should be (largest = 1)", ylabel="what the buffer holds (same unit)")
        ax.set_title("250 of the entries, at the end", fontsize=11)
        ax.plot([-1.15, 1.15], [-1.15, 1.15], color=palette.GREY, lw=1)
        (self._dots,) = ax.plot([], [], "o", color=palette.BLUE, ms=3.5, alpha=0.7)
        self.moves(self._dots)

    def update(self, data: pd.DataFrame) -> str:
        """Lengthen the lines, move the dots."""
        last = data.iloc[-1]
        self._plain.set_data(data["added"], data["error_bfloat16"].where(data["error_bfloat16"] > 0))
        self._chosen.set_data(data["added"], data["error"].clip(lower=SMALLEST))
        self._dots.set_data(last["truth"], last["held"])
        guess = last["predicted"]
        known = bool(pd.notna(guess)) and guess > 0
        height = max(float(guess) / 100, SMALLEST) if known else 1.0
        self._guess.set_data([0.9, 1300] if known else [], [height, height] if known else [])
        self._guess_label.set_text(f"your prediction, {guess:g} %" if known else "")
        self._guess_label.set_position((1.05, height * 1.15))
        return sum_sentence(data)


def off(error: float) -> str:
    """A relative error for people.

    >>> off(0.3093), off(0.0017), off(2.4e-8), off(0.0)
    ('31 % off', '0.17 % off', '2e-08 off', 'exact')
    """
    if error < EXACT:
        return "exact"
    if error < 1e-5:
        return f"{error:.0e} off"
    return f"{100 * error:.{0 if error >= 0.095 else 1 if error >= 0.0095 else 2}f} % off"


def sum_sentence(data: pd.DataFrame) -> str:
    """How far the sum is off in the end, and how many of its entries have stalled."""
    last = data.iloc[-1]
    what = WHAT[last["pieces"]].format(n=f"{last['n']:,}", b=last["b"])
    so_far = "" if last["added"] == last["n"] else f"after {last['added']:,} of them "
    said = f"{_begin(what)}, added up in {NAMES[last['buffer']]}: {so_far}the sum is {off(last['error'])}."
    if last["buffer"] != "bfloat16":
        said += f" Plain bfloat16 is {off(last['error_bfloat16'])}."
    elif last["stuck"] >= 0.005:
        said += f" The last piece moved nothing in {100 * last['stuck']:.0f} % of the entries."
    if pd.notna(last["predicted"]):
        said += f" You predicted {last['predicted']:g} %, for 512 equal pieces in bfloat16."
    return said


def _begin(words: str) -> str:
    return words[0].upper() + words[1:]


def sum_table(data: pd.DataFrame) -> pd.DataFrame:
    """At most six of the rows, the last included: as many as pieces double twice in between."""
    rows = _spread(len(data), 6)
    table: Any = data.iloc[rows]
    return pd.DataFrame(
        {
            "pieces added": [f"{each:,}" for each in table["added"]],
            "the sum is": [off(each) for each in table["error"]],
            "plain bfloat16 is": [off(each) for each in table["error_bfloat16"]],
            "its entries that the last piece did not move": [f"{100 * each:.0f} %" for each in table["stuck"]],
        }
    )


def _spread(rows: int, at_most: int) -> list[int]:
    """Evenly spread places, the first and the last included."""
    return sorted({round(k * (rows - 1) / (at_most - 1)) for k in range(at_most)})
