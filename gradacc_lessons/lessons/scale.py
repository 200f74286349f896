"""What a loop that divides by the wrong number does to the gradient: its length, and where it points.

Everything here is float64 on the CPU: that the ratio is N is an equality, not a tendency.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from torch import Tensor, nn

from gradacc_lessons import palette
from gradacc_lessons.accumulation import Batch
from gradacc_lessons.lessons.training import add_gradient, gradient, training_windows
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Prediction, Run, step_up

PREDICTED_FOR = 8
"""The N that the learner's prediction is about."""
MOST_STEPS = 32
BESIDE_1 = 2.0
"""A prediction within this factor of 1 is so close to the right line that its words would lie on that."""
DIVIDED_BY = {"mean": "N", "none": "nothing", "twice": "N twice", "running": "k + 1"}
DIVISORS = [
    ("N (right)", "mean"),
    ("nothing (the missing 1/N)", "none"),
    ("N, and N once more", "twice"),
    ("k + 1, the micro-batches so far", "running"),
]


def gradient_of_loop(model: nn.Module, window: list[Batch], task: Task, recipe: Recipe) -> Tensor:
    """What the recipe's loop leaves in `.grad` after `window`, as one vector (parameters,)."""
    model.zero_grad()
    add_gradient(model, window, task, recipe)
    return gradient(model)


def gradient_of_full_batch(model: nn.Module, window: list[Batch], task: Task) -> Tensor:
    """The gradient of the mean loss over all examples of `window` at once, one backward: the oracle."""
    model.zero_grad()
    batch = tuple(torch.cat(tensors) for tensors in zip(*window, strict=True))
    torch.autograd.backward(task.loss_fn(model, batch))
    return gradient(model)


def scaling(task: Task, recipe: Recipe, prediction: float | None = None) -> Iterator[dict[str, Any]]:
    """One window of N micro-batches at the initial weights, one row per micro-batch k = 1 … N.

    `along` and `across`: the tip of the sum of the loop's pieces after k of them, in units of the full batch's
    gradient, which reaches from (0, 0) to (1, 0). `ratio` and `cosine` compare the whole loop, run with N = k on
    the first k micro-batches, with the full batch of those examples.
    """
    model = task.build_model(recipe.seed)
    window = next(training_windows(task, recipe))
    tips = _tips_in_plane(model, window, task, recipe)
    for k, (along, across) in enumerate(tips, start=1):
        loop = gradient_of_loop(model, window[:k], task, replace(recipe, accumulation_steps=k))
        full = gradient_of_full_batch(model, window[:k], task)
        yield {
            "micro_batch": k,
            "micro_batch_size": recipe.micro_batch_size,
            "loss_scaling": recipe.loss_scaling,
            "along": along,
            "across": across,
            "ratio": float(loop.norm() / full.norm()),
            "cosine": float(torch.nn.functional.cosine_similarity(loop, full, dim=0)),
            "prediction": prediction,
        }


def _tips_in_plane(model: nn.Module, window: list[Batch], task: Task, recipe: Recipe) -> list[tuple[float, float]]:
    """Coordinates (along, across) of the loop's gradient after each micro-batch.

    The plane holds the full batch's gradient and the one that the divisor k + 1 gives, so that for every divisor
    the loop's last tip lies in the plane: its length and its angle are drawn as they are.
    """
    full = gradient_of_full_batch(model, window, task)
    pieces = [gradient_of_full_batch(model, [batch], task) for batch in window]
    pulled = torch.stack([piece / (k + 1) for k, piece in enumerate(pieces)]).sum(0)
    along = full / full.norm()
    rest = pulled - (pulled @ along) * along
    across = rest / rest.norm() if len(window) > 1 else torch.zeros_like(rest)
    sums = torch.stack([piece / recipe.divisor(k) for k, piece in enumerate(pieces)]).cumsum(0) / full.norm()
    return [(float(tip @ along), float(tip @ across)) for tip in sums]


class ScaleFigure(TwoPanels):
    """Left: the pieces tip to tail. Right: how many times too long, against N."""

    description: ClassVar[str] = (
        "Two panels. Left: the gradients of the micro-batches laid tip to tail, in units of the full batch's "
        "gradient, with the right arrow and the arrow this loop gets. Right, both axes logarithmic: the length of "
        "the loop's gradient divided by the full batch's, against N from 1 to 32."
    )

    def draw_left(self, ax: Axes) -> None:
        """The gradients, tip to tail."""
        self._plane = ax
        ax.set(xlabel="along the full batch's gradient (= 1)", ylabel="across it (same unit)", box_aspect=1)
        ax.set_title("Micro-batch gradients, tip to tail", fontsize=11)
        (self._chain,) = ax.plot([], [], "o-", color=palette.GREY, ms=3, lw=1, label="micro-batch by micro-batch")
        self._right = _arrow(ax, palette.RIGHT, 4.0)
        self._loop = _arrow(ax, palette.WRONG, 2.0)
        ax.plot([], [], color=palette.RIGHT, lw=4, label="full batch")
        ax.plot([], [], color=palette.WRONG, lw=2, label="this loop")
        ax.legend(loc="upper left", fontsize=8, frameon=False)
        self.moves(self._chain, self._right, self._loop)

    def draw_right(self, ax: Axes) -> None:
        """The ratio of the lengths."""
        ticks = [2**i for i in range(6)]
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        ax.set(xlim=(0.9, 40), ylim=(1 / 40, 40), xlabel="accumulation steps N", box_aspect=1)
        ax.set_ylabel("length / length of the full batch's gradient")
        ax.set_xticks(ticks, [str(n) for n in ticks])
        ax.set_yticks([1 / n for n in ticks[:0:-1]] + ticks, [f"1/{n}" for n in ticks[:0:-1]] + [str(n) for n in ticks])
        ax.set_title("How many times too long", fontsize=11)
        ends = [1, MOST_STEPS]
        ax.plot(ends, [1, 1], "-", color=palette.RIGHT, lw=1.2)
        ax.plot(ends, ends, ":", color=palette.GREY, lw=1.2)
        ax.plot(ends, [1, 1 / MOST_STEPS], ":", color=palette.GREY, lw=1.2)
        for x, height, words in (
            (1.05, 25, "N times too long"),
            (20, 1.1, "right"),
            (1.05, 1 / 29, "N times too short"),
        ):
            ax.text(x, height, words, fontsize=8, color=palette.BLACK)
        (self._measured,) = ax.plot([], [], "D", color=palette.WRONG, ms=5)
        (self._guess,) = ax.plot([], [], "--X", color=palette.GUESS, ms=8, lw=1.5, markevery=[-1])
        self._guess_words = ax.text(1, 1, "", fontsize=8, color=palette.BLACK)
        self.moves(self._measured, self._guess, self._guess_words)

    def update(self, data: pd.DataFrame) -> str:
        """Move the chain, the two arrows, the points and the prediction."""
        along, across = [0.0, *data["along"]], [0.0, *data["across"]]
        self._chain.set_data(along, across)
        self._right.set_positions((0, 0), (1, 0))
        self._loop.set_positions((0, 0), (along[-1], across[-1]))
        reach = step_up(max(1.0, *along, *(abs(y) / 0.4 for y in across)))
        self.set_limits(self._plane, x=(-0.2 * reach, 1.1 * reach), y=(-0.65 * reach, 0.65 * reach))
        self._measured.set_data(list(data["micro_batch"]), list(data["ratio"]))
        return scale_sentence(data) + self._show_prediction(data["prediction"].iloc[-1])

    def _show_prediction(self, value: float | None) -> str:
        if value is None or pd.isna(value):
            return ""
        height = min(max(float(value), 1 / 36), 36.0)
        self._guess.set_data([1, PREDICTED_FOR], [height, height])
        self._guess_words.set_text(f"your prediction: {value:g}")
        beside_1 = 1 / BESIDE_1 <= height <= BESIDE_1  # there its words stand below the line called "right"
        self._guess_words.set_position((1.15 * PREDICTED_FOR, min(height, 1) / 1.15 if beside_1 else height))
        self._guess_words.set_verticalalignment("top" if height >= 1 or beside_1 else "bottom")  # lines fan out from 1
        return f" You predicted {value:g} for N = {PREDICTED_FOR}."


def _arrow(ax: Axes, color: str, width: float) -> FancyArrowPatch:
    arrow = FancyArrowPatch(
        (0, 0), (1, 0), arrowstyle="-|>", mutation_scale=6 + 2 * width, color=color, lw=width, shrinkA=0, shrinkB=0
    )
    ax.add_patch(arrow)
    return arrow


def scale_sentence(data: pd.DataFrame) -> str:
    """What the last row says, in words."""
    last = data.iloc[-1]
    n, ratio = int(last["micro_batch"]), float(last["ratio"])
    length = "as long as" if round(ratio, 6) == 1 else f"{ratio:.4g} times as long as"
    straight = last["cosine"] > 1 - 1e-9
    direction = "points the same way" if straight else f"points elsewhere (cosine {last['cosine']:.3f})"
    return (
        f"b = {last['micro_batch_size']}, N = {n}, each loss divided by {DIVIDED_BY[last['loss_scaling']]}: "
        f"the gradient is {length} the full batch's and {direction}."
    )


def scale_table(data: pd.DataFrame) -> pd.DataFrame:
    """Ratio and cosine at N = 1, 2, 4, … and at the N that was chosen."""
    n = data["micro_batch"]
    rows = data[((n & (n - 1)) == 0) | (n == n.max())]
    return pd.DataFrame(
        {
            "N": rows["micro_batch"],
            "length / full batch's": rows["ratio"].round(6),
            "cosine with full batch's": rows["cosine"].round(6),
        }
    )


def explore_scale(prediction: Prediction | None = None) -> Explorer:
    """Sliders for b and N, a choice of divisor, and the gradient that comes out.

    `prediction()` is the ratio of lengths that the learner expects at N = 8 without 1/N; until then it waits.
    """
    task = digits("mlp", dtype=torch.float64)

    def plan(micro_batch_size: int, accumulation_steps: int, loss_scaling: Any) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, loss_scaling, precision="float64")
        recipe.check_fits(task.examples)
        guess = prediction() if prediction else None
        return Run(lambda: scaling(task, recipe, guess), accumulation_steps, "micro-batch")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST_STEPS, PREDICTED_FOR),
        Choice("loss_scaling", "Each loss divided by", DIVISORS, "none"),
    ]
    return Explorer(controls, plan, ScaleFigure, scale_table, prediction)
