"""A few training runs in one picture, also when one of them blows up."""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pandas as pd
from matplotlib.ticker import FuncFormatter

from gradacc_lessons import palette
from gradacc_lessons.ui import LiveFigure, StaticTwin
from gradacc_lessons.ui.static import picture_html

LOOKS = ((palette.RIGHT, "-", 3.0), (palette.WRONG, "--", 1.8), (palette.GREEN, ":", 2.4))
"""Colour, line and width of the first, second and third run."""


class LossCurves(LiveFigure):
    """One curve per run."""

    description: ClassVar[str] = "Training loss, on a logarithmic axis, against the number of updates; a curve per run."

    def draw(self, data: pd.DataFrame) -> str:
        """Build the axes, with a curve for each of the runs."""
        (ax,) = self.new_axes()
        ax.set(xlabel="updates", ylabel="training loss (nats per image)", yscale="log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        for (run, rows), (colour, style, width) in zip(data.groupby("run", sort=False), LOOKS, strict=False):
            ax.plot(rows["update"], rows["loss"], color=colour, linestyle=style, linewidth=width, label=str(run))
        ax.legend(loc="upper right", frameon=False)
        return curves_sentence(data)

    def update(self, data: pd.DataFrame) -> str:
        """The runs are over when they are drawn: draw them anew."""
        return self.draw(data)


def loss_curves(runs: Mapping[str, Sequence[float]]) -> StaticTwin:
    """Up to three runs, given as their losses update by update, as picture, sentence and table.

    ValueError for more runs than there are line styles. A loss that is not finite leaves a gap.
    """
    if not 1 <= len(runs) <= len(LOOKS):
        raise ValueError(f"one to {len(LOOKS)} runs fit in the picture; you gave {len(runs)}")
    rows = [
        {"run": run, "update": update, "loss": loss if math.isfinite(loss) else math.nan}
        for run, losses in runs.items()
        for update, loss in enumerate(losses, start=1)
    ]
    data, figure = pd.DataFrame(rows), LossCurves()
    sentence = figure.draw(data)
    return StaticTwin(picture_html(figure, sentence), sentence, curves_table(data))


def curves_sentence(data: pd.DataFrame) -> str:
    """Where each run began, how high it climbed and where it ended."""
    parts = []
    for run, losses in data.groupby("run", sort=False)["loss"]:
        climbed = f", climbs to {losses.max():,.0f}" if losses.max() > 2 * losses.iloc[0] else ""
        ends = f"ends at {losses.iloc[-1]:.2f}" if pd.notna(losses.iloc[-1]) else "ends as no number"
        parts.append(f"{run} starts at {losses.iloc[0]:.2f}{climbed} and {ends}")
    return "; ".join(parts) + "."


def curves_table(data: pd.DataFrame) -> pd.DataFrame:
    """First, highest and last loss of each run."""
    losses = data.groupby("run", sort=False)["loss"]
    ends = {"first loss": losses.nth(0), "highest loss": losses.max(), "last loss": losses.nth(-1)}
    columns = {name: [f"{value:.2f}" for value in values] for name, values in ends.items()}
    return pd.DataFrame({"run": list(losses.groups), **columns})
