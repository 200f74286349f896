"""Lesson 01: N micro-batches, added up, give the gradient of the full batch.

Everything here is float64 on the CPU, because it is about equality.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import torch
from matplotlib.axes import Axes
from torch import Tensor

from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.rounding import ROUNDING, percent
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.palette import BLACK, BLUE, GREY, GUESS
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.ui import Explorer, NumberSlider, Prediction, Run

ENTRIES, OUT_OF = 250, 1000
"""How many weights are drawn, enough to see a line, few enough to see dots; and of how many with the largest
gradients they are an even selection: the smallest would all lie on one spot in the middle."""
SMALLEST_DRAWN = 1e-18
"""Where an exact zero stands on the logarithmic axis."""


def compare_gradients(task: Task, recipe: Recipe, predicted_ratio: float | None = None) -> Iterator[dict[str, Any]]:
    """Add up micro-batch after micro-batch and compare `.grad` with the full batch's gradient.

    The batch is the first b x N training examples; each mean loss is divided by N. One row per micro-batch:
    `micro_batch` (from 1), `of` (N), `share` of the examples seen, `length_ratio` (norm of `.grad` over the norm
    of the full gradient), `relative_difference` (norm of the difference over that norm), `largest_difference`
    (of any weight), `predicted_ratio`, and the arrays `full` and `so_far`: the gradient of the same weights,
    in units of the largest one drawn.
    """
    batch = tuple(tensor[: recipe.effective_batch_size] for tensor in task.train)
    model = task.build_model(recipe.seed)
    task.loss_fn(model, batch).backward()
    full = gradient(model)
    model.zero_grad()
    n = recipe.accumulation_steps
    for number, micro_batch in enumerate(split(batch, recipe.micro_batch_size), start=1):
        (task.loss_fn(model, micro_batch) / n).backward()
        counted = {"micro_batch": number, "of": n, "share": number / n, "predicted_ratio": predicted_ratio}
        yield counted | _difference(gradient(model), full)


def _difference(so_far: Tensor, full: Tensor) -> dict[str, Any]:
    drawn = full.abs().argsort(descending=True)[: OUT_OF : OUT_OF // ENTRIES]
    unit = full[drawn].abs().max()
    return {
        "length_ratio": float(so_far.norm() / full.norm()),
        "relative_difference": float((so_far - full).norm() / full.norm()),
        "largest_difference": float((so_far - full).abs().max()),
        "full": (full[drawn] / unit).numpy(),
        "so_far": (so_far[drawn] / unit).numpy(),
    }


class GradientFigure(TwoPanels):
    """Left: `.grad` against the full gradient, a dot per weight. Right: how far apart they are."""

    description = (
        "Left: a dot for each of 250 weights, every fourth of the 1,000 with the largest gradients; its gradient from "
        "the full batch is on the horizontal axis and what .grad holds on the vertical one; the grey diagonal is where "
        "they are equal. Right: the relative difference between the two, on a logarithmic axis, against the share of "
        "the micro-batches added."
    )
    width = 700

    def draw_left(self, ax: Axes) -> None:
        """A dot per weight."""
        ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
        ax.set_title(f"{ENTRIES} of the {OUT_OF:,} weights with the largest gradients", fontsize=10)
        ax.set_xlabel("gradient of the full batch\n(largest = 1)")
        ax.set_ylabel("what .grad holds (same unit)")
        ax.plot([-1.15, 1.15], [-1.15, 1.15], color=GREY, linewidth=1)
        (self._dots,) = ax.plot([], [], "o", color=BLUE, markersize=3.5, alpha=0.7, linestyle="none")
        (self._guess,) = ax.plot([], [], "--", color=GUESS, linewidth=1.8)
        self._guess_label = ax.text(1.1, -1.06, "", color=BLACK, fontsize=8, horizontalalignment="right")
        self._guess_label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
        self.moves(self._dots, self._guess, self._guess_label)

    def draw_right(self, ax: Axes) -> None:
        """The distance."""
        ax.set(xlim=(0, 104), ylim=(SMALLEST_DRAWN, 10), yscale="log")
        ax.set_title("Distance from the full gradient", fontsize=10)
        ax.set_xlabel("micro-batches added (%)")
        ax.set_ylabel("relative difference (no unit)")
        (self._distance,) = ax.plot([], [], "o-", color=BLUE, markersize=4)
        self.moves(self._distance)

    def update(self, data: pd.DataFrame) -> str:
        """Move dots and line to the last micro-batch."""
        last = data.iloc[-1]
        self._dots.set_data(last["full"], last["so_far"])
        guess = last["predicted_ratio"]
        known = bool(pd.notna(guess))
        self._guess.set_data([-1.15, 1.15] if known else [], [-1.15 * guess, 1.15 * guess] if known else [])
        self._guess_label.set_text(f"dashed: your prediction, {guess:g}" if known else "")
        height = data["relative_difference"].clip(lower=SMALLEST_DRAWN)
        self._distance.set_data(100 * data["share"], height)
        return gradient_sentence(last)


def gradient_sentence(last: Any) -> str:
    """What the last row says, in words."""
    added = f"After {last['micro_batch']} of {last['of']} micro-batches, .grad is"
    if last["relative_difference"] <= ROUNDING:
        return f"{added} the full batch's gradient: the two are the same to rounding."
    return (
        f"{added} {last['length_ratio']:.3g} times as long as the full batch's gradient, "
        f"and {percent(last['relative_difference'], 1)} away from it."
    )


def explore_gradients(prediction: Prediction | None = None) -> Explorer:
    """Sliders for b and N; `prediction()` is how many times as long the learner expects `.grad` to be."""
    task = digits("mlp", dtype=torch.float64)

    def plan(micro_batch_size: int, accumulation_steps: int) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, precision="float64")
        recipe.check_fits(task.examples)
        guess = prediction() if prediction else None
        return Run(lambda: compare_gradients(task, recipe, guess), accumulation_steps, "micro-batch")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 64, 4),
    ]
    return Explorer(controls, plan, GradientFigure, gradient_table, prediction)


def gradient_table(data: pd.DataFrame) -> pd.DataFrame:
    """At most five of the micro-batches, the last one included."""
    rows = sorted({*range(0, len(data), max(1, len(data) // 4)), len(data) - 1})
    table = data.iloc[rows]
    return pd.DataFrame(
        {
            "micro-batches added": table["micro_batch"],
            "length of .grad / full": table["length_ratio"].map("{:.3f}".format),
            "relative difference": [percent(each, 1) for each in table["relative_difference"]],
        }
    )
