"""Lesson 06: pick a loss or a model, and see whether micro-batches add up to its full batch, parameter by parameter."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gradacc_lessons import palette
from gradacc_lessons.detective.examination.weights import FLOAT64
from gradacc_lessons.detective.examine import ExamineError, examine
from gradacc_lessons.device import seeded
from gradacc_lessons.lessons.loss_cases import CASES, setting
from gradacc_lessons.lessons.pairs import most_images
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.ui import Choice, Explorer, LiveFigure, NumberSlider, Run

SMALLEST, LARGEST = 1e-18, 1e2
"""The ends of the logarithmic axis: what is exactly zero has no bar."""
TOLERANCE = FLOAT64.relative
"""A difference below this share of a parameter's gradient is rounding to `examine`."""
MOST_EXAMPLES, MOST_STEPS = 32, 16
"""The ends of the sliders."""


def verdict(case: str, micro_batch_size: int, accumulation_steps: int) -> Iterator[dict[str, Any]]:
    """Examine one of the CASES on a batch of b x N.

    One row: `parameters` (their names), and as arrays in their order the `relative_error`, `cosine` and `ratio` of
    each; `additive`, `causes`, and what is `said` of them; and what was chosen: `case`, `b`, `n`. Where it cannot be
    examined the arrays are empty, `additive` is None, and `said` is why.
    """
    row: dict[str, Any] = {"case": case, "b": micro_batch_size, "n": accumulation_steps}
    if micro_batch_size == 1 and (why := CASES[case].alone):
        yield row | _unexamined(f"{why}, so choose a larger b")
        return
    with seeded(0):  # what a model draws is the same each time, and nobody else draws meanwhile
        try:
            found = examine(*setting(case, micro_batch_size * accumulation_steps), micro_batch_size)
        except ExamineError as error:
            yield row | _unexamined(str(error))
            return
    row |= {"parameters": found.table["parameter"].to_numpy()}
    row |= {name: found.table[name].to_numpy() for name in ("relative_error", "cosine", "ratio")}
    said = found.message.replace("\n", " ")
    yield row | {"additive": found.additive, "causes": found.causes, "said": said}


def _unexamined(why: str) -> dict[str, Any]:
    empty = dict.fromkeys(("parameters", "relative_error", "cosine", "ratio"), np.zeros(0))
    return empty | {"additive": None, "causes": (), "said": f"It cannot be examined: {why}."}


class VerdictFigure(LiveFigure):
    """A bar per parameter: how far what micro-batches add up to is from the full batch's gradient."""

    description: ClassVar[str] = (
        "A horizontal bar for each parameter of the model: the relative distance between the gradient that micro-"
        "batches add up to and that of the full batch, on a logarithmic axis from 1e-18 to 100; orange and hatched "
        "where it is beyond the tolerance, which is a dashed line at 1e-6, and blue where it is rounding. The distance "
        "in percent stands at the end of each bar."
    )
    width, height = 700, 330

    def draw(self, data: pd.DataFrame) -> str:
        """Build the axes."""
        (ax,) = self.new_axes()
        ax.set(xscale="log", xlim=(SMALLEST, LARGEST), xlabel="relative error of the gradient (no unit)")
        ax.axvline(TOLERANCE, color=palette.GREY, ls="--", lw=1.2)
        ax.set_title(
            f"dashed: the tolerance, {TOLERANCE:g}".replace("e-0", "e-"), fontsize=10, loc="right", color=palette.GREY
        )
        self._ax = ax
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        """Bars anew: another model has other parameters, and so another axis."""
        last = data.iloc[-1]
        for bars in list(self._ax.containers):
            bars.remove()
        for words in list(self._ax.texts):
            words.remove()
        places = np.arange(len(last["parameters"]))
        self._bars(self._ax, places, last)
        self._ax.set_yticks(places, last["parameters"])
        self._ax.set_ylim(max(len(places), 1) - 0.4, -0.6)
        self.new_ground()
        return verdict_sentence(last)

    @staticmethod
    def _bars(ax: Axes, places: Any, last: Any) -> None:
        errors = np.maximum(last["relative_error"], SMALLEST)
        for beyond, colour, hatch in ((False, palette.RIGHT, ""), (True, palette.WRONG, "//")):
            chosen = (errors > TOLERANCE) == beyond
            lengths = errors[chosen] - SMALLEST
            ax.barh(places[chosen], lengths, 0.6, SMALLEST, color=colour, hatch=hatch, edgecolor="white")
        for place, error in zip(places, errors, strict=True):
            ax.annotate(
                _percent(error),
                (error, place),
                (4, 0),
                textcoords="offset points",
                fontsize=9,
                verticalalignment="center",
            )


def verdict_sentence(last: Any) -> str:
    """What was examined, and what `examine` says."""
    return f"{CASES[last['case']].label}, b = {last['b']}, N = {last['n']}. {last['said']}"


def verdict_table(data: pd.DataFrame) -> pd.DataFrame:
    """A line per parameter."""
    last = data.iloc[-1]
    return pd.DataFrame(
        {
            "parameter": last["parameters"],
            "relative error": [_percent(error) for error in last["relative_error"]],
            "cosine": [f"{value:.2f}" for value in last["cosine"]],
            "length, accumulated / full": [f"{value:.2f}" for value in last["ratio"]],
        }
    )


def _percent(error: float) -> str:
    return "rounding only" if error <= TOLERANCE else f"{100 * error:.3g} %"


def explore_losses(case: str = "info_nce") -> Explorer:
    """A list of losses and models, and sliders for b and N; `examine` looks at each anew."""

    def plan(case: str, micro_batch_size: int, accumulation_steps: int) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, precision="float64")
        recipe.check_fits(most_images())
        return Run(lambda: verdict(case, micro_batch_size, accumulation_steps), 1, "verdict")

    controls = [
        Choice("case", "Loss or model", [(each.label, key) for key, each in CASES.items()], case),
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, MOST_EXAMPLES, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 2, MOST_STEPS, 4),
    ]
    return Explorer(controls, plan, VerdictFigure, verdict_table)
