"""Lesson 10: smaller micro-batches, activation checkpointing, and both: peak memory against time on one plane."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pandas as pd

from gradacc_lessons import palette
from gradacc_lessons.lessons.memory_wall import axis_end
from gradacc_lessons.lessons.peaks import ONE_AT_A_TIME, Length, Window, check_window, recipe_for
from gradacc_lessons.memory.predict import TRACED_MICRO_BATCHES
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.ui import Explorer, LiveFigure, NumberSlider, Prediction, Run

LENGTH: Length = 64
"""Tokens per example: enough that arithmetic, and not Python, takes most of the time."""
CUTS = 5
"""How many ways to cut the window are compared, beside the chosen one."""
TURNS = 2
"""Each point is timed so often, in turns with the others; the quickest counts."""
LARGEST_WINDOW = 64
"""More examples per update than this take too long to time."""
MOST_SIZE, MOST_STEPS = 40, 16
TICKS = (8, 16, 32, 64, 128, 256)
"""Of the memory axis, in MiB. The largest window stays below the last."""
LOWEST = 0.5
"""Where the time axis begins: every point is at 1 or above, but for those with checkpointing in a noisy run."""
FURTHEST = 1.5
"""A prediction up to this many times the slowest point gets its place; one further out stands at the edge."""


def cuts_of(recipe: Recipe) -> list[tuple[int, int]]:
    """(b, N) with the recipe's effective batch: all at once, then about half of it, and so on; and the recipe's own.

    >>> cuts_of(Recipe(micro_batch_size=10, accumulation_steps=4))
    [(40, 1), (20, 2), (10, 4), (5, 8), (2, 20)]
    """
    target = recipe.effective_batch_size
    sizes = [target]
    for size in range(target // 2, 0, -1):
        if len(sizes) < CUTS and target % size == 0 and 2 * size <= sizes[-1]:
            sizes.append(size)
    chosen = {*sizes, recipe.micro_batch_size}
    return [(size, target // size) for size in sorted(chosen, reverse=True)]


def peak_and_time(recipe: Recipe, prediction: float | None = None) -> Iterator[dict[str, Any]]:
    """Measure windows of the recipe's effective batch, cut in several ways, with and without checkpointing.

    The points take turns, so that whatever slows the machine down meets all of them. One row per point and turn: `b`,
    `n`, `checkpointing`, its `peak` in MiB (measured once) and the `seconds` of one update; and what was chosen:
    `chosen_b`, `chosen_n` and the learner's `prediction`.
    """
    b, n = recipe.micro_batch_size, recipe.accumulation_steps
    asked: dict[str, Any] = {"chosen_b": b, "chosen_n": n, "prediction": prediction}
    points: dict[tuple[int, int, bool], tuple[Window, float]] = {}
    for _ in range(TURNS):
        for size, steps in cuts_of(recipe):
            for again in (False, True):
                point = replace(recipe, micro_batch_size=size, accumulation_steps=steps, checkpointing=again)
                with ONE_AT_A_TIME:
                    if (size, steps, again) not in points:
                        points[size, steps, again] = _new_point(point)
                    window, peak = points[size, steps, again]
                    seconds = window.seconds()
                yield {"b": size, "n": steps, "checkpointing": again, "peak": peak, "seconds": seconds} | asked


def _new_point(recipe: Recipe) -> tuple[Window, float]:
    """A window, and its measured peak in MiB; the measurement is its first run as well, which sets things up."""
    window = Window(LENGTH, recipe)
    return window, window.profile(TRACED_MICRO_BATCHES).peak_bytes / MEBIBYTE


def by_point(data: pd.DataFrame) -> pd.DataFrame:
    """One row per point, by falling b: its `peak`, and its `time` as times the quickest without checkpointing."""
    points = data.groupby(["b", "n", "checkpointing"], as_index=False).agg(
        peak=("peak", "first"), time=("seconds", "min")
    )
    points["time"] /= points.loc[~points["checkpointing"], "time"].min()
    return points.sort_values(["b", "checkpointing"], ascending=[False, True], ignore_index=True)


def price(data: pd.DataFrame) -> float:
    """How many times as long the chosen b takes with checkpointing; NaN as long as one of the two is missing."""
    points = by_point(data)
    times = points[points["b"] == data["chosen_b"].iloc[-1]].set_index("checkpointing")["time"]
    return float(times[True] / times[False]) if len(times) == 2 else math.nan


class PlaneFigure(LiveFigure):
    """Peak to the right, time upwards: what is further left and lower is better."""

    description: ClassVar[str] = (
        "Time of one update, as times the quickest without checkpointing, against its measured peak memory in MiB. "
        "Blue circles on a line are cuts of one window into micro-batches of b examples, without activation "
        "checkpointing; orange squares on a dashed line are the same cuts with it; each is labelled with its b. "
        "Larger marks with a black edge are the chosen b and N, and a purple dashed line leads from the one without "
        "checkpointing to a cross: where the learner expects the one with it."
    )
    width, height = 720, 460

    def draw(self, data: pd.DataFrame) -> str:
        """Build the axes."""
        (self._ax,) = self.new_axes()
        self._ax.set(
            xscale="log",
            xlabel="peak memory of one window (MiB)",
            ylabel="time of one update\n(times the quickest without checkpointing)",
        )
        self._ax.set_xticks(TICKS, [str(tick) for tick in TICKS])
        self._ax.minorticks_off()
        self._lines = [
            self._ax.plot([], [], style, color=colour, ms=7, lw=1.2, label=name)[0]
            for style, colour, name in (
                ("o-", palette.BLUE, "without checkpointing"),
                ("s--", palette.ORANGE, "with checkpointing"),
            )
        ]
        self._chosen = [
            self._ax.plot([], [], marker, color=colour, ms=12, mec=palette.BLACK, mew=1.5, ls="none")[0]
            for marker, colour in (("o", palette.BLUE), ("s", palette.ORANGE))
        ]
        (self._guess,) = self._ax.plot(
            [], [], "--X", color=palette.GUESS, lw=2, ms=10, markevery=[-1], label="your prediction, for the chosen b"
        )
        self._names = [self._ax.text(0, 0, "", fontsize=9) for _ in range(2 * (CUTS + 1))]
        assert self.figure is not None
        self.figure.legend(loc="outside upper center", ncols=3, fontsize=9, frameon=False)
        self.moves(*self._lines, self._guess, *self._chosen, *self._names)
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        """Put the points where the rows say."""
        points, chosen_b = by_point(data), data["chosen_b"].iloc[-1]
        guess = _guessed_time(data, points)
        slowest = float(points["time"].max())
        room = slowest if math.isnan(guess) else max(slowest, min(guess, FURTHEST * slowest))
        right = next(tick for tick in TICKS if tick >= 1.1 * points["peak"].max())
        top = axis_end(1.15 * room)
        self.set_limits(self._ax, x=(float(TICKS[0]), float(right)), y=(LOWEST, top))
        for again, line, mark in zip((False, True), self._lines, self._chosen, strict=True):
            these = points[points["checkpointing"] == again]
            line.set_data(these["peak"], these["time"])
            here = these[these["b"] == chosen_b]
            mark.set_data(here["peak"], here["time"])
        self._name(points, 0.035 * (top - LOWEST))
        self._mark_guess(points[points["b"] == chosen_b], min(max(guess, LOWEST), 0.98 * top))
        return plane_sentence(data)

    def _mark_guess(self, chosen: pd.DataFrame, time: float) -> None:
        """A dashed line from the chosen b without checkpointing to where the learner expects it with."""
        ends = chosen.sort_values("checkpointing")[["peak", "time"]].to_numpy()
        if len(ends) == 2 and not math.isnan(time):
            self._guess.set_data(ends[:, 0], [ends[0, 1], time])
        else:
            self._guess.set_data([], [])

    def _name(self, points: pd.DataFrame, away: float) -> None:
        """Write each b beside its point, where no line passes: above it with checkpointing, below it without."""
        for text in self._names:
            text.set_text("")
        for text, (_, point) in zip(self._names, points.iterrows(), strict=False):
            side, ha, va = (1, "left", "bottom") if point["checkpointing"] else (-1, "center", "top")
            text.set(text=f"b = {point['b']}", position=(point["peak"], point["time"] + side * away), ha=ha, va=va)


def _guessed_time(data: pd.DataFrame, points: pd.DataFrame) -> float:
    """Where the learner's ratio lies on the axis; NaN without one, and as long as the chosen b has no time."""
    plain = points[(points["b"] == data["chosen_b"].iloc[-1]) & ~points["checkpointing"]]["time"]
    ratio = data["prediction"].iloc[-1]
    return float(ratio) * float(plain.iloc[0]) if len(plain) and pd.notna(ratio) else math.nan


def plane_sentence(data: pd.DataFrame) -> str:
    """The chosen point without and with checkpointing, in words."""
    points, last = by_point(data), data.iloc[-1]
    setting = f"b = {last['chosen_b']}, N = {last['chosen_n']}"
    chosen = points[points["b"] == last["chosen_b"]]
    if len(chosen) < 2:
        return f"{setting}: measuring."
    plain, again = (row for _, row in chosen.iterrows())
    ratio = price(data)
    said = (
        f"{setting}: {plain['peak']:.1f} MiB without checkpointing and {again['peak']:.1f} MiB with it, "
        f"in {ratio:.2f} times the time."
    )
    guess = last["prediction"]
    return said if pd.isna(guess) else f"{said} You predicted {guess:g} times."


def plane_table(data: pd.DataFrame) -> pd.DataFrame:
    """Every cut, without and with checkpointing: peaks in whole MiB, times as times the quickest."""
    points = by_point(data)
    plain, again = (points[points["checkpointing"] == value].set_index("b") for value in (False, True))
    return pd.DataFrame(
        {
            "b": plain.index,
            "N": plain["n"].to_numpy(),
            "peak (MiB)": plain["peak"].map("{:.0f}".format).to_numpy(),
            "time": plain["time"].map("{:.2f}".format).to_numpy(),
            "checkpointed peak (MiB)": again["peak"].map("{:.0f}".format).to_numpy(),
            "time, checkpointed": again["time"].map("{:.2f}".format).to_numpy(),
            "times as long": (again["time"] / plain["time"]).map("{:.2f}".format).to_numpy(),
        }
    )


def explore_peak_and_time(prediction: Prediction | None = None) -> Explorer:
    """Peak against time: sliders for b and N, whose product is the window that is cut in other ways as well.

    `prediction()` is how many times as long the learner expects the chosen b to take with checkpointing; until there
    is one it waits.
    """

    def plan(micro_batch_size: int, accumulation_steps: int) -> Run:
        recipe = recipe_for("adamw", micro_batch_size, accumulation_steps)
        check_window(recipe, LARGEST_WINDOW, "to time")
        guess = prediction() if prediction else None
        return Run(lambda: peak_and_time(recipe, guess), 2 * TURNS * len(cuts_of(recipe)), "timing")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, MOST_SIZE, 10),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST_STEPS, 4),
    ]
    return Explorer(controls, plan, PlaneFigure, plane_table, prediction)
