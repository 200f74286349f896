"""Batches of any nesting, cut along dimension 0."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import copy
from operator import index
from typing import Any

from torch import Tensor

from gradacc_lessons.detective.examination.errors import ExamineError


def examples_in(batch: Any) -> int:
    """How many examples a batch has. ExamineError if its tensors do not agree, or if it has none with a dimension 0."""
    sizes: dict[str, int] = {}
    for name, tensor in named_tensors(batch):
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


def copied(batch: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same nesting with `change(tensor)` in place of each tensor; one that occurs twice stays one."""
    return _mapped(batch, change, {})


def rows(start: int, size: int) -> Callable[[Tensor], Tensor]:
    """Takes these examples of a tensor; one without dimensions stays whole. A copy: the caller's batch is safe."""

    def taken(tensor: Tensor) -> Tensor:
        part = tensor.detach()
        part = part[start : start + size] if tensor.dim() else part
        return part.clone().requires_grad_(tensor.requires_grad)

    return taken


def named_tensors(batch: Any, name: str = "batch") -> Iterator[tuple[str, Tensor]]:
    """Every tensor of a batch, with where it is."""
    if isinstance(batch, Tensor):
        yield name, batch
    elif isinstance(batch, Mapping):
        for key, value in batch.items():
            yield from named_tensors(value, f"{name}[{key!r}]")
    elif isinstance(batch, list | tuple):
        for k, value in enumerate(batch):
            yield from named_tensors(value, f"{name}[{k}]")
    elif _is_dataclass(batch):
        for field in dataclasses.fields(batch):
            yield from named_tensors(getattr(batch, field.name), f"{name}.{field.name}")


def _mapped(batch: Any, change: Callable[[Tensor], Tensor], done: dict[int, Tensor]) -> Any:
    if isinstance(batch, Tensor):
        if id(batch) not in done:
            done[id(batch)] = change(batch)
        return done[id(batch)]
    if isinstance(batch, Mapping):
        values = {key: _mapped(value, change, done) for key, value in batch.items()}
        if type(batch) is dict:
            return values
        if not isinstance(batch, MutableMapping):
            return values
        again = copy(batch)  # BatchEncoding and its like know more than their entries
        if hasattr(again, "data") and isinstance(again.data, dict):
            again.data = values
            return again
        for key, value in values.items():
            again[key] = value
        return again
    if isinstance(batch, list | tuple):
        items = [_mapped(value, change, done) for value in batch]
        return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)
    if _is_dataclass(batch):
        again = copy(batch)
        for field in dataclasses.fields(batch):
            object.__setattr__(again, field.name, _mapped(getattr(batch, field.name), change, done))
        return again
    return batch


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _one_of_each(sizes: dict[str, int]) -> dict[str, int]:
    """The first tensor of each size."""
    first: dict[int, str] = {}
    for name, size in sizes.items():
        first.setdefault(size, name)
    return {name: size for size, name in first.items()}
