"""Lesson 09: all exhibits at a glance: their own numbers, and what is left of their bugs at another N."""

from collections.abc import Iterator
from math import floor, log10
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gradacc_lessons import palette
from gradacc_lessons.lessons.museum_runs import all_at, numbers
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.museum.collection import exhibits
from gradacc_lessons.museum.exhibit import INSTRUMENTS
from gradacc_lessons.museum.telling import number_in_words
from gradacc_lessons.ui import Explorer, NumberSlider, Prediction, Run, StaticTwin
from gradacc_lessons.ui.static import picture_html

MARKERS = {"diagnose": "o", "examine": "s", "trace": "^"}
"""One for each instrument, so that colour is not needed to tell them apart."""
COLOURS = {"diagnose": palette.ORANGE, "examine": palette.PURPLE, "trace": palette.GREEN}
STEPS = (1, 2, 4)
"""The N at which all exhibits are run, beside the one that is chosen."""
MOST_STEPS = 8
NOTHING = 1e-2
"""A number below this after the fix is an error that should be 0, and not a number of its own."""
SMALLEST, LARGEST = 1e-4, 3e3
"""Percent: the ends of the logarithmic axis; what is below stands at its left end."""
TICKS = (1e-4, 1e-2, 1.0, 1e2)


def _label(row: Any) -> str:
    return f"{row['project']} #{row['name'].rpartition('-')[2]}"


def instrument_legend(ax: Axes, extra: list[Line2D]) -> None:
    """Who finds what, above the axes."""
    marks = [
        Line2D([], [], marker=MARKERS[name], color=COLOURS[name], ls="none", ms=8, label=name) for name in INSTRUMENTS
    ]
    legend = ax.legend(
        handles=[*marks, *extra], loc="lower left", bbox_to_anchor=(-0.3, 1.0), ncols=4, fontsize=9, frameon=False
    )
    legend.set_in_layout(False)  # it is wider than its panel, which would be squeezed


def _ring(label: str) -> Line2D:
    return Line2D([], [], marker="o", mfc="none", mec=palette.RIGHT, mew=1.8, ls="none", ms=9, label=label)


# Their own numbers


def at_a_glance() -> Iterator[dict[str, Any]]:
    """One row per exhibit: `name`, `project`, `year`, `instrument`, `with_bug`, `after_fix`, and `error`: whether the
    number is an error, which should be 0."""
    for name, one in exhibits().items():
        own = numbers(name)
        yield {
            "name": name, "project": one.project, "year": one.year, "instrument": one.instrument,
            "with_bug": own["bug"], "after_fix": own["fixed"], "error": abs(own["fixed"]) < NOTHING,
        }  # fmt: skip


class GlanceFigure(TwoPanels):
    """Left: numbers as multiples of the right one. Right: errors, which should be 0."""

    description: ClassVar[str] = (
        "Two panels, a row for each exhibit. Left, for numbers that should have a value: the number with the bug "
        "divided by that after the fix, on a logarithmic axis, and a blue ring at 1, which is right. Right, for errors "
        "that should be 0: the error with the bug in percent, on a logarithmic axis, and a blue ring for what is left "
        "after the fix, at the left end where that is rounding. Discs are found by diagnose, squares by examine, "
        "triangles by trace."
    )
    width, height = 720, 370

    def draw_left(self, ax: Axes) -> None:
        """The multiples."""
        self._multiples = ax
        ax.set_xscale("log")
        ax.set_xlabel("number with the bug / number after the fix")
        ax.set_title("Numbers that should have a value", fontsize=11, pad=28)
        instrument_legend(ax, [_ring("after the fix")])

    def draw_right(self, ax: Axes) -> None:
        """The errors."""
        self._errors = ax
        ax.set_xscale("log")
        ax.set_xlim(SMALLEST, LARGEST)
        ax.set_xticks(TICKS, [f"{percent:g}" for percent in TICKS])
        ax.minorticks_off()
        ax.set_xlabel("error (%)")
        ax.set_title("Errors that should be 0", fontsize=10, pad=28)  # as wide as the picture has room for

    def update(self, data: pd.DataFrame) -> str:
        """Rows anew: the picture is drawn once."""
        values, errors = data[~data["error"]], data[data["error"]]
        ratios = values["with_bug"] / values["after_fix"]
        self._rows(self._multiples, values, ratios.to_numpy(), np.ones(len(values)))
        low, high = float(ratios.min()), float(ratios.max())
        self._multiples.set_xlim(10.0 ** floor(log10(low) - 0.3), 10.0 ** (floor(log10(high)) + 1.7))
        percents = [np.maximum(100 * errors[name].to_numpy(float), SMALLEST) for name in ("with_bug", "after_fix")]
        self._rows(self._errors, errors, *percents)
        self.new_ground()
        return glance_sentence(data)

    @staticmethod
    def _rows(ax: Axes, rows: pd.DataFrame, with_bug: Any, after_fix: Any) -> None:
        for place, (bug, fixed, instrument) in enumerate(zip(with_bug, after_fix, rows["instrument"], strict=True)):
            ax.plot([bug, fixed], [place, place], "-", color=palette.GREY, lw=1, zorder=1)
            ax.plot([fixed], [place], "o", mfc="white", mec=palette.RIGHT, ms=9, mew=1.8, clip_on=False)
            ax.plot([bug], [place], MARKERS[instrument], color=COLOURS[instrument], ms=8)
        ax.set_yticks(range(len(rows)), [_label(row) for _, row in rows.iterrows()], fontsize=8)
        ax.set_ylim(len(rows) - 0.4, -0.6)


def glance_sentence(data: pd.DataFrame) -> str:
    """The museum in one sentence."""
    found = data["instrument"].value_counts()
    by = ", ".join(f"{found.get(name, 0)} by {name}" for name in INSTRUMENTS)
    values, errors = data[~data["error"]], data[data["error"]]
    ratios = values["with_bug"] / values["after_fix"]
    off = ratios.where(ratios >= 1, 1 / ratios).median()
    return (
        f"{len(data)} exhibits, from {data['year'].min()} to {data['year'].max()}: {by}. Of {len(values)} numbers that "
        f"should have a value, half are off by a factor of {off:.2g} or more; of {len(errors)} errors that should be "
        f"0, half are above {100 * errors['with_bug'].median():.2g} %."
    )


def _two_digits(number: float) -> str:
    """As many as are the same on every machine, also where a number was rounded to 16 bits on the way."""
    return number_in_words(float(f"{number:.2g}"))


def glance() -> StaticTwin:
    """All exhibits with their own numbers: the picture, its sentence and a table."""
    data, figure = pd.DataFrame(list(at_a_glance())), GlanceFigure()
    sentence = figure.draw(data)
    table = pd.DataFrame(
        {
            "exhibit": data["name"],
            "with the bug": data["with_bug"].map(_two_digits),
            "after the fix": data["after_fix"].map(_two_digits),
            "found by": data["instrument"],
        }
    )
    return StaticTwin(picture_html(figure, sentence), sentence, table)


# What is left of their bugs


def hall(accumulation_steps: int, prediction: float | None) -> Iterator[dict[str, Any]]:
    """One row per exhibit and N of STEPS, the chosen N first; `chosen` and the learner's `prediction` stand in each."""
    for steps in (accumulation_steps, *(steps for steps in STEPS if steps != accumulation_steps)):
        for row in all_at(steps):
            yield row | {"chosen": accumulation_steps, "prediction": prediction}


def shares(data: pd.DataFrame) -> pd.Series:
    """Percent of the exhibits whose bug shows, by N."""
    share: pd.Series = 100 * data.groupby("accumulation_steps")["shows"].mean()
    return share


class HallFigure(TwoPanels):
    """Left: each exhibit's bug at the chosen N. Right: how many show, by N."""

    description: ClassVar[str] = (
        "Two panels. Left, a row for each exhibit: how far the bug takes the run, or the gradient, from the right one "
        "at the chosen N, in percent on a logarithmic axis: a disc if diagnose finds it, a square for examine, a "
        "triangle for trace; a blue ring at the left end where there is no difference. Right: the share of exhibits in "
        "which there is one, in percent, for N = 1, 2, 4 and the chosen N, with the learner's prediction for N = 1 as "
        "a dashed line."
    )
    width, height = 700, 410
    arrangement: ClassVar[dict[str, Any]] = {"width_ratios": (3, 2)}

    def draw_left(self, ax: Axes) -> None:
        """The differences."""
        self._rows = ax
        ax.set_xscale("log")
        ax.set_xlim(SMALLEST, LARGEST)
        ax.set_xticks(TICKS, [f"{percent:g}" for percent in TICKS])
        ax.minorticks_off()
        ax.set_xlabel("distance from the right run or gradient (%)")
        ax.set_title("What the bug does at this N", fontsize=11, pad=28)
        instrument_legend(ax, [_ring("no difference")])
        self._names: list[str] = []
        self._points = {
            name: ax.plot([], [], MARKERS[name], color=COLOURS[name], ms=8, ls="none")[0] for name in INSTRUMENTS
        }
        (self._same,) = ax.plot([], [], "o", mfc="none", mec=palette.RIGHT, ms=9, mew=1.8, ls="none", clip_on=False)
        self.moves(*self._points.values(), self._same)

    def draw_right(self, ax: Axes) -> None:
        """The shares."""
        ax.set_xscale("log", base=2)
        ax.set(xlabel="accumulation steps N", ylabel="exhibits whose bug shows (%)", xlim=(0.8, 10), ylim=(-3, 103))
        ax.set_xticks([1, 2, 4, MOST_STEPS], ["1", "2", "4", str(MOST_STEPS)])
        ax.minorticks_off()
        (self._line,) = ax.plot([], [], "o-", color=palette.BLACK, ms=6, lw=1.4)
        (self._here,) = ax.plot([], [], "o", mfc="none", mec=palette.RIGHT, ms=14, mew=2)
        (self._guess,) = ax.plot([], [], "--", color=palette.GUESS, lw=1.8)
        self._guess_words = ax.text(9.5, 0, "", fontsize=9, color=palette.BLACK, ha="right", va="bottom")
        self.moves(self._guess, self._guess_words, self._line, self._here)

    def update(self, data: pd.DataFrame) -> str:
        """Move all points."""
        last = data.iloc[-1]
        rows = data[data["accumulation_steps"] == last["chosen"]]
        self._name_rows([_label(row) for _, row in rows.iterrows()])
        place = np.arange(len(rows))
        shows, percent = rows["shows"].to_numpy(bool), 100 * rows["difference"].to_numpy(float)
        for name, points in self._points.items():
            here = shows & (rows["instrument"] == name).to_numpy()
            points.set_data(np.clip(percent[here], SMALLEST, LARGEST), place[here])
        self._same.set_data(np.full((~shows).sum(), SMALLEST), place[~shows])
        share = shares(data)
        self._line.set_data(share.index, share)
        self._here.set_data([last["chosen"]], [share[last["chosen"]]])
        guess = last["prediction"]
        known = bool(pd.notna(guess))
        self._guess.set_data([0.8, 10] if known else [], [guess, guess] if known else [])
        self._guess_words.set_text(f"your prediction: {guess:g} %" if known else "")
        self._guess_words.set_y(guess + 1 if known and guess < 90 else (guess - 6 if known else 0))
        return hall_sentence(data)

    def _name_rows(self, names: list[str]) -> None:
        if names != self._names:
            self._names = names
            self._rows.set_yticks(range(len(names)), names, fontsize=8)
            self._rows.set_ylim(max(len(names), 2) - 0.4, -0.6)
            self.new_ground()


def hall_sentence(data: pd.DataFrame) -> str:
    """How many bugs show at the chosen N."""
    last = data.iloc[-1]
    rows = data[data["accumulation_steps"] == last["chosen"]]
    left = ", ".join(rows.loc[rows["shows"], "name"]) if rows["shows"].sum() <= 3 else ""
    guess = last["prediction"]
    return (
        f"N = {last['chosen']}: of {len(rows)} exhibits the bug shows in {int(rows['shows'].sum())}"
        + (f" ({left})" if left else "")
        + ", which is "
        + f"{100 * rows['shows'].mean():.0f} %."
        + (f" You predicted {guess:g} %, for N = 1." if pd.notna(guess) else "")
    )


def hall_table(data: pd.DataFrame) -> pd.DataFrame:
    """The shares by N."""
    counted = data.groupby("accumulation_steps")["shows"].agg(["sum", "size"])
    return pd.DataFrame(
        {
            "N": counted.index,
            "the bug shows in": counted["sum"],
            "of": counted["size"],
            "share": [f"{share:.0f} %" for share in shares(data)],
        }
    )


def explore_hall(prediction: Prediction | None = None) -> Explorer:
    """All exhibits with a chosen N, each with the examples of its own window."""

    def plan(accumulation_steps: int) -> Run:
        guess = prediction() if prediction is not None else None
        runs = len({*STEPS, accumulation_steps})
        return Run(lambda: hall(accumulation_steps, guess), runs * len(exhibits()), "exhibit")

    controls = [NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST_STEPS, 1)]
    return Explorer(controls, plan, HallFigure, hall_table, prediction)
