"""Which optimizers hide a wrong divisor: the right loop and the wrong one, trained in lockstep."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd
import torch
from matplotlib.axes import Axes

from gradacc_lessons import palette
from gradacc_lessons.device import best_device
from gradacc_lessons.lessons.training import parameters, train
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.recipe import LossScaling, OptimizerName, Recipe
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.tasks.digits import TRAIN_EXAMPLES
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Run

UPDATES = 80
"""How long the two runs of the explorer are."""
SEEDS, SEED_UPDATES = 5, 30
"""How many pairs of runs the table takes its medians from, and how long those are: short enough that a run which
blows up does not yet magnify the rounding of one machine into what the table shows."""
SMALLEST_DRAWN, LARGEST_DRAWN = 1e-6, 1e3
"""Ends of the axis of distances; what lies beyond is drawn at the end, a distance of exactly 0 at the bottom."""


@dataclass(frozen=True)
class Setting:
    """An optimizer with its numbers, under the name that learners choose it by."""

    label: str
    """What the list shows."""
    optimizer: OptimizerName
    """The recipe's optimizer."""
    learning_rate: float
    """Its learning rate, per update."""
    max_norm: float | None = None
    """Clip the window's gradient to this norm."""
    eps: float = 1e-8
    """Adam's eps."""
    weight_decay: float = 0.0
    """Coupled L2 in SGD and Adam, decoupled in AdamW."""

    def recipe(self, micro_batch_size: int, accumulation_steps: int) -> Recipe:
        """The right loop with this optimizer."""
        return Recipe(
            micro_batch_size, accumulation_steps, optimizer=self.optimizer, learning_rate=self.learning_rate,
            max_norm=self.max_norm, eps=self.eps, weight_decay=self.weight_decay,
        )  # fmt: skip


SETTINGS = {
    "sgd": Setting("SGD, lr 0.5", "sgd", 0.5),
    "adam": Setting("Adam, lr 0.001", "adam", 1e-3),
    "adam_fast": Setting("Adam, lr 0.01", "adam", 1e-2),
    "adam_clip": Setting("Adam, lr 0.001, clipped to norm 1", "adam", 1e-3, max_norm=1.0),
    "adam_eps": Setting("Adam, lr 0.001, eps 0.001", "adam", 1e-3, eps=1e-3),
    "adam_l2": Setting("Adam, lr 0.001, coupled L2 0.01", "adam", 1e-3, weight_decay=1e-2),
    "adamw": Setting("AdamW, lr 0.001, weight decay 0.01", "adamw", 1e-3, weight_decay=1e-2),
}
MISTAKES = [
    ("no division: the missing 1/N", "none"),
    ("divided by N twice", "twice"),
    ("divided by k + 1", "running"),
]
_MISTAKE_WORDS = {value: words for words, value in MISTAKES}


def lockstep(
    task: Task, right: Recipe, mistake: LossScaling, updates: int = UPDATES, label: str = ""
) -> Iterator[dict[str, Any]]:
    """Train the right loop and the one with `mistake` from the same weights on the same examples.

    One row per update: `label`, `update` (from 1), `loss_right`, `loss_wrong` (mean per image, before the update) and
    `distance`: the norm of the difference between the two sets of weights, over the norm of the way that the
    right run has come from its first weights. A wrong run that is no longer finite stops: from there on its
    numbers are nan, and `stopped` is the update at which that happened (None before).
    """
    start = parameters(task.build_model(right.seed))
    wrong_run = train(task, replace(right, loss_scaling=mistake), updates)
    stopped: int | None = None
    for row in train(task, right, updates):
        weights, loss_wrong, distance = parameters(row["model"]), math.nan, math.nan
        if stopped is None:
            other = next(wrong_run)
            loss_wrong = other["loss"]
            distance = float((parameters(other["model"]) - weights).norm() / (weights - start).norm())
            if not (math.isfinite(loss_wrong) and math.isfinite(distance)):
                stopped, loss_wrong, distance = row["update"], math.nan, math.nan
        yield {
            "label": label,
            "update": row["update"],
            "loss_right": row["loss"],
            "loss_wrong": loss_wrong,
            "distance": distance,
            "stopped": stopped,
        }


def last_distance(rows: Iterable[dict[str, Any]]) -> float:
    """Run to the end; the last finite distance, or infinity if the wrong run stopped being finite."""
    last = list(rows)[-1]
    return math.inf if last["stopped"] is not None else float(last["distance"])


def over_seeds(
    mistake: LossScaling = "none",
    *,
    settings: Iterable[str] = SETTINGS,
    seeds: int = SEEDS,
    updates: int = SEED_UPDATES,
    micro_batch_size: int = 8,
    accumulation_steps: int = 8,
) -> Iterator[dict[str, Any]]:
    """The distance after `updates`, in float64, one row per setting and seed: `setting`, `seed`, `distance`."""
    task = digits("mlp", dtype=torch.float64)
    for name in settings:
        recipe = replace(SETTINGS[name].recipe(micro_batch_size, accumulation_steps), precision="float64")
        for seed in range(seeds):
            distance = last_distance(lockstep(task, replace(recipe, seed=seed), mistake, updates))
            yield {"setting": name, "seed": seed, "distance": distance}


def seeds_table(data: pd.DataFrame) -> pd.DataFrame:
    """Median over the seeds per setting, to one digit, and how many times smaller than SGD's it is."""
    median = data.groupby("setting", sort=False)["distance"].median()
    return pd.DataFrame(
        {
            "optimizer": [SETTINGS[str(name)].label for name in median.index],
            "weights apart, median": [_plain(value) for value in median],
            "smaller than SGD's": [_times(float(median["sgd"] / value)) for value in median],
        }
    )


def _plain(value: float) -> str:
    """One digit below 1, whole numbers above: 0.0006, 7."""
    return f"{value:.0f}" if value >= 1 else f"{value:.1g}"


def _times(factor: float) -> str:
    """A ratio as a bound that it exceeds with room to spare: its digits depend on the machine."""
    return next((f"more than {bound:,} times" for bound in (1000, 100, 10) if factor > bound), "")


class LockstepFigure(TwoPanels):
    """Left: the two loss curves. Right: how far the two models are apart."""

    description: ClassVar[str] = (
        "Two panels against the number of updates, both with logarithmic heights. Left: the loss of the right run "
        "and of the wrong one. Right: the distance between the weights of the two, as a share of the way the right "
        "run has come; the line at 1 is where they are as far apart as that way is long."
    )

    def draw_left(self, ax: Axes) -> None:
        """The loss curves."""
        self._losses = ax
        ax.set(xlim=(0, UPDATES), xlabel="updates", ylabel="training loss (nats per image)", yscale="log")
        ax.set_title("Two runs, same images", fontsize=11)
        (self._right,) = ax.plot([], [], "-", color=palette.RIGHT, lw=3.5, label="right: divided by N")
        (self._wrong,) = ax.plot([], [], "--", color=palette.WRONG, lw=1.8, label="wrong")
        (self._end,) = ax.plot([], [], "X", color=palette.WRONG, ms=10, linestyle="none")
        self._end_words = ax.text(0, 1, "", fontsize=9, color=palette.BLACK, va="top")
        ax.legend(loc="upper right", fontsize=8, frameon=False)
        self.moves(self._right, self._wrong, self._end, self._end_words)

    def draw_right(self, ax: Axes) -> None:
        """The distance between the two models."""
        ax.set(xlim=(0, UPDATES), ylim=(SMALLEST_DRAWN, LARGEST_DRAWN), yscale="log", xlabel="updates")
        ax.set_ylabel("weights apart / way of the right run")
        ax.set_title("How far the two models are apart", fontsize=11)
        ax.axhline(1, color=palette.GREY, lw=1, ls=":")
        ax.text(1, 1.3, "as far as the right run has come", fontsize=8, color=palette.BLACK)
        (self._distance,) = ax.plot([], [], "-", color=palette.BLACK, lw=1.8)
        self.moves(self._distance)

    def update(self, data: pd.DataFrame) -> str:
        """Lengthen the curves; a run that is no longer finite ends with a cross and a word."""
        self._right.set_data(data["update"], data["loss_right"])
        self._wrong.set_data(data["update"], data["loss_wrong"])
        self._distance.set_data(data["update"], data["distance"].clip(SMALLEST_DRAWN, LARGEST_DRAWN))
        both = data[["loss_right", "loss_wrong"]]
        self.set_limits(self._losses, y=(_decade_down(both.min().min()), _decade_up(both.max().max())))
        self._mark_end(data)
        return lockstep_sentence(data)

    def _mark_end(self, data: pd.DataFrame) -> None:
        finite = data[data["loss_wrong"].notna()]
        ended = pd.notna(data["stopped"].iloc[-1]) and len(finite) > 0
        self._end.set_data(finite["update"].iloc[-1:] if ended else [], finite["loss_wrong"].iloc[-1:] if ended else [])
        self._end_words.set_text("  no longer a number" if ended else "")
        if ended:
            self._end_words.set_position((finite["update"].iloc[-1], finite["loss_wrong"].iloc[-1]))


def _decade_up(value: float) -> float:
    return 10.0 ** max(1, math.ceil(math.log10(value)))


def _decade_down(value: float) -> float:
    return 10.0 ** min(-1, math.floor(math.log10(max(value, 1e-12))))


def lockstep_sentence(data: pd.DataFrame) -> str:
    """What the end of both runs says, in words."""
    last = data.iloc[-1]
    right = f"{last['label']}: after {last['update']:.0f} updates the right run's loss is {last['loss_right']:.2f}"
    if pd.notna(last["stopped"]):
        return f"{right}; the wrong run's numbers stopped being finite at update {int(last['stopped'])}."
    highest = data["loss_wrong"].max()
    climbed = f" (it had climbed to {highest:,.0f})" if highest > 2 * data["loss_wrong"].iloc[0] else ""
    return f"{right}, the wrong run's {last['loss_wrong']:.2f}{climbed}; {_apart(last['distance'])}."


def _apart(distance: float) -> str:
    if distance == 0:
        return "the two models are exactly the same"
    if distance >= 1:
        return f"the two models are {distance:.1f} times as far apart as the right run has come"
    return f"the two models are apart by {distance:.1g} of the way that the right run has come"


def lockstep_table(data: pd.DataFrame) -> pd.DataFrame:
    """The first update, the middle and the end."""
    rows = data.iloc[sorted({0, len(data) // 2, len(data) - 1})]
    return pd.DataFrame(
        {
            "update": rows["update"],
            "loss, right": rows["loss_right"].map("{:.2f}".format),
            "loss, wrong": rows["loss_wrong"].map("{:.2f}".format),
            "weights apart": rows["distance"].map(_plain),
        }
    )


def explore_optimizers() -> Explorer:
    """Sliders for b and N, a choice of optimizer and of mistake; two real runs, side by side."""

    def plan(micro_batch_size: int, accumulation_steps: int, optimizer: str, mistake: Any) -> Run:
        setting = SETTINGS[optimizer]
        recipe = setting.recipe(micro_batch_size, accumulation_steps)
        recipe.check_fits(TRAIN_EXAMPLES)
        label = f"{setting.label}, {_MISTAKE_WORDS[mistake]}, b = {micro_batch_size}, N = {accumulation_steps}"
        return Run(lambda: lockstep(digits("mlp", device=best_device()), recipe, mistake, UPDATES, label), UPDATES)

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 32, 16),
        Choice("optimizer", "Optimizer", [(setting.label, name) for name, setting in SETTINGS.items()], "sgd"),
        Choice("mistake", "Mistake", MISTAKES, "none"),
    ]
    return Explorer(controls, plan, LockstepFigure, lockstep_table)
