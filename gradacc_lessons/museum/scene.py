"""What the loops of the museum run on: a real model, real data, an optimizer, and what a loop may ask for."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.tasks import Task, digits

Loop = Callable[..., Any]
N, MICRO_BATCHES, SIZE = 4, 8, 8
"""Eight micro-batches of eight examples and N = 4: two windows."""


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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, about the very bug
            for _ in range(epochs):
                loop(self.model, self.optimizer, self.micro_batches, self.loss_fn, self.accumulation_steps, **keywords)


def micro_batches_of(task: Task, count: int = MICRO_BATCHES, size: int = SIZE) -> list[Batch]:
    """The first examples of a task, cut."""
    return split(tuple(tensor[: count * size] for tensor in task.train), size)


def digits_scene(
    micro_batches: int = MICRO_BATCHES,
    size: int = SIZE,
    *,
    accumulation_steps: int = N,
    learning_rate: float = 0.1,
    dtype: torch.dtype = torch.float64,
) -> Scene:
    """The digits' MLP, with plain SGD."""
    task = digits(dtype=dtype)
    model = task.build_model(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    batches = micro_batches_of(task, micro_batches, size)
    return Scene(model, optimizer, batches, task.loss_fn, accumulation_steps, {"count": task.count})


def scaled_scene() -> Scene:
    """The digits in float32 with a GradScaler as on a GPU, on the CPU: loops take it as `scaler`."""
    scene = digits_scene(dtype=torch.float32)
    scene.offered["scaler"] = torch.amp.GradScaler("cpu")
    return scene


class WithLoss(nn.Module):
    """A model that returns its loss, as those of transformers do."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """The mean loss of a micro-batch."""
        return nn.functional.cross_entropy(self.body(images), labels)


def returning_its_loss(scene: Scene) -> Scene:
    """The same scene, with a model that returns its loss: a tape then sees by what that is multiplied."""
    model = WithLoss(scene.model)
    return replace(scene, model=model, loss_fn=lambda net, batch: net(*batch))
