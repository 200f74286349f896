"""The stored accuracies of lesson 05: every norm, every cut, several seeds. `make norms` measures them anew."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from gradacc_lessons.lessons.norms import (
    EFFECTIVE_BATCH,
    EPOCHS,
    EPOCHS_BEFORE_GRADIENTS,
    LEARNING_RATE,
    Order,
    accuracies,
    gradient_errors,
    in_words,
    recipe_for,
    refused,
)
from gradacc_lessons.tasks import digits
from gradacc_lessons.tasks.digits import NORM_NAMES, DigitsModel, DigitsNorm

FILE = Path(__file__).with_name("norm_accuracies.json")
CUTS = (64, 8, 2, 1)
"""The micro-batch sizes of the table; N makes each up to 64 examples per update."""
SEEDS = range(8)
MADE_WITH = {"epochs": EPOCHS, "learning_rate": LEARNING_RATE, "effective_batch": EFFECTIVE_BATCH}
"""What the runs of the table have in common; a table made otherwise is refused."""


@dataclass(frozen=True)
class Cell:
    """The runs of one model, norm, order and cut."""

    model: DigitsModel
    """The CNN or the MLP."""
    norm: DigitsNorm
    """Which norm is in it."""
    order: Order
    """How the examples of an update were laid out."""
    micro_batch_size: int
    """b; N is 64 / b."""

    def run(self, seed: int) -> tuple[float, float] | None:
        """Train once, in float32 on the CPU: (accuracy, accuracy as trained) after the last epoch.

        None where PyTorch refuses: BatchNorm with one value per channel.
        """
        if refused(self.model, self.norm, self.micro_batch_size):
            return None
        recipe = recipe_for(self.micro_batch_size, EFFECTIVE_BATCH // self.micro_batch_size, seed)
        *_, last = accuracies(digits(self.model, norm=self.norm), recipe, self.order)
        return last["accuracy"], last["as_trained"]


@cache
def stored() -> dict[str, Any]:
    """The file: `machine`, `minutes`, `seeds`, `made_with`, and `cells` with the accuracies of every seed.

    ValueError if it was made with other settings than the lesson has now.
    """
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    if content["made_with"] != MADE_WITH:
        raise ValueError(f"{FILE.name} was made with other settings: run `make norms`")
    return content


@dataclass(frozen=True)
class Spread:
    """What the seeds of one cell gave, as shares of the test images."""

    values: tuple[float, ...]
    """One per seed."""

    @property
    def mean(self) -> float:
        """Their mean."""
        return statistics.mean(self.values)

    @property
    def percent(self) -> float:
        """The mean in percent, as it is shown: differences are taken of these, so that a reader can check them."""
        return round(100 * self.mean, 1)

    @property
    def shown(self) -> str:
        """Mean ± standard deviation, in percent."""
        return f"{self.percent:.1f} ± {100 * statistics.stdev(self.values):.1f} %"


Measure = Literal["accuracy", "as_trained"]
"""In evaluation mode, or in training mode with images cut as they were in training."""


def summary(model: DigitsModel, norm: DigitsNorm, order: Order, what: Measure = "accuracy") -> dict[int, Spread]:
    """By micro-batch size, from large to small. Cuts that PyTorch refuses are not in it."""
    wanted = {"model": model, "norm": norm, "order": order}
    cells = [cell for cell in stored()["cells"] if wanted.items() <= cell.items() and cell[what]]
    return {cell["micro_batch_size"]: Spread(tuple(cell[what])) for cell in cells}


def accuracy_table(model: DigitsModel) -> pd.DataFrame:
    """Each norm against itself: a row per norm and order, a column per cut, mean ± standard deviation over seeds."""
    rows = []
    for norm, name in NORM_NAMES.items():
        for order in get_args(Order):
            cells = summary(model, norm, order)
            shown = {cut_name(b): cells[b].shown if b in cells else "refused" for b in CUTS}
            rows.append({"norm": name, "updates": order} | shown)
    return pd.DataFrame(rows)


def cut_name(micro_batch_size: int) -> str:
    """b x N, as in 8 x 8."""
    return f"{micro_batch_size} x {EFFECTIVE_BATCH // micro_batch_size}"


def gap_table(model: DigitsModel, norms: Sequence[DigitsNorm]) -> pd.DataFrame:
    """Shuffled and sorted runs, evaluated as they were trained and in evaluation mode: means over the seeds."""
    rows = []
    for norm in norms:
        for order in get_args(Order):
            used, trained = summary(model, norm, order), summary(model, norm, order, "as_trained")
            for b in used:
                where = {"norm": NORM_NAMES[norm], "updates": order, "b x N": cut_name(b)}
                shown = {"as trained": trained[b], "evaluation mode": used[b]}
                rows.append(where | {name: f"{spread.percent:.1f} %" for name, spread in shown.items()})
    return pd.DataFrame(rows)


def decision_table(model: DigitsModel, b: int = 2) -> pd.DataFrame:
    """What speaks for each norm at one cut: its gradient, its accuracy beside that of 64 x 1, and its two modes.

    The gradient is measured when this is called, which trains each norm for three epochs; the rest is stored.
    """
    rows = []
    for norm, name in NORM_NAMES.items():
        errors = gradient_errors(model, norm, EPOCHS_BEFORE_GRADIENTS, recipe_for(b, EFFECTIVE_BATCH // b), "shuffled")
        error = next(row["error"] for row in errors if row["micro_batch_size"] == b)
        shuffled, ordered = (summary(model, norm, order) for order in get_args(Order))
        trained = summary(model, norm, "shuffled", "as_trained")
        rows.append(
            {
                "norm": name,
                f"gradient error at {cut_name(b)}": in_words(error),
                "accuracy, shuffled": points(shuffled[b], shuffled[EFFECTIVE_BATCH]),
                "accuracy, sorted": points(ordered[b], ordered[EFFECTIVE_BATCH]),
                "evaluation - as trained, shuffled": points(shuffled[b], trained[b]),
            }
        )
    return pd.DataFrame(rows)


def points(one: Spread, other: Spread) -> str:
    """How much higher `one` is, in percent points with one decimal; without a sign where it is nothing.

    >>> points(Spread((0.656,)), Spread((0.878,))), points(Spread((0.9,)), Spread((0.9,)))
    ('-22.2 points', '0.0 points')
    """
    difference = round(one.percent - other.percent, 1)
    return f"{difference:+.1f} points" if difference else "0.0 points"
