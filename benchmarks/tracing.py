"""What a tape costs the loop that it watches."""

import time
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.row import Row, in_turns, median_row
from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.detective.trace import trace
from gradacc_lessons.tasks import Task, chat

N = 4
PAIRS = 25
MOST = 5.0
"""A tape may slow an update by so many per cent."""


def tracing(quick: bool) -> list[Row]:
    """A loop is traced.

    Updates of the chat model with AdamW and clipping, N = 4, with a tape and without one in turns, on one thread. The
    medians are over 25 pairs, of the seconds that the processor worked: what other programs do matters less to them.
    Both models see the same micro-batches, and have the same parameters at the end, to the last bit.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        task, rows = chat(), []
        for size in (4, 1):
            plain, traced = _pairs(task, split(task.train, size), 2 if quick else PAIRS)
            slower = [100 * (with_tape / without - 1) for without, with_tape in zip(plain, traced, strict=True)]
            extra = [(with_tape - without) / N for without, with_tape in zip(plain, traced, strict=True)]
            at_most = MOST if size == 4 else None
            rows.append(median_row(f"{size} x {N} examples: slower by", slower, "%", at_most=at_most))
            rows.append(median_row(f"{size} x {N} examples: more per micro-batch", extra, "ms"))
        return rows
    finally:
        torch.set_num_threads(threads)


def _pairs(task: Task, micro_batches: list[Batch], pairs: int) -> tuple[list[float], list[float]]:
    """The processor's seconds for each update without a tape, and with one. RuntimeError if the tape changed it."""
    models = {name: task.build_model() for name in ("plain", "traced")}
    updates = {name: _update(task, model, micro_batches) for name, model in models.items()}
    with trace(models["traced"], accumulation_steps=N):
        seconds = in_turns(updates, pairs)
    if not all(torch.equal(*both) for both in zip(*(model.parameters() for model in models.values()), strict=True)):
        raise RuntimeError("the traced model differs from the one without a tape")
    return seconds["plain"], seconds["traced"]


def _update(task: Task, model: nn.Module, micro_batches: list[Batch]) -> Callable[[], float]:
    """One update per call, with the micro-batches that come next."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    stream = iter(micro_batches)

    def update() -> float:
        window = [next(stream) for _ in range(N)]
        items = sum(task.count(batch) for batch in window)
        began = time.process_time()
        for batch in window:
            (task.loss_sum(model, batch) / items).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return time.process_time() - began

    return update
