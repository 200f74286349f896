"""Numbers that several exhibits give."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch
from gradacc_lessons.museum.scene import Loop, Scene


def flat_gradient(model: nn.Module) -> Tensor:
    """All gradients as one vector; what has none counts as zeros."""
    each = [torch.zeros_like(p) if p.grad is None else p.grad.detach() for p in model.parameters()]
    return torch.cat([gradient.flatten() for gradient in each])


@contextmanager
def updates_of(scene: Scene) -> Iterator[list[Tensor]]:
    """The gradient that each update within the block applies."""
    applied: list[Tensor] = []
    hook = scene.optimizer.register_step_pre_hook(lambda *_: applied.append(flat_gradient(scene.model)))
    try:
        yield applied
    finally:
        hook.remove()


def gradients_applied(scene: Scene, loop: Loop, epochs: int = 1) -> list[Tensor]:
    """The gradient of every update that the loop makes."""
    with updates_of(scene) as applied:
        scene.run(loop, epochs)
    return applied


def whole_gradient(scene: Scene, first: int = 0, last: int | None = None) -> Tensor:
    """The gradient of these micro-batches in one batch, at the parameters as they are."""
    batches = scene.micro_batches[first : scene.accumulation_steps if last is None else last]
    whole: Batch = tuple(torch.cat(tensors) for tensors in zip(*batches, strict=True))
    loss = scene.loss_fn(scene.model, whole)
    gradients = torch.autograd.grad(loss, list(scene.model.parameters()))
    return torch.cat([gradient.flatten() for gradient in gradients])


def first_length(scene: Scene, loop: Loop) -> float:
    """How long the first gradient that is applied is, as a multiple of the whole window's."""
    right = whole_gradient(scene)
    return float(gradients_applied(scene, loop)[0].norm() / right.norm())


def first_error(scene: Scene, loop: Loop) -> float:
    """How far the first gradient that is applied is from the whole window's, as a share of that one's length."""
    right = whole_gradient(scene)
    return float((gradients_applied(scene, loop)[0] - right).norm() / right.norm())


def lengths(scene: Scene, loop: Loop, epochs: int = 1) -> list[int]:
    """How many losses the loop takes before each update."""
    taken, found, loss_fn = 0, list[int](), scene.loss_fn

    def counting(model: nn.Module, batch: Batch) -> Tensor:
        nonlocal taken
        taken += 1
        return loss_fn(model, batch)

    def before_update(*_: Any) -> None:
        nonlocal taken
        found.append(taken)
        taken = 0

    hook = scene.optimizer.register_step_pre_hook(before_update)
    try:
        replace(scene, loss_fn=counting).run(loop, epochs)
    finally:
        hook.remove()
    return found


def gradient_error(parts: tuple[Any, ...], micro_batch_size: int) -> float:
    """How far the gradient of micro-batches is from the whole batch's, as a share of that one's length.

    `parts` are (model, loss_fn, batch) or (model, loss_fn, batch, count): each micro-batch counts the same, or as
    `count` says.
    """
    model, loss_fn, batch = parts[:3]
    count: Callable[[Any], float] = parts[3] if len(parts) > 3 and parts[3] else lambda piece: 1.0
    pieces = list(zip(*(tensor.split(micro_batch_size) for tensor in batch), strict=True))
    total = sum(count(piece) for piece in pieces)
    whole = _gradient(model, loss_fn(model, batch))
    added = torch.stack([_gradient(model, loss_fn(model, p) * (count(p) / total)) for p in pieces]).sum(0)
    return float((added - whole).norm() / whole.norm())


def _gradient(model: nn.Module, loss: Tensor) -> Tensor:
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([gradient.flatten() for gradient in gradients])
