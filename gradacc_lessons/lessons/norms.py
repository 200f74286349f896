"""Lesson 05: what a norm makes of micro-batches. The gradient of a window, and the accuracy after training.

Gradients are float64 on the CPU: that GroupNorm's is the full batch's is an equality, not a tendency.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch, accumulate, split
from gradacc_lessons.lessons.rounding import ROUNDING
from gradacc_lessons.lessons.training import gradient, training_windows
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.tasks.digits import DigitsModel, DigitsNorm

Order = Literal["shuffled", "sorted"]
"""How the examples of an update are laid out before they are cut: as they come, or class after class. The update has
the same examples either way; only who shares a micro-batch changes."""
EFFECTIVE_BATCH = 64
"""Examples per update in the table and in the lesson."""
EPOCHS, EPOCHS_BEFORE_GRADIENTS = 5, 3
"""How long is trained for an accuracy, and before a gradient of trained weights is taken."""
LEARNING_RATE = 0.1
"""SGD's, the same for every norm; at 0.2 the frozen statistics already make training diverge for some seeds."""
MOST_HALVINGS = 6
"""A window is cut into at most 64 micro-batches, beside the N that was chosen."""


def recipe_for(micro_batch_size: int, accumulation_steps: int, seed: int = 0) -> Recipe:
    """The lesson's recipe: plain SGD."""
    return Recipe(micro_batch_size, accumulation_steps, learning_rate=LEARNING_RATE, seed=seed)


def refused(model: DigitsModel, norm: DigitsNorm, micro_batch_size: int) -> bool:
    """Whether BatchNorm would have a single value per channel, which PyTorch refuses in training mode.

    In the MLP an image has one value per channel, in the CNN 64 and then 16.
    """
    return model == "mlp" and norm == "batch" and micro_batch_size == 1


def arranged(batch: Batch, order: Order) -> Batch:
    """The same examples (images, labels); class after class if they are to be "sorted"."""
    if order == "shuffled":
        return batch
    at = batch[1].argsort(stable=True)
    return tuple(tensor[at] for tensor in batch)


def updates_of_epoch(model: nn.Module, task: Task, recipe: Recipe, order: Order) -> Iterator[int]:
    """Train `model` without end; each value is the number of the epoch that has just been finished, from 1."""
    optimizer = make_optimizer(model, recipe)
    whole = replace(recipe, micro_batch_size=recipe.effective_batch_size, accumulation_steps=1)
    stream, epoch = training_windows(task, whole), 0
    while True:
        for (batch,) in islice(stream, whole.updates_per_epoch(task.examples)):
            accumulate(model, split(arranged(batch, order), recipe.micro_batch_size), task.loss_sum, task.count)
            optimizer.step()
            optimizer.zero_grad()
        epoch += 1
        yield epoch


def accuracies(task: Task, recipe: Recipe, order: Order) -> Iterator[dict[str, Any]]:
    """Train for EPOCHS epochs, one row per epoch.

    `epoch` from 1; `accuracy` on the test images in evaluation mode; `as_trained`, the same in training mode, with
    the test images laid out and cut as the training images were, so that BatchNorm normalises as it did then.
    """
    model = task.build_model(recipe.seed)
    for epoch in islice(updates_of_epoch(model, task, recipe, order), EPOCHS):
        yield {
            "epoch": epoch,
            "accuracy": accuracy(model, [task.test], training=False),
            "as_trained": accuracy(model, _cut_as_trained(task, recipe, order), training=True),
        }


def _cut_as_trained(task: Task, recipe: Recipe, order: Order) -> list[Batch]:
    """Whole batches of 64 of the test images, in windows and micro-batches as in training.

    A single image that is left over is not among them: BatchNorm might refuse it.
    """
    whole = len(task.test[0]) // EFFECTIVE_BATCH * EFFECTIVE_BATCH
    windows = split(tuple(tensor[:whole] for tensor in task.test), recipe.effective_batch_size)
    parts = [part for window in windows for part in split(arranged(window, order), recipe.micro_batch_size)]
    return [part for part in parts if len(part[0]) > 1 or recipe.micro_batch_size == 1]


def accuracy(model: nn.Module, batches: list[Batch], *, training: bool) -> float:
    """The share of examples that a copy of `model` gets right, batch by batch, in training or evaluation mode.

    A copy, because a forward in training mode moves running statistics.
    """
    model = copy.deepcopy(model).train(training)
    with torch.no_grad():
        right = sum(int((model(images).argmax(dim=1) == labels).sum()) for images, labels in batches)
    return right / sum(len(labels) for _, labels in batches)


@cache
def _trained(model: DigitsModel, norm: DigitsNorm, epochs: int, seed: int) -> nn.Module:
    """The model after some epochs of whole batches of 64, in float64. It is shared: copy it before you use it."""
    task = digits(model, norm=norm, dtype=torch.float64)
    net = task.build_model(seed)
    for _ in islice(updates_of_epoch(net, task, recipe_for(EFFECTIVE_BATCH, 1, seed), "shuffled"), epochs):
        pass
    return net


def trained(model: DigitsModel, norm: DigitsNorm, epochs: int, seed: int = 0) -> nn.Module:
    """A copy of the model as it is after some epochs of whole batches of 64, in float64, in training mode."""
    return copy.deepcopy(_trained(model, norm, epochs, seed))


def window_of(task: Task, size: int, seed: int = 0) -> Batch:
    """`size` training examples, drawn in another order than the one that `seed` trains in."""
    (batch,) = next(training_windows(task, recipe_for(size, 1, seed + 1)))
    return batch


def window_gradient(model: nn.Module, task: Task, batch: Batch, micro_batch_size: int) -> Tensor:
    """What accumulation leaves in `.grad` when `batch` comes in micro-batches of this size: a vector (parameters,)."""
    model.zero_grad()
    accumulate(model, split(batch, micro_batch_size), task.loss_sum, task.count)
    return gradient(model)


def cuts(recipe: Recipe) -> list[int]:
    """Micro-batch sizes that divide the window evenly: halves of it, as far as they go, and the chosen b.

    A window of one micro-batch is among them only if it has no half.
    """
    whole = recipe.effective_batch_size
    halves = [whole // 2**k for k in range(1, MOST_HALVINGS + 1) if whole % 2**k == 0]
    return sorted({*halves, *({recipe.micro_batch_size} - {whole})}, reverse=True) or [whole]


def gradient_errors(
    model: DigitsModel, norm: DigitsNorm, epochs: int, recipe: Recipe, order: Order
) -> Iterator[dict[str, Any]]:
    """One window of b x N images, whole and in micro-batches of several sizes, after `epochs` of training.

    One row per size that PyTorch does not refuse: `norm`, `epochs`, `micro_batch_size`, `error` (the length of the
    difference from the full batch's gradient, over the length of that) and `cosine`. float64.
    """
    if refused(model, norm, recipe.effective_batch_size):
        return
    task = digits(model, norm=norm, dtype=torch.float64)
    net = trained(model, norm, epochs, recipe.seed)
    batch = arranged(window_of(task, recipe.effective_batch_size, recipe.seed), order)
    full = window_gradient(net, task, batch, recipe.effective_batch_size)
    for size in cuts(recipe):
        if not refused(model, norm, size):
            parts = window_gradient(net, task, batch, size)
            yield {
                "norm": norm,
                "epochs": epochs,
                "micro_batch_size": size,
                "error": float((parts - full).norm() / full.norm()),
                "cosine": float(torch.nn.functional.cosine_similarity(parts, full, dim=0)),
            }


def in_words(error: float) -> str:
    """A relative error: percent, or the bound of rounding."""
    return f"less than {ROUNDING:g}" if error < ROUNDING else f"{100 * error:.{0 if error > 0.095 else 1}f} %"
