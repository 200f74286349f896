"""Lesson 08's second explorer: windows in float16 with a GradScaler, one of them with a broken image in it."""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from gradacc_lessons.accumulation import Batch, accumulate, split, windows
from gradacc_lessons.device import best_device
from gradacc_lessons.lessons.scaler_figure import ScalerFigure, scaler_table
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.fp16_window import fp16_window
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Run

Loop = Literal["right", "zeroed_if_updated", "unguarded", "clipped_scaled", "left_out"]
LOOPS: list[tuple[str, Loop]] = [
    ("right: one unscale_, clip, step, update, zero_grad", "right"),
    ("zero_grad only if there was an update", "zeroed_if_updated"),
    ("optimizer.step() in place of scaler.step()", "unguarded"),
    ("clip before unscale_", "clipped_scaled"),
    ("a broken micro-batch left out, still divided by N", "left_out"),
]
WINDOWS = 8
FIRST_SCALE, GROWTH_INTERVAL = 2.0**16, 3
"""The scale that torch begins with, and after how many good windows it is doubled: torch waits for 2,000."""
BROKEN = 1e6
"""What the pixels of the broken image are multiplied by: float32 holds that, float16 ends at 65,504."""
LEARNING_RATE, MAX_NORM = 0.5, 2.0
LEAST_EXAMPLES, MOST_EXAMPLES, LEAST_STEPS, MOST_STEPS = 4, 32, 2, 16
"""The ends of the sliders."""


def run_window(
    loop: Loop, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: GradScaler, window: list[Batch], task: Task
) -> None:
    """One window, right or with one of the mistakes in LOOPS; its micro-batches are equally large.

    ValueError for a loop that is not in the list.
    """
    if loop not in (known := [each for _, each in LOOPS]):
        raise ValueError(f"the loop must be one of {', '.join(known)}; it is {loop!r}")
    if loop == "right":
        fp16_window(model, optimizer, scaler, window, task.loss_sum, task.count, MAX_NORM)
        return
    for batch in window:
        with torch.autocast(batch[0].device.type, dtype=torch.float16):
            loss = task.loss_fn(model, batch) / len(window)
        if loop == "left_out" and not loss.isfinite():
            continue
        scaler.scale(loss).backward()
    if loop != "clipped_scaled":  # scaler.step unscales where nobody has
        scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    scale = scaler.get_scale()
    if loop == "unguarded":
        optimizer.step()
    else:
        scaler.step(optimizer)
    scaler.update()
    if loop != "zeroed_if_updated" or scaler.get_scale() >= scale:
        optimizer.zero_grad()


def _check_place(accumulation_steps: int, broken: int) -> None:
    if not 0 <= broken <= WINDOWS * accumulation_steps:
        raise ValueError(
            f"{WINDOWS} windows of N = {accumulation_steps} have {WINDOWS * accumulation_steps} micro-batches, so none "
            f"is number {broken}"
        )


def windows_with_a_broken_image(task: Task, micro_batch_size: int, accumulation_steps: int, broken: int) -> Any:
    """WINDOWS full windows in the order of the data; image 1 of micro-batch `broken` (from 1; 0 for none) is broken.

    ValueError if there is no such micro-batch.
    """
    _check_place(accumulation_steps, broken)
    rows = torch.arange(WINDOWS * accumulation_steps * micro_batch_size, device=task.train[0].device) % task.examples
    images, labels = (tensor[rows] for tensor in task.train)
    if broken:
        images[(broken - 1) * micro_batch_size] *= BROKEN
    return windows(split((images, labels), micro_batch_size), accumulation_steps)


def scaled_training(
    loop: Loop, micro_batch_size: int, accumulation_steps: int, broken: int, device: torch.device | str | None = None
) -> Iterator[dict[str, Any]]:
    """Train the digits MLP for WINDOWS windows in float16. Beside each stands the float32 update from the same weights,
    without the broken window, or, where the loop does so, without the broken micro-batch.

    One row per window: `window` (from 1); `scale` in it; `updated`, whether the weights moved; `length`, that of the
    gradient which the update applied (0 for none, NaN if the weights became NaN), and `right`, that in float32; `off`,
    their distance over the float32 one's length (some percent where float16 puts a ReLU on the other side of 0);
    `broken`, the window (0 for none) and `place`, the micro-batch in it;
    and what was chosen: `loop`, `b`, `n`.
    """
    device = device or best_device()
    task, n = digits("mlp", device=device), Recipe(micro_batch_size, accumulation_steps).accumulation_steps
    model, exact = task.build_model(), task.build_model()
    optimizer, exact_optimizer = (torch.optim.SGD(m.parameters(), lr=LEARNING_RATE) for m in (model, exact))
    scaler = GradScaler(torch.device(device).type, init_scale=FIRST_SCALE, growth_interval=GROWTH_INTERVAL)
    at, place = ((broken - 1) // n + 1, (broken - 1) % n + 1) if broken else (0, 0)
    chosen = {"loop": loop, "b": micro_batch_size, "n": n, "broken": at, "place": place}
    cut = windows_with_a_broken_image(task, micro_batch_size, n, broken)
    for number, window in enumerate(cut, start=1):
        scale, before = scaler.get_scale(), parameters(model)
        if bool(before.isfinite().all()):  # else it goes on from where it is
            exact.load_state_dict(model.state_dict())
        exact_before = parameters(exact)
        run_window(loop, model, optimizer, scaler, window, task)
        whole = [batch for k, batch in enumerate(window, start=1) if (number, k) != (at, place)]
        if number != at or loop == "left_out":
            accumulate(exact, whole, task.loss_sum, task.count)
            nn.utils.clip_grad_norm_(exact.parameters(), MAX_NORM)
            exact_optimizer.step()
            exact_optimizer.zero_grad()
        applied, wanted = (_applied(old, parameters(m)) for old, m in ((before, model), (exact_before, exact)))
        yield chosen | {"window": number, "scale": scale} | _compared(applied, wanted)


def _applied(before: Tensor, after: Tensor) -> Tensor:
    """The gradient that plain SGD applied between the two."""
    return (before - after).double() / LEARNING_RATE


def _compared(applied: Tensor, wanted: Tensor) -> dict[str, Any]:
    length, right = float(applied.norm()), float(wanted.norm())
    off = float((applied - wanted).norm()) / right if right else length
    return {"updated": length != 0, "length": length, "right": right, "off": off}  # NaN is not 0: that is an update


def explore_scaler(loop: Loop = "right") -> Explorer:
    """Sliders for b, N and the place of a broken image, and a list of loops."""

    def plan(micro_batch_size: int, accumulation_steps: int, broken: int, loop: Loop) -> Run:
        _check_place(accumulation_steps, broken)
        return Run(lambda: scaled_training(loop, micro_batch_size, accumulation_steps, broken), WINDOWS, "window")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", LEAST_EXAMPLES, MOST_EXAMPLES, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", LEAST_STEPS, MOST_STEPS, 4),
        NumberSlider("broken", "Broken micro-batch", 0, WINDOWS * MOST_STEPS, 10),
        Choice("loop", "The loop", LOOPS, loop),
    ]
    return Explorer(controls, plan, ScalerFigure, scaler_table)
