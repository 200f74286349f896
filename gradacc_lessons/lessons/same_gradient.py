"""Lesson 01: N micro-batches, added up, give the gradient of the full batch.

Everything here is float64 on the CPU, because it is about equality.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import torch

from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.ui import Explorer, LiveFigure, NumberSlider, Run
from gradacc_lessons.ui.palette import BLACK, BLUE, GREY, GUESS

ENTRIES = 250
"""How many weights are drawn: enough to see a line, few enough to see dots."""
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
    drawn = full.abs().argsort(descending=True)[: 4 * ENTRIES : 4]
    unit = full[drawn].abs().max()
    model.zero_grad()
    n = recipe.accumulation_steps
    for number, micro_batch in enumerate(split(batch, recipe.micro_batch_size), start=1):
        (task.loss_fn(model, micro_batch) / n).backward()
        so_far = gradient(model)
        yield {
            "micro_batch": number,
            "of": n,
            "share": number / n,
            "length_ratio": float(so_far.norm() / full.norm()),
            "relative_difference": float((so_far - full).norm() / full.norm()),
            "largest_difference": float((so_far - full).abs().max()),
            "predicted_ratio": predicted_ratio,
            "full": (full[drawn] / unit).numpy(),
            "so_far": (so_far[drawn] / unit).numpy(),
        }


class GradientFigure(LiveFigure):
    """Left: `.grad` against the full gradient, a dot per weight. Right: how far apart they are."""

    description = (
        "Left: a dot for each of 250 weights, its gradient from the full batch to the right and what .grad holds "
        "upwards; the grey diagonal is where they are equal. Right: the relative difference between the two, on a "
        "logarithmic axis, against the share of the micro-batches added."
    )

    def draw(self, data: pd.DataFrame) -> str:
        """Build both panels."""
        dots, distance = self.new_axes(1, 2)
        dots.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
        dots.set_title("One dot per weight", fontsize=10)
        dots.set_xlabel("gradient of the full batch\n(largest = 1)")
        dots.set_ylabel("what .grad holds (same unit)")
        dots.plot([-1.15, 1.15], [-1.15, 1.15], color=GREY, linewidth=1)
        (self._dots,) = dots.plot([], [], "o", color=BLUE, markersize=3.5, alpha=0.7, linestyle="none")
        (self._guess,) = dots.plot([], [], "--", color=GUESS, linewidth=1.8)
        self._guess_label = dots.text(1.1, -1.06, "", color=BLACK, fontsize=8, horizontalalignment="right")
        self._guess_label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
        distance.set(xlim=(0, 104), ylim=(SMALLEST_DRAWN, 10), yscale="log")
        distance.set_title("Distance from the full gradient", fontsize=10)
        distance.set_xlabel("micro-batches added (%)")
        distance.set_ylabel("relative difference (no unit)")
        (self._distance,) = distance.plot([], [], "o-", color=BLUE, markersize=4)
        self.moves(self._dots, self._guess, self._guess_label, self._distance)
        return self.update(data)

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
        return (
            f"After {last['micro_batch']} of {last['of']} micro-batches, .grad is {last['length_ratio']:.3g} times as "
            f"long as the full batch's gradient, and {_percent(last['relative_difference'])} away from it."
        )


def explore_gradients(prediction: Callable[[], float | None] = lambda: None) -> Explorer:
    """Sliders for b and N; `prediction()` is how many times as long the learner expects `.grad` to be."""
    task = digits("mlp", dtype=torch.float64)

    def plan(micro_batch_size: int, accumulation_steps: int) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, precision="float64")
        recipe.check_fits(task.examples)
        guess = prediction()
        return Run(lambda: compare_gradients(task, recipe, guess), accumulation_steps, "micro-batch")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 64, 4),
    ]
    return Explorer(controls, plan, GradientFigure, gradient_table)


def gradient_table(data: pd.DataFrame) -> pd.DataFrame:
    """At most five of the micro-batches, the last one included; rounding noise is given as a bound."""
    rows = sorted({*range(0, len(data), max(1, len(data) // 4)), len(data) - 1})
    table = data.iloc[rows]
    return pd.DataFrame(
        {
            "micro-batches added": table["micro_batch"],
            "length of .grad / full": table["length_ratio"].map("{:.3f}".format),
            "relative difference": table["relative_difference"].map(_percent),
        }
    )


def _percent(relative: float) -> str:
    """A relative difference for people: what float64 rounding leaves is given as a bound, not as digits."""
    return f"{100 * relative:.1f} %" if relative > 1e-12 else "less than 0.0000000001 %"
