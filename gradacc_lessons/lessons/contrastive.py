"""Lesson 06: the same pairs in more and more micro-batches, with and without GradCache, against the full batch."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons import palette
from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.lessons.pairs import contrastive_loss, embed, info_nce, most_images, pairs_of, trained_encoder
from gradacc_lessons.lessons.rounding import ROUNDING, percent
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.grad_cache import grad_cache
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Prediction, Run, counted

Method = Literal["plain", "grad_cache"]
METHODS: dict[Method, str] = {"plain": "one backward per micro-batch", "grad_cache": "GradCache"}
COLOURS: dict[Method, str] = {"plain": palette.WRONG, "grad_cache": palette.RIGHT}
PAIRS, PREDICTED_STEPS = 32, 4
"""What the learner's prediction is about: so many pairs, in so many micro-batches."""
MOST = 32
"""The end of both sliders."""
UNSEEN = "#D9D9D9"
HIGHEST = 118.0
"""Where the axis of the right panel ends, in percent: an error may be a little above 100."""
FAINT = 0.3


def divisors(pairs: int) -> list[int]:
    """Every N that cuts `pairs` into equal micro-batches."""
    return [n for n in range(1, pairs + 1) if pairs % n == 0]


def error_against_steps(
    micro_batch_size: int, accumulation_steps: int, method: Method, prediction: float | None = None, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Accumulate the gradient of the same b x N pairs over every N that divides them, in float64.

    One row per N, the chosen one first: `steps`; for each method its `…_loss` (the mean over the micro-batches) and
    `…_error` (norm of the difference from the full batch's gradient over its norm); and what all rows share:
    `full_loss`, `similarity` (pairs, pairs) of all first with all second views, and what was chosen: `b`, `n`,
    `method`, `prediction`.
    """
    model, pairs = trained_encoder(seed), pairs_of(micro_batch_size * accumulation_steps, seed)
    first, second = (F.normalize(each.detach()) for each in embed(model, pairs))
    full_loss, full = _plain(model, [pairs])
    shared = {"full_loss": full_loss, "similarity": (first @ second.T).numpy(), "prediction": prediction}
    shared |= {"b": micro_batch_size, "n": accumulation_steps, "method": method}
    for steps in dict.fromkeys([accumulation_steps, *divisors(len(first))]):
        row: dict[str, Any] = {"steps": steps}
        for name, accumulated in (("plain", _plain), ("grad_cache", _cached)):
            loss, got = accumulated(model, split(pairs, len(first) // steps))
            row |= {f"{name}_loss": loss, f"{name}_error": float((got - full).norm() / full.norm())}
        yield row | shared


def _plain(model: nn.Module, window: list[Batch]) -> tuple[float, Tensor]:
    model.zero_grad()
    total = 0.0
    for batch in window:
        loss = contrastive_loss(model, batch) / len(window)
        loss.backward()
        total += float(loss.detach())
    return total, gradient(model).clone()


def _cached(model: nn.Module, window: list[Batch]) -> tuple[float, Tensor]:
    model.zero_grad()
    return grad_cache(model, window, embed, info_nce), gradient(model).clone()


class PairsFigure(TwoPanels):
    """Left: which pairs meet in the loss. Right: loss and gradient error against N, with and without GradCache."""

    description: ClassVar[str] = (
        "Left: a square with a row for the first view of each pair and a column for the second view; a cell has the "
        "colour of their similarity if the loss compares them, and is grey if it never does. The pairs themselves are "
        "on the diagonal. Right, against N on a logarithmic axis, in percent: the distance of the accumulated gradient "
        "from the full batch's (solid, circles) and the loss as a share of the full batch's (dashed, squares); orange "
        "for one backward per micro-batch, blue for GradCache; the chosen way is bold, and a triangle marks its N."
    )
    width = 860
    arrangement: ClassVar[dict[str, Any]] = {"width_ratios": (5, 6)}

    def draw_left(self, ax: Axes) -> None:
        """The similarity matrix."""
        self._square = ax
        ax.grid(False)
        ax.set(xlabel="second view of pair", ylabel="first view of pair")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        ax.set_title("Who is compared with whom", fontsize=11)
        colours = mpl.colormaps["viridis"].with_extremes(bad=UNSEEN)
        self._cells = ax.imshow(np.zeros((1, 1)), cmap=colours, vmin=-1, vmax=1, aspect="auto")
        assert self.figure is not None
        bar = self.figure.colorbar(self._cells, ax=ax, shrink=0.8)
        bar.set_label("cosine similarity (grey: not compared)", fontsize=9)
        self.moves(self._cells)

    def draw_right(self, ax: Axes) -> None:
        """The curves."""
        self._curves = ax
        ax.set(xscale="log", ylim=(-6, HIGHEST), xlabel="N, micro-batches of the same pairs", ylabel="percent (%)")
        ax.minorticks_off()
        self._errors: dict[Method, Line2D] = {}
        self._losses: dict[Method, Line2D] = {}
        for method, label in METHODS.items():
            style: dict[str, Any] = {"color": COLOURS[method], "label": label, "ms": 5}
            (self._errors[method],) = ax.plot([], [], "o-", **style)
            (self._losses[method],) = ax.plot([], [], "s--", mfc="white", **style)
        (self._chosen,) = ax.plot([], [], "v", color=palette.BLACK, ms=9)
        (self._guess,) = ax.plot([], [], "--X", color=palette.GUESS, ms=10, lw=1.5, markevery=[-1])
        self._guess_words = ax.text(0, 0, "", fontsize=9, color=palette.BLACK, va="bottom")
        self._guess_words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
        self._legend(ax)
        self.moves(*self._errors.values(), *self._losses.values(), self._chosen, self._guess, self._guess_words)

    def _legend(self, ax: Axes) -> None:
        shapes = [("gradient error", "o-", palette.GREY), ("loss / full batch's loss", "s--", palette.GREY)]
        handles = [
            *(Line2D([], [], color=COLOURS[method], lw=3, label=label) for method, label in METHODS.items()),
            *(
                Line2D([], [], color=colour, marker=style[0], ls=style[1:], mfc="white", label=label)
                for label, style, colour in shapes
            ),
        ]
        ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=9, frameon=False)

    def update(self, data: pd.DataFrame) -> str:
        """Colour the cells, move the curves."""
        first, rows = data.iloc[0], data.sort_values("steps")
        pairs = len(first["similarity"])
        self._cells.set_data(np.ma.masked_where(~compared(pairs, first["b"], first["method"]), first["similarity"]))
        self._cells.set_extent((0.5, pairs + 0.5, pairs + 0.5, 0.5))
        self.set_limits(self._square, x=(0.5, pairs + 0.5), y=(pairs + 0.5, 0.5))
        self._fit(pairs)
        for method in METHODS:
            bold = method == first["method"]
            for line, share in (
                (self._errors[method], rows[f"{method}_error"]),
                (self._losses[method], rows[f"{method}_loss"] / rows["full_loss"]),
            ):
                line.set_data(rows["steps"], 100 * share)
                line.set(alpha=1.0 if bold else FAINT, linewidth=2.0 if bold else 1.2)
        self._chosen.set_data([first["n"]], [100 * first[f"{first['method']}_error"] + 6])
        self._show_guess(first["prediction"] if pairs == PAIRS else None)
        return pairs_sentence(data)

    def _fit(self, pairs: int) -> None:
        limits = (0.85, 1.18 * pairs)
        if tuple(self._curves.get_xlim()) != limits:
            powers = [2**power for power in range(9) if 2**power <= 0.5 * pairs]
            self._curves.set_xticks([*powers, pairs])
            self._curves.xaxis.set_major_formatter(ScalarFormatter())
            self.set_limits(self._curves, x=limits)

    def _show_guess(self, guess: Any) -> None:
        known = bool(pd.notna(guess))
        height = min(max(float(guess), 0.0), HIGHEST - 10) if known else 0.0
        self._guess.set_data([0.85, PREDICTED_STEPS] if known else [], [height] * 2 if known else [])
        self._guess_words.set_text(f"your prediction: {guess:g} %" if known else "")
        self._guess_words.set_position((0.9, height + 2.5))


def compared(pairs: int, micro_batch_size: int, method: Method) -> Any:
    """(pairs, pairs) truth values: whether the loss compares the first view of a pair with the second of another."""
    block = np.arange(pairs) // (pairs if method == "grad_cache" else micro_batch_size)
    return block[:, None] == block[None, :]


def pairs_sentence(data: pd.DataFrame) -> str:
    """The chosen b, N and way in words."""
    first = data.iloc[0]
    b, n, method = int(first["b"]), int(first["n"]), first["method"]
    pairs = b * n
    seen = (pairs if method == "grad_cache" else b) - 1
    loss, error = first[f"{method}_loss"], first[f"{method}_error"]
    said = (
        f"b = {b}, N = {n}, {METHODS[method]}: each of {counted(pairs, 'pair')} meets {seen} of its {pairs - 1} "
        f"negatives. The loss is {loss:.2f}, where the full batch has {first['full_loss']:.2f}. {_distance(error)}"
    )
    guess = first["prediction"]
    if pd.isna(guess):
        return said
    return f"{said} You predicted {guess:g} % for {PAIRS} pairs in {PREDICTED_STEPS} micro-batches."


def _distance(error: float) -> str:
    if error <= ROUNDING:
        return "The gradient is the full batch's, to rounding."
    if abs(error - 1) <= ROUNDING:
        return "Nothing is learned: the gradient is zero, 100 % away from the full batch's."
    return f"The gradient is {100 * error:.0f} % away from the full batch's."


def pairs_table(data: pd.DataFrame) -> pd.DataFrame:
    """At most six N, the smallest and the largest included."""
    rows = data.sort_values("steps")
    rows = rows.iloc[sorted({round(k * (len(rows) - 1) / 5) for k in range(6)})]
    pairs = len(data.iloc[0]["similarity"])
    return pd.DataFrame(
        {
            "N": rows["steps"],
            "b": pairs // rows["steps"],
            "negatives per pair": pairs // rows["steps"] - 1,
            "loss": rows["plain_loss"].map("{:.2f}".format),
            "gradient error": rows["plain_error"].map(percent),
            "with GradCache": rows["grad_cache_error"].map(percent),
        }
    )


def explore_pairs(prediction: Prediction | None = None) -> Explorer:
    """Sliders for b and N, and with or without GradCache.

    `prediction()` is the gradient error in percent that the learner expects of 32 pairs in 4 micro-batches.
    """

    def plan(micro_batch_size: int, accumulation_steps: int, method: Method) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, precision="float64")
        recipe.check_fits(most_images())
        if recipe.effective_batch_size < 2:
            raise ValueError("one pair alone has no negatives to compare with: choose a larger b or N")
        guess = prediction() if prediction else None
        points = len(divisors(recipe.effective_batch_size))
        return Run(lambda: error_against_steps(micro_batch_size, accumulation_steps, method, guess), points, "cut")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, MOST, PAIRS // PREDICTED_STEPS),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST, PREDICTED_STEPS),
        Choice("method", "Way to accumulate", [(label, method) for method, label in METHODS.items()], "plain"),
    ]
    return Explorer(controls, plan, PairsFigure, pairs_table, prediction)
