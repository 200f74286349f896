"""Hooks on every module, for one run: what goes into it and comes out of it, and what its gradient is."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from gradacc_lessons.nested import mapped

Side = Literal["in", "out"]
NOBODY = "-"
"""In place of a module's name: the loss function."""


@dataclass(frozen=True)
class Spot:
    """One tensor that goes into a module's call, or comes out of it."""

    module: str
    """The module's name."""
    call: int
    """Which of its calls, from 0."""
    side: Side
    """ "in" or "out"."""
    position: int
    """Which of the tensors, from 0."""


@dataclass
class Trail:
    """What a run left: a copy of each tensor at each spot."""

    tensors: dict[Spot, Tensor] = field(default_factory=dict)
    """By spot, in the order of the forward."""
    gradients: dict[Spot, Tensor] = field(default_factory=dict)
    """Of those that got one."""
    weights: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    """What a module's own parameters were in a call: SAM and MAML make them depend on the batch."""
    parents: dict[str, str] = field(default_factory=dict)
    """Which module's forward was running when a module was called; "" for the model, "-" for none."""

    def blamed(self, spot: Spot) -> str:
        """Who is responsible for what is seen there: the module, or the one whose forward made its input."""
        return spot.module if spot.side == "out" else self.parents.get(spot.module, NOBODY)


def fingerprint(module: nn.Module) -> list[float]:
    """Two numbers for each of a module's own parameters, which change with it."""
    found: list[float] = []
    with torch.no_grad(), _disable_current_modes():  # this is no part of the run
        for parameter in module._parameters.values():
            if parameter is not None and parameter.layout == torch.strided and not parameter.is_complex():
                found += [float(parameter.double().sum()), float(parameter.double().norm())]
    return found


class Watcher:
    """Hooks for one run. `at` hears of each tensor; what it returns goes on instead."""

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        self._modules = modules
        self._calls: dict[str, int] = {}
        self._calls_in_forward: dict[str, int] | None = None
        self._running: list[tuple[str, int]] = []

    @property
    def extra(self) -> list[Tensor]:
        """Tensors whose gradients are wanted too."""
        return []

    @property
    def objective(self) -> Tensor | None:
        """What the gradient is of, if not of the loss."""
        return None

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        """What goes on in place of the tensor."""
        raise NotImplementedError

    def entered(self, module: str, parent: str) -> None:
        """A module's forward begins, called by another's."""

    def begun(self) -> None:
        """The generators are seeded, and nothing has run yet."""

    def forward_ended(self) -> None:
        """What is called from here on is computed again by a checkpoint: the last call first."""
        self._calls_in_forward, self._calls = self._calls, {}

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """The hooks are there for the body."""
        handles = []
        self.begun()
        try:
            for name, module in self._modules.items():
                if isinstance(module, torch.jit.ScriptModule):  # it takes no such hooks
                    continue
                handles.append(module.register_forward_pre_hook(self._before(name), with_kwargs=True))
                handles.append(module.register_forward_hook(self._after(name), with_kwargs=True))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _before(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
            call = self._next_call(name)
            if self._calls_in_forward is None:
                self.entered(name, self._running[-1][0] if self._running else NOBODY)
            self._running.append((name, call))
            return self._through((args, kwargs), name, call, "in")

        return hook

    def _next_call(self, name: str) -> int:
        turn = self._calls.get(name, 0)
        self._calls[name] = turn + 1
        if self._calls_in_forward is None:
            return turn
        number = self._calls_in_forward.get(name, 0)
        return number - 1 - turn % number if number else turn

    def _after(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
            while self._running and self._running[-1][0] != name:  # a forward that ended in an exception
                self._running.pop()
            if not self._running:
                return output
            _, call = self._running.pop()
            return self._through(output, name, call, "out")

        return hook

    def _through(self, value: Any, module: str, call: int, side: Side) -> Any:
        position, changed = 0, False

        def seen(tensor: Tensor) -> Tensor:
            nonlocal position, changed
            spot = Spot(module, call, side, position)
            position += 1
            if not tensor.is_floating_point() or tensor.layout != torch.strided:
                return tensor
            instead = self.at(spot, tensor)
            changed = changed or instead is not tensor
            return instead

        new = mapped(seen, value)
        return new if changed else value


class Recorder(Watcher):
    """Keeps a copy of everything that passes, and of its gradient."""

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        super().__init__(modules)
        self.trail = Trail()

    def at(self, spot: Spot, tensor: Tensor) -> Tensor:
        if self._calls_in_forward is None:
            if (spot.module, spot.call) not in self.trail.weights:
                self.trail.weights[spot.module, spot.call] = fingerprint(self._modules[spot.module])
            self.trail.tensors[spot] = tensor.detach().clone()
        if tensor.requires_grad:
            tensor.register_hook(self._keep(spot))
        return tensor

    def _keep(self, spot: Spot) -> Any:
        def hook(gradient: Tensor) -> None:
            if not gradient.requires_grad:  # not the inner one of a gradient penalty
                self.trail.gradients[spot] = gradient.detach().clone()

        return hook

    def entered(self, module: str, parent: str) -> None:
        self.trail.parents.setdefault(module, parent)
