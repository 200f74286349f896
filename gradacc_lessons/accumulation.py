"""The loop this course teaches."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from torch import Tensor, nn

Batch = tuple[Tensor, ...]
"""What a model is trained on: tensors that share their first dimension, the examples."""
Item = TypeVar("Item")


def accumulate(
    model: nn.Module,
    window: Iterable[Batch],
    loss_sum: Callable[[nn.Module, Batch], Tensor],
    count: Callable[[Batch], int],
) -> float:
    """Add to `.grad` the gradient of (sum of the losses / number of items) over one window.

    `window` are the micro-batches behind one update; their sizes may differ. `loss_sum(model, batch)`
    is a scalar tensor, the sum of the losses of the items in a micro-batch; `count(batch)` is how many items
    that is. The result is that of one backward over the whole window, at the memory of one micro-batch.

    Returns the window's mean loss per item. A window in which nothing counts (every token masked, say) adds
    a zero gradient and returns 0.0.
    """
    window = list(window)  # it is read twice: counted before the first backward, then run
    items = max(sum(count(batch) for batch in window), 1)
    total = 0.0
    for batch in window:
        loss = loss_sum(model, batch) / items
        loss.backward()  # adds to .grad, and frees this micro-batch's activations
        total = total + loss.detach()  # type: ignore[assignment]  # a tensor: asking for the number would wait
    return float(total)


def windows(micro_batches: Iterable[Item], accumulation_steps: int) -> Iterator[list[Item]]:
    """Cut a stream into lists of `accumulation_steps` micro-batches; the last list may be shorter.

    ValueError unless `accumulation_steps` is at least 1.
    """
    if accumulation_steps < 1:
        raise ValueError(f"a window needs at least 1 micro-batch, not {accumulation_steps}")
    stream = iter(micro_batches)
    while window := list(islice(stream, accumulation_steps)):
        yield window


def split(batch: Batch, micro_batch_size: int) -> list[Batch]:
    """Cut a batch along dimension 0 into micro-batches of `micro_batch_size`; the last may be smaller.

    ValueError unless `micro_batch_size` is at least 1 and all tensors have the same number of examples.
    """
    if micro_batch_size < 1:
        raise ValueError(f"a micro-batch needs at least 1 example, not {micro_batch_size}")
    if len(sizes := {len(tensor) for tensor in batch}) > 1:
        raise ValueError(f"the tensors of a batch must have as many examples as one another, not {sorted(sizes)}")
    pieces = [tensor.split(micro_batch_size) for tensor in batch]
    return list(zip(*pieces, strict=True))
