"""Lesson 05's first explorer: where a window's gradient points, and the accuracy that training ends with."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes

from gradacc_lessons import palette
from gradacc_lessons.device import best_device
from gradacc_lessons.lessons.norm_table import CUTS, Spread, summary
from gradacc_lessons.lessons.norms import (
    EFFECTIVE_BATCH,
    EPOCHS,
    EPOCHS_BEFORE_GRADIENTS,
    Order,
    accuracies,
    cuts,
    gradient_errors,
    in_words,
    recipe_for,
    refused,
)
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import digits
from gradacc_lessons.tasks.digits import NORM_NAMES, TRAIN_EXAMPLES, DigitsModel, DigitsNorm
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Prediction, Run

CURVES: tuple[tuple[DigitsNorm, int], ...] = (
    ("batch", EPOCHS_BEFORE_GRADIENTS),
    ("batch", 0),
    *((norm, EPOCHS_BEFORE_GRADIENTS) for norm in NORM_NAMES if norm != "batch"),
)
"""Which norms, after how many epochs."""
STYLES = (
    (palette.WRONG, "o-", 6), (palette.WRONG, "o:", 6), (palette.RIGHT, "s-", 12),
    (palette.GREEN, "^--", 9), (palette.YELLOW, "v-.", 6), (palette.GREY, "x:", 4),
)  # fmt: skip
"""Colour, marker with line, and size; hollow markers that fit into one another, since four curves are one."""
PREDICTED_FOR = 2
"""The b that the learner's prediction is about, in a window of EFFECTIVE_BATCH images."""
ORDERS: list[tuple[str, Order]] = [("shuffled", "shuffled"), ("sorted by class within the update", "sorted")]
MODELS: list[tuple[str, DigitsModel]] = [("MLP", "mlp"), ("CNN", "cnn")]
ORDER_STYLES: dict[Order, tuple[str, str, float]] = {"shuffled": ("black", "D-", 0.94), "sorted": ("none", "D:", 1.06)}
"""Filling, marker with line, and how far beside its b a point stands. No colour: on the left colours are norms."""
LOWEST, HIGHEST = -0.35, 1.12
"""The axis of cosines."""


def compare_norms(
    model: DigitsModel, norm: DigitsNorm, recipe: Recipe, order: Order, prediction: float | None = None
) -> Iterator[dict[str, Any]]:
    """Gradients of one window for every norm, and then the training of one norm, one seed.

    First a row per curve and cut, as `gradient_errors` makes them, then one per epoch with `epoch` and `accuracy`.
    Each has what was chosen: `model`, `chosen_norm`, `order`, `b`, `n` and the learner's `prediction`.
    """
    chosen: dict[str, Any] = {"model": model, "chosen_norm": norm, "order": order, "prediction": prediction}
    chosen |= {"b": recipe.micro_batch_size, "n": recipe.accumulation_steps}
    for name, epochs in CURVES:
        for row in gradient_errors(model, name, epochs, recipe, order):
            yield chosen | {"kind": "gradient"} | row
    task = digits(model, norm=norm, device=best_device())
    for row in accuracies(task, recipe, order):
        yield chosen | {"kind": "training"} | row


def rows_of(model: DigitsModel, recipe: Recipe) -> int:
    """How many rows a run has."""
    sizes = cuts(recipe)
    return sum(not refused(model, norm, size) for norm, _ in CURVES for size in sizes) + EPOCHS


class NormsFigure(TwoPanels):
    """Left: where the gradient points against b, per norm. Right: accuracies, stored and live."""

    description: ClassVar[str] = (
        "Two panels against the micro-batch size b, on a logarithmic axis. Left: the cosine between the "
        "accumulated gradient of one update and the full batch's, for BatchNorm, GroupNorm, LayerNorm, frozen "
        "BatchNorm and no norm after three epochs, and for BatchNorm at the initial weights. Right: the share "
        "of test images that the chosen norm gets right after five epochs; stored runs with shuffled and with sorted "
        "updates, mean and range over seeds, and a star for the run made now."
    )
    width, height = 860, 430

    def draw_left(self, ax: Axes) -> None:
        """Cosines of gradients."""
        self._cosines = ax
        ax.set_xscale("log", base=2)
        ax.set(ylim=(LOWEST, HIGHEST), xlabel="micro-batch size b (images)")
        ax.set_ylabel("cosine with the full batch's gradient")
        ax.set_title("One update: the full batch's gradient?", fontsize=11)
        self._curves = {}
        for (norm, epochs), (colour, style, size) in zip(CURVES, STYLES, strict=True):
            name = NORM_NAMES[norm] if epochs else f"{NORM_NAMES[norm]}, initial weights"
            look: dict[str, Any] = {
                "color": colour,
                "ms": size,
                "lw": 1.4,
                "mfc": colour if norm == "batch" else "none",
            }
            (self._curves[norm, epochs],) = ax.plot([], [], style, label=name, **look)
        ax.legend(loc="lower right", fontsize=8, frameon=False)
        (self._ring,) = ax.plot([], [], "o", color=palette.BLACK, mfc="none", ms=15)
        (self._guess,) = ax.plot([], [], "--X", color=palette.GUESS, ms=9, lw=1.5, markevery=[-1])
        self._guess_words = ax.text(1, 1, "", fontsize=8, color=palette.BLACK, va="bottom")
        self.moves(*self._curves.values(), self._ring, self._guess, self._guess_words)

    def draw_right(self, ax: Axes) -> None:
        """Accuracies after training."""
        self._accuracies = ax
        ax.set_xscale("log", base=2)
        ax.set(xlim=(0.7, 92), ylim=(0, 105), xlabel="micro-batch size b (images)")
        ax.set_ylabel("test images right (%)")
        ax.set_title(f"After {EPOCHS} epochs: does accuracy show it?", fontsize=11)
        ax.set_xticks(CUTS, [f"{b}\nx {EFFECTIVE_BATCH // b}" for b in CUTS])
        self._stored = {}
        for order, (filling, style, _) in ORDER_STYLES.items():
            look: dict[str, Any] = {"color": palette.BLACK, "mfc": filling, "ms": 5, "lw": 1.2}
            (line,) = ax.plot([], [], style, label=f"stored, {order}: mean and range", **look)
            ranges = ax.vlines([], [], [], color=palette.BLACK, lw=1.2, linestyles="-" if style == "D-" else ":")
            self._stored[order] = (line, ranges)
            self.moves(line, ranges)
        (self._live,) = ax.plot([], [], "*", color=palette.BLACK, mfc=palette.YELLOW, ms=15, label="this run, seed 0")
        ax.legend(loc="lower right", fontsize=8, frameon=False)
        self.moves(self._live)

    def update(self, data: pd.DataFrame) -> str:
        """Move curves, ranges and marks."""
        first = data.iloc[0]
        gradients = data[data["kind"] == "gradient"]
        self._widen(int(first["b"] * first["n"]))
        for (norm, epochs), curve in self._curves.items():
            rows = gradients[(gradients["norm"] == norm) & (gradients["epochs"] == epochs)]
            curve.set_data(rows["micro_batch_size"], rows["cosine"])
        here = chosen_gradient(data)
        self._ring.set_data([first["b"]] * len(here), here["cosine"])
        self._show_stored(first["model"], first["chosen_norm"])
        live = data[data["kind"] == "training"].tail(1)
        self._live.set_data([first["b"]] * len(live), 100 * live["accuracy"] if len(live) else [])
        self._show_guess(first["prediction"] if asked(first) else None)
        return norms_sentence(data)

    def _widen(self, whole: int) -> None:
        most = max(64, 2 ** (whole - 1).bit_length())
        if (0.7, 1.4 * most) != tuple(self._cosines.get_xlim()):
            ticks = [2**k for k in range(0, most.bit_length(), 1 if most == 64 else 2)]
            self._cosines.set_xticks(ticks, [str(b) for b in ticks])
        self.set_limits(self._cosines, x=(0.7, 1.4 * most))

    def _show_stored(self, model: DigitsModel, norm: DigitsNorm) -> None:
        for order, (line, ranges) in self._stored.items():
            cells = summary(model, norm, order)
            at = [b * ORDER_STYLES[order][2] for b in cells]
            line.set_data(at, [100 * cell.mean for cell in cells.values()])
            ends = [(100 * min(cell.values), 100 * max(cell.values)) for cell in cells.values()]
            ranges.set_segments([[(x, low), (x, high)] for x, (low, high) in zip(at, ends, strict=True)])

    def _show_guess(self, guess: float | None) -> None:
        known = guess is not None and not pd.isna(guess)
        height = min(max(float(guess), 0.95 * LOWEST), 1.05) if known and guess is not None else 0.0
        self._guess.set_data([0.7, PREDICTED_FOR] if known else [], [height] * 2 if known else [])
        self._guess_words.set_text(f"your prediction: {guess:g}" if known else "")
        self._guess_words.set_position((0.75, height + 0.02))
        self._guess_words.set_verticalalignment("bottom" if height < 0.9 else "top")


def asked(chosen: "pd.Series[Any]") -> bool:
    """Whether a row is of what the learner's prediction is about: BatchNorm in the MLP, shuffled, b = 2 and N = 32."""
    cut = (chosen["b"], chosen["n"]) == (PREDICTED_FOR, EFFECTIVE_BATCH // PREDICTED_FOR)
    return cut and (chosen["model"], chosen["chosen_norm"], chosen["order"]) == ("mlp", "batch", "shuffled")


def chosen_gradient(data: pd.DataFrame) -> pd.DataFrame:
    """The row of the chosen norm, after training, at the chosen b; empty as long as it is not there."""
    wanted = (data["kind"] == "gradient") & (data["norm"] == data["chosen_norm"])
    return data[wanted & (data["epochs"] == EPOCHS_BEFORE_GRADIENTS) & (data["micro_batch_size"] == data["b"])]


def norms_sentence(data: pd.DataFrame) -> str:
    """The chosen point in words: its gradient, then its accuracy beside the stored ones."""
    first, here = data.iloc[0], chosen_gradient(data)
    model = next(label for label, value in MODELS if value == first["model"])
    said = f"{model} with {NORM_NAMES[first['chosen_norm']]}, b = {first['b']}, N = {first['n']}, {first['order']}: "
    if first["n"] == 1:
        said += "the micro-batch is the full batch."
    elif len(here):
        row = here.iloc[0]
        said += (
            f"after {EPOCHS_BEFORE_GRADIENTS} epochs the accumulated gradient has a cosine of {row['cosine']:.2f} with "
            f"the full batch's, and differs from it by {in_words(row['error'])} of its length."
        )
    training = data[data["kind"] == "training"]
    if len(training):
        last = training.iloc[-1]
        said += f" After {last['epoch']:.0f} of {EPOCHS} epochs {100 * last['accuracy']:.0f} % of test images are right"
        said += _beside(
            summary(first["model"], first["chosen_norm"], first["order"]), first["b"], first["b"] * first["n"]
        )
    guess = first["prediction"] if asked(first) else None
    return said if pd.isna(guess) else f"{said} You predicted a cosine of {guess:g} for b = {PREDICTED_FOR}."


def _beside(stored: dict[int, Spread], b: int, whole: int) -> str:
    """The end of the sentence about accuracy: the stored runs of the same cut."""
    if whole != EFFECTIVE_BATCH:
        return f"; the stored runs have {EFFECTIVE_BATCH} images per update, this one has {whole}."
    if b not in stored:
        return "."
    values = stored[b].values
    return f"; the {len(values)} stored runs of this cut have {100 * min(values):.0f} to {100 * max(values):.0f} %."


def norms_table(data: pd.DataFrame) -> pd.DataFrame:
    """Gradients after training: a row per b, a column for BatchNorm's cosine, one for the largest error of the rest."""
    rows = data[(data["kind"] == "gradient") & (data["epochs"] == EPOCHS_BEFORE_GRADIENTS)]
    table = []
    for _, cut in rows.groupby("micro_batch_size", sort=False):
        batch, rest = cut[cut["norm"] == "batch"], cut[cut["norm"] != "batch"]
        table.append(
            {
                "b": cut["micro_batch_size"].astype(int).iloc[0],
                "BatchNorm: cosine": f"{batch['cosine'].iloc[0]:.2f}" if len(batch) else "refused",
                "BatchNorm: error": in_words(batch["error"].iloc[0]) if len(batch) else "refused",
                "each other norm: error": in_words(rest["error"].max()),
            }
        )
    return pd.DataFrame(table, columns=["b", "BatchNorm: cosine", "BatchNorm: error", "each other norm: error"])


def explore_norms(prediction: Prediction | None = None) -> Explorer:
    """Sliders for b and N, a norm, a model, and who shares a micro-batch.

    `prediction()` is the cosine that the learner expects of BatchNorm in the MLP at b = 2 and N = 32; until then it
    waits.
    """

    def plan(micro_batch_size: int, accumulation_steps: int, model: DigitsModel, norm: DigitsNorm, order: Order) -> Run:
        recipe = recipe_for(micro_batch_size, accumulation_steps)
        recipe.check_fits(TRAIN_EXAMPLES)
        if refused(model, norm, 1) and (reason := single_image_left(recipe)):
            raise ValueError(
                f"{reason}, and BatchNorm in the MLP has one value per channel of it, which has no mean and variance "
                "of its own: choose another b or N, another norm, or the CNN"
            )
        guess = prediction() if prediction else None
        return Run(lambda: compare_norms(model, norm, recipe, order, guess), rows_of(model, recipe), "row")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 64, PREDICTED_FOR),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 64, EFFECTIVE_BATCH // PREDICTED_FOR),
        Choice("model", "Model", MODELS, "mlp"),
        Choice("norm", "Norm", [(label, name) for name, label in NORM_NAMES.items()], "batch"),
        Choice("order", "Images of an update", ORDERS, "shuffled"),
    ]
    return Explorer(controls, plan, NormsFigure, norms_table, prediction)


def single_image_left(recipe: Recipe) -> str:
    """Where an epoch has a micro-batch of 1 image, in words; empty if it has none."""
    b, whole = recipe.micro_batch_size, recipe.effective_batch_size
    if b == 1:
        return "with b = 1 every micro-batch is 1 image"
    if TRAIN_EXAMPLES % whole % b == 1:
        return (
            f"with b = {b} and N = {recipe.accumulation_steps} the last micro-batch of an epoch of {TRAIN_EXAMPLES:,} "
            "images is 1 image"
        )
    return ""
