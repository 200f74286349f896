"""Where tensors have sizes but no memory: torch's FakeTensorMode, with what models need beside it."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)

from gradacc_lessons.memory.known import KnownNumbers
from gradacc_lessons.memory.uncounted import CannotCount

_NO_SIZES = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)


@contextmanager
def without_memory() -> Iterator[KnownNumbers]:
    """Inside, every new tensor is a fake one. What cannot be followed becomes a CannotCount, in one sentence."""
    with FakeTensorMode(allow_non_fake_inputs=True) as fake, KnownNumbers(fake) as known:
        try:
            with _conversions(), _copies(), _unlogged(), _initial_values():
                yield known
        except _NO_SIZES:
            raise CannotCount(
                "this model cannot be followed without numbers: its control flow or its sizes depend on what a tensor "
                f"holds, or it has an operation without a size rule ({known.last}). Measure it with `measure_peak`"
            ) from None
        except RuntimeError as error:
            raise CannotCount(
                f"this model cannot be followed without numbers: {known.last} failed ({_first_line(error)}). "
                "If it runs for real, measure it with `measure_peak`"
            ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


@contextmanager
def _initial_values() -> Iterator[None]:
    """torch's trunc_normal_ draws again until every number suits. Here there are no numbers, and any would do."""
    original = nn.init._no_grad_trunc_normal_
    nn.init._no_grad_trunc_normal_ = lambda tensor, *_, **__: tensor
    try:
        yield
    finally:
        nn.init._no_grad_trunc_normal_ = original


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
    utilities.is_fake_tensor = lambda value: original(value) and not known.has(value)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        utilities.is_fake_tensor = original  # type: ignore[attr-defined]


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

    nn.Module._apply = apply  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._apply = original  # type: ignore[method-assign]


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

    original = Tensor.__deepcopy__
    Tensor.__deepcopy__ = copied  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.__deepcopy__ = original  # type: ignore[method-assign]
