"""Tensors in nested containers, and optimizers alone or in a list."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

Optimizers = torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None
_PLAIN = {type(None), bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format}
"""What most arguments are that are no tensors; asking whether they are mappings takes long."""


def tensors_in(value: Any) -> list[Tensor]:
    """Every tensor in nested lists, tuples, dicts and dataclasses, in order."""
    found: list[Tensor] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, list | tuple):
        for inner in value:
            if type(inner) not in _PLAIN:
                if isinstance(inner, Tensor):  # without a call for each
                    found.append(inner)
                else:
                    _collect(inner, found)
    elif type(value) is dict or isinstance(value, Mapping):
        for inner in value.values():
            _collect(inner, found)
    elif type(value) not in _PLAIN and _is_dataclass(value):
        for field in fields(value):
            _collect(getattr(value, field.name, None), found)


def mapped(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The same containers, with `change(tensor)` in place of each tensor; one that occurs twice stays one."""
    done: dict[int, Tensor] = {}

    def once(tensor: Tensor) -> Tensor:
        if id(tensor) not in done:
            done[id(tensor)] = change(tensor)
        return done[id(tensor)]

    return _mapped(once, value)


def _mapped(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_mapped(change, inner) for inner in value)
    if isinstance(value, Mapping) and hasattr(value, "__setitem__"):
        new = copy(value)
        for key, inner in value.items():
            new[key] = _mapped(change, inner)
        return new
    if _is_dataclass(value):
        new = copy(value)
        for field in fields(value):
            if hasattr(value, field.name):  # also of a frozen one
                object.__setattr__(new, field.name, _mapped(change, getattr(value, field.name)))
        return new
    return tree_map_only(Tensor, change, value)  # what torch knows: named tuples, say


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
    elif _is_dataclass(value):
        inside = [getattr(value, field.name, None) for field in fields(value)]
    for inner in inside:
        yield from _by_example(inner, examples)


def _are_alike(values: list[Any]) -> bool:
    """Whether these are images, say, and not the inputs and the labels of a batch."""
    return all(isinstance(value, Tensor) and value.dim() > 1 for value in values) and (
        len({(value.dtype, value.dim()) for value in values}) == 1
    )


def _is_dataclass(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
