"""What the course's loop costs beside one written by hand and beside two frameworks."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, get_args

import torch
from torch import Tensor, nn

from benchmarks.row import Row, in_turns, median_row
from gradacc_lessons import accumulate
from gradacc_lessons.accumulation import Batch, split, windows
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.tasks.digits import DigitsModel

MICRO_BATCH_SIZE, N = 8, 4
LEARNING_RATE = 0.1
Trained = tuple[nn.Module, float]
"""A model after one pass over the micro-batches, and the seconds that the pass took."""


def loops(quick: bool) -> list[Row]:
    """A micro-batch in four loops.

    One pass over micro-batches of 8 digits, N = 4, plain SGD, float32 on the CPU, data in memory: the loop written by
    hand, the course's `accumulate`, Accelerate's `accumulate()` and Lightning's Trainer with `accumulate_grad_batches`
    (without logger, checkpoints and progress bar; from its first micro-batch to its last). All end with the same
    parameters, and the time, updates included, is given per micro-batch. Models this small show what a loop adds:
    with a large model nothing of it is seen. One thread, for which they are small enough.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two threads that wait for each other on a busy machine drown what is measured
    try:
        return [row for model in get_args(DigitsModel) for row in _compare(model, quick)]
    finally:
        torch.set_num_threads(threads)


def _compare(model: DigitsModel, quick: bool) -> Iterator[Row]:
    task = digits(model)
    micro_batches = split(task.train, MICRO_BATCH_SIZE)[: 2 * N if quick else 16 * N]
    seconds = in_turns({name: _per_micro_batch(run, task, micro_batches) for name, run in CONTENDERS.items()},
                       rounds=2 if quick else 15)  # fmt: skip
    for name, values in seconds.items():
        yield median_row(f"{model.upper()}: {name}", values, "µs")
    ratios = [ours / raw for ours, raw in zip(seconds["accumulate"], seconds["by hand"], strict=True)]
    yield median_row(f"{model.upper()}: accumulate / by hand", ratios, "x")


def by_hand(task: Task, micro_batches: list[Batch]) -> Trained:
    """What people write, with the running loss that they log."""
    model, optimizer = _model_and_optimizer(task)
    began, total = time.perf_counter(), torch.zeros(())
    for position, batch in enumerate(micro_batches, start=1):
        loss = task.loss_fn(model, batch) / N
        torch.autograd.backward(loss)
        total = total + loss.detach()
        if position % N == 0:
            optimizer.step()
            optimizer.zero_grad()
    return model, time.perf_counter() - began


def with_accumulate(task: Task, micro_batches: list[Batch]) -> Trained:
    """The course's."""
    model, optimizer = _model_and_optimizer(task)
    began = time.perf_counter()
    for window in windows(micro_batches, N):
        accumulate(model, window, task.loss_sum, task.count)
        optimizer.step()
        optimizer.zero_grad()
    return model, time.perf_counter() - began


def with_accelerate(task: Task, micro_batches: list[Batch]) -> Trained:
    """Accelerate divides by N and holds back the optimizer by itself."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=N)
    model, optimizer = accelerator.prepare(*_model_and_optimizer(task))
    began = time.perf_counter()
    for batch in micro_batches:
        with accelerator.accumulate(model):
            accelerator.backward(task.loss_fn(model, batch))
            optimizer.step()
            optimizer.zero_grad()
    return model, time.perf_counter() - began


def with_lightning(task: Task, micro_batches: list[Batch]) -> Trained:
    """Lightning runs the whole loop; the clock runs from its first micro-batch to its last."""
    from lightning.pytorch import LightningModule, Trainer

    class Digits(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.optimizer = _model_and_optimizer(task)
            self.began = self.ended = 0.0

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return self.optimizer

        def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
            return task.loss_fn(self.model, batch)

        def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
            self.began = self.began or time.perf_counter()

        def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
            self.ended = time.perf_counter()

    module = Digits()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Trainer(
            accelerator="cpu", devices=1, max_epochs=1, accumulate_grad_batches=N, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        ).fit(module, Stream(micro_batches))  # fmt: skip
    return module.model, module.ended - module.began


CONTENDERS: dict[str, Callable[[Task, list[Batch]], Trained]] = {
    "by hand": by_hand,
    "accumulate": with_accumulate,
    "Accelerate": with_accelerate,
    "Lightning": with_lightning,
}


class Stream:
    """Micro-batches in memory, as a loader: Lightning takes a plain list for a list of loaders."""

    def __init__(self, micro_batches: list[Batch]) -> None:
        self._micro_batches = micro_batches

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._micro_batches)

    def __len__(self) -> int:
        return len(self._micro_batches)


def _per_micro_batch(
    run: Callable[[Task, list[Batch]], Trained], task: Task, micro_batches: list[Batch]
) -> Callable[[], float]:
    return lambda: run(task, micro_batches)[1] / len(micro_batches)


def _model_and_optimizer(task: Task) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = task.build_model()
    return model, torch.optim.SGD(model.parameters(), LEARNING_RATE)
