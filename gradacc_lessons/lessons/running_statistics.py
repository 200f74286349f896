"""Lesson 05's second explorer: BatchNorm's running statistics move once per micro-batch, so N times per update."""

import copy
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Literal

import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from torch import Tensor, nn

from gradacc_lessons import palette
from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.lessons.norm_picture import ORDERS, single_image_left
from gradacc_lessons.lessons.norms import Order, arranged, recipe_for
from gradacc_lessons.lessons.training import training_windows
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.momentum import corrected_momentum
from gradacc_lessons.tasks import digits
from gradacc_lessons.tasks.digits import TRAIN_EXAMPLES
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Run, step_up

MOMENTA = (0.01, 0.03, 0.1, 0.3)
UPDATES = 24
"""How many windows pass; the weights stay as they are."""
MOST_STEPS = 64
SEED = 0
Start = Literal["true", "new"]
"""Where running statistics begin: at those of all training images, or at 0 and 1, as in a new layer."""
STARTS: list[tuple[str, Start]] = [("at the true statistics", "true"), ("at 0 and 1, as in a new layer", "new")]
LAYERS = {
    "whole": "whole windows, momentum m",
    "plain": "N micro-batches, momentum m",
    "corrected": "N micro-batches, corrected momentum",
}
"""The three layers that see the same images, and what they are called on the page."""
STATISTICS = ("mean", "variance")


@cache
def _layers() -> tuple[nn.Module, nn.BatchNorm1d]:
    """The MLP up to its BatchNorm, with its initial weights, and that layer as it begins; float64."""
    model = digits("mlp", norm="batch", dtype=torch.float64).build_model(SEED)
    assert isinstance(model, nn.Sequential) and isinstance(model[2], nn.BatchNorm1d)
    return model[:2], model[2]


@cache
def true_statistics() -> dict[str, Tensor]:
    """`mean` and `variance` (64,) of what BatchNorm is given, over all training images at once."""
    before, _ = _layers()
    with torch.no_grad():
        features = before(digits(dtype=torch.float64).train[0])
    return {"mean": features.mean(dim=0), "variance": features.var(dim=0)}


def windows_of_features(recipe: Recipe, order: Order) -> Iterator[Batch]:
    """What BatchNorm is given for each of the windows: tensors (b x N, 64), class after class if "sorted"."""
    before, _ = _layers()
    whole = recipe_for(recipe.effective_batch_size, 1, recipe.seed)
    for (batch,) in islice(training_windows(digits(dtype=torch.float64), whole), UPDATES):
        with torch.no_grad():
            yield (before(arranged(batch, order)[0]),)


def new_layer(momentum: float, start: Start = "new") -> nn.BatchNorm1d:
    """The BatchNorm with this momentum, and with running statistics that begin where `start` says."""
    layer = copy.deepcopy(_layers()[1])
    layer.momentum = momentum
    if start == "true":
        for name, running in running_statistics(layer).items():
            running.copy_(true_statistics()[name])
    return layer


def running_statistics(layer: nn.BatchNorm1d) -> dict[str, Tensor]:
    """The layer's running `mean` and `variance`, one value per channel: the tensors themselves."""
    assert layer.running_mean is not None and layer.running_var is not None
    return {"mean": layer.running_mean, "variance": layer.running_var}


def statistics(recipe: Recipe, momentum: float, order: Order, start: Start = "true") -> Iterator[dict[str, Any]]:
    """Three layers that see the same images: in whole windows; in micro-batches; in micro-batches, corrected.

    One row per update. `mean_whole`, `mean_plain`, `mean_corrected` and the same of `variance`: how far the running
    statistics of all channels are from those of all training images, over the length of these. `from_whole_plain`
    and `from_whole_corrected`: how far the running mean is from that of the whole windows, over the length of that.
    `weight_plain` and `weight_corrected`: how much of the running mean the newest window makes up. And `update`, from
    1, with what was chosen.
    """
    n = recipe.accumulation_steps
    momenta = {"whole": momentum, "plain": momentum, "corrected": corrected_momentum(momentum, n)}
    layers = {name: new_layer(each, start) for name, each in momenta.items()}
    chosen = {"b": recipe.micro_batch_size, "n": n, "momentum": momentum, "order": order, "start": start}
    chosen |= {f"weight_{name}": weight_of_window(momenta[name], n) for name in ("plain", "corrected")}
    for update, window in enumerate(windows_of_features(recipe, order), start=1):
        layers["whole"](window[0])
        for (part,) in split(window, recipe.micro_batch_size):
            layers["plain"](part)
            layers["corrected"](part)
        found = {name: running_statistics(layer) for name, layer in layers.items()}
        row = chosen | {"update": update}
        for name, each in found.items():
            row |= {f"{what}_{name}": _distance(each[what], true_statistics()[what]) for what in STATISTICS}
        for name in ("plain", "corrected"):
            row[f"from_whole_{name}"] = _distance(found[name]["mean"], found["whole"]["mean"])
        yield row


def _distance(one: Tensor, other: Tensor) -> float:
    """How far `one` is from `other`, over the length of `other`."""
    return float((one - other).norm() / other.norm())


def weight_of_window(momentum: float, micro_batches: int) -> float:
    """How much of the running mean the newest window makes up, measured: ones come in where there were zeros."""
    layer = nn.BatchNorm1d(1, momentum=momentum, dtype=torch.float64)
    for _ in range(micro_batches):
        layer(torch.ones(2, 1, dtype=torch.float64))
    return float(running_statistics(layer)["mean"])


class StatisticsFigure(TwoPanels):
    """How far running statistics are from the true ones, update after update. Left the mean, right the variance."""

    description: ClassVar[str] = (
        "Two panels against the number of updates: how far the running mean (left) and the running variance (right) "
        "are from those of all training images, in percent, for whole windows, for micro-batches with the same "
        "momentum, and for micro-batches with the corrected momentum."
    )
    width, height = 860, 400

    def draw_left(self, ax: Axes) -> None:
        """The running mean."""
        self._panels: dict[str, tuple[Axes, dict[str, Line2D]]] = {}
        self._draw(ax, "mean")

    def draw_right(self, ax: Axes) -> None:
        """The running variance."""
        self._draw(ax, "variance")

    def _draw(self, ax: Axes, what: str) -> None:
        ax.set(xlim=(0, UPDATES + 1), xlabel="updates", ylabel=f"from the true {what} (% of its length)")
        ax.set_title(f"Running {what}, after each update", fontsize=11)
        looks = {
            "whole": {"color": palette.RIGHT, "ls": "-", "lw": 4.0},
            "plain": {"color": palette.WRONG, "ls": "-", "lw": 1.4, "marker": "o", "ms": 5},
            "corrected": {"color": palette.BLACK, "ls": "--", "lw": 1.4, "marker": "s", "ms": 3.5},
        }
        lines = {name: ax.plot([], [], label=LAYERS[name], **look)[0] for name, look in looks.items()}  # type: ignore[arg-type]
        if what == "mean":
            ax.legend(loc="upper right", fontsize=8, frameon=False)
        self._panels[what] = (ax, lines)
        self.moves(*lines.values())

    def update(self, data: pd.DataFrame) -> str:
        """Lengthen the traces."""
        for what, (ax, lines) in self._panels.items():
            highest = 0.0
            for name, line in lines.items():
                distances = 100 * data[f"{what}_{name}"]
                line.set_data(data["update"], distances)
                highest = max(highest, distances.max())
            room = 1.5 if what == "mean" else 1.0  # the legend has the uppermost third
            self.set_limits(ax, y=(0.0, room * step_up(max(10.0, 1.02 * highest))))
        return statistics_sentence(data)


def statistics_sentence(data: pd.DataFrame) -> str:
    """What a window weighs, and how far the statistics have been from the true ones, on average over the updates."""
    first, passed = data.iloc[0], len(data)
    said = (
        f"b = {first['b']}, N = {first['n']}, momentum {first['momentum']:g}, {first['order']}: the newest window "
        f"weighs {first['weight_plain']:.2f} in the running statistics, with the corrected momentum "
        f"{first['weight_corrected']:.2f}."
    )
    if passed < UPDATES:
        return said
    began = "the true statistics" if first["start"] == "true" else "0 and 1"
    means, variances = (_averages(data, what) for what in STATISTICS)
    return (
        f"{said} From {began}, on average over {passed} updates: the running mean is {means['plain']} away from the "
        f"true one, with whole windows {means['whole']}, corrected {means['corrected']}; the running variance is "
        f"{variances['plain']} away, with whole windows {variances['whole']}, corrected {variances['corrected']}."
    )


def _averages(data: pd.DataFrame, what: str) -> dict[str, str]:
    return {name: share(data[f"{what}_{name}"].mean()) for name in LAYERS}


def share(distance: float) -> str:
    """A distance in percent.

    >>> share(0.5483), share(0.0012)
    ('55 %', '0.1 %')
    """
    return f"{100 * distance:.{0 if distance > 0.0995 else 1}f} %"


def statistics_table(data: pd.DataFrame) -> pd.DataFrame:
    """A row per layer: how far its statistics have been from the true ones, on average and at the furthest."""
    table = []
    for name, called in LAYERS.items():
        row = {"BatchNorm sees": called}
        for what in STATISTICS:
            distances = data[f"{what}_{name}"]
            row |= {f"{what}: on average": share(distances.mean()), f"{what}: furthest": share(distances.max())}
        table.append(row)
    return pd.DataFrame(table)


def explore_statistics() -> Explorer:
    """Sliders for b and N, a momentum, who shares a micro-batch, and a start; the weights stay as they are."""

    def plan(micro_batch_size: int, accumulation_steps: int, momentum: float, order: Order, start: Start) -> Run:
        recipe = recipe_for(micro_batch_size, accumulation_steps, SEED)
        recipe.check_fits(TRAIN_EXAMPLES)
        if reason := single_image_left(recipe):
            raise ValueError(f"{reason}, and one value has no variance: choose another b or N")
        return Run(lambda: statistics(recipe, momentum, order, start), UPDATES)

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 2, 64, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST_STEPS, 8),
        Choice("momentum", "Momentum m", [(f"{m:g}", m) for m in MOMENTA], 0.1),
        Choice("order", "Images of an update", ORDERS, "shuffled"),
        Choice("start", "Running statistics begin", STARTS, "true"),
    ]
    return Explorer(controls, plan, StatisticsFigure, statistics_table)
