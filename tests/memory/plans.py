"""Quick plans for one small model, each with wishes of its own."""

import torch
from memory.small_models import classes
from torch import nn

from gradacc_lessons.memory.plan import plan
from gradacc_lessons.recipe import Recipe

SMALL = Recipe(optimizer="adamw")


def small():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))


def examples(size):
    return torch.zeros(size, 64), torch.zeros(size, dtype=torch.long)


def planned(build=small, loss_fn=classes, make_batch=examples, recipe=SMALL, *, target=10, budget="1MiB", **wishes):
    wishes = {"verify": False, "explain": False, **wishes}
    return plan(build, loss_fn, make_batch, recipe, target_batch_size=target, budget_bytes=budget, **wishes)
