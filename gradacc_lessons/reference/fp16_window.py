"""A window in float16: every micro-batch scaled, and then one unscale, one clip, one step and one update."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim.optimizer import Optimizer

from gradacc_lessons.accumulation import Batch


def fp16_window(
    model: nn.Module,
    optimizer: Optimizer,
    scaler: GradScaler,
    window: Iterable[Batch],
    loss_sum: Callable[[nn.Module, Batch], Tensor],
    count: Callable[[Batch], int],
    max_norm: float = float("inf"),
) -> tuple[float, bool]:
    """Run one window with float16 autocast and make its update; weights and `.grad` stay float32.

    `window`, `loss_sum` and `count` are those of `accumulate`. `scaler` is a GradScaler for the device that the model
    is on, such as `GradScaler("cpu")`; `max_norm` is what the true gradient, unscaled, is clipped to.

    ValueError if the window holds no micro-batch.

    Returns the window's mean loss per item, and whether there was an update. There is none if anything in the window
    overflowed: then weights and optimizer state stay as they were, the scale is halved, and the schedule must not move
    either. `.grad` is empty afterwards in both cases.
    """
    window = list(window)
    if not window:
        raise ValueError("a window needs at least 1 micro-batch: there is no gradient to unscale")
    items = max(sum(count(batch) for batch in window), 1)
    device = next(model.parameters()).device
    total = torch.zeros((), device=device)
    for batch in window:
        with torch.autocast(device.type, dtype=torch.float16):
            loss = loss_sum(model, batch) / items
        scaler.scale(loss).backward()  # adds scaled gradients: the scale is the same in the whole window
        total += loss.detach()
    scaler.unscale_(optimizer)  # once, and before anything looks at the gradient
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scale = scaler.get_scale()
    scaler.step(optimizer)  # skipped if unscale_ met an inf or a NaN
    scaler.update()  # halves the scale then; doubles it after many windows without
    optimizer.zero_grad()  # also after a skipped update: an inf that stays poisons the next window
    return float(total), scaler.get_scale() >= scale
