"""Everything that the caller has, as it was before and is after."""

import random
from typing import Any

import numpy as np
import torch
from detective.examination.pairs import Parts
from torch import Tensor, nn


def given_gradients(parts: Parts) -> None:
    """As in the middle of a window: every other parameter has a gradient, and the batch wants none."""
    for k, parameter in enumerate(parts.model.parameters()):
        if parameter.requires_grad and k % 2:
            parameter.grad = torch.full_like(parameter, 0.5)


def everything(parts: Parts) -> dict[str, Any]:
    """By name: objects by their identity, numbers by their value. Nothing of the package is used for it."""
    found: dict[str, Any] = {
        "torch": torch.get_rng_state().tolist(),
        "numpy": [part.tolist() if isinstance(part, np.ndarray) else part for part in np.random.get_state()],
        "python": random.getstate(),
        "dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
    }
    for number, root in enumerate((parts.model, *parts.others)):
        for name, module in root.named_modules():
            found |= _of_module(f"{number}:{name}", module)
    for k, tensor in enumerate(_tensors(parts.batch)):
        found[f"batch {k}"] = _of_tensor(tensor)
    return found


def _of_module(name: str, module: nn.Module) -> dict[str, Any]:
    found: dict[str, Any] = {f"{name} attributes": sorted(vars(module))}
    for key, value in vars(module).items():
        if isinstance(value, dict):  # parameters, buffers, children and hooks
            found[f"{name}.{key}"] = [(inner, id(entry)) for inner, entry in value.items()]
        elif isinstance(value, bool | int | float | str | type(None)):
            found[f"{name}.{key}"] = value
        elif isinstance(value, Tensor):
            found[f"{name}.{key}"] = _of_tensor(value)
    own = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return found | {f"{name}.{key} values": _of_tensor(tensor) for key, tensor in own}


def _of_tensor(tensor: Tensor) -> tuple[Any, ...]:
    gradient = tensor.grad if tensor.is_leaf else None
    return (
        id(tensor), tensor.data_ptr(), tensor._version, tensor.dtype, tensor.requires_grad, tensor.is_leaf,
        tensor.detach().clone().double().tolist() if not tensor.is_complex() else tensor.tolist(),
        None if gradient is None else (id(gradient), gradient.to_dense().double().tolist())
        if not gradient.is_complex() else (id(gradient), gradient.tolist()),
    )  # fmt: skip


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if not isinstance(value, dict | list | tuple):  # lengths, names
        return []
    return [tensor for inner in (value.values() if isinstance(value, dict) else value) for tensor in _tensors(inner)]
