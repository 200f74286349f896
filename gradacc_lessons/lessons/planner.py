"""Lesson 10: a plan for a target and a budget, beside what the rules of other tuners reach in the same memory."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes

from gradacc_lessons import palette
from gradacc_lessons.lessons.memory_wall import axis_end
from gradacc_lessons.lessons.peaks import ONE_AT_A_TIME, Length, forecast, largest_that_fits, predicted, recipe_for
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.memory.plan import NothingFits, plan
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.memory.tuners import RULES, Fits
from gradacc_lessons.memory.why import shape
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.ui import Explorer, NumberSlider, Run, counted

LENGTH: Length = 64
CURVE = (1, 16, 48)
"""The micro-batch sizes at which the curves are predicted: from the second on they are straight."""
CURVES = (1, 2)
"""The N of each curve. With more than two micro-batches the peak is that of two, but for their inputs."""
MOST = CURVE[-1]
BUDGETS, TARGETS = (14, 116), (2, 96)
"""Ends of the sliders, in MiB and in examples. Under the highest budget fewer than MOST examples fit, with any N."""
PLAN = "plan"


def plan_and_rules(recipe: Recipe, target: int, budget: int) -> Iterator[dict[str, Any]]:
    """Predict the curves and the recipe's own b and N, plan for the target, and let the rules search.

    A rule's trial fits if the predicted peak of the window that it would run is within the budget, and nothing is run:
    with N = 1 for the rules that leave N alone, with all of the target for Composer's. Only the plan runs its one
    window. One row per point of a curve (`what` is "curve"), one for the recipe's own b and N ("own") and one for each
    rule, the plan's first ("rule"). Curves, own and plan have `b`, `n` and `peak` in MiB; a rule has its name `rule`,
    `b` (0 if it found none), the `reached` batch, how many `trials` and how many of them `failed`, how many `batches`
    ran through, what it `tried` (size, whether it fits) and for the plan the `shape` of its window. In all rows:
    `target`, `budget`, `own_b` and `own_n`.
    """
    b, n = recipe.micro_batch_size, recipe.accumulation_steps
    asked: dict[str, Any] = {"target": target, "budget": budget, "own_b": b, "own_n": n}
    for count in CURVES:
        for size in CURVE:
            yield {"what": "curve", "b": size, "n": count, "peak": _peak(recipe, size, count)} | asked
    yield {"what": "own", "b": b, "n": n, "peak": _peak(recipe, b, n)} | asked
    yield _planned(recipe, target, budget) | asked
    alone = largest_that_fits(LENGTH, replace(recipe, accumulation_steps=1), budget * MEBIBYTE, MOST)
    for rule in RULES:
        tried: list[tuple[int, bool]] = []
        found = rule(target, _remembered(recipe, budget, alone, tried))
        yield {
            "what": "rule",
            "rule": found.rule,
            "b": found.micro_batch_size,
            "peak": math.nan,
            "reached": found.batch_reached,
            "trials": found.trials,
            "failed": found.failed,
            "batches": found.batches,
            "tried": tuple(tried),
        } | asked


def _peak(recipe: Recipe, size: int, count: int) -> float:
    window = replace(recipe, micro_batch_size=size, accumulation_steps=count)
    return predicted(LENGTH, window).peak_bytes / MEBIBYTE


def _remembered(recipe: Recipe, budget: int, alone: int, tried: list[tuple[int, bool]]) -> Fits:
    """Whether a window fits, where micro-batches of up to `alone` do with N = 1; its size goes into `tried`."""

    def fits(size: int, count: int) -> bool:
        # What does not fit alone does not fit beside the gradient of another one either.
        within = size <= alone and (count == 1 or _peak(recipe, size, count) <= budget)
        tried.append((size, within))
        return within

    return fits


def _planned(recipe: Recipe, target: int, budget: int) -> dict[str, Any]:
    row: dict[str, Any] = {"what": "rule", "rule": PLAN}
    none: dict[str, Any] = {"batches": 0, "tried": (), "shape": ""}
    with ONE_AT_A_TIME:
        known = forecast(LENGTH, recipe)
        model, loss, batch = known.build_model, known.loss_fn, known.make_batch
        try:
            found = plan(
                model, loss, batch, known.recipe,
                target_batch_size=target, budget_bytes=budget * MEBIBYTE, explain=False, forecast=known,
            )  # fmt: skip
        except NothingFits:
            return row | {"b": 0, "peak": math.nan, "reached": 0, "trials": 0, "failed": 0, **none}
    sizes = found.micro_batch_sizes
    return row | {
        "b": sizes[0],
        "n": len(sizes),
        "peak": found.predicted.peak_bytes / MEBIBYTE,
        "reached": sum(sizes),
        "trials": found.trials,
        "failed": 0,
        "batches": found.trials,
        "tried": ((sizes[0], True),),
        "shape": f"{shape(sizes)} (N = {len(sizes)})",
    }


class PlannerFigure(TwoPanels):
    """Left: the peak against b for N = 1 and for more, with the budget across. Right: a line for each rule."""

    description: ClassVar[str] = (
        "Two panels. Left: predicted peak memory of one window in MiB against the micro-batch size b, white dots on a "
        "black line for N of 2 or more, white squares on a dotted black line below it for N = 1; a dashed orange line "
        "is the budget, a green star the plan, a blue diamond the learner's own b and N. Right: one line for the plan "
        "and for each rule of another tuner, with a mark at every micro-batch size that it tried: a green dot where it "
        "fits, an orange cross where it does not."
    )
    width, height = 880, 440
    arrangement: ClassVar[dict[str, Any]] = {"width_ratios": (4, 5)}

    def draw_left(self, ax: Axes) -> None:
        """The curve, the budget and two marks."""
        self._left = ax
        ax.set(xlim=(0, MOST + 2), xlabel="micro-batch size b (examples)", ylabel="predicted peak memory (MiB)")
        ax.set_xticks(range(0, MOST + 1, 16))
        self._curves = [
            ax.plot([], [], style, color=palette.BLACK, mfc="white", ms=5, lw=1.2, label=name)[0]
            for style, name in (("s:", "N = 1"), ("o-", "N = 2 or more"))
        ]
        (self._budget,) = ax.plot([], [], "--", color=palette.ORANGE, lw=2, label="budget")
        (self._plan,) = ax.plot([], [], "*", color=palette.GREEN, ms=15, label="plan")
        (self._own,) = ax.plot([], [], "D", color=palette.BLUE, ms=8, label="your own b and N")
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, fontsize=9, frameon=False)
        self.moves(*self._curves, self._budget, self._plan, self._own)

    def draw_right(self, ax: Axes) -> None:
        """A line for each rule, the plan's on top."""
        self._right = ax
        rules = len(RULES) + 1
        ax.set(ylim=(rules - 0.5, -0.7), xlabel="micro-batch size tried (examples)", yticks=range(rules))
        ax.set_yticklabels([""] * rules)
        ax.tick_params(left=False)
        (self._fit,) = ax.plot([], [], "o", color=palette.GREEN, ms=7, label="fits")
        (self._fail,) = ax.plot([], [], "x", color=palette.ORANGE, ms=8, mew=2, label="does not fit")
        across = ax.get_yaxis_transform()
        self._words = [ax.text(0.015, row - 0.26, "", fontsize=9, transform=across) for row in range(rules)]
        assert self.figure is not None
        ax.legend(loc="lower right", bbox_to_anchor=(1.02, 1), ncols=2, fontsize=9, frameon=False)
        self.moves(self._fit, self._fail, *self._words)

    def update(self, data: pd.DataFrame) -> str:
        """Move curves, budget and marks; put every trial on its rule's line."""
        budget = float(data["budget"].iloc[-1])
        curve = data[data["what"] == "curve"]
        self.set_limits(self._left, y=(0.0, axis_end(1.05 * max(budget, float(data["peak"].max())))))
        for count, line in zip(CURVES, self._curves, strict=True):
            points = curve[curve["n"] == count]
            line.set_data(points["b"], points["peak"])
        self._budget.set_data([0, MOST + 2], [budget, budget])
        rules = _rules(data)
        for artist, points in ((self._plan, rules.dropna(subset="peak")), (self._own, data[data["what"] == "own"])):
            artist.set_data(points["b"], points["peak"])
        self._show_trials(rules)
        return planner_sentence(data)

    def _show_trials(self, rules: pd.DataFrame) -> None:
        marks = [(size, row, fits) for row, tried in enumerate(rules["tried"]) for size, fits in tried]
        furthest = max((size for size, _, _ in marks), default=MOST)
        self.set_limits(self._right, x=(0.0, axis_end(1.05 * furthest)))
        for artist, wanted in ((self._fit, True), (self._fail, False)):
            these = [(size, row) for size, row, fits in marks if fits == wanted]
            artist.set_data([size for size, _ in these], [row for _, row in these])
        for row, text in enumerate(self._words):
            text.set_text(_outcome(rules.iloc[row]) if row < len(rules) else "")


def _rules(data: pd.DataFrame) -> pd.DataFrame:
    """The rows of plan and rules, with their columns even where none has come yet."""
    columns = ["rule", "b", "peak", "reached", "trials", "failed", "batches", "tried", "shape", "target"]
    return data[data["what"] == "rule"].reindex(columns=columns)


def _outcome(rule: Any) -> str:
    """What a rule came to, in short."""
    if not rule["b"]:
        return f"{rule['rule']}: nothing fits"
    failed = f", {int(rule['failed'])} failed" if rule["failed"] else ""
    return (
        f"{rule['rule']}: reaches {int(rule['reached'])} of {int(rule['target'])}, "
        f"{counted(int(rule['trials']), 'run')}{failed}"
    )


def planner_sentence(data: pd.DataFrame) -> str:
    """The plan, which other rules reach the target, and how the learner's own choice stands."""
    last = data.iloc[-1]
    said = f"Target {last['target']} examples, budget {last['budget']} MiB:"
    rules = _rules(data)
    if len(rules) <= len(RULES):
        return f"{said} predicting."
    planned, others = rules.iloc[0], rules.iloc[1:]
    own = _how_own_stands(data[data["what"] == "own"].iloc[0])
    if not planned["b"]:
        return f"{said} no window of {last['target']} fits. {own}"
    reaching = list(others[others["reached"] == others["target"]]["rule"])
    return (
        f"{said} the plan is {planned['shape']}, predicted {planned['peak']:.1f} MiB. Of the rules, "
        f"{' and '.join(reaching) or 'none'} {'reach' if len(reaching) > 1 else 'reaches'} {last['target']}; together "
        f"they have {counted(int(others['failed'].sum()), 'failed run')}. {own}"
    )


def _how_own_stands(own: Any) -> str:
    reached, room = own["own_b"] * own["own_n"], own["budget"] - own["peak"]
    examples = f"{reached} examples" + ("" if reached == own["target"] else f", not {own['target']}")
    return (
        f"Yours, b = {own['own_b']} and N = {own['own_n']}: {examples}; predicted {own['peak']:.1f} MiB, "
        f"{abs(room):.1f} MiB {'to spare' if room >= 0 else 'too much'}."
    )


def planner_table(data: pd.DataFrame) -> pd.DataFrame:
    """What each rule came to."""
    rules = _rules(data)
    return pd.DataFrame(
        {
            "rule": rules["rule"],
            "micro-batch": rules["b"],
            "batch reached": rules["reached"].astype(int),
            "of target": (rules["reached"] / rules["target"]).map("{:.0%}".format),
            "trials": rules["trials"].astype(int),
            "failed runs": rules["failed"].astype(int),
            "batches run through": rules["batches"].astype(int),
        }
    )


def explore_planner() -> Explorer:
    """A plan for a target and a budget, the rules of other tuners beside it, and a b and N of the learner's own."""

    def plan_run(micro_batch_size: int, accumulation_steps: int, target: int, budget: int) -> Run:
        recipe = recipe_for("adamw", micro_batch_size, accumulation_steps)
        return Run(lambda: plan_and_rules(recipe, target, budget), len(CURVES) * len(CURVE) + 2 + len(RULES), "answer")

    controls = [
        NumberSlider("target", "Target (examples)", *TARGETS, 40),
        NumberSlider("budget", "Budget (MiB)", *BUDGETS, 48),
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, MOST, 20),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, TARGETS[1], 2),
    ]
    return Explorer(controls, plan_run, PlannerFigure, planner_table)
