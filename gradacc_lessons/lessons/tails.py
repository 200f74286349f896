"""Lesson 04: what the updates apply when an epoch does not divide into full windows.

Each micro-batch's gradient is 1, so a window's mean is 1 whatever its length: a right loop's trace is 1, 1, 1, …
"""

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from torch import Tensor, nn

from gradacc_lessons import palette
from gradacc_lessons.detective.faults import REFERENCE_SOURCE, compiled, fault_loop
from gradacc_lessons.ui import Choice, Explorer, LiveFigure, NumberSlider, Run, counted

RIGHT = "right"
LOOPS = [
    ("right: divided by its own length", RIGHT),
    ("dropped", "tail_dropped"),
    ("leaks into the next epoch", "tail_leaks"),
    ("divided by N", "tail_underscaled"),
    ("not divided at all", "tail_unscaled"),
]
"""What is done with the short last window, and the catalogue's loop that does it."""
SAID = 10
"""Up to so many updates are listed in the sentence."""
LABELLED = 16
"""Up to so many updates have their number written beside them."""
SAME = 1e-9
"""Gradients closer than this are the same: float64 rounds at 1e-16, mistakes start at a twelfth."""
HEADROOM = 1.3


def loop_of(tail: str) -> Callable[..., Any]:
    """The `train_epoch` that treats its tail so: the catalogue's own."""
    return compiled(REFERENCE_SOURCE) if tail == RIGHT else fault_loop(tail)


class UnitRun:
    """A model of one parameter, micro-batches whose gradient is 1, and what a loop did with them."""

    def __init__(self, micro_batches: int, accumulation_steps: int) -> None:
        self.steps = accumulation_steps
        self.model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.batches = [(torch.ones(1, 1, dtype=torch.float64),) for _ in range(micro_batches)]
        self.numbers = {id(batch): number for number, batch in enumerate(self.batches)}
        self.held = self.applied = np.full(0, np.nan)
        self.at = 0
        self.model.weight.register_post_accumulate_grad_hook(self._after_backward)
        self.optimizer.register_step_pre_hook(self._before_update)

    def epoch(self, loop: Callable[..., Any]) -> tuple[Any, Any]:
        """What `.grad` held after each micro-batch, and what an update there applied; nan where there was none."""
        self.held, self.applied = (np.full(len(self.batches), np.nan) for _ in range(2))
        loop(self.model, self.optimizer, list(self.batches), self._loss, self.steps)
        return self.held, self.applied

    def _loss(self, model: nn.Module, batch: tuple[Tensor]) -> Tensor:
        self.at = self.numbers[id(batch)]
        mean: Tensor = model(batch[0]).mean()
        return mean

    def _after_backward(self, weight: Tensor) -> None:
        self.held[self.at] = float(weight.grad)  # type: ignore[arg-type]  # there is one: it has just been added to

    def _before_update(self, *_: Any) -> None:
        self.applied[self.at] = float(self.model.weight.grad)  # type: ignore[arg-type]


def unit_trace(tail: str, micro_batches: int, accumulation_steps: int, epochs: int) -> Iterator[dict[str, Any]]:
    """One row per micro-batch of every epoch: `position` (from 1, through all epochs), `epoch`, `held` (what `.grad`
    holds after it), `applied` (the gradient of the update after it) and `right` (the right loop's); nan for none."""
    run, reference = UnitRun(micro_batches, accumulation_steps), UnitRun(micro_batches, accumulation_steps)
    loop, right_loop = loop_of(tail), loop_of(RIGHT)
    chosen = {"tail": tail, "micro_batches": micro_batches, "accumulation_steps": accumulation_steps, "epochs": epochs}
    for epoch in range(epochs):
        held, applied = run.epoch(loop)
        _, right = reference.epoch(right_loop)
        for k in range(micro_batches):
            number = {"position": epoch * micro_batches + k + 1, "epoch": epoch + 1}
            yield chosen | number | {"held": held[k], "applied": applied[k], "right": right[k]}


def applied_gradients(data: pd.DataFrame, column: str = "applied") -> list[float]:
    """The trace: what each update applied, in order."""
    return [float(value) for value in data[column].dropna()]


class TailFigure(LiveFigure):
    """Above: what `.grad` holds. Below: what the updates apply."""

    description: ClassVar[str] = (
        "Two panels over the same horizontal axis, the micro-batches of all epochs one after another; dashed lines are "
        "the ends of epochs. Above: what .grad holds after each micro-batch. Below: the gradient that each update "
        "applies, an orange disc with its value for this loop and a blue ring where the right loop updates."
    )
    width, height = 760, 440

    def draw(self, data: pd.DataFrame) -> str:
        """Build both panels."""
        self._buffer, self._updates = self.new_axes(2, 1, sharex=True, height_ratios=(2, 3))
        self._draw_buffer(self._buffer)
        self._draw_updates(self._updates)
        return self.update(data)

    def _draw_buffer(self, ax: Axes) -> None:
        ax.set(ylabel="in .grad")
        ax.set_title("Each micro-batch's gradient is 1", fontsize=11, loc="left")
        (self._held,) = ax.plot([], [], "o-", color=palette.GREY, ms=4, lw=1.2)
        (self._ends_above,) = ax.plot([], [], "--", color=palette.GREY, lw=1)
        self.moves(self._ends_above, self._held)

    def _draw_updates(self, ax: Axes) -> None:
        ax.set(xlabel="micro-batch, through all epochs", ylabel="gradient of the update")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        (self._ends_below,) = ax.plot([], [], "--", color=palette.GREY, lw=1, label="end of an epoch")
        (self._discs,) = ax.plot([], [], "o", color=palette.WRONG, ms=9, alpha=0.8, label="this loop", clip_on=False)
        (self._rings,) = ax.plot(
            [], [], "o", mfc="none", mec=palette.RIGHT, ms=12, mew=1.8, label="right loop", clip_on=False
        )
        self._values = [
            ax.text(0, 0, "", fontsize=9, color=palette.BLACK, horizontalalignment="center") for _ in range(LABELLED)
        ]
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.97), fontsize=9, ncols=3, frameon=False)
        self.moves(self._ends_below, self._rings, self._discs, *self._values)

    def update(self, data: pd.DataFrame) -> str:
        """Move the line, the discs and the rings."""
        last = data.iloc[-1]
        position, end = data["position"], int(last["micro_batches"] * last["epochs"])
        self._held.set_data(*_with_gaps(data))
        self._rings.set_data(position, data["right"])
        self._discs.set_data(position, data["applied"])
        top = math.ceil(2 * HEADROOM * max(1.0, *data[["held", "applied"]].max().fillna(0))) / 2
        self._label_updates(data.dropna(subset="applied"), 0.09 * top)
        ends = np.arange(1, last["epochs"]) * last["micro_batches"] + 0.5
        for line in (self._ends_above, self._ends_below):
            line.set_data(np.repeat(ends, 3), np.tile([0.0, top, np.nan], len(ends)))
        self.set_limits(self._buffer, x=(0.0, end + 1.0), y=(0.0, top))
        self.set_limits(self._updates, y=(0.0, top))
        return tail_sentence(data)

    def _label_updates(self, made: pd.DataFrame, above: float) -> None:
        for k, words in enumerate(self._values):
            shown = len(made) <= LABELLED and k < len(made)
            words.set_text(f"{made['applied'].iloc[k]:.3g}" if shown else "")
            if shown:
                words.set_position((made["position"].iloc[k], made["applied"].iloc[k] + above))


def _with_gaps(data: pd.DataFrame) -> tuple[Any, Any]:
    """The buffer's line; it is broken after each update, which empties the buffer."""
    position, held = data["position"].to_numpy(float), data["held"].to_numpy(float)
    emptied = np.flatnonzero(~np.isnan(data["applied"].to_numpy(float))) + 1
    return np.insert(position, emptied, np.nan), np.insert(held, emptied, np.nan)


def tail_sentence(data: pd.DataFrame) -> str:
    """The trace of this loop beside the right one, in words."""
    last = data.iloc[-1]
    names = {value: name for name, value in LOOPS}
    made, right = applied_gradients(data), applied_gradients(data, "right")
    short = last["micro_batches"] % last["accumulation_steps"]
    setting = f"M = {last['micro_batches']}, N = {last['accumulation_steps']}"
    if not short:
        return f"{setting}, every window is full, so there is no short one: {_compared(made, right)}"
    setting += f", {counted(int(short), 'micro-batch')} in the last window"
    tail = f"the short window is {names[last['tail']]}" if last["tail"] != "tail_leaks" else "the short window leaks"
    if last["tail"] == RIGHT:
        tail = "each window is divided by its own length"
    return f"{setting}; {tail}: {_compared(made, right)}"


def _compared(made: list[float], right: list[float]) -> str:
    if len(made) == len(right) and np.allclose(made, right, rtol=0, atol=SAME):
        return f"the updates apply {listed(made)}, and that is right."
    if not made:
        return f"there is no update at all, where {listed(right)} is right."
    return f"the updates apply {listed(made)}, where {listed(right)} is right."


def listed(values: list[float]) -> str:
    """A trace in words: its first updates, and how many more there are."""
    said = ", ".join(f"{value:.3g}" for value in islice(values, SAID))
    return said + (f" and {len(values) - SAID} more" if len(values) > SAID else "")


def tail_table(data: pd.DataFrame) -> pd.DataFrame:
    """The trace of each epoch, at most four, beside the right one."""
    epochs = [rows for _, rows in data.groupby("epoch")][:4]
    return pd.DataFrame(
        {
            "epoch": [rows["epoch"].iloc[0] for rows in epochs],
            "updates of this loop": [listed(applied_gradients(rows)) or "none" for rows in epochs],
            "updates of the right loop": [listed(applied_gradients(rows, "right")) for rows in epochs],
        }
    )


def explore_tails(tail: str = "tail_leaks") -> Explorer:
    """Sliders for the length of an epoch, N and epochs, over a real run of the chosen loop."""

    def plan(micro_batches: int, accumulation_steps: int, epochs: int, tail: str) -> Run:
        return Run(
            lambda: unit_trace(tail, micro_batches, accumulation_steps, epochs), micro_batches * epochs, "micro-batch"
        )

    controls = [
        NumberSlider("micro_batches", "Micro-batches M", 1, 24, 10),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 12, 4),
        NumberSlider("epochs", "Epochs", 1, 4, 2),
        Choice("tail", "The short window is", LOOPS, tail),
    ]
    return Explorer(controls, plan, TailFigure, tail_table)
