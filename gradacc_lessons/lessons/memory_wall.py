"""Lesson 03: the peak of one window by what it is made of, against b and against N, measured and predicted."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from gradacc_lessons import palette
from gradacc_lessons.lessons.peaks import LENGTHS, LONGEST, NAMES, Length, measured, predicted, recipe_for
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.memory.picture import COLOURS, HATCHES
from gradacc_lessons.memory.profile import CATEGORIES
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Prediction, Run, step_up

SIZES, STEPS = (2, 4, 8, 16), (1, 2, 4)
"""The micro-batch sizes and the N that are always measured, beside the chosen ones."""
MOST_STEPS = 8
PREDICTED_FOR = SIZES[-1]
"""The b that the learner's prediction is about."""
BAR = 0.8
"""Width of a bar, in examples or micro-batches."""
FURTHEST = 1.4
"""A prediction up to this many times the highest bar gets its place; one further out stands at the edge."""


def bytes_by_point(
    length: Length, recipe: Recipe, optimizer: str, prediction: float | None = None
) -> Iterator[dict[str, Any]]:
    """Measure and predict a window at the recipe's b and N, at other b, and at other N.

    One row per point: its `micro_batch_size` and `accumulation_steps`; the MiB of each category at the measured peak,
    `measured` and `predicted` in MiB, the `phase` of the peak; and what was chosen: `b`, `n`, `length`, `optimizer`
    and the learner's `prediction`.
    """
    b, n = recipe.micro_batch_size, recipe.accumulation_steps
    chosen: dict[str, Any] = {"b": b, "n": n, "length": length, "optimizer": optimizer, "prediction": prediction}
    for size, steps in dict.fromkeys([(b, n), *((size, n) for size in SIZES), *((b, steps) for steps in STEPS)]):
        point = replace(recipe, micro_batch_size=size, accumulation_steps=steps)
        profile = measured(length, point)
        row: dict[str, Any] = {
            "micro_batch_size": size,
            "accumulation_steps": steps,
            **{name: profile.by_category[name] / MEBIBYTE for name in CATEGORIES},
            "measured": profile.peak_bytes / MEBIBYTE,
            "predicted": predicted(length, point).peak_bytes / MEBIBYTE,
            "phase": profile.phase,
        }
        yield row | chosen


def points_of(chosen: Recipe) -> int:
    """How many points one run has."""
    b, n = chosen.micro_batch_size, chosen.accumulation_steps
    return len({(b, n), *((size, n) for size in SIZES), *((b, steps) for steps in STEPS)})


class _Bars:
    """One panel: stacked bars, the predicted line over them, and a mark on the chosen bar."""

    def __init__(self, ax: Axes) -> None:
        self.ax = ax
        self._stacks: dict[str, PolyCollection] = {
            name: PolyCollection(
                [], facecolor=COLOURS[name], hatch=HATCHES[name], edgecolor="white", linewidth=0, label=name
            )
            for name in CATEGORIES
        }
        for stack in self._stacks.values():
            ax.add_collection(stack, autolim=False)
        (self._line,) = ax.plot(
            [], [], "o-", color=palette.BLACK, mfc="white", ms=5, lw=1.2, label="predicted before running"
        )
        (self._chosen,) = ax.plot([], [], "v", color=palette.BLACK, ms=8)
        self.artists = [*self._stacks.values(), self._line, self._chosen]

    def move(self, rows: pd.DataFrame, axis: str, chosen: int, lift: float) -> None:
        """Put the bars at `rows[axis]`; the mark stands `lift` above the chosen one."""
        rows = rows.drop_duplicates(axis).sort_values(axis)
        at = rows[axis].to_numpy(dtype=float)
        edges = np.cumsum([np.zeros(len(rows)), *(rows[name] for name in CATEGORIES)], axis=0)
        for name, (low, high) in zip(CATEGORIES, pairwise(edges), strict=True):
            corners = [(at - BAR / 2, low), (at + BAR / 2, low), (at + BAR / 2, high), (at - BAR / 2, high)]
            self._stacks[name].set_verts(list(np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)))
        self._line.set_data(at, rows["predicted"])
        height = rows.loc[rows[axis] == chosen, "measured"]
        self._chosen.set_data([chosen] * len(height), height + lift)


class BytesFigure(TwoPanels):
    """Left: the peak against b, at the chosen N. Right: against N, at the chosen b."""

    description: ClassVar[str] = (
        "Two panels of stacked bars, the peak memory of one window in MiB: left against the micro-batch size b, "
        "right against N. The parts of a bar are, from the bottom, parameters, gradients, optimizer state, saved "
        "activations, inputs and temporaries, as measured; white dots on a black line are the peaks that were "
        "predicted. A black triangle marks the chosen b and N."
    )
    height = 450
    arrangement: ClassVar[dict[str, Any]] = {"sharey": True, "width_ratios": (5, 3)}

    def draw(self, data: pd.DataFrame) -> str:
        """Build both panels, and one legend for them."""
        left, right = self.new_axes(1, 2, **self.arrangement)
        self.draw_left(left)
        self.draw_right(right)
        assert self.figure is not None
        handles, names = left.get_legend_handles_labels()
        self.figure.legend(handles, names, loc="outside upper center", ncols=4, fontsize=9, frameon=False)
        return self.update(data)

    def draw_left(self, ax: Axes) -> None:
        """Against b."""
        self._sizes = _Bars(ax)
        ax.set(xlim=(0, PREDICTED_FOR + 1), xlabel="micro-batch size b (examples)", ylabel="peak memory (MiB)")
        ax.set_xticks([1, *SIZES])
        (self._guess,) = ax.plot([], [], "--X", color=palette.GUESS, ms=10, lw=1.5, markevery=[-1])
        self._guess_words = ax.text(0, 0, "", fontsize=9, color=palette.BLACK, va="bottom")
        self.moves(*self._sizes.artists, self._guess, self._guess_words)

    def draw_right(self, ax: Axes) -> None:
        """Against N."""
        self._steps = _Bars(ax)
        ax.set(xlim=(0, MOST_STEPS + 1), xlabel="accumulation steps N")
        ax.set_xticks([*STEPS, MOST_STEPS])
        self.moves(*self._steps.artists)

    def update(self, data: pd.DataFrame) -> str:
        """Put bars, line and marks where the rows say."""
        b, n, guess = (data[name].iloc[-1] for name in ("b", "n", "prediction"))
        highest = float(data["measured"].max())
        known = bool(pd.notna(guess))
        room = min(float(guess), FURTHEST * highest) if known else highest
        top = axis_end(max(highest, room) * 1.05)
        self.set_limits(self._sizes.ax, y=(0.0, top))
        self._sizes.move(data[data["accumulation_steps"] == n], "micro_batch_size", b, 0.03 * top)
        self._steps.move(data[data["micro_batch_size"] == b], "accumulation_steps", n, 0.03 * top)
        self._show_guess(float(guess) if known else None, top)
        return bytes_sentence(data)

    def _show_guess(self, guess: float | None, top: float) -> None:
        height = min(max(guess or 0.0, 0.0), 0.94 * top)
        self._guess.set_data([0, PREDICTED_FOR] if guess is not None else [], [height] * 2 if guess is not None else [])
        self._guess_words.set_text(f"your prediction: {guess:g} MiB" if guess is not None else "")
        self._guess_words.set_position((0.3, height + 0.01 * top))


def axis_end(value: float) -> float:
    """A round number a little above `value`: an axis that leaves little room and moves seldom.

    >>> axis_end(31.0), axis_end(89.0), axis_end(103.0)
    (40.0, 100.0, 120.0)
    """
    step = step_up(value) / 5
    return step * math.ceil(value / step)


def bytes_sentence(data: pd.DataFrame) -> str:
    """The chosen point in words."""
    first = data.iloc[0]
    largest = max(CATEGORIES, key=lambda name: float(first[name]))
    said = (
        f"b = {first['b']}, N = {first['n']}, {NAMES[first['optimizer']]}, T = {first['length']} tokens: "
        f"the peak is {first['measured']:.1f} MiB, in the {first['phase']} phase; predicted were "
        f"{first['predicted']:.1f} MiB. The largest part is {largest}, with {first[largest]:.1f} MiB."
    )
    guess = first["prediction"]
    return said if pd.isna(guess) else f"{said} You predicted {guess:g} MiB for b = {PREDICTED_FOR}."


def bytes_table(data: pd.DataFrame) -> pd.DataFrame:
    """Every point in whole MiB, in the order of b and N."""
    rows = data.sort_values(["micro_batch_size", "accumulation_steps"])
    table = pd.DataFrame({"b": rows["micro_batch_size"], "N": rows["accumulation_steps"]})
    for title, name in (
        ("measured peak (MiB)", "measured"),
        ("predicted (MiB)", "predicted"),
        ("of it saved activations (MiB)", "saved activations"),
    ):
        table[title] = rows[name].map("{:.0f}".format)
    return table


def optimizer_and_length(optimizer: str = "adamw") -> list[Choice]:
    """The two lists that both explorers of the lesson have."""
    return [
        Choice("optimizer", "Optimizer", [(label, name) for name, label in NAMES.items()], optimizer),
        Choice("length", "Tokens per example T", [(str(length), length) for length in LENGTHS], LONGEST),
    ]


def explore_bytes(prediction: Prediction | None = None) -> Explorer:
    """Where the bytes go: sliders for b and N, an optimizer and a length.

    `prediction()` is the peak in MiB that the learner expects at b = 16; until then it waits.
    """

    def plan(micro_batch_size: int, accumulation_steps: int, optimizer: str, length: Length) -> Run:
        recipe = recipe_for(optimizer, micro_batch_size, accumulation_steps)
        guess = prediction() if prediction else None
        return Run(lambda: bytes_by_point(length, recipe, optimizer, guess), points_of(recipe), "window")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, PREDICTED_FOR, 4),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST_STEPS, 2),
        *optimizer_and_length(),
    ]
    return Explorer(controls, plan, BytesFigure, bytes_table, prediction)
