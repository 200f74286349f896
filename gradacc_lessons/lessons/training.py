"""The experiment that most lessons run: train a task as a recipe says, one row per update."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch, accumulate, split, windows
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task

if TYPE_CHECKING:
    import pandas as pd


def train(task: Task, recipe: Recipe, updates: int) -> Iterator[dict[str, Any]]:
    """Train for `updates` optimizer updates, epoch after epoch, in the task's dtype and on its device.

    What a recipe says about memory alone (`precision`, `checkpointing`, `set_to_none`) is for the memory room.

    Each row: `update` (from 1), `examples` seen so far, `loss` (the window's mean loss per item, before the
    update), `gradient_norm` (before clipping), and `model`, the model being trained, which goes on changing.
    """
    model = task.build_model(recipe.seed)
    optimizer = make_optimizer(model, recipe)
    stream = training_windows(task, recipe)
    examples = 0
    for update in range(1, updates + 1):
        window = next(stream)
        loss = add_gradient(model, window, task, recipe)
        norm = float(gradient(model).norm())
        if recipe.max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), recipe.max_norm)
        optimizer.step()
        optimizer.zero_grad()
        examples += sum(len(batch[0]) for batch in window)
        yield {"update": update, "examples": examples, "loss": loss, "gradient_norm": norm, "model": model}


def add_gradient(model: nn.Module, window: list[Batch], task: Task, recipe: Recipe) -> float:
    """Add one window's gradient to `.grad`, with the recipe's loss scaling; returns the mean loss per item.

    Only "mean" is right. The others do what people do: backward on each mean loss, over the wrong divisor.
    """
    if recipe.loss_scaling == "mean":
        return accumulate(model, window, task.loss_sum, task.count)
    total = 0.0
    for position, batch in enumerate(window):
        loss = task.loss_fn(model, batch)
        torch.autograd.backward(loss / recipe.divisor(position))
        total += float(loss.detach()) * task.count(batch)
    return total / sum(task.count(batch) for batch in window)


def training_windows(task: Task, recipe: Recipe) -> Iterator[list[Batch]]:
    """The windows of epoch after epoch, without end.

    Each epoch is shuffled by a generator of its own, seeded by the recipe, and then cut: two recipes with the
    same effective batch see the same examples in the same update, however they cut them.
    """
    generator = torch.Generator().manual_seed(recipe.seed)
    while True:
        order = torch.randperm(task.examples, generator=generator).to(task.train[0].device)
        epoch = tuple(tensor[order] for tensor in task.train)
        yield from windows(split(epoch, recipe.micro_batch_size), recipe.accumulation_steps)


def gradient(model: nn.Module) -> Tensor:
    """All gradients of the model as one vector; what has none counts as zeros."""
    return torch.cat([_flat(p, p.grad) for p in model.parameters()])


def parameters(model: nn.Module) -> Tensor:
    """A copy of all parameters as one vector."""
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def _flat(parameter: Tensor, grad: Tensor | None) -> Tensor:
    return torch.zeros_like(parameter).flatten() if grad is None else grad.detach().flatten()


def collect(rows: Iterable[dict[str, Any]]) -> "pd.DataFrame":
    """Run an experiment to its end; its rows as a DataFrame."""
    import pandas as pd  # here: the checking process takes `gradient` alone, anew for each answer

    return pd.DataFrame(list(rows))
