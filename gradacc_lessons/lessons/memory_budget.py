"""Lesson 03: a budget laid over the predicted peaks, and whether the chosen b and N stay within it."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pandas as pd

from gradacc_lessons import palette
from gradacc_lessons.lessons.memory_wall import axis_end, optimizer_and_length
from gradacc_lessons.lessons.peaks import (
    NAMES,
    Length,
    check_window,
    largest_that_fits,
    measured,
    predicted,
    recipe_for,
)
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.ui import Explorer, LiveFigure, NumberSlider, Run

TARGET = 32
"""How many examples one update is to have."""
CURVE = (1, 2, 4, 8, 16, 32)
"""The micro-batch sizes at which the curve is predicted."""
MOST = CURVE[-1]
LARGEST_WINDOW = 2 * TARGET
"""More examples than this are not measured: it would take too long."""
BUDGETS = (8, 160)
"""Ends of the budget's slider, in MiB."""


def under_budget(length: Length, recipe: Recipe, optimizer: str, budget: int) -> Iterator[dict[str, Any]]:
    """Predict the curve, find the largest b that fits, and measure the recipe's own b and N.

    Curve and largest b are those of windows that accumulate: with N = 1 there is one gradient buffer less.
    One row per point of the curve, one for all of TARGET at once with N = 1, one for the largest b that fits (its `b`
    is 0 if none does), one for the chosen point: `what` ("curve", "at once", "largest", "chosen"), its `b` and its
    `peak` in MiB, which is measured for the chosen point and predicted for the others; and what was asked: `n`,
    `budget` in MiB, `length`, `optimizer`.
    """
    asked: dict[str, Any] = {"n": recipe.accumulation_steps, "budget": budget, "length": length, "optimizer": optimizer}
    accumulating = replace(recipe, accumulation_steps=max(recipe.accumulation_steps, 2))

    def peak(size: int) -> float:
        return predicted(length, replace(accumulating, micro_batch_size=size)).peak_bytes / MEBIBYTE

    for size in CURVE:
        yield {"what": "curve", "b": size, "peak": peak(size)} | asked
    at_once = replace(recipe, micro_batch_size=TARGET, accumulation_steps=1)
    yield {"what": "at once", "b": TARGET, "peak": predicted(length, at_once).peak_bytes / MEBIBYTE} | asked
    largest = largest_that_fits(length, accumulating, budget * MEBIBYTE, MOST)
    yield {"what": "largest", "b": largest, "peak": peak(largest) if largest else math.nan} | asked
    real = measured(length, recipe).peak_bytes / MEBIBYTE
    yield {"what": "chosen", "b": recipe.micro_batch_size, "peak": real} | asked


class BudgetFigure(LiveFigure):
    """The peak against b, the budget as a line across, and two marks: what fits, and what was chosen."""

    description: ClassVar[str] = (
        "Peak memory of one window in MiB against the micro-batch size b: white dots on a black line as predicted for "
        "N of 2 or more, a dashed orange line for the budget, a green star at the largest b that fits, and a blue "
        "diamond for the chosen b and N as measured."
    )
    width, height = 680, 420

    def draw(self, data: pd.DataFrame) -> str:
        """Build the axes."""
        (self._ax,) = self.new_axes()
        self._ax.set(xlim=(0, MOST + 1), xlabel="micro-batch size b (examples)", ylabel="peak memory (MiB)")
        self._ax.set_xticks(CURVE)
        (self._curve,) = self._ax.plot(
            [], [], "o-", color=palette.BLACK, mfc="white", ms=5, lw=1.2, label="predicted peak, N = 2 or more"
        )
        (self._budget,) = self._ax.plot([], [], "--", color=palette.ORANGE, lw=2, label="budget")
        (self._largest,) = self._ax.plot([], [], "*", color=palette.GREEN, ms=15, label="largest b that fits")
        (self._chosen,) = self._ax.plot([], [], "D", color=palette.BLUE, ms=8, label="chosen b and N, measured")
        self._ax.legend(loc="lower right", fontsize=9, frameon=False)
        self.moves(self._curve, self._budget, self._largest, self._chosen)
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        """Move curve, line and marks."""
        curve = _of_several(data)
        budget = float(data["budget"].iloc[-1])
        self.set_limits(self._ax, y=(0.0, axis_end(1.05 * max(budget, float(curve["peak"].max())))))
        self._curve.set_data(curve["b"], curve["peak"])
        self._budget.set_data([0, MOST + 1], [budget, budget])
        for artist, what in ((self._largest, "largest"), (self._chosen, "chosen")):
            points = data[(data["what"] == what) & (data["b"] > 0)]
            artist.set_data(points["b"], points["peak"])
        return budget_sentence(data)


def budget_sentence(data: pd.DataFrame) -> str:
    """What fits, what the target then needs, and how the chosen point stands."""
    last = data.iloc[-1]
    setting = f"Budget {last['budget']} MiB, {NAMES[last['optimizer']]}, T = {last['length']} tokens"
    found = {row["what"]: row for _, row in data.iterrows()}
    if "largest" not in found:
        return f"{setting}: predicting."
    at_once = bool(found["at once"]["peak"] <= last["budget"])
    said = f"{setting}: {_what_fits(int(found['largest']['b']), at_once)}"
    return f"{said} {_how_it_stands(found['chosen'])}" if "chosen" in found else said


def _what_fits(largest: int, at_once: bool) -> str:
    if at_once and largest < MOST:
        several = f"b up to {largest}" if largest else "no b"
        return f"all {TARGET} examples of an update fit at once, with N = 1; with N of 2 or more, {several} fits."
    if not largest:
        return "not even b = 1 fits."
    up_to = f"b up to {largest} fits" if largest < MOST else f"every b up to {MOST} fits"
    return f"{up_to}; for {TARGET} examples per update that takes N = {math.ceil(TARGET / largest)}."


def _how_it_stands(chosen: Any) -> str:
    b, n, peak, budget = int(chosen["b"]), int(chosen["n"]), float(chosen["peak"]), int(chosen["budget"])
    examples = f"{b * n} examples per update" + ("" if b * n == TARGET else f", not {TARGET}")
    room = f"{budget - peak:.0f} MiB to spare" if peak <= budget else f"{peak - budget:.0f} MiB too much"
    return f"Chosen: b = {b}, N = {n}, {examples}; measured {peak:.0f} MiB, {room}."


def _of_several(data: pd.DataFrame) -> pd.DataFrame:
    """What was predicted for windows that accumulate, by rising b."""
    return data[data["what"].isin(("curve", "largest"))].dropna(subset="peak").sort_values("b")


def budget_table(data: pd.DataFrame) -> pd.DataFrame:
    """The predicted peaks in whole MiB, and whether they are within the budget."""
    rows = _of_several(data).drop_duplicates("b")
    fits = rows["peak"] <= rows["budget"]
    return pd.DataFrame(
        {
            "b": rows["b"],
            "predicted peak, N = 2 or more (MiB)": rows["peak"].map("{:.0f}".format),
            "fits": fits.map({True: "yes", False: "no"}),
        }
    )


def explore_budget() -> Explorer:
    """A budget dragged over the peaks; sliders for b and N, whose window is measured."""

    def plan(micro_batch_size: int, accumulation_steps: int, budget: int, optimizer: str, length: Length) -> Run:
        recipe = recipe_for(optimizer, micro_batch_size, accumulation_steps)
        check_window(recipe, LARGEST_WINDOW, "to measure")
        return Run(lambda: under_budget(length, recipe, optimizer, budget), len(CURVE) + 3, "window")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, MOST, TARGET // 2),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, TARGET, 2),
        NumberSlider("budget", "Budget (MiB)", *BUDGETS, 64),
        *optimizer_and_length(),
    ]
    return Explorer(controls, plan, BudgetFigure, budget_table)
