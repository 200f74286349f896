"""The stored accuracies of lesson 05: every norm, every cut, several seeds. `make norms` measures them anew."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from gradacc_lessons.lessons.norms import EFFECTIVE_BATCH, EPOCHS, LEARNING_RATE, Order, accuracies, recipe_for, refused
from gradacc_lessons.tasks import digits
from gradacc_lessons.tasks.digits import DigitsModel, DigitsNorm

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
    """The file: `machine`, `made_with`, and `cells` with the accuracies of every seed.

    ValueError if it was made with other settings than the lesson has now.
    """
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    if content["made_with"] != MADE_WITH:
        raise ValueError(f"{FILE.name} was made with other settings: run `make norms`")
    return content


@cache
def runs() -> pd.DataFrame:
    """Every stored run: model, norm, order, micro_batch_size, accumulation_steps, seed, accuracy, as_trained."""
    rows = []
    for cell in stored()["cells"]:
        where = {name: cell[name] for name in ("model", "norm", "order", "micro_batch_size")}
        where["accumulation_steps"] = EFFECTIVE_BATCH // cell["micro_batch_size"]
        pairs = zip(cell["accuracy"], cell["as_trained"], strict=True)
        rows += [{**where, "seed": k, "accuracy": a, "as_trained": b} for k, (a, b) in enumerate(pairs)]
    return pd.DataFrame(rows)


def summary(model: DigitsModel, norm: DigitsNorm, order: Order, what: str = "accuracy") -> pd.DataFrame:
    """By micro-batch size, from large to small: mean, std, min, max and count over the seeds; `what` is a column.

    Cuts that PyTorch refuses are not in it.
    """
    every = runs()
    rows = every[(every["model"] == model) & (every["norm"] == norm) & (every["order"] == order)]
    table = rows.groupby("micro_batch_size")[what].agg(["mean", "std", "min", "max", "count"])
    return table.sort_index(ascending=False)
