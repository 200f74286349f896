"""Save between two windows and go on later, bit for bit as if nothing had happened."""

import os
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn


class Stateful(Protocol):
    """A model, an optimizer, a scheduler, a scaler: whatever hands out its state and takes it back."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


def save(path: Path | str, model: nn.Module, update: int, **parts: Stateful) -> None:
    """Write the model, the parts (`optimizer=`, `scheduler=`, `ema=`, …), and torch's random state after `update`.

    A crash while it writes leaves the file that was there before. ValueError in mid-window: what is in `.grad` then
    would be lost.
    """
    if any(parameter.grad is not None and bool(parameter.grad.any()) for parameter in model.parameters()):
        raise ValueError(
            "there are gradients in .grad: a window is not complete, or was not zeroed. Save after optimizer.step() "
            "and optimizer.zero_grad()"
        )
    states = {name: part.state_dict() for name, part in ({"model": model} | parts).items()}
    random = {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()}
    beside = Path(f"{path}.part")
    torch.save({"update": update, "states": states, "random": random}, beside)
    os.replace(beside, path)


def load(path: Path | str, model: nn.Module, **parts: Stateful) -> int:
    """Put everything back, in objects built as they were; returns how many updates are done.

    The data are the caller's: begin them with the same seed, and skip as many windows. Only tensors, numbers and
    containers are read, never code. ValueError if the file holds other parts than are given, or is no checkpoint.
    """
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(saved, dict) or saved.keys() != {"update", "states", "random"}:
        raise ValueError(f"{path} was not written by checkpoint.save")
    given: dict[str, Stateful] = {"model": model} | parts
    if saved["states"].keys() != given.keys():
        raise ValueError(f"{path} holds {', '.join(saved['states'])}; it was asked for {', '.join(given)}")
    for name, part in given.items():
        part.load_state_dict(saved["states"][name])
    model.zero_grad()
    torch.set_rng_state(saved["random"]["cpu"])
    if torch.cuda.device_count() == len(saved["random"]["cuda"]):
        torch.cuda.set_rng_state_all(saved["random"]["cuda"])
    return int(saved["update"])
