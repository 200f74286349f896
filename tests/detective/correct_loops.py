"""Loops that are right in every scope, written as differently as people write them."""

import functools
from collections import deque
from itertools import islice

import torch
from torch.nn.utils import clip_grad_norm_

from gradacc_lessons.accumulation import accumulate, windows


def slices(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start : start + accumulation_steps]
        examples = sum(len(batch[0]) for batch in window)
        optimizer.zero_grad()
        for batch in window:
            (loss_fn(model, batch) * len(batch[0]) / examples).backward()
        optimizer.step()


def zero_after_step(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad(set_to_none=False)
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start : start + accumulation_steps]
        examples = sum(len(batch[0]) for batch in window)
        for batch in window:
            (loss_fn(model, batch) * (len(batch[0]) / examples)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)


def sum_then_rescale(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    seen = 0
    for i, batch in enumerate(micro_batches, start=1):
        examples = len(batch[0])
        (loss_fn(model, batch) * examples).backward()
        seen += examples
        if i % accumulation_steps == 0 or i == len(micro_batches):
            for parameter in model.parameters():
                parameter.grad.div_(seen)
            optimizer.step()
            optimizer.zero_grad()
            seen = 0


def generator_of_windows(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    def cut(stream):
        stream = iter(stream)
        while window := list(islice(stream, accumulation_steps)):
            yield window

    for window in cut(micro_batches):
        model.zero_grad()
        sizes = [batch[1].shape[0] for batch in window]
        for size, batch in zip(sizes, window, strict=True):
            loss = loss_fn(model, batch)
            loss.mul(size / sum(sizes)).backward()
        optimizer.step()


def while_loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    waiting = deque(micro_batches)
    while waiting:
        window = [waiting.popleft() for _ in range(min(accumulation_steps, len(waiting)))]
        total = sum(len(labels) for _, labels in window)
        for parameter in model.parameters():
            parameter.grad = None
        while window:
            batch = window.pop()
            loss = loss_fn(model, batch) * len(batch[1]) / total
            loss.backward()
        optimizer.step()


def running_mean(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """Keeps the mean gradient so far: mean += (new - mean) * n / seen."""
    parameters = list(model.parameters())
    for window in windows(micro_batches, accumulation_steps):
        mean = [torch.zeros_like(parameter) for parameter in parameters]
        seen = 0
        for batch in window:
            optimizer.zero_grad()
            loss_fn(model, batch).backward()
            seen += len(batch[0])
            for old, parameter in zip(mean, parameters, strict=True):
                old += (parameter.grad - old) * (len(batch[0]) / seen)
        for old, parameter in zip(mean, parameters, strict=True):
            parameter.grad = old
        optimizer.step()


def hand_made_grad(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start : start + accumulation_steps]
        examples = sum(len(batch[0]) for batch in window)
        sums = [torch.zeros_like(parameter) for parameter in parameters]
        for batch in window:
            gradients = torch.autograd.grad(loss_fn(model, batch) * len(batch[0]), parameters)
            sums = [total + gradient for total, gradient in zip(sums, gradients, strict=True)]
        for parameter, total in zip(parameters, sums, strict=True):
            parameter.grad = total / examples
        optimizer.step()


def last_batch_flag(model, optimizer, micro_batches, loss_fn, accumulation_steps, count):
    items = 0
    optimizer.zero_grad()
    for i, batch in enumerate(micro_batches):
        is_last = i == len(micro_batches) - 1
        if i % accumulation_steps == 0:
            items = sum(count(b) for b in micro_batches[i : i + accumulation_steps])
        loss = loss_fn(model, batch) * count(batch) / items
        loss.backward()
        if (i + 1) % accumulation_steps == 0 or is_last:
            optimizer.step()
            optimizer.zero_grad()


def with_accumulate(model, optimizer, micro_batches, loss_fn, accumulation_steps, count):
    def loss_sum(model, batch):
        return loss_fn(model, batch) * count(batch)

    losses = []
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        losses.append(accumulate(model, window, loss_sum, count))
        optimizer.step()
    return losses


def closure(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for window in windows(micro_batches, accumulation_steps):

        def evaluate(window=window):
            optimizer.zero_grad()
            examples = sum(len(batch[0]) for batch in window)
            total = 0.0
            for batch in window:
                loss = loss_fn(model, batch) * len(batch[0]) / examples
                loss.backward()
                total += float(loss.detach())
            return total

        optimizer.step(evaluate)


class Trainer:
    """An instance that is called."""

    def __init__(self) -> None:
        self.history: list[float] = []

    def __call__(self, model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for window in windows(micro_batches, accumulation_steps):
            self.update(model, optimizer, window, loss_fn)

    def update(self, model, optimizer, window, loss_fn):
        optimizer.zero_grad()
        examples = sum(len(batch[0]) for batch in window)
        for batch in window:
            loss = loss_fn(model, batch) * len(batch[0])
            (loss / examples).backward()
            self.history.append(loss.item())
        optimizer.step()

    def method(self, model, optimizer, micro_batches, loss_fn, accumulation_steps):
        self(model, optimizer, micro_batches, loss_fn, accumulation_steps)


def with_style(style, model, optimizer, micro_batches, loss_fn, accumulation_steps):
    assert style == "sum"
    sum_then_rescale(model, optimizer, micro_batches, loss_fn, accumulation_steps)


def batched(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """As itertools.batched cuts, by zipping the stream with itself, and weights in float32."""
    marker = object()
    missing = -len(micro_batches) % accumulation_steps
    stream = iter([*micro_batches, *[marker] * missing])
    for chunk in zip(*[stream] * accumulation_steps, strict=True):
        window = [batch for batch in chunk if batch is not marker]
        sizes = torch.tensor([len(batch[0]) for batch in window], dtype=torch.float32)
        optimizer.zero_grad()
        for weight, batch in zip(sizes / sizes.sum(), window, strict=True):
            (weight * loss_fn(model, batch)).backward()
        optimizer.step()


def clipped(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm=None):
    for window in windows(micro_batches, accumulation_steps):
        examples = sum(len(batch[0]) for batch in window)
        for batch in window:
            (loss_fn(model, batch) * len(batch[0]) / examples).backward()
        if max_norm is not None:
            clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()


def clipped_by_hand(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, max_norm):
    for window in windows(micro_batches, accumulation_steps):
        examples = sum(len(batch[0]) for batch in window)
        optimizer.zero_grad()
        for batch in window:
            (loss_fn(model, batch) * len(batch[0]) / examples).backward()
        norm = torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).norm()
        if norm > max_norm:
            for parameter in model.parameters():
                parameter.grad *= max_norm / norm
        optimizer.step()


def clipped_at_one(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """Has its own threshold, and no max_norm to be asked for."""
    clipped(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm=1.0)


def scheduled(model, optimizer, micro_batches, loss_fn, accumulation_steps, scheduler=None):
    for window in windows(micro_batches, accumulation_steps):
        examples = sum(len(batch[0]) for batch in window)
        optimizer.zero_grad()
        for batch in window:
            (loss_fn(model, batch) * len(batch[0]) / examples).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def everything(
    model, optimizer, micro_batches, loss_fn, accumulation_steps, *, count, max_norm=1.0, scheduler=None, **options
):
    model.train()
    for window in windows(micro_batches, accumulation_steps):
        items = sum(map(count, window))
        for batch in window:
            with torch.enable_grad():
                loss = loss_fn(model, batch) * (count(batch) / items)
            loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm)
        assert torch.isfinite(norm)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)


def summed_in_one_statement(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """Each backward happens inside the sum, so only one graph is alive at a time."""
    for window in windows(micro_batches, accumulation_steps):
        examples = sum(len(batch[0]) for batch in window)
        optimizer.zero_grad()

        def push(batch, examples=examples):
            loss = loss_fn(model, batch) * len(batch[0]) / examples
            loss.backward()
            return loss.detach()

        torch.stack([push(batch) for batch in window]).sum()
        optimizer.step()


def keeps_the_losses(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """Keeps every loss after its backward, which costs next to nothing."""
    kept = []
    for window in windows(micro_batches, accumulation_steps):
        examples = sum(len(batch[0]) for batch in window)
        optimizer.zero_grad()
        for batch in window:
            kept.append(loss_fn(model, batch) * len(batch[0]) / examples)
            kept[-1].backward()
        optimizer.step()
    return sum(loss.item() for loss in kept)


def looks_twice(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """Measures the losses before it trains, without gradients."""
    with torch.no_grad():
        before = [loss_fn(model, batch).item() for batch in micro_batches]
    slices(model, optimizer, micro_batches, loss_fn, accumulation_steps)
    print("loss before:", sum(before) / len(before))


CORRECT = {
    "slices": slices,
    "zero after step": zero_after_step,
    "sum then rescale": sum_then_rescale,
    "generator of windows": generator_of_windows,
    "while loop": while_loop,
    "running mean": running_mean,
    "hand-made grad": hand_made_grad,
    "last-batch flag": last_batch_flag,
    "accumulate()": with_accumulate,
    "closure": closure,
    "instance": Trainer(),
    "method": Trainer().method,
    "partial": functools.partial(with_style, "sum"),
    "lambda": lambda m, o, b, f, n: slices(m, o, b, f, n),
    "batched": batched,
    "clipped": clipped,
    "clipped by hand": clipped_by_hand,
    "clipped at one": clipped_at_one,
    "scheduled": scheduled,
    "everything": everything,
    "summed in one statement": summed_in_one_statement,
    "keeps the losses": keeps_the_losses,
    "looks twice": looks_twice,
}
