"""Which model with which recipe, and the peak of each: predicted, and by the allocator's own events."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from benchmarks.memory_models import SUBJECTS, Subject
from gradacc_lessons.device import seeded
from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.loop import in_precision, one_update
from gradacc_lessons.memory.predict import built, predict_peak
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import OptimizerKernel, OptimizerName, Precision, Recipe

SEED = 0
"""Shuffles which choices meet in one recipe."""
UPDATES: tuple[tuple[OptimizerName, OptimizerKernel], ...] = (
    ("sgd", "default"), ("momentum", "foreach"), ("adam", "default"), ("adamw", "for-loop"),
    ("adamw", "foreach"), ("adamw", "fused"), ("adafactor", "for-loop"), ("adafactor", "foreach"),
)  # fmt: skip
PRECISIONS: tuple[Precision, ...] = ("float32",) * 4 + ("autocast",) * 2 + ("bfloat16",) * 2
STEPS = (1, 1, 1, 2, 2, 3, 3, 4)
YES_OR_NO = (True, False) * 4
SMALLER_IN_HALVES = 4
"""Products in bfloat16 take very long on most processors, so their batches are smaller by this."""


@dataclass(frozen=True)
class Case:
    """One model trained by one recipe."""

    model: str
    """The name of the model."""
    recipe: Recipe
    """How it is trained."""

    def __str__(self) -> str:
        r = self.recipe
        chosen = [f"b={r.micro_batch_size}", f"N={r.accumulation_steps}", r.optimizer, r.optimizer_kernel, r.precision]
        extra = {"checkpointing": r.checkpointing, "clipping": r.max_norm, "gradients kept": not r.set_to_none}
        return f"{self.model}: {' '.join(chosen)}{''.join(f', {name}' for name, on in extra.items() if on)}"


def cases() -> Iterator[Case]:
    """Eight recipes for each model. Every choice comes in its share for every model; which ones meet is drawn."""
    order = random.Random(SEED)
    for name, subject in SUBJECTS.items():
        given = (UPDATES, PRECISIONS, STEPS, *[YES_OR_NO] * 4)
        columns: list[list[Any]] = [order.sample(values, len(values)) for values in given]
        for row in zip(*columns, strict=True):
            yield Case(name, _recipe(subject(), *row))


def _recipe(
    subject: Subject,
    update: tuple[OptimizerName, OptimizerKernel],
    precision: Precision,
    steps: int,
    large: bool,
    again: bool,
    clipped: bool,
    freed: bool,
) -> Recipe:
    size = subject.large // (SMALLER_IN_HALVES if precision == "bfloat16" else 1)
    return Recipe(
        micro_batch_size=max(1, size) if large else 1,
        accumulation_steps=steps,
        optimizer=update[0],
        optimizer_kernel=update[1],
        learning_rate=1e-3,
        precision=precision,
        checkpointing=again and subject.blocks,
        max_norm=1.0 if clipped else None,
        set_to_none=freed,
    )


def measured(subject: Subject, recipe: Recipe, device: str = "cpu") -> int:
    """The peak of the second window: by the CPU allocator's own events, or by CUDA's own counter."""
    with seeded(recipe.seed):
        model = built(subject.build_model, recipe).to(device)
        optimizer = make_optimizer(model, recipe)
        real = [
            in_precision(subject.make_batch(recipe.micro_batch_size), recipe) for _ in range(recipe.accumulation_steps)
        ]
        window = tree_map_only(Tensor, lambda tensor: tensor.to(device), real)

        def update() -> None:
            one_update(model, optimizer, window, subject.loss_fn, recipe)

        update()
        if device == "cpu":
            return allocator_peak(update, bytes_in_use(model, optimizer, window))
        torch.cuda.reset_peak_memory_stats()
        update()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()


def predicted(subject: Subject, recipe: Recipe) -> int:
    """The same, without running it."""
    return predict_peak(subject.build_model, subject.loss_fn, subject.make_batch, recipe).peak_bytes
