"""The conditions of a run: what is computed in float64 although the code says float32, and which numbers are drawn."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradacc_lessons.detective.examination.draws import Draws, draws

WIDE = {
    torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64,
    torch.complex64: torch.complex128, torch.complex32: torch.complex128,
}  # fmt: skip
"""What stands in for a dtype when everything is computed in float64."""


HALF = (torch.bfloat16, torch.float16, torch.complex32)
"""Dtypes whose rounding is a share of a percent."""


class Conditions(TorchDispatchMode):
    """Sees every operation of a run."""

    def __init__(self, draws_of_run: Draws | None, wide: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self._draws, self._wide = draws_of_run, wide
        self.draws = 0
        """How many operations drew random numbers that can be given again."""
        self.unrepeatable = False
        """Whether an operation drew random numbers within itself, where they cannot be given again."""

        self.halved = False
        """Whether an operation gave numbers of 16 bits."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch's guard around each call costs more than what is done in it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._wide:
            args, kwargs = _widened(func, args, kwargs)
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return self._made(func(*args, **kwargs), args)
        before = None if draws(func) else _states()
        result = self._made(func(*args, **kwargs), args)
        if before is None:
            self.draws += 1
            return result if self._draws is None else self._draws.drawn(func, args, kwargs, result)
        if not all(map(torch.equal, before, _states())):
            self.unrepeatable = True
        return result

    def _made(self, result: Any, args: tuple[Any, ...]) -> Any:
        """What an operation without tensors made, such as torch.zeros: it has the default dtype, or a named one.

        The default dtype itself belongs to the whole process, and stays.
        """
        if isinstance(result, Tensor) and result.dtype in HALF:
            self.halved = True
        if not self._wide or not isinstance(result, Tensor) or result.dtype not in WIDE:
            return result
        return result if any(isinstance(value, Tensor) for value in args) else result.to(WIDE[result.dtype])


def _widened(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with float64 where they name a narrower dtype, or are tensors of one that are only read."""
    if (dtype := kwargs.get("dtype")) in WIDE:
        kwargs = {**kwargs, "dtype": WIDE[dtype]}
    written = func._schema.is_mutable
    return tuple(_wide(value, written) for value in args), kwargs


def _wide(value: Any, written: bool) -> Any:
    if isinstance(value, torch.dtype):
        return WIDE.get(value, value)
    if isinstance(value, Tensor):
        return value if written or value.dtype not in WIDE else value.to(WIDE[value.dtype])
    if isinstance(value, list | tuple) and any(isinstance(inner, Tensor) for inner in value):
        return [_wide(inner, written) for inner in value]
    return value


def _states() -> list[Tensor]:
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states
