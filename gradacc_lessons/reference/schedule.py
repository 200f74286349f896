"""A learning-rate schedule that is planned in updates and moves once per update: a warm-up, then a half cosine."""

import math
from functools import partial

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from gradacc_lessons.recipe import Recipe


def planned_updates(examples: int, recipe: Recipe, epochs: int) -> int:
    """How many updates so many epochs make; the short last window of each epoch is an update like the others.

    ValueError unless there is at least one example and one epoch.
    """
    if examples < 1 or epochs < 1:
        raise ValueError(f"a plan needs at least 1 example and 1 epoch, not {examples} and {epochs}")
    return epochs * recipe.updates_per_epoch(examples)


def factor(update: int, warmup_updates: int, total_updates: int) -> float:
    """What the learning rate is multiplied by in an update; the first is 0.

    It rises in equal parts, so that update `warmup_updates` - 1 is the first with all of it, and falls along half a
    cosine, so that update `total_updates` - 1, the last, still moves a little. What comes after the plan gets 0.
    """
    if update < warmup_updates:
        return (update + 1) / warmup_updates
    if update >= total_updates:
        return 0.0
    return (1 + math.cos(math.pi * (update - warmup_updates) / (total_updates - warmup_updates))) / 2


def warmup_then_cosine(optimizer: Optimizer, warmup_updates: int, total_updates: int) -> LambdaLR:
    """The scheduler of `factor`. Call its `step()` once per window, after `optimizer.step()`.

    ValueError unless the warm-up is at least 0 and shorter than the whole.
    """
    whole = isinstance(warmup_updates, int) and isinstance(total_updates, int)
    if not whole or not 0 <= warmup_updates < total_updates:
        raise ValueError(
            "a warm-up is a whole number of updates, from 0 up to fewer than the whole run; it is "
            f"{warmup_updates!r} of {total_updates!r}"
        )
    return LambdaLR(optimizer, partial(factor, warmup_updates=warmup_updates, total_updates=total_updates))
