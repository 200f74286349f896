"""Batches of any nesting, cut along dimension 0."""

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradacc_lessons.detective.examination.errors import ExamineError
from gradacc_lessons.nested import mapped, named_tensors


def examples_in(batch: Any) -> int:
    """How many examples a batch has. ExamineError if its tensors do not agree, or if it has none with a dimension 0."""
    sizes: dict[str, int] = {}
    for name, tensor in named_tensors(batch):
        if tensor.layout != torch.strided or tensor.is_nested or tensor.is_quantized:
            kind = "nested" if tensor.is_nested else "quantized" if tensor.is_quantized else "sparse"
            raise ExamineError(f"{name} is {kind} and cannot be cut into examples: give a dense tensor in its place")
        if tensor.dim():
            sizes[name] = len(tensor)
    if not sizes:
        raise ExamineError(
            f"there is nothing to cut in the batch, a {type(batch).__name__}: it must be a tensor, or a tuple, list "
            "or dict of tensors whose dimension 0 counts the examples"
        )
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} has {size}" for name, size in _one_of_each(sizes).items())
        raise ExamineError(
            f"the tensors of the batch must have as many examples as one another along dimension 0: {told}"
        )
    return next(iter(sizes.values()))


def are_equal(batch: Any) -> bool:
    """Whether every example is the same: in its floats, such as an image of ones, or else in all its tensors."""
    tensors = [tensor for _, tensor in named_tensors(batch) if tensor.dim()]
    floats = [tensor for tensor in tensors if tensor.is_floating_point()] or tensors
    return all(bool((tensor == tensor[:1]).all()) for tensor in floats)


def starts_of(examples: int, micro_batch_size: Any) -> list[tuple[int, int]]:
    """(first example, number of examples) of each micro-batch. ExamineError for a size that cuts nothing."""
    if isinstance(micro_batch_size, bool) or not hasattr(micro_batch_size, "__index__"):
        raise ExamineError(f"micro_batch_size is a whole number of examples, not {micro_batch_size!r}")
    micro_batch_size = index(micro_batch_size)
    if not 1 <= micro_batch_size < examples:
        advice = "there is nothing to accumulate" if micro_batch_size >= examples else "it must be at least 1"
        if examples == 1:
            advice = "give a batch of at least 2"
        raise ExamineError(
            f"micro_batch_size={micro_batch_size} does not cut a batch of {examples} into micro-batches: {advice}"
        )
    return [(k, min(micro_batch_size, examples - k)) for k in range(0, examples, micro_batch_size)]


def cut(batch: Any, start: int, size: int, change: Callable[[Tensor], Tensor]) -> Any:
    """The same nesting with these examples alone: `change` takes them of each tensor.

    What else has an entry for each example is cut as well: lists and tuples of lengths, names or other things that
    are no tensors, and arrays. A tuple of numbers as long as the batch is taken for such a list too.
    """
    examples = examples_in(batch)

    def taken(part: Any) -> Any:
        one_each = len(part) == examples if not isinstance(part, np.ndarray) else part.shape[:1] == (examples,)
        if not one_each or isinstance(part, torch.Size) or hasattr(part, "_fields"):
            return part.copy() if isinstance(part, np.ndarray) else part
        part = part[start : start + size]
        return part.copy() if isinstance(part, np.ndarray) else part

    return mapped(change, batch, taken)


def rows(start: int, size: int) -> Callable[[Tensor], Tensor]:
    """Takes these examples of a tensor; one without dimensions stays whole. A copy: the caller's batch is safe."""

    def taken(tensor: Tensor) -> Tensor:
        part = tensor.detach()
        part = part[start : start + size] if tensor.dim() else part
        return part.clone().requires_grad_(tensor.requires_grad)

    return taken


def _one_of_each(sizes: dict[str, int]) -> dict[str, int]:
    """The first tensor of each size."""
    first: dict[int, str] = {}
    for name, size in sizes.items():
        first.setdefault(size, name)
    return {name: size for size, name in first.items()}
