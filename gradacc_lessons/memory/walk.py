"""Tensors in nested containers."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_PLAIN = {type(None), bool, int, float, str, torch.dtype, torch.device, torch.layout, torch.memory_format}
"""What most arguments are that are no tensors; asking whether they are mappings takes long."""


def tensors_in(value: Any) -> list[Tensor]:
    """Every tensor in nested lists, tuples and dicts, in order."""
    found: list[Tensor] = []
    _collect(value, found)
    return found


def _collect(value: Any, found: list[Tensor]) -> None:
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, list | tuple):
        for inner in value:
            if type(inner) not in _PLAIN:
                _collect(inner, found)
    elif type(value) is dict or isinstance(value, Mapping):
        for inner in value.values():
            _collect(inner, found)
