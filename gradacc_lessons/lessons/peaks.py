"""Peaks of one window of the chat model, measured and predicted on the CPU; each one only once."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from threading import RLock
from typing import Literal, get_args

from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.loop import bring_state_into_being, one_update
from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.profile import MemoryProfile
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task, chat

Length = Literal[32, 64, 128]
LENGTHS: tuple[Length, ...] = get_args(Length)
LONGEST: Length = 128
OPTIMIZERS = {
    "sgd": Recipe(optimizer="sgd"),
    "adamw": Recipe(optimizer="adamw", optimizer_kernel="for-loop", learning_rate=1e-3),
    "adamw_foreach": Recipe(optimizer="adamw", optimizer_kernel="foreach", learning_rate=1e-3),
}
"""The optimizers to choose from, by the names that the lists use."""
NAMES = {
    "sgd": "SGD",
    "adamw": "AdamW, one tensor at a time",
    "adamw_foreach": "AdamW, all tensors at once (foreach)",
}

# Both explorers measure and predict, each in a thread of its own, and the forecasts are shared.
_ONE_AT_A_TIME = RLock()


def recipe_for(optimizer: str, micro_batch_size: int, accumulation_steps: int) -> Recipe:
    """The recipe of an optimizer in the list, with this b and N."""
    return replace(OPTIMIZERS[optimizer], micro_batch_size=micro_batch_size, accumulation_steps=accumulation_steps)


def shorter(task: Task, length: int) -> Task:
    """The same task on the first `length` tokens of each sequence; the model stays as it is."""
    train, test = (tuple(tensor[:, :length] for tensor in batch) for batch in (task.train, task.test))
    return replace(task, train=train, test=test)


def measured(length: Length, recipe: Recipe) -> MemoryProfile:
    """The memory of one window that really runs, after the first update."""
    with _ONE_AT_A_TIME:
        return _measured(length, recipe)


def predicted(length: Length, recipe: Recipe) -> MemoryProfile:
    """The memory of the same window, predicted without running it."""
    with _ONE_AT_A_TIME:
        forecast = _forecast(length, replace(recipe, micro_batch_size=1, accumulation_steps=1))
        return forecast.profile(recipe.effective_batch_size, recipe.accumulation_steps)


def largest_that_fits(length: Length, recipe: Recipe, budget_bytes: int, most: int) -> int:
    """The largest micro-batch, up to `most`, whose predicted peak is within the budget at the recipe's N; 0 if none.

    It doubles until it does not fit, and then halves the gap.
    """

    def fits(size: int) -> bool:
        return predicted(length, replace(recipe, micro_batch_size=size)).peak_bytes <= budget_bytes

    fitting, too_large = 0, 1
    while too_large <= most and fits(too_large):
        fitting, too_large = too_large, 2 * too_large
    too_large = min(too_large, most + 1)
    while too_large - fitting > 1:
        middle = (fitting + too_large) // 2
        fitting, too_large = (middle, too_large) if fits(middle) else (fitting, middle)
    return fitting


@cache
def _task(length: Length) -> Task:
    return shorter(chat(length=LONGEST), length)


@cache
def _forecast(length: Length, recipe: Recipe) -> Forecast:
    task = _task(length)
    return Forecast(task.build_model, task.loss_fn, task.make_batch, recipe)


@cache
def _measured(length: Length, recipe: Recipe) -> MemoryProfile:
    task = _task(length)
    model = task.build_model(recipe.seed)
    optimizer = make_optimizer(model, recipe)
    bring_state_into_being(optimizer, recipe)
    window = [task.make_batch(recipe.micro_batch_size) for _ in range(recipe.accumulation_steps)]
    run: Callable[[], None] = lambda: one_update(model, optimizer, window, task.loss_fn, recipe)  # noqa: E731
    return measure_peak(run, model=model, optimizer=optimizer, inputs=window)
