"""The torch optimizers that a recipe names."""

from typing import Any

import torch
from torch import nn

from gradacc_lessons.recipe import Recipe

MOMENTUM = 0.9


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The optimizer that the recipe names, over the parameters that are trained."""
    options: dict[str, Any] = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
    if recipe.optimizer_kernel in ("foreach", "for-loop"):
        options["foreach"] = recipe.optimizer_kernel == "foreach"
    elif recipe.optimizer_kernel == "fused":
        options["fused"] = True
    trained = [p for p in model.parameters() if p.requires_grad]
    if recipe.optimizer == "adam":
        return torch.optim.Adam(trained, eps=recipe.eps, **options)
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(trained, eps=recipe.eps, **options)
    if recipe.optimizer == "adafactor":
        return torch.optim.Adafactor(trained, **options)
    return torch.optim.SGD(trained, momentum=MOMENTUM if recipe.optimizer == "momentum" else 0.0, **options)
