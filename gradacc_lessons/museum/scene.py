"""What the loops of the museum run on: a real model, real data, an optimizer, and what a loop may ask for."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.tasks import Task, digits

Loop = Callable[..., Any]
N, MICRO_BATCHES, SIZE = 4, 10, 8
"""Ten micro-batches of eight examples and N = 4: two full windows and a short one."""


@dataclass
class Scene:
    """The parts that a loop is called with."""

    model: nn.Module
    """What is trained."""
    optimizer: Optimizer
    """What makes the updates."""
    micro_batches: list[Batch]
    """One epoch."""
    loss_fn: Callable[[nn.Module, Batch], Tensor]
    """The mean loss of a micro-batch, or what the model itself returns."""
    accumulation_steps: int = N
    """N."""
    offered: dict[str, Any] = field(default_factory=dict)
    """What a loop may also take by keyword: count, max_norm, scheduler, scaler, ..."""
    watch: Sequence[nn.Module] = ()
    """Modules outside the model that a tape should look at."""

    def run(self, loop: Loop, epochs: int = 1) -> None:
        """Call `loop` for each epoch, with the keywords it takes."""
        taken = inspect.signature(loop).parameters
        keywords = {name: value for name, value in self.offered.items() if name in taken}
        for _ in range(epochs):
            loop(self.model, self.optimizer, self.micro_batches, self.loss_fn, self.accumulation_steps, **keywords)


def micro_batches_of(task: Task, count: int = MICRO_BATCHES, size: int = SIZE) -> list[Batch]:
    """The first examples of a task, cut."""
    return split(tuple(tensor[: count * size] for tensor in task.train), size)


def digits_scene(
    micro_batches: int = MICRO_BATCHES, size: int = SIZE, learning_rate: float = 0.1, accumulation_steps: int = N
) -> Scene:
    """The digits' MLP in float64, with plain SGD."""
    task = digits(dtype=torch.float64)
    model = task.build_model(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    return Scene(
        model, optimizer, micro_batches_of(task, micro_batches, size), task.loss_fn, accumulation_steps,
        offered={"count": task.count},
    )  # fmt: skip
