"""Lesson 01: the same gradients make the same training, whichever way the effective batch is cut."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import torch

from gradacc_lessons.device import best_device
from gradacc_lessons.lessons.same_gradient import SMALLEST_DRAWN
from gradacc_lessons.lessons.training import parameters, train
from gradacc_lessons.palette import BLACK, BLUE, GREEN, ORANGE
from gradacc_lessons.recipe import Precision, Recipe
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.tasks.digits import TRAIN_EXAMPLES, DigitsModel
from gradacc_lessons.ui import Choice, Explorer, LiveFigure, NumberSlider, Run

UPDATES = 100
LEARNING_RATES = (0.3, 0.5)
"""A moderate one and one that is high for these models, where a CNN can make much of rounding within 100 updates."""
HIGHEST_LOSS = 3.0
"""Top of the loss axis in nats; a model that guesses among ten digits is at ln 10 = 2.3."""
BOUNDS = ("1e-12", "1e-9", "1e-5", "0.001", "0.1")
"""Relative differences are told as the first of these that they stay below."""
STYLES = ((BLUE, "-", 4.0), (ORANGE, "--", 1.8), (GREEN, ":", 1.8))
"""Colour, line and width of the first, second and third curve: the first is wide, so that others show on it."""


def compare_training(task: Task, recipes: Sequence[Recipe], updates: int = UPDATES) -> Iterator[dict[str, Any]]:
    """Train each recipe from the same weights on the same examples, in lockstep.

    One row per update and recipe: `update` (from 1), `cut` ("8 x 4"), `learning_rate`, `loss` (mean over the update's
    examples) and `relative_difference` (norm of the difference between its parameters and the first recipe's, over the
    norm of the first's).
    """
    runs = [train(task, recipe, updates) for recipe in recipes]
    for rows in zip(*runs, strict=True):
        reference = parameters(rows[0]["model"])
        for recipe, row in zip(recipes, rows, strict=True):
            difference = (parameters(row["model"]) - reference).norm() / reference.norm()
            yield {
                "update": row["update"],
                "cut": f"{recipe.micro_batch_size} x {recipe.accumulation_steps}",
                "learning_rate": recipe.learning_rate,
                "loss": row["loss"],
                "relative_difference": float(difference),
            }


class TrainingFigure(LiveFigure):
    """Above: the loss curves. Below: how far each run's parameters are from the first run's."""

    description = (
        "Above: the training loss of each run against the number of updates, on an axis that ends at 3 nats. Below: "
        "how far its parameters are from those of the run on whole batches, relative, on a logarithmic axis."
    )
    height = 440

    def draw(self, data: pd.DataFrame) -> str:
        """Build both panels, with a curve for each cut."""
        loss, distance = self.new_axes(2, 1, sharex=True, height_ratios=(3, 2))
        loss.set(xlim=(0, UPDATES), ylim=(0, HIGHEST_LOSS))
        loss.set_ylabel("training loss (nats)")
        distance.set(xlim=(0, UPDATES), yscale="log", ylim=(SMALLEST_DRAWN, 100 * SMALLEST_DRAWN))
        distance.set_xlabel("updates")
        distance.set_ylabel("parameters differ\n(relative)")
        self._cuts: list[str] = []
        self._lines: dict[str, Any] = {}
        self._loss_axes, self._distance_axes = loss, distance
        self._above = loss.text(0, 0.98 * HIGHEST_LOSS, "", fontsize=9, color=BLACK, va="top")
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        """Lengthen the curves; new cuts get new curves."""
        cuts = list(dict.fromkeys(data["cut"]))
        if cuts != self._cuts:
            self._name_curves(cuts)
        for cut in cuts:
            rows = data[data["cut"] == cut]
            above, below = self._lines[cut]
            above.set_data(rows["update"], rows["loss"])
            if cut != cuts[0]:  # the first run's distance from itself says nothing
                below.set_data(rows["update"], rows["relative_difference"].clip(lower=SMALLEST_DRAWN))
        now = self._distance_axes.get_ylim()
        self.set_limits(self._distance_axes, y=drift_limits(data["relative_difference"], now))
        self._mark_above(data)
        return training_sentence(data)

    def _mark_above(self, data: pd.DataFrame) -> None:
        """Where a curve leaves the axis, and how high it went."""
        highest = data.nlargest(1, "loss").iloc[0]
        outside = highest["loss"] > HIGHEST_LOSS
        self._above.set_text(f"↑ up to {highest['loss']:.1f} at update {highest['update']}" if outside else "")
        beside = data.loc[data["loss"] > HIGHEST_LOSS, "update"].max() + 2 if outside else 0
        self._above.set_x(min(beside, 0.35 * UPDATES))  # clear of the legend

    def _name_curves(self, cuts: list[str]) -> None:
        for line in (line for pair in self._lines.values() for line in pair):
            line.remove()
        self.forget_moving()
        self.moves(self._above)
        self._cuts, self._lines = cuts, {}
        for cut, (colour, style, width) in zip(cuts, STYLES, strict=False):
            look: dict[str, Any] = {"color": colour, "linestyle": style, "linewidth": width}
            (above,) = self._loss_axes.plot([], [], label=f"{cut} (b x N)", **look)
            (below,) = self._distance_axes.plot([], [], **look)
            self._lines[cut] = (above, below)
            self.moves(above, below)
        self.changes_seldom(self._loss_axes.legend(loc="upper right", frameon=False))


def training_sentence(data: pd.DataFrame) -> str:
    """How the runs ended, in words; a loss that climbed off the axis is said with its height."""
    runs = data.groupby("cut", sort=False)["loss"]
    losses = ", ".join(f"{cut}: {loss.iloc[-1]:.3f}{_climbed(loss.max())}" for cut, loss in runs)
    widest = float(data.groupby("cut", sort=False).tail(1)["relative_difference"].max())
    return (
        f"After {data['update'].max()} updates at learning rate {data['learning_rate'].iloc[0]:g} the training losses "
        f"are {losses}; the parameters differ by {_relative(widest)} of their length."
    )


def _climbed(highest: float) -> str:
    return f" (it had climbed to {highest:.1f})" if highest > HIGHEST_LOSS else ""


def drift_limits(differences: pd.Series, now: tuple[float, float]) -> tuple[float, float]:
    """Where the axis of drift begins and ends: at whole powers of ten, at least two of them apart.

    Exact zeros, as in the first update, do not stretch it; while there is nothing else it stays where it is `now`.
    """
    measured = differences[(differences > 0) & (differences < math.inf)]
    if measured.empty:
        return now
    low, high = math.floor(math.log10(measured.min())), math.ceil(math.log10(measured.max()))
    return 10.0**low, 10.0 ** max(high, low + 2)


def explore_training() -> Explorer:
    """Sliders for b and N: a run on whole batches of b x N and one on N micro-batches of b, side by side."""

    def plan(
        micro_batch_size: int,
        accumulation_steps: int,
        model: DigitsModel,
        learning_rate: float,
        precision: Precision,
    ) -> Run:
        cut = Recipe(micro_batch_size, accumulation_steps, learning_rate=learning_rate, precision=precision)
        cut.check_fits(TRAIN_EXAMPLES)
        whole = replace(cut, micro_batch_size=cut.effective_batch_size, accumulation_steps=1)
        recipes = [whole] if cut == whole else [whole, cut]
        return Run(lambda: compare_training(_task(model, precision), recipes), UPDATES * len(recipes))

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 32, 4),
        Choice("model", "Model", [("MLP", "mlp"), ("CNN with GroupNorm", "cnn")], "mlp"),
        Choice("learning_rate", "Learning rate", [(f"{rate:g}", rate) for rate in LEARNING_RATES], LEARNING_RATES[0]),
        Choice("precision", "Precision", [("float32", "float32"), ("float64 (on the CPU)", "float64")], "float32"),
    ]
    return Explorer(controls, plan, TrainingFigure, training_table)


def _task(model: DigitsModel, precision: Precision) -> Task:
    """float64 on the CPU, where equality can be claimed; float32 where training is fastest."""
    if precision == "float64":
        return digits(model, dtype=torch.float64)
    return digits(model, device=best_device())


def training_table(data: pd.DataFrame) -> pd.DataFrame:
    """The end of each run."""
    last = data.groupby("cut", sort=False).tail(1).reset_index(drop=True)
    return pd.DataFrame(
        {
            "b x N": last["cut"],
            "updates": last["update"],
            "training loss": last["loss"].map("{:.3f}".format),
            "parameters differ by": last["relative_difference"].map(_relative),
        }
    )


def _relative(difference: float) -> str:
    """A relative difference as a bound: its digits depend on the machine."""
    if difference == 0:
        return "0"
    return next((f"less than {bound}" for bound in BOUNDS if difference < float(bound)), "more than 0.1")
