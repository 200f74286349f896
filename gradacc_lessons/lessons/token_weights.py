"""Lesson 04: what one token weighs when a window's micro-batches hold different numbers of tokens.

Everything here is float64 on the CPU, because that weighting by tokens is right is an equality.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.device import seeded
from gradacc_lessons.lessons.scale import gradient_of_full_batch
from gradacc_lessons.lessons.token_weights_figure import WeightFigure, weight_table
from gradacc_lessons.lessons.training import gradient, train, training_windows
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task, chat
from gradacc_lessons.tasks.chat import IGNORED, VOCABULARY, ChatModel, count_tokens, token_loss_sum
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Prediction, Run

Weighting = Literal["means", "examples", "tokens"]
WEIGHTINGS: list[tuple[str, Weighting]] = [
    ("equally (mean of means)", "means"),
    ("by their examples", "examples"),
    ("by their tokens", "tokens"),
]
SEEDS = range(1, 21)
"""One window each: twenty, so that what is said of them is a tendency and not one window's luck."""
WARM_UP = 60
"""Updates after which the model has learned which bytes are frequent, and gradients point in many directions."""
MOST_EXAMPLES = 128
"""In a window; twenty of them take about half a minute on one core."""
RANDOM_LENGTHS = (1, 3, 10, 50)


@cache
def small_chat() -> Task:
    """The chat task with a model of 25,056 parameters, in float64."""
    return chat(width=32, layers=1, heads=2, dtype=torch.float64)


def after(updates: int) -> nn.Module:
    """A copy of the chat model after so many updates on 8 conversations each, with Adam."""
    return deepcopy(_trained(updates))


@cache
def _trained(updates: int) -> nn.Module:
    recipe = Recipe(8, 1, optimizer="adam", learning_rate=0.005, precision="float64")
    model = small_chat().build_model()
    for row in train(small_chat(), recipe, updates):
        model = row["model"]
    return model


def random_tokens(lengths: Sequence[int] = RANDOM_LENGTHS, seed: int = 0) -> Task:
    """Sequences of random tokens, each with `lengths[k]` labels and then padding, and a small model of their own."""
    longest = max(lengths)
    draw = torch.Generator().manual_seed(seed)
    text = torch.randint(1, VOCABULARY, (len(lengths), longest + 1), generator=draw)
    counted = torch.arange(longest) < torch.tensor(lengths)[:, None]
    batch = (text[:, :-1], text[:, 1:].masked_fill(~counted, IGNORED))

    def new_model(seed: int) -> nn.Module:
        with seeded(seed):
            return ChatModel(longest, 32, 1, 2).double()

    return Task("random tokens", batch, batch, new_model, token_loss_sum, count_tokens)


def shares(weighting: Weighting, window: list[Batch], task: Task) -> list[float]:
    """What each micro-batch's mean loss is multiplied by; they add up to 1."""
    sizes = {
        "means": [1 for _ in window],
        "examples": [len(batch[0]) for batch in window],
        "tokens": [task.count(batch) for batch in window],
    }[weighting]
    return [size / sum(sizes) for size in sizes]


def weighted_gradient(model: nn.Module, window: list[Batch], task: Task, weighting: Weighting) -> Tensor:
    """What a loop that weights so leaves in `.grad`, as one vector (parameters,)."""
    model.zero_grad()
    for batch, share in zip(window, shares(weighting, window, task), strict=True):
        torch.autograd.backward(task.loss_fn(model, batch) * share)
    return gradient(model)


def compare(model: nn.Module, window: list[Batch], task: Task, weighting: Weighting) -> dict[str, Any]:
    """A weighted window beside the same examples in one batch.

    `tokens` in each micro-batch and `weights`, what one token of it weighs in units of the right weight, are arrays
    (N,); `relative_error` (norm of the difference over the full gradient's norm) and `cosine` are of the gradients.
    """
    full = gradient_of_full_batch(model, window, task)
    weighted = weighted_gradient(model, window, task, weighting)
    tokens = np.array([task.count(batch) for batch in window], dtype=float)
    return {
        "tokens": tokens,
        "weights": np.array(shares(weighting, window, task)) * tokens.sum() / tokens,
        "relative_error": float((weighted - full).norm() / full.norm()),
        "cosine": float(torch.nn.functional.cosine_similarity(weighted, full, dim=0)),
    }


def over_windows(
    recipe: Recipe, weighting: Weighting, updates: int, prediction: float | None = None
) -> Iterator[dict[str, Any]]:
    """Windows of real conversations, one row for each of SEEDS: what `compare` gives, and what was chosen."""
    task, model = small_chat(), after(updates)
    chosen = {
        "micro_batch_size": recipe.micro_batch_size,
        "accumulation_steps": recipe.accumulation_steps,
        "weighting": weighting,
        "updates": updates,
        "prediction": prediction,
    }
    for seed in SEEDS:
        drawn = Recipe(recipe.micro_batch_size, recipe.accumulation_steps, seed=seed)
        window = next(training_windows(task, drawn))
        yield chosen | {"seed": seed} | compare(model, window, task, weighting)


def over_random_tokens(weighting: Weighting, lengths: Sequence[int] = RANDOM_LENGTHS) -> Iterator[dict[str, Any]]:
    """Sequences of so many random tokens, each a micro-batch of its own; one row for each of SEEDS.

    Beside what `compare` gives, `towards` (N,): the cosines of the weighted gradient with each micro-batch's own.
    """
    for seed in SEEDS:
        task = random_tokens(lengths, seed)
        model, window = task.build_model(seed), split(task.train, 1)
        weighted = weighted_gradient(model, window, task, weighting)
        own = [gradient_of_full_batch(model, [batch], task) for batch in window]
        towards = torch.nn.functional.cosine_similarity(weighted, torch.stack(own))
        yield {"seed": seed, "towards": towards.numpy()} | compare(model, window, task, weighting)


def explore_weights(prediction: Prediction | None = None) -> Explorer:
    """Sliders for b and N, a choice of weighting, and how far the gradient of twenty windows is off.

    `prediction()` is the median error in % that the learner expects of a mean of means at b = 1 and N = 8.
    """

    def plan(micro_batch_size: int, accumulation_steps: int, weighting: Any, updates: int) -> Run:
        recipe = Recipe(micro_batch_size, accumulation_steps, precision="float64")
        if recipe.effective_batch_size > MOST_EXAMPLES:
            raise ValueError(
                f"{micro_batch_size} x {accumulation_steps} = {recipe.effective_batch_size} conversations per window, "
                f"and twenty such windows take long: choose at most {MOST_EXAMPLES}"
            )
        guess = prediction() if prediction else None
        return Run(lambda: over_windows(recipe, weighting, updates, guess), len(SEEDS), "window")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 16, 1),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 16, 8),
        Choice("weighting", "Micro-batches weigh", WEIGHTINGS, "means"),
        Choice("updates", "The model", [(f"after {WARM_UP} updates", WARM_UP), ("untrained", 0)], WARM_UP),
    ]
    return Explorer(controls, plan, WeightFigure, weight_table, prediction)
