"""Windows of the chat model on the CPU: their peaks, measured and predicted, each one only once; and their times."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from threading import RLock
from time import thread_time
from typing import Literal, get_args

import torch

from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.loop import bring_state_into_being, one_update
from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.predict import built
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

TURNS_BY_LINE = 3
"""So often a search for the largest b that fits goes by a line."""
ONE_AT_A_TIME = RLock()
"""Explorers measure and predict, each in a thread of its own, and the forecasts are shared."""


def recipe_for(optimizer: str, micro_batch_size: int, accumulation_steps: int) -> Recipe:
    """The recipe of an optimizer in the list, with this b and N."""
    return replace(OPTIMIZERS[optimizer], micro_batch_size=micro_batch_size, accumulation_steps=accumulation_steps)


def check_window(recipe: Recipe, most: int, to_do: str) -> None:
    """ValueError, in a sentence, for a window of more than `most` examples, which take long `to_do`."""
    b, n = recipe.micro_batch_size, recipe.accumulation_steps
    if b * n > most:
        raise ValueError(
            f"{b} x {n} = {b * n} examples per update take long {to_do}: "
            f"choose b and N so that there are at most {most}"
        )


def shorter(task: Task, length: int) -> Task:
    """The same task on the first `length` tokens of each sequence; the model stays as it is."""
    train, test = (tuple(tensor[:, :length] for tensor in batch) for batch in (task.train, task.test))
    return replace(task, train=train, test=test)


class Window:
    """One window of the chat model after its first update, which can be run again and again."""

    def __init__(self, length: Length, recipe: Recipe) -> None:
        self._task, self._recipe = _task(length), recipe
        self._model = built(lambda: self._task.build_model(recipe.seed), recipe)
        self._optimizer = make_optimizer(self._model, recipe)
        bring_state_into_being(self._optimizer, recipe)
        self._batches = [self._task.make_batch(recipe.micro_batch_size) for _ in range(recipe.accumulation_steps)]

    def run(self, micro_batches: int | None = None) -> None:
        """The first so many micro-batches, or all of them: forward and backward of each, and the update."""
        batches = self._batches[:micro_batches]
        one_update(self._model, self._optimizer, batches, self._task.loss_fn, self._recipe)

    def profile(self, micro_batches: int | None = None) -> MemoryProfile:
        """The memory of such a run, as measured; the batches of the whole window are there. The
        third and later micro-batches repeat the second."""
        run = partial(self.run, micro_batches)
        return measure_peak(run, model=self._model, optimizer=self._optimizer, inputs=self._batches)

    def seconds(self) -> float:
        """How long a run keeps one core busy. What other programs do meanwhile does not count."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # this thread's clock sees no other one
        try:
            start = thread_time()
            self.run()
            return thread_time() - start
        finally:
            torch.set_num_threads(threads)


def measured(length: Length, recipe: Recipe) -> MemoryProfile:
    """The memory of one window that really runs, after the first update."""
    with ONE_AT_A_TIME:
        return _measured(length, recipe)


def predicted(length: Length, recipe: Recipe) -> MemoryProfile:
    """The memory of the same window, predicted without running it."""
    with ONE_AT_A_TIME:
        return forecast(length, recipe).profile(recipe.effective_batch_size, recipe.accumulation_steps)


def forecast(length: Length, recipe: Recipe) -> Forecast:
    """What is known about windows of every shape; b and N of the recipe are not looked at. To be used one at a time."""
    return _forecast(length, replace(recipe, micro_batch_size=1, accumulation_steps=1))


def largest_that_fits(length: Length, recipe: Recipe, budget_bytes: int, most: int) -> int:
    """The largest micro-batch, up to `most`, whose predicted peak is within the budget at the recipe's N; 0 if none."""
    return largest_within(
        lambda size: predicted(length, replace(recipe, micro_batch_size=size)).peak_bytes, budget_bytes, most
    )


def largest_within(peak: Callable[[int], int], budget_bytes: int, most: int) -> int:
    """The largest size from 1 to `most` with a peak within the budget; 0 if there is none. Peaks rise with the size.

    Between one that fits and one that does not, the peak is nearly a line: what it says and the next size are tried.
    Where a knee holds that up, the gap is halved.
    """
    if peak(1) > budget_bytes:
        return 0
    if peak(most) <= budget_bytes:
        return most
    fitting, too_large, turn = 1, most, 0
    while too_large - fitting > 1:
        share = (budget_bytes - peak(fitting)) / (peak(too_large) - peak(fitting)) if turn < TURNS_BY_LINE else 0.5
        size = min(max(fitting + int(share * (too_large - fitting)), fitting + 1), too_large - 1)
        if peak(size) > budget_bytes:
            too_large = size
        elif peak(size + 1) > budget_bytes:
            return size
        else:
            fitting = size + 1
        turn += 1
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
    return Window(length, recipe).profile()
