"""Lesson 00, the first slider: one pass over the digits, counting micro-batches and updates as they happen."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import PolyCollection
from matplotlib.ticker import MaxNLocator

from gradacc_lessons.device import best_device
from gradacc_lessons.lessons.training import training_windows
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.palette import BLACK, BLUE, GREEN, GUESS
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.tasks.digits import TRAIN_EXAMPLES
from gradacc_lessons.ui import Explorer, LiveFigure, NumberSlider, Prediction, Run, counted

LEARNING_RATE = 0.01
"""For Adam: with it both one digit and 64 per update visibly learn within one pass."""
ASKED = (8, 4)
"""The b and N that the learner's prediction is about, and where the sliders start."""
HIGHEST_LOSS = 3.0
"""Top of the loss axis in nats; a model that guesses among ten digits is at ln 10 = 2.3."""
BLOCK = 0.8
"""Width and height of a block, as a share of its place."""
WIDEST = 1.5
"""A prediction up to this many times the number of windows gets its place on the axis; room for more would make
hairlines of the columns."""
MARK_HEIGHT, HEADROOM = 0.07, 1.3
"""Where the mark of an update stands above its column, and where the axis ends, in units of N."""


def count_epoch(task: Task, recipe: Recipe, predicted_updates: float | None = None) -> Iterator[dict[str, Any]]:
    """Train for one pass over the data and count what is done.

    One row per micro-batch: of each so far, `micro_batch` (forwards, and backwards), `update` and `examples`; its
    `window` and its `position` in it, both from 1; `loss` (its mean, in nats); and what was planned (`_planned`).
    """
    model = task.build_model(recipe.seed)
    optimizer = make_optimizer(model, recipe)
    planned = _planned(task, recipe) | {"predicted_updates": predicted_updates}
    micro_batches = updates = examples = 0
    for window in training_windows(task, recipe):
        items = sum(task.count(batch) for batch in window)
        for position, batch in enumerate(window, start=1):
            loss_sum = task.loss_sum(model, batch)
            (loss_sum / items).backward()
            micro_batches += 1
            examples += task.count(batch)
            if position == len(window):
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
            so_far = {"micro_batch": micro_batches, "update": updates, "examples": examples}
            here = {"window": updates + (position < len(window)), "position": position}
            yield so_far | here | {"loss": float(loss_sum.detach()) / task.count(batch)} | planned
        if examples == task.examples:
            return


def _planned(task: Task, recipe: Recipe) -> dict[str, Any]:
    """`of` and `of_updates` (how many micro-batches and updates it will be), and the recipe's two numbers."""
    return {
        "of": recipe.micro_batches_per_epoch(task.examples),
        "of_updates": recipe.updates_per_epoch(task.examples),
        "micro_batch_size": recipe.micro_batch_size,
        "accumulation_steps": recipe.accumulation_steps,
    }


class EpochFigure(LiveFigure):
    """Above: a block for each micro-batch, piled up in windows, with a mark for each update. Below: the loss."""

    description = (
        "Above: a block for each micro-batch, piled up in one column per window, and a triangle on top of a column "
        "for the update that it makes. Below: the mean training loss of each window, on the same horizontal axis."
    )

    def draw(self, data: pd.DataFrame) -> str:
        """Build both panels."""
        blocks, loss = self._axes = self.new_axes(2, 1, sharex=True, height_ratios=(3, 2))
        blocks.grid(False)
        blocks.set_ylabel("micro-batches\nin the window")
        loss.set(ylim=(0, HIGHEST_LOSS))
        loss.set_ylabel("training loss\n(nats)")
        loss.set_xlabel("windows (each makes one update)")
        for axis in (blocks.xaxis, blocks.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        # Snapped to whole pixels, 1,536 narrow blocks would look like twenty wide ones.
        self._blocks = PolyCollection([], facecolor=BLUE, snap=False, label="micro-batch: forward and backward")
        blocks.add_collection(self._blocks, autolim=False)
        (self._marks,) = blocks.plot([], [], "^", color=GREEN, markersize=6, markeredgewidth=0, label="update")
        (self._guess,) = blocks.plot([], [], "--", color=GUESS, linewidth=1.8)
        self._guess_label = blocks.text(0, 0, "", color=BLACK, fontsize=9, va="top")
        (self._loss,) = loss.plot([], [], "o", color=BLUE, markersize=3.5, markeredgewidth=0)
        blocks.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=9)
        self.moves(self._blocks, self._marks, self._loss, self._guess, self._guess_label)
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        """Pile up the blocks as far as the run has come."""
        last = _last(data)
        self._fit_axes(last)
        self._blocks.set_verts(_blocks(data))
        tops = data.groupby("window")["position"].max().iloc[: last["update"]]
        self._marks.set_data(tops.index, tops + MARK_HEIGHT * last["accumulation_steps"])
        losses = data.groupby("window")["loss"].mean()
        self._loss.set_data(losses.index, losses.clip(upper=HIGHEST_LOSS))
        return _sentence(data)

    def _fit_axes(self, last: dict[str, Any]) -> None:
        """Room for all windows of the run, and for the learner's guess unless it is far out."""
        blocks, loss = self._axes
        guess, windows, top = last["predicted_updates"], last["of_updates"], HEADROOM * last["accumulation_steps"]
        known = bool(pd.notna(guess))
        below = known and guess < 0
        inside = known and 0 <= guess <= WIDEST * windows
        right = 1.02 * max(windows, guess if inside else 0) + 0.6
        for ax in (blocks, loss):
            self.set_limits(ax, x=(0.0, right))
        self.set_limits(blocks, y=(0.0, top))
        at = guess if inside else 0 if below else right
        self._guess.set_data([at, at] if inside else [], [0, top] if inside else [])
        before, after = "← " if below else "", "" if inside or below else "→ "
        self._guess_label.set_text(f" {before}your prediction: {guess:g} {after}" if known else "")
        self._guess_label.set(position=(at, top), ha="right" if at > right / 2 else "left")


def _blocks(data: pd.DataFrame) -> Any:
    """The corners of a rectangle per micro-batch, (micro-batches, 4, 2): in column `window`, at height `position`."""
    lower_left = data[["window", "position"]].to_numpy(float) - [BLOCK / 2, (1 + BLOCK) / 2]
    corners = BLOCK * np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    return lower_left[:, None, :] + corners[None]


def _last(data: pd.DataFrame) -> dict[str, Any]:
    """The last row, each value with the type of its column."""
    return {str(name): data[name].iloc[-1] for name in data}


def _sentence(data: pd.DataFrame) -> str:
    last = _last(data)
    done, n = last["micro_batch"], last["accumulation_steps"]
    so_far = "" if done == last["of"] else f" of {last['of']:,}"
    every = "each micro-batch" if n == 1 else f"every {n} micro-batches"
    sentence = (
        f"{counted(done, 'micro-batch')}{so_far}, each with one forward and one backward, made "
        f"{counted(last['update'], 'update')}: one after {every} of {counted(last['micro_batch_size'], 'digit')}."
    )
    if so_far:
        return sentence
    if last["position"] < n:
        sentence += f" The last window is short, {counted(last['position'], 'micro-batch')}, and makes an update too."
    halves = data.groupby(data["examples"] > data["examples"].iloc[-1] / 2)["loss"].mean()
    return f"{sentence} Mean training loss: {halves[False]:.2f} in the first half, {halves[True]:.2f} in the second."


def explore_epoch(prediction: Prediction | None = None) -> Explorer:
    """Sliders for b and N; `prediction()` is how many updates the learner expects at the start values of both."""
    task = digits("mlp", device=best_device())

    def plan(micro_batch_size: int, accumulation_steps: int) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, optimizer="adam", learning_rate=LEARNING_RATE)
        recipe.check_fits(TRAIN_EXAMPLES)
        guess = prediction() if prediction and (micro_batch_size, accumulation_steps) == ASKED else None
        total = recipe.micro_batches_per_epoch(TRAIN_EXAMPLES)
        return Run(lambda: count_epoch(task, recipe, guess), total, "micro-batch")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, ASKED[0]),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 64, ASKED[1]),
    ]
    return Explorer(controls, plan, EpochFigure, epoch_table, prediction)


def epoch_table(data: pd.DataFrame) -> pd.DataFrame:
    """What was counted."""
    last = _last(data)
    found = {
        "b": last["micro_batch_size"],
        "N": last["accumulation_steps"],
        "digits seen": last["examples"],
        "micro-batches": last["micro_batch"],
        "updates": last["update"],
        "micro-batches in the last window": last["position"],
    }
    return pd.DataFrame([found])
