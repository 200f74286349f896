"""What else could be done about memory: what each change of the recipe would buy, and what it costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.memory.binding import Binding
from gradacc_lessons.memory.checkpointing import NoBlocks
from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.recipe import Recipe

WORTH_SAYING = 0.01
"""A change that buys less than this share of the peak is not mentioned."""


@dataclass(frozen=True)
class Option:
    """One change of the recipe, at the same micro-batches."""

    name: str
    """What would be changed, as a noun: "activation checkpointing"."""
    changes: dict[str, Any]
    """The fields of the recipe."""
    peak_bytes: int
    """The predicted peak with it."""
    saved_bytes: int
    """How much lower that is."""
    price: str
    """What it costs."""

    @property
    def sentence(self) -> str:
        """What it buys and costs, in words."""
        saved = readable(self.saved_bytes)
        return f"{_capital(self.name)} would lower the peak by {saved}, to {readable(self.peak_bytes)}: {self.price}."


def options(
    forecast: Forecast, target: int, accumulation_steps: int, binding: Binding
) -> tuple[tuple[Option, ...], tuple[str, ...]]:
    """Every change that is predicted to lower this window's peak, the largest saving first.

    Also a sentence for each change with which the model cannot be followed. That a model has no blocks to checkpoint
    is none.
    """
    now = forecast.peak(target, accumulation_steps)
    found, unknown = [], []
    for name, changes, price in _changes(forecast.recipe, binding):
        forecast.tell(f"what {name} would buy")
        try:
            peak = forecast.variant(**changes).peak(target, accumulation_steps)
        except NoBlocks:
            continue
        except ValueError as error:
            unknown.append(f"What {name} would buy cannot be predicted: {error}.")
            continue
        if now - peak > WORTH_SAYING * now:
            found.append(Option(name, changes, peak, now - peak, price))
    return tuple(sorted(found, key=lambda option: -option.saved_bytes)), tuple(unknown)


def _changes(recipe: Recipe, binding: Binding) -> Iterator[tuple[str, dict[str, Any], str]]:
    if not recipe.checkpointing:
        yield "activation checkpointing", {"checkpointing": True}, "about one more forward for each micro-batch"
    if recipe.precision == "float64":
        yield "float32", {"precision": "float32"}, "7 digits instead of 16"
    if recipe.precision == "float32":
        yield "autocast", {"precision": "autocast"}, "large products are computed with the 3 digits of bfloat16"
    if recipe.optimizer in ("adam", "adamw"):
        kernel = "default" if recipe.optimizer_kernel == "fused" else recipe.optimizer_kernel
        changes = {"optimizer": "adafactor", "optimizer_kernel": kernel}
        yield "the optimizer adafactor", changes, "it trains differently, with a learning rate of its own"
    if recipe.optimizer == "momentum":
        yield "plain SGD", {"optimizer": "sgd"}, "it trains differently, without momentum"
    if binding == "update" and recipe.optimizer != "adafactor" and recipe.optimizer_kernel != "fused":
        yield (
            "the optimizer's fused kernel",
            {"optimizer_kernel": "fused"},
            "it costs nothing, and the numbers are the same to rounding",
        )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
