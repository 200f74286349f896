"""Lesson 05's second explorer: BatchNorm's running statistics move once per micro-batch, so N times per update."""

import copy
import math
from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice
from typing import Any, ClassVar

import pandas as pd
import torch
from matplotlib.axes import Axes
from torch import nn

from gradacc_lessons import palette
from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.lessons.norm_picture import ORDERS
from gradacc_lessons.lessons.norms import Order, arranged, recipe_for
from gradacc_lessons.lessons.training import training_windows
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.momentum import corrected_momentum
from gradacc_lessons.tasks import digits
from gradacc_lessons.tasks.digits import TRAIN_EXAMPLES
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Run, counted

MOMENTA = (0.01, 0.03, 0.1, 0.3)
UPDATES = 24
"""How many windows pass; the weights stay as they are."""
MOST_STEPS = 64
SEED = 0


@cache
def _layers() -> tuple[nn.Module, nn.BatchNorm1d]:
    """The MLP up to its BatchNorm, with its initial weights, and that layer as it begins; float64."""
    model = digits("mlp", norm="batch", dtype=torch.float64).build_model(SEED)
    assert isinstance(model, nn.Sequential) and isinstance(model[2], nn.BatchNorm1d)
    return model[:2], model[2]


def features(recipe: Recipe, order: Order) -> list[Batch]:
    """What BatchNorm is given for each of the windows: tensors (b x N, 64), class after class if "sorted"."""
    before, _ = _layers()
    whole = recipe_for(recipe.effective_batch_size, 1, recipe.seed)
    stream = training_windows(digits(dtype=torch.float64), whole)
    with torch.no_grad():
        return [(before(arranged(batch, order)[0]),) for (batch,) in islice(stream, UPDATES)]


def new_layer(momentum: float) -> nn.BatchNorm1d:
    """The BatchNorm as it begins, with this momentum."""
    layer = copy.deepcopy(_layers()[1])
    layer.momentum = momentum
    return layer


def statistics(recipe: Recipe, momentum: float, order: Order) -> Iterator[dict[str, Any]]:
    """What a window weighs, for several N; then three layers that see the same images: in whole windows; in
    micro-batches; in micro-batches with the momentum corrected.

    First a row per N of the right panel: `steps`, `weight_plain` and `weight_corrected`. Then one per micro-batch:
    `update` (how many windows have passed, in parts), `full`, `plain` and `corrected` (the
    running mean of one channel), and, at the end of a window, `mean_plain`, `mean_corrected`, `variance_plain` and
    `variance_corrected`: how far the statistics of all channels are from the full batch's, over the length of those.
    """
    n = recipe.accumulation_steps
    full, plain = new_layer(momentum), new_layer(momentum)
    corrected = new_layer(corrected_momentum(momentum, n))
    windows = features(recipe, order)
    channel = int(windows[0][0].mean(dim=0).abs().argmax())
    chosen = {"b": recipe.micro_batch_size, "n": n, "momentum": momentum, "order": order}
    for steps in weighed(n):
        weights = {"plain": momentum, "corrected": corrected_momentum(momentum, steps)}
        yield chosen | {"steps": steps} | {f"weight_{name}": weight_of_window(m, steps) for name, m in weights.items()}
    for update, window in enumerate(windows):
        parts = split(window, recipe.micro_batch_size)
        for at, (part,) in enumerate(parts, start=1):
            plain(part)
            corrected(part)
            row = chosen | {"update": update + at / len(parts)}
            if at == len(parts):
                full(window[0])
                row |= _distances(full, plain, "plain") | _distances(full, corrected, "corrected")
            means = {"full": full, "plain": plain, "corrected": corrected}
            yield row | {name: float(_mean(layer)[channel]) for name, layer in means.items()}


def _mean(layer: nn.BatchNorm1d) -> torch.Tensor:
    assert layer.running_mean is not None
    return layer.running_mean


def _distances(full: nn.BatchNorm1d, other: nn.BatchNorm1d, name: str) -> dict[str, float]:
    pairs = {"mean": (full.running_mean, other.running_mean), "variance": (full.running_var, other.running_var)}
    return {f"{what}_{name}": float((b - a).norm() / a.norm()) for what, (a, b) in pairs.items()}  # type: ignore[operator, union-attr]


def weight_of_window(momentum: float, micro_batches: int) -> float:
    """How much of the running mean the newest window makes up, measured: ones come in where there were zeros."""
    layer = nn.BatchNorm1d(1, momentum=momentum, dtype=torch.float64)
    for _ in range(micro_batches):
        layer(torch.ones(2, 1, dtype=torch.float64))
    return float(_mean(layer))


def weighed(accumulation_steps: int) -> list[int]:
    """The N of the right panel: powers of two, and the chosen one."""
    return sorted({*(2**k for k in range(MOST_STEPS.bit_length())), accumulation_steps})


class StatisticsFigure(TwoPanels):
    """Left: the running mean of one channel over the windows. Right: the weight of a window against N."""

    description: ClassVar[str] = (
        "Two panels. Left: the running mean of one BatchNorm channel against the number of updates, for whole windows, "
        "for micro-batches with the same momentum, and for micro-batches with the corrected momentum. Right: how much "
        "of the running mean the newest window makes up, against N, for the momentum and for the corrected one."
    )
    width, height = 820, 400
    arrangement: ClassVar[dict[str, Any]] = {"width_ratios": (3, 2)}

    def draw_left(self, ax: Axes) -> None:
        """The running mean."""
        self._means = ax
        ax.set(xlim=(0, UPDATES), xlabel="updates", ylabel="running mean of one channel")
        ax.set_title("Weights held fixed, the same images", fontsize=11)
        looks = (
            ("full", palette.RIGHT, "-", 4.0, "whole windows, momentum m"),
            ("plain", palette.WRONG, "-", 1.4, "N micro-batches, momentum m"),
            ("corrected", palette.BLACK, "--", 1.4, "N micro-batches, m' = 1 - (1 - m)^(1/N)"),
        )
        self._lines = {
            name: ax.plot([], [], style, color=colour, lw=width, label=label)[0]
            for name, colour, style, width, label in looks
        }
        self._lines["full"].set_drawstyle("steps-post")
        ax.legend(loc="upper center", fontsize=8, frameon=False, bbox_to_anchor=(0.5, 1.0))
        self.moves(*self._lines.values())

    def draw_right(self, ax: Axes) -> None:
        """The weight of a window."""
        ax.set_xscale("log", base=2)
        ticks = [2**k for k in range(7)]
        ax.set(xlim=(0.9, 80), ylim=(0, 1.05), xlabel="accumulation steps N", ylabel="weight of the newest window")
        ax.set_xticks(ticks, [str(n) for n in ticks])
        ax.set_title("N moves per update", fontsize=11)
        (self._plain,) = ax.plot([], [], "o-", color=palette.WRONG, ms=5, label="momentum m")
        (self._corrected,) = ax.plot([], [], "s--", color=palette.BLACK, ms=5, label="corrected m'")
        (self._ring,) = ax.plot([], [], "o", color=palette.BLACK, mfc="none", ms=13)
        ax.legend(loc="upper left", fontsize=8, frameon=False)
        self.moves(self._plain, self._corrected, self._ring)

    def update(self, data: pd.DataFrame) -> str:
        """Lengthen the traces, move the weights."""
        weights, traces = data[data["steps"].notna()], data[data["steps"].isna()]
        self._plain.set_data(weights["steps"], weights["weight_plain"])
        self._corrected.set_data(weights["steps"], weights["weight_corrected"])
        here = weights[weights["steps"] == weights["n"]]
        self._ring.set_data(here["steps"], here["weight_plain"])
        for name, line in self._lines.items():
            line.set_data([0.0, *traces.get("update", ())], [0.0, *traces.get(name, ())])
        if len(traces):
            values = [0.0, *traces[list(self._lines)].to_numpy().ravel()]
            self.set_limits(self._means, y=(floor(min(values)), -floor(-1.3 * max(values)) + 0.2))
        return statistics_sentence(data)


def floor(value: float) -> float:
    """The next half at or below `value`: an axis that moves seldom."""
    return math.floor(2 * value) / 2


def statistics_sentence(data: pd.DataFrame) -> str:
    """What a window weighs, and how far the statistics are from the full batch's by now."""
    first = data.iloc[0]
    here = data[data["steps"] == data["n"]]
    said = f"b = {first['b']}, N = {first['n']}, momentum {first['momentum']:g}: "
    if len(here):
        weight = here.iloc[0]
        said += (
            f"the newest window weighs {weight['weight_plain']:.2f} in the running mean, and with the corrected "
            f"momentum {weight['weight_corrected']:.2f}."
        )
    if "mean_plain" in data and len(ends := data.dropna(subset="mean_plain")):
        last = ends.iloc[-1]
        said += (
            f" After {counted(int(last['update']), 'update')} the running mean is {share(last['mean_plain'])} of its "
            f"length away from the full batch's, corrected {share(last['mean_corrected'])}; the running variance "
            f"{share(last['variance_plain'])}, corrected {share(last['variance_corrected'])}."
        )
    return said


def share(distance: float) -> str:
    """A distance in percent.

    >>> share(0.5483), share(0.0012)
    ('55 %', '0.1 %')
    """
    return f"{100 * distance:.{0 if distance > 0.0995 else 1}f} %"


def statistics_table(data: pd.DataFrame) -> pd.DataFrame:
    """Distances from the full batch's statistics after some of the windows."""
    ends = data.dropna(subset="mean_plain")
    rows = ends[ends["update"].isin((1, 3, 12, UPDATES))]
    table = pd.DataFrame({"updates": rows["update"].astype(int)})
    for what in ("mean", "variance"):
        table[f"running {what}: momentum m"] = rows[f"{what}_plain"].map(share)
        table[f"running {what}: corrected"] = rows[f"{what}_corrected"].map(share)
    return table


def explore_statistics() -> Explorer:
    """Sliders for b and N, a momentum, and who shares a micro-batch; the weights stay as they are."""

    def plan(micro_batch_size: int, accumulation_steps: int, momentum: float, order: Order) -> Run:
        recipe = recipe_for(micro_batch_size, accumulation_steps, SEED)
        recipe.check_fits(TRAIN_EXAMPLES)
        if TRAIN_EXAMPLES % recipe.effective_batch_size % micro_batch_size == 1:
            raise ValueError(f"a micro-batch of 1 image is left of {TRAIN_EXAMPLES:,}, which has no statistics")
        total = len(weighed(accumulation_steps)) + micro_batches(recipe)
        return Run(lambda: statistics(recipe, momentum, order), total, "micro-batch")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 2, 64, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST_STEPS, 8),
        Choice("momentum", "Momentum m", [(f"{m:g}", m) for m in MOMENTA], 0.1),
        Choice("order", "Images of an update", ORDERS, "shuffled"),
    ]
    return Explorer(controls, plan, StatisticsFigure, statistics_table)


def micro_batches(recipe: Recipe) -> int:
    """How many micro-batches the windows have, short windows at the end of an epoch included."""
    whole = recipe.effective_batch_size
    full, left = divmod(TRAIN_EXAMPLES, whole)
    epoch = [recipe.accumulation_steps] * full + ([-(-left // recipe.micro_batch_size)] if left else [])
    return sum(islice(cycle(epoch), UPDATES))
