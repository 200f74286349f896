"""Tensors in nested lists, tuples, mappings and dataclasses, as batches and models' outputs are."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

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
    elif type(value) not in _PLAIN and is_dataclass(value):
        for field in dataclasses.fields(value):
            _collect(getattr(value, field.name, None), found)


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
    elif is_dataclass(batch):
        for field in dataclasses.fields(batch):
            yield from named_tensors(getattr(batch, field.name, None), f"{name}.{field.name}")


def mapped(change: Callable[[Tensor], Tensor], value: Any, plain: Callable[[Any], Any] = lambda part: part) -> Any:
    """The same containers, with `change(tensor)` in place of each tensor; one that occurs twice stays one.

    `plain(part)` may replace a list or tuple that holds no tensors, and an array.
    """
    return _mapped(value, change, {}, plain)


def _mapped(
    batch: Any, change: Callable[[Tensor], Tensor], done: dict[int, Tensor], plain: Callable[[Any], Any]
) -> Any:
    if isinstance(batch, Tensor):
        if id(batch) not in done:
            done[id(batch)] = change(batch)
        return done[id(batch)]
    if isinstance(batch, np.ndarray):
        return plain(batch)
    if isinstance(batch, Mapping):
        return _with_entries(batch, {key: _mapped(value, change, done, plain) for key, value in batch.items()})
    if isinstance(batch, list | tuple):
        if next(named_tensors(batch), None) is None and (part := plain(batch)) is not batch:
            return part if type(part) is type(batch) else _with_items(batch, list(part))
        return _with_items(batch, [_mapped(value, change, done, plain) for value in batch])
    if is_dataclass(batch):
        again = copy(batch)
        for field in dataclasses.fields(batch):
            if hasattr(batch, field.name):
                part = _mapped(getattr(batch, field.name), change, done, plain)
                object.__setattr__(again, field.name, part)  # also of a frozen one
        return again
    return batch


def _with_entries(batch: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """A mapping of the same kind."""
    if type(batch) is dict or not isinstance(batch, MutableMapping):
        return values
    again = copy(batch)  # BatchEncoding and its like know more than their entries
    attributes = getattr(batch, "__dict__", None)
    if attributes is batch:  # its entries are its attributes
        object.__setattr__(again, "__dict__", again)
    elif attributes and isinstance(attributes.get("data"), dict):
        again.__dict__["data"] = values
        return again
    for key, value in values.items():
        again[key] = value
    return again


def _with_items(batch: Any, items: list[Any]) -> Any:
    """A list or tuple of the same kind, whatever its constructor takes."""
    if type(batch) in (list, tuple):
        return type(batch)(items)
    if isinstance(batch, list):
        again = copy(batch)
        again[:] = items
        return again
    try:
        again = tuple.__new__(type(batch), items)
    except TypeError:  # torch.return_types and their like
        return type(batch)(items)
    if attributes := getattr(batch, "__dict__", None):
        vars(again).update(attributes)
    return again


def is_dataclass(value: Any) -> bool:
    """Whether it is a dataclass's object, and not the class."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
