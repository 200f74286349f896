"""What of a batch grows with its examples, and optimizers alone or in a list."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from gradacc_lessons.nested import is_dataclass, tensors_in

Optimizers = torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None


def optimizers_in(value: Optimizers) -> list[torch.optim.Optimizer]:
    """One optimizer, several of them, or none. ValueError for anything else."""
    found: list[Any] = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
    for optimizer in found:
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise ValueError(f"an optimizer is one of torch's, or a list of them; this is a {type(optimizer).__name__}")
    return found


def by_example(batch: Any, examples: int) -> list[tuple[Tensor, bool]]:
    """Each tensor of a batch, and whether there is more of it the more `examples` there are.

    That is so if it has so many along dimension 0, or lies in a list or tuple of so many things, such as images of
    different size.
    """
    first = [len(tensor) for tensor in tensors_in(batch) if tensor.dim()]
    listed = isinstance(batch, list | tuple) and len(batch) == examples and examples not in first
    if listed and not any(isinstance(inner, Tensor) for inner in batch):
        return [(tensor, True) for tensor in tensors_in(batch)]
    if listed and isinstance(batch, list) and _are_alike(batch):
        return [(tensor, True) for tensor in batch]
    return list(_by_example(batch, examples, outermost=True))


def _by_example(value: Any, examples: int, outermost: bool = False) -> Iterator[tuple[Tensor, bool]]:
    if isinstance(value, Tensor):
        yield value, value.dim() > 0 and len(value) == examples
        return
    if isinstance(value, list | tuple) and len(value) == examples and not outermost:
        yield from ((tensor, True) for tensor in tensors_in(value))
        return
    inside: Sequence[Any] = ()
    if isinstance(value, list | tuple):
        inside = value
    elif isinstance(value, Mapping):
        inside = list(value.values())
    elif is_dataclass(value):
        inside = [getattr(value, field.name, None) for field in fields(value)]
    for inner in inside:
        yield from _by_example(inner, examples)


def _are_alike(values: list[Any]) -> bool:
    """Whether these are images, say, and not the inputs and the labels of a batch."""
    return all(isinstance(value, Tensor) and value.dim() > 1 for value in values) and (
        len({(value.dtype, value.dim()) for value in values}) == 1
    )
