"""Break it: pick a mistake, read the loop that makes it, and see what it does and how `diagnose` names it.

What a loop does is made visible as dye shows where water went: the model is linear and the gradient of micro-batch k
is the k-th unit vector, so an update shows with what weight each micro-batch went into it.
"""

import html
import inspect
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import ipywidgets as widgets
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from gradacc_lessons import palette
from gradacc_lessons.detective.client import warm_up
from gradacc_lessons.detective.diagnose import Diagnosis, diagnose
from gradacc_lessons.detective.faults import FAULTS, fault_loop
from gradacc_lessons.detective.oracle import Loop, predict
from gradacc_lessons.detective.rig import Bench
from gradacc_lessons.detective.scenarios import EPOCHS, KEYWORDS, NO_CLIPPING, Scenario, problem
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Run, counted, step_up

EXAMPLES = 40
"""In the small epoch: with b = 3 and N = 4 that is 14 micro-batches, the last of 1 example, in four windows of
which the last has 2: everything that can be uneven is."""
SAME = 1e-9
"""Weights closer than this are the same: float64 rounds at 1e-16, mistakes start at 1e-3."""
FULL_AREA, MOST_AREA = 110.0, 1600.0
"""Areas in square points: of the ring of a micro-batch with weight 1/N, and of the largest disc that is drawn."""


def dye(fault: str, micro_batch_size: int, accumulation_steps: int) -> Iterator[dict[str, Any]]:
    """Run the loop of `fault` for two epochs of 40 examples.

    One row per update that was made or should have been: `epoch`, `update` (both from 1), `weights` (what went into
    it of each micro-batch, an array with nan where the update was not made), `right` (what belongs there, an array
    with nan where no update does), `graphs` (the most that were alive at once, in micro-batches), and then one more
    row with `diagnosis`, which is None in the others.
    """
    scenario = _scenario(fault, micro_batch_size, accumulation_steps)
    bench = _ran(fault, scenario)
    loop = _by_epoch(bench.after_updates, bench.record["updates"], scenario)
    right = predict(Loop(), scenario)
    wanted = _by_epoch(list(right.after_updates), list(right.updates), scenario)
    missing = np.full(len(scenario.sizes), np.nan)
    base = {"fault": fault, "micro_batch_size": micro_batch_size, "accumulation_steps": accumulation_steps}
    base["graphs"] = bench.record["graphs"]
    for epoch, (made, due) in enumerate(zip(loop, wanted, strict=True), start=1):
        for update in range(max(len(made), len(due))):
            yield base | {
                "epoch": epoch,
                "update": update + 1,
                "weights": made[update] if update < len(made) else missing,
                "right": due[update] if update < len(due) else missing,
                "diagnosis": None,
            }
    yield base | {"epoch": 0, "update": 0, "weights": missing, "right": missing, "diagnosis": named(fault)}


def _ran(fault: str, scenario: Scenario) -> Bench:
    """The loop of the fault, run on the scenario."""
    data = problem(scenario)
    labels = [label.astype(np.float64) for label in data.labels]
    bench = Bench(_spec(scenario), list(data.inputs), labels, data.start)
    with warnings.catch_warnings():  # torch warns of a schedule that moves too early; the picture says it too
        warnings.simplefilter("ignore", UserWarning)
        bench.run(fault_loop(fault), _accepted(fault))
    return bench


@cache
def named(fault: str) -> Diagnosis:
    """What `diagnose` says about the loop of a fault, asked for as much as the fault needs to show."""
    return diagnose(fault_loop(fault), FAULTS[fault].scope)


def _accepted(fault: str) -> list[str]:
    names = inspect.signature(fault_loop(fault)).parameters
    return [name for name in KEYWORDS if name in names]


def _scenario(fault: str, micro_batch_size: int, accumulation_steps: int) -> Scenario:
    """The epoch cut into micro-batches; with clipping that bites, or a schedule, for loops that take it."""
    whole, rest = divmod(EXAMPLES, micro_batch_size)
    sizes = (micro_batch_size,) * whole + ((rest,) if rest else ())
    accepted = _accepted(fault)
    return Scenario(
        name=f"dye {fault}", scope="items", sizes=sizes, accumulation_steps=accumulation_steps, kind="tracer",
        learning_rate=1.0, gain=1.0, decay=0.7 if "scheduler" in accepted else 1.0,
        max_norm=0.5 / accumulation_steps**0.5 if "max_norm" in accepted else NO_CLIPPING,
    )  # fmt: skip


def _spec(scenario: Scenario) -> dict[str, Any]:
    fields = ("name", "kind", "optimizer", "learning_rate", "accumulation_steps", "gain", "max_norm", "decay")
    return {name: getattr(scenario, name) for name in fields} | {"epochs": EPOCHS, "hidden": 0, "classes": 0}


def _by_epoch(after_updates: list[Any], updates: list[int], scenario: Scenario) -> list[list[Any]]:
    """What each update took off the weights, epoch by epoch: with rate and gain 1, the weights of the micro-batches."""
    points = [problem(scenario).start, *after_updates]
    moved = [before - after for before, after in pairwise(points)]
    ends = np.cumsum([0, *updates])
    return [moved[ends[i] : ends[i + 1]] for i in range(len(updates))]


class DyeFigure(TwoPanels):
    """Left: which micro-batches went into which update. Right: how much went into it in all."""

    description: ClassVar[str] = (
        "Two panels, one row for each update of two epochs, from the top. Left, one column for each micro-batch of "
        "the epoch: a blue ring where it belongs in the update and an orange disc as large as its weight in this "
        "loop; a smaller micro-batch has a smaller ring. Right: the sum of the weights in each update, a blue ring for "
        "the right one and an orange disc for this loop's."
    )
    arrangement: ClassVar[dict[str, Any]] = {"sharey": True, "width_ratios": (3, 2)}

    def draw_left(self, ax: Axes) -> None:
        """What goes into each update."""
        self._weights = ax
        ax.set(xlabel="micro-batch of the epoch", ylabel="update (both epochs)")
        ax.set_title("What goes into each update", fontsize=11)
        self._discs = ax.scatter([], [], s=[], c=palette.WRONG, alpha=0.75, lw=0)
        self._rings = ax.scatter([], [], s=[], facecolors="none", edgecolors=palette.RIGHT, lw=1.8)
        self._border = ax.axhline(0, color=palette.GREY, lw=1, ls="--")
        self.moves(self._discs, self._rings, self._border)

    def draw_right(self, ax: Axes) -> None:
        """How much that is in all."""
        self._sums = ax
        ax.set(xlabel="sum of the weights")
        (self._got,) = ax.plot([], [], "o", color=palette.WRONG, ms=9, alpha=0.75, label="this loop")
        (self._due,) = ax.plot([], [], "o", mfc="none", mec=palette.RIGHT, ms=9, mew=1.8, label="right")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=9, frameon=False)
        self.moves(self._got, self._due)

    def update(self, data: pd.DataFrame) -> str:
        """Move rings and discs."""
        rows = data[data["diagnosis"].isna()]
        made, due = (np.stack(rows[name].to_list()) for name in ("weights", "right"))
        n = int(rows["accumulation_steps"].iloc[0])
        for artist, weights in ((self._discs, made), (self._rings, due)):
            row, column = np.nonzero(np.nan_to_num(weights))
            artist.set_offsets(np.column_stack([column + 1, row + 1]))
            artist.set_sizes(np.minimum(FULL_AREA * n * np.abs(weights[row, column]), MOST_AREA))
        numbers = np.arange(1, len(rows) + 1)
        got = made.sum(axis=1)
        self._got.set_data(got, numbers)
        self._due.set_data(due.sum(axis=1), numbers)
        second = int((rows["epoch"] == 1).sum()) + 0.5
        self._border.set_ydata([second, second])
        self._fit(made.shape[1], len(rows), float(np.nanmax([1.0, *got[np.isfinite(got)]])))
        return dye_sentence(data)

    def _fit(self, columns: int, rows: int, largest: float) -> None:
        margin = 0.1 * max(rows, 6)
        self.set_limits(self._weights, x=(0.0, columns + 1.0), y=(max(rows, 6) + margin, 1 - margin))
        self.set_limits(self._sums, x=(-0.05 * step_up(largest * 1.05), step_up(largest * 1.05)))


def dye_sentence(data: pd.DataFrame) -> str:
    """What was measured and, when it has come, what the diagnosis says."""
    last = data.iloc[-1]
    b, n = int(last["micro_batch_size"]), int(last["accumulation_steps"])
    setting = f"b = {b}, N = {n}, {_cut(b, n)}"
    if last["diagnosis"] is None:
        return f"{setting}: the loop has run, and diagnose is looking at it."
    return f"{setting}: {_measured(data[:-1])} diagnose says: {last['diagnosis'].message}"


def _cut(b: int, n: int) -> str:
    """How many micro-batches and windows that makes, and what is uneven about the last of them."""
    whole, rest = divmod(EXAMPLES, b)
    micro_batches = whole + bool(rest)
    short = micro_batches % n
    words = counted(micro_batches, "micro-batch")
    if rest:
        words += f", the last of {counted(rest, 'example')}"
    if short:
        words += f", and {counted(short, 'micro-batch')} in the last window"
    return words


def _measured(rows: pd.DataFrame) -> str:
    made = int(rows["weights"].map(lambda weights: not np.isnan(weights).any()).sum())
    due = int(rows["right"].map(lambda weights: not np.isnan(weights).any()).sum())
    if made != due:
        return f"{made} updates where {due} belong."
    for epoch, update, weights, right in zip(
        rows["epoch"], rows["update"], rows["weights"], rows["right"], strict=True
    ):
        if not np.allclose(weights, right, rtol=0, atol=SAME):
            return f"update {update} of epoch {epoch} {_difference(weights, right)}."
    graphs = float(rows["graphs"].iloc[0])
    alive = f", but the graphs of {graphs:.3g} micro-batches were alive at once" if graphs > 1.5 else ""
    return f"all {made} updates of the two epochs are right here{alive}."


def _difference(weights: Any, right: Any) -> str:
    ratio = float(np.linalg.norm(weights) / np.linalg.norm(right))
    if np.allclose(weights, ratio * right, rtol=0, atol=SAME):
        return f"is {ratio:.3g} times as long as it should be"
    index = int(np.argmax(np.abs(weights - right)))
    return f"takes {weights[index]:.3g} of micro-batch {index + 1}, where {right[index]:.3g} belongs"


def dye_table(data: pd.DataFrame) -> pd.DataFrame:
    """The weights of the micro-batches in the updates of the first epoch, beside the right ones."""
    rows = data[(data["epoch"] == 1)].head(4)
    return pd.DataFrame(
        {
            "update": rows["update"],
            "weights in this loop": rows["weights"].map(_weights),
            "right weights": rows["right"].map(_weights),
        }
    )


def _weights(weights: Any) -> str:
    if np.isnan(weights).any():
        return "no update"
    parts = [f"{k}: {weight:.3g}" for k, weight in enumerate(weights, start=1) if abs(weight) > SAME]
    return ", ".join(parts) or "nothing"


class FaultChoice(Choice):
    """A list of faults that shows the loop of the one that is chosen."""

    def __init__(self, value: str) -> None:
        options = [(fault.title.en, fault.id) for fault in FAULTS.values()]
        super().__init__("fault", "Mistake", options, value)
        self.listing = widgets.HTML(_listing(value))
        self.widget = widgets.VBox([self.widget, self.listing])
        self.on_change(lambda _, chosen: setattr(self.listing, "value", _listing(chosen)))


def _listing(fault: str) -> str:
    return f'<pre style="line-height:1.3" tabindex="0">{html.escape(FAULTS[fault].source)}</pre>'


def explore_faults(fault: str = "missing_scale") -> Explorer:
    """A list of all catalogued mistakes over a real run of the chosen one, and its diagnosis."""

    def plan(micro_batch_size: int, accumulation_steps: int, fault: str) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps)
        recipe.check_fits(EXAMPLES)
        due = EPOCHS * recipe.updates_per_epoch(EXAMPLES)  # loops that update more often fill the bar early
        return Run(lambda: dye(fault, micro_batch_size, accumulation_steps), due + 1, "row")

    warm_up()  # the process that diagnoses imports torch while the learner reads
    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 20, 3),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 20, 4),
        FaultChoice(fault),
    ]
    return Explorer(controls, plan, DyeFigure, dye_table)
