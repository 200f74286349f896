"""Where tensors have sizes but no memory: torch's FakeTensorMode, with what models need beside it."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from gradacc_lessons.errors import first_line
from gradacc_lessons.memory.known import KnownNumbers
from gradacc_lessons.memory.parts import NO_SIZES, not_followed, place_in, without_numbers
from gradacc_lessons.memory.uncounted import LAZY, CannotCount


@contextmanager
def without_memory() -> Iterator[KnownNumbers]:
    """Inside, every new tensor is a fake one. What cannot be followed becomes a CannotCount, in one sentence."""
    with FakeTensorMode(allow_non_fake_inputs=True) as fake, KnownNumbers(fake) as known:
        try:
            with _conversions(), _copies(), _unlogged(), _initial_values(), _formats(), _no_lazy_layers():
                yield known
        except NO_SIZES as error:
            raise without_numbers(error) from None
        except RuntimeError as error:
            raise not_followed(f"{known.last} failed ({first_line(error)}){place_in(error)}") from error


@contextmanager
def _formats() -> Iterator[None]:
    """Let f"{loss:.3f}" ask for a number, as it does of a real tensor; here torch would only say that it cannot."""

    def formatted(self: Tensor, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.dim() else object.__format__(self, spec)

    with _instead(FakeTensor, "__format__", formatted):
        yield


@contextmanager
def _no_lazy_layers() -> Iterator[None]:
    """Say what is missing where torch would only fail: a parameter whose size its first batch decides."""

    def refused(cls: type[Tensor], *_: Any, **__: Any) -> Tensor:
        raise CannotCount(LAZY)

    with _instead(UninitializedParameter, "__new__", refused), _instead(UninitializedBuffer, "__new__", refused):
        yield


@contextmanager
def _initial_values() -> Iterator[None]:
    """torch's trunc_normal_ draws again until every number suits. Here there are no numbers, and any would do."""
    with _instead(nn.init, "_no_grad_trunc_normal_", lambda tensor, *_, **__: tensor):
        yield


@contextmanager
def _unlogged() -> Iterator[None]:
    """Without torch's log of an operation that failed: the caller gets a sentence instead."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def as_transformers_would_run(known: KnownNumbers) -> Iterator[None]:
    """transformers asks a fake tensor for no numbers and keeps masks that it would drop; here it may ask."""
    utilities = sys.modules.get("transformers.utils.import_utils")
    original = getattr(utilities, "is_fake_tensor", None)
    if utilities is None or original is None:
        yield
        return
    with _instead(utilities, "is_fake_tensor", lambda value: original(value) and not known.has(value)):
        yield


@contextmanager
def _conversions() -> Iterator[None]:
    """Let `model.to(...)` work on fake parameters: torch would swap their contents, which it cannot."""
    original = nn.Module._apply
    moved: dict[int, tuple[Tensor, nn.Parameter]] = {}

    def moved_to(parameter: nn.Parameter, fn: Callable[[Tensor], Tensor]) -> nn.Parameter:
        if id(parameter) not in moved:  # tied weights stay tied
            with torch.no_grad():
                new = fn(parameter)
            same = new is parameter
            moved[id(parameter)] = parameter, parameter if same else nn.Parameter(new, parameter.requires_grad)
        return moved[id(parameter)][1]

    def apply(self: nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        if not any(isinstance(p, FakeTensor) for p in self.parameters()):
            return cast(nn.Module, original(self, fn, recurse))
        for module in self.modules() if recurse else [self]:
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    module._parameters[name] = moved_to(parameter, fn)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = fn(buffer)
        moved.clear()
        return self

    with _instead(nn.Module, "_apply", apply):
        yield


@contextmanager
def _copies() -> Iterator[None]:
    """Let `copy.deepcopy` work here: torch would give the copy a storage that its views do not share, or a real one."""

    def copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            with torch.no_grad():
                new = self.detach().clone()
            is_parameter = isinstance(self, nn.Parameter)
            memo[id(self)] = nn.Parameter(new, self.requires_grad) if is_parameter else new
        return cast(Tensor, memo[id(self)])

    with _instead(Tensor, "__deepcopy__", copied):
        yield


@contextmanager
def _instead(owner: Any, name: str, new: Any) -> Iterator[None]:
    """`owner.name` is something else meanwhile."""
    had, original = name in vars(owner), vars(owner).get(name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        if had:
            setattr(owner, name, original)
        else:
            delattr(owner, name)
