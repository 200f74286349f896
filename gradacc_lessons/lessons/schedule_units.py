"""Lesson 07: a schedule is planned in updates. What becomes of it when it moves at another moment, on a real run."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import pandas as pd
import torch
from matplotlib.axes import Axes

from gradacc_lessons import palette
from gradacc_lessons.device import best_device
from gradacc_lessons.lessons.training import add_gradient, training_windows
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.schedule import factor, warmup_then_cosine
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.tasks.digits import TRAIN_EXAMPLES
from gradacc_lessons.ui import Choice, Explorer, LiveFigure, NumberSlider, Prediction, Run, counted, step_up

Unit = Literal["update", "micro-batch", "epoch"]
UNITS: list[tuple[str, Unit]] = [
    ("once per update: right", "update"),
    ("at every micro-batch", "micro-batch"),
    ("once per epoch", "epoch"),
]
UPDATES, WARM_UP, LEARNING_RATE = 240, 100, 0.5
"""The plan: so many updates, of which the first so many warm up to this learning rate. A long warm-up, to be seen."""
LAST = 20
"""Over so many last windows the loss is averaged that the sentence gives."""
FIRST = Recipe(micro_batch_size=4, accumulation_steps=8, learning_rate=LEARNING_RATE)
"""What the explorer begins with, and the prediction is about."""


class Learner:
    """A model that trains window by window; its schedule moves once per `unit`."""

    def __init__(self, task: Task, recipe: Recipe, warm_up: int, unit: Unit) -> None:
        self.task, self.recipe, self.unit = task, recipe, unit
        self.model = task.build_model(recipe.seed)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=recipe.learning_rate)
        self.scheduler = warmup_then_cosine(self.optimizer, warm_up, UPDATES)
        self.optimizer.step()  # without gradients: torch warns of a schedule that moves first, which is shown here
        self.stream = training_windows(task, recipe)
        self.updates_per_epoch, self.updates = recipe.updates_per_epoch(task.examples), 0

    def update(self) -> tuple[float, float, int]:
        """One window: the learning rate that its update used, the window's mean loss, its micro-batches."""
        window = next(self.stream)
        loss = add_gradient(self.model, window, self.task, self.recipe)
        # At every micro-batch: before the update as well, as in a loop that calls it after each backward.
        for _ in range(len(window) if self.unit == "micro-batch" else 0):
            self.scheduler.step()
        rate = float(self.optimizer.param_groups[0]["lr"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.updates += 1
        if self.unit == "update" or (self.unit == "epoch" and self.updates % self.updates_per_epoch == 0):
            self.scheduler.step()
        return rate, loss, len(window)


def two_units(
    task: Task, recipe: Recipe, warm_up: int, unit: Unit, updates: int = UPDATES, predicted: float | None = None
) -> Iterator[dict[str, Any]]:
    """Train twice with one plan, in lockstep, on the same examples: its schedule moves once per update, or per `unit`.

    One row per update: `update` (from 1), `micro_batches` so far, `rate_right` and `rate_wrong` (what the update
    used), `loss_right` and `loss_wrong` (the window's mean, before it), `planned` (what the plan has for its step
    number `update`, whatever it counts), and what was chosen.
    """
    right, wrong = Learner(task, recipe, warm_up, "update"), Learner(task, recipe, warm_up, unit)
    chosen = {"recipe": recipe, "warm_up": warm_up, "unit": unit, "predicted": predicted}
    seen = 0
    for update in range(1, updates + 1):
        rate_right, loss_right, micro_batches = right.update()
        rate_wrong, loss_wrong, _ = wrong.update()
        seen += micro_batches
        yield chosen | {
            "update": update,
            "micro_batches": seen,
            "rate_right": rate_right,
            "rate_wrong": rate_wrong,
            "loss_right": loss_right,
            "loss_wrong": loss_wrong,
            "planned": recipe.learning_rate * factor(update - 1, warm_up, UPDATES),
        }


def highest(data: pd.DataFrame, which: str = "wrong") -> tuple[int, float]:
    """The update with the highest learning rate, and that."""
    row = data.iloc[int(data[f"rate_{which}"].to_numpy().argmax())]
    return int(row["update"]), float(row[f"rate_{which}"])


def still_from(data: pd.DataFrame, which: str = "wrong") -> int | None:
    """The first update with a learning rate of 0; None if there is none."""
    still = data["update"][data[f"rate_{which}"] == 0]
    return int(still.iloc[0]) if len(still) else None


class UnitsFigure(LiveFigure):
    """The learning rate against updates and against micro-batches, and the loss."""

    description: ClassVar[str] = (
        "Three panels. Left: the learning rate against the number of updates. Middle: the same two runs against the "
        "number of micro-batches. Right: the training loss against the number of updates. Blue is the schedule that "
        "moves once per update, orange dashed the one that moves at the chosen moment; the black dotted line is the "
        "plan, read off the axis of each panel."
    )
    width, height = 960, 370

    def draw(self, data: pd.DataFrame) -> str:
        """Build the three panels."""
        self._updates, self._micro_batches, self._losses = self.new_axes(1, 3)
        self._updates.set(xlabel="updates", ylabel="learning rate", title="Against updates")
        self._micro_batches.set(
            xlabel="micro-batches (some tools say steps)", ylabel="learning rate", title="Against micro-batches"
        )
        self._losses.set(xlabel="updates", ylabel="training loss (nats per image)", title="What it does to the loss")
        for ax in (self._updates, self._micro_batches, self._losses):
            ax.title.set_fontsize(11)
        self._rates = [self._draw_rates(ax) for ax in (self._updates, self._micro_batches)]
        self._loss = [
            self._losses.plot([], [], "-", color=palette.RIGHT, lw=2.4)[0],
            self._losses.plot([], [], "--", color=palette.WRONG, lw=1.4)[0],
        ]
        (self._guess,) = self._updates.plot([], [], "--", color=palette.GUESS, lw=2)
        self._guess_words = self._updates.text(0, 0, "", fontsize=9, color=palette.BLACK, ha="left", va="bottom")
        self._micro_batches.legend(loc="upper right", fontsize=8.5, frameon=False)
        self.moves(*self._loss, self._guess, self._guess_words)
        return self.update(data)

    def _draw_rates(self, ax: Axes) -> list[Any]:
        lines = [
            ax.plot([], [], "-", color=palette.RIGHT, lw=2.6, label="moves per update")[0],
            ax.plot([], [], "--", color=palette.WRONG, lw=2.0, label="moves as chosen")[0],
            ax.plot([], [], ":", color=palette.BLACK, lw=1.8, label="the plan, on this axis")[0],
        ]
        self.moves(*lines)
        return lines

    def update(self, data: pd.DataFrame) -> str:
        """Lengthen the lines."""
        recipe = data["recipe"].iloc[-1]
        axes = ((self._rates[0], data["update"]), (self._rates[1], data["micro_batches"]))
        for (right, wrong, plan), x in axes:
            right.set_data(x, data["rate_right"])
            wrong.set_data(x, data["rate_wrong"])
            plan.set_data(data["update"], data["planned"])
        self._loss[0].set_data(data["update"], data["loss_right"])
        self._loss[1].set_data(data["update"], data["loss_wrong"])
        top = 1.45 * recipe.learning_rate
        self.set_limits(self._updates, x=(0, UPDATES), y=(0, top))
        self.set_limits(self._micro_batches, x=(0, UPDATES * recipe.accumulation_steps), y=(0, top))
        worst = data[["loss_right", "loss_wrong"]].max().max()
        self.set_limits(self._losses, x=(0, UPDATES), y=(0, 3 if worst <= 3 else step_up(worst)))
        self._show_guess(data["predicted"].iloc[-1], top)
        return units_sentence(data)

    def _show_guess(self, predicted: float | None, top: float) -> None:
        if predicted is None:
            self._guess.set_data([], [])
            self._guess_words.set_text("")
            return
        at = min(predicted, UPDATES)
        self._guess.set_data([at, at], [0, 0.82 * top])
        self._guess_words.set_text("your prediction")
        self._guess_words.set_position((at, 0.84 * top))
        self._guess_words.set_horizontalalignment("left" if at < UPDATES / 2 else "right")


def units_sentence(data: pd.DataFrame) -> str:
    """When each run had its highest learning rate, when it stood still, and the losses."""
    last = data.iloc[-1]
    recipe = last["recipe"]
    names = {value: name for name, value in UNITS}
    setting = f"b = {recipe.micro_batch_size}, N = {recipe.accumulation_steps}, warm-up {last['warm_up']} updates"
    guess = f" You predicted update {last['predicted']:g}." if pd.notna(last["predicted"]) else ""
    right = f"{_told(data, 'right')}; the loss after {counted(int(last['update']), 'update')} is {_late(data, 'right')}"
    if last["unit"] == "update":
        return f"{setting}; the schedule moves {names['update']}: {right}.{guess}"
    return (
        f"{setting}; the schedule moves {names[last['unit']]}: {_told(data, 'wrong')}; the loss is "
        f"{_late(data, 'wrong')}. Once per update: {right}.{guess}"
    )


def _late(data: pd.DataFrame, which: str) -> str:
    """The loss, as the mean over the last windows: one window says little."""
    return f"{data[f'loss_{which}'].tail(LAST).mean():.2f}"


def _told(data: pd.DataFrame, which: str) -> str:
    top = data["recipe"].iloc[-1].learning_rate
    (at, rate), still = highest(data, which), still_from(data, which)
    words = f"its learning rate is highest at update {at}, {rate / top:.0%} of the planned"
    return words + (f", and 0 from update {still}" if still else "")


def units_table(data: pd.DataFrame) -> pd.DataFrame:
    """Learning rates at a few updates."""
    wanted = [update for update in (1, 5, 13, 30, 100, UPDATES) if update <= len(data)]
    rows = data[data["update"].isin(wanted)]
    return pd.DataFrame(
        {
            "update": rows["update"],
            "micro-batches": rows["micro_batches"],
            "rate, moves per update": rows["rate_right"].map("{:.3f}".format),
            "rate, moves as chosen": rows["rate_wrong"].map("{:.3f}".format),
        }
    )


def explore_units(prediction: Prediction | None = None) -> Explorer:
    """Sliders for b, N and the warm-up, and a choice of when the schedule moves; two real runs, side by side."""

    def plan(micro_batch_size: int, accumulation_steps: int, warm_up: int, unit: Unit) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, learning_rate=LEARNING_RATE)
        recipe.check_fits(TRAIN_EXAMPLES)
        asked = (micro_batch_size, accumulation_steps, warm_up) == (
            FIRST.micro_batch_size, FIRST.accumulation_steps, WARM_UP,
        )  # fmt: skip
        predicted = prediction() if prediction is not None and asked and unit == "micro-batch" else None
        return Run(
            lambda: two_units(digits("mlp", device=best_device()), recipe, warm_up, unit, predicted=predicted), UPDATES
        )

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, FIRST.micro_batch_size),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 16, FIRST.accumulation_steps),
        NumberSlider("warm_up", "Warm-up (updates)", 0, 200, WARM_UP),
        Choice("unit", "The schedule moves", UNITS, "micro-batch"),
    ]
    return Explorer(controls, plan, UnitsFigure, units_table, prediction)
