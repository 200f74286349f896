"""The picture of lesson 04's weights: what one token weighs, and what that does to the gradient."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from gradacc_lessons import palette
from gradacc_lessons.lessons.rounding import ROUNDING, percent
from gradacc_lessons.lessons.two_panels import TwoPanels

SAID = {"means": "mean of means", "examples": "weighted by examples", "tokens": "weighted by tokens"}
WEIGHTS = [2.0**k for k in range(-4, 7)]
"""Ticks; sixteen micro-batches cannot make a token lighter than a sixteenth."""
TOKENS_PER_TICK = 100
LABELLED = 8
"""Up to so many micro-batches have their number of tokens written over them."""
CLOSE, LEVEL = 0.06, 0.4
"""Numbers nearer than this share of the axis would touch if they stood on one level, in powers of two."""


class WeightFigure(TwoPanels):
    """Left: the tokens of one window, as high as they weigh. Right: the gradients of all windows."""

    description: ClassVar[str] = (
        "Two panels. Left: the tokens of the first window side by side, micro-batch by micro-batch; a block is as wide "
        "as its micro-batch has tokens, and reaches from 1, the right weight, to what one of its tokens weighs, on a "
        "logarithmic axis. Right: a dot for each window; how far its gradient is from the full batch's in % is on the "
        "horizontal axis and the cosine between the two on the vertical one; a black diamond is at their medians, and "
        "the right gradient is a blue ring at 0 % and 1."
    )
    arrangement: ClassVar[dict[str, Any]] = {"width_ratios": (9, 8)}

    def draw_left(self, ax: Axes) -> None:
        """The tokens of one window."""
        self._window = ax
        ax.set_yscale("log", base=2)
        ax.set(xlabel="tokens of one window, side by side", ylabel="weight of one token (right = 1)")
        ax.set_ylim(1 / 4, 32)
        ax.yaxis.set_major_locator(FixedLocator(WEIGHTS))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"1/{1 / y:g}" if y < 1 else f"{y:g}"))
        ax.set_title("What one token weighs", fontsize=11)
        self._blocks = ax.stairs([1.0], [0.0, 1.0], baseline=1.0, fill=True, fc=palette.WRONG, ec=palette.WRONG, lw=1.2)
        (self._borders,) = ax.plot([], [], ":", color=palette.GREY, lw=0.9)
        (self._right,) = ax.plot([], [], "-", color=palette.RIGHT, lw=2.5)
        self._numbers = [
            ax.text(0, 0, "", fontsize=8, color=palette.BLACK, horizontalalignment="center") for _ in range(LABELLED)
        ]
        self.moves(self._blocks, self._borders, self._right, *self._numbers)

    def draw_right(self, ax: Axes) -> None:
        """The gradients."""
        self._plane = ax
        ax.set(xlabel="distance from the full batch's gradient (%)", ylabel="cosine with the full batch's gradient")
        (ring,) = ax.plot([0], [1], "o", mfc="none", mec=palette.RIGHT, ms=11, mew=2, label="full batch", clip_on=False)
        (self._dots,) = ax.plot([], [], "o", color=palette.WRONG, ms=5, alpha=0.7, label="one window", clip_on=False)
        (self._median,) = ax.plot([], [], "D", color=palette.BLACK, ms=7, label="median", clip_on=False)
        (self._guess,) = ax.plot([], [], "--", color=palette.GUESS, lw=1.8)
        self._guess_words = ax.text(0, 0.03, "", fontsize=8, color=palette.BLACK)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=9, frameon=False)
        self.moves(self._guess, self._guess_words, self._dots, self._median, ring)

    def update(self, data: pd.DataFrame) -> str:
        """Move the blocks to the first window, and the dots to all of them."""
        self._show_window(data["tokens"].iloc[0], data["weights"].iloc[0])
        errors, guess = 100 * data["relative_error"], data["prediction"].iloc[0]
        known = bool(pd.notna(guess))
        reach = next_half(max(10.0, errors.max(), 1.3 * guess if known else 0.0))
        self.set_limits(self._plane, x=(-0.03 * reach, 1.03 * reach), y=(min(0.0, data["cosine"].min()), 1.05))
        self._dots.set_data(errors, data["cosine"])
        self._median.set_data([errors.median()], [data["cosine"].median()])
        self._guess.set_data([guess, guess] if known else [], [0, 1] if known else [])
        self._guess_words.set_text(f"your prediction: {guess:g} %" if known else "")
        if known:  # on the side of the line where there is room
            far = guess >= 0.5 * reach
            self._guess_words.set_x(guess + (-0.015 if far else 0.015) * reach)
            self._guess_words.set_horizontalalignment("right" if far else "left")
        return weight_sentence(data)

    def _show_window(self, tokens: Any, weights: Any) -> None:
        edges = np.concatenate([[0.0], np.cumsum(tokens)])
        self._blocks.set_data(weights, edges, 1.0)
        self._borders.set_data(np.repeat(edges, 3), np.tile([WEIGHTS[0], WEIGHTS[-1], np.nan], len(edges)))
        self._right.set_data([0, edges[-1]], [1, 1])
        end = TOKENS_PER_TICK * float(np.ceil(edges[-1] / TOKENS_PER_TICK))
        self._label_blocks(tokens, (edges[:-1] + edges[1:]) / 2, np.maximum(1.0, weights), CLOSE * end)
        low, high = 2.0 ** np.floor(np.log2(weights.min())), 2.0 ** np.ceil(np.log2(weights.max() * 1.2))
        self.set_limits(self._window, x=(0.0, end), y=(float(min(low, 1 / 4)), float(max(high, 4.0))))

    def _label_blocks(self, tokens: Any, middles: Any, tops: Any, close: float) -> None:
        """Write the numbers of tokens over the blocks; not where one would lie on another."""
        written: list[tuple[float, float]] = []
        for k, words in enumerate(self._numbers):
            words.set_text("")
            if len(tokens) > LABELLED or k >= len(tokens):
                continue
            if any(middles[k] - x < close and abs(np.log2(tops[k] / y)) < LEVEL for x, y in written):
                continue
            words.set_text(f"{tokens[k]:g}")
            words.set_position((middles[k], tops[k] * 1.07))
            written.append((middles[k], tops[k]))


def next_half(value: float) -> float:
    """The next of 10, 15, 20, … 95, 100, 150, 200, … at or above `value` (10 or more): an axis that data fills.

    >>> next_half(77.0), next_half(252.0)
    (80.0, 300.0)
    """
    half = 10.0 ** np.floor(np.log10(value)) / 2
    return float(half * np.ceil(value / half))


def weight_sentence(data: pd.DataFrame) -> str:
    """What the windows say, in words."""
    last = data.iloc[-1]
    model = f"after {last['updates']} updates" if last["updates"] else "of an untrained model"
    setting = f"b = {last['micro_batch_size']}, N = {last['accumulation_steps']}, {SAID[last['weighting']]}"
    errors, seen = 100 * data["relative_error"], f"{len(data)} windows" if len(data) > 1 else "1 window"
    if errors.max() <= 100 * ROUNDING:
        measured = f"in {seen} the gradient {model} is the full batch's, to rounding. Every token weighs the same."
    else:
        weights = data["weights"].iloc[0]
        measured = (
            f"over {seen} the gradient {model} is {errors.median():.0f} % away from the full batch's (median; "
            f"{errors.min():.0f} to {errors.max():.0f} %), with cosine {data['cosine'].median():.2f}. In the first "
            f"window a token weighs between {weights.min():.2g} and {weights.max():.2g} times what it should."
        )
    guess = last["prediction"]
    return f"{setting}: {measured}" + (f" You predicted {guess:g} %, for b = 1 and N = 8." if pd.notna(guess) else "")


def weight_table(data: pd.DataFrame) -> pd.DataFrame:
    """The gradients of all windows, and the weights in the first of them."""
    rows: list[tuple[str, Any, Callable[[float], str]]] = [
        ("distance from the full batch's gradient", data["relative_error"], percent),
        ("cosine with it", data["cosine"], "{:.2f}".format),
        ("weight of one token, first window", data["weights"].iloc[0], "{:.2g}".format),
    ]
    return pd.DataFrame(
        [{"measured": name, "smallest": said(min(values)), "largest": said(max(values))} for name, values, said in rows]
    )
