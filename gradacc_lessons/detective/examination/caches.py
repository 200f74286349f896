"""Caches: what a function remembers from a run in float64 must not be given to the caller's next forward.

Those that can be reached are set aside: an empty one stands in for each. Others, such as a dict in an installed
library, cannot be put back. They are run over with native numbers at the end, and where that is not enough, float64
tensors that came into being meanwhile and are still alive become narrow again.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper, lru_cache
from typing import Any
from weakref import ref

import torch
from torch import Tensor

from gradacc_lessons.detective.examination.keep import exchange
from gradacc_lessons.detective.examination.reach import Reach

_WIDE = (torch.float64, torch.complex128)
Wide = dict[int, "ref[Tensor]"]
"""Tensors in float64, by their id."""


@contextmanager
def caches_set_aside(reach: Reach) -> Iterator[None]:
    """Empty ones stand in for every lru_cache that can be exchanged; the caller's, with what is in it, comes back."""
    instead = {id(cache): _empty(cache) for cache in reach.caches}
    back: dict[int, Any] = {id(instead[id(cache)]): cache for cache in reach.caches}
    try:
        for place in reach.places if instead else ():
            exchange(place, instead)
        yield
    finally:
        for place in reach.places if instead else ():
            exchange(place, back)


def _empty(cache: "_lru_cache_wrapper[Any]") -> Any:
    return lru_cache(**cache.cache_parameters())(cache.__wrapped__)


def wide_tensors() -> Wide:
    """All that are alive in this process."""
    return {id(tensor): ref(tensor) for tensor in _alive()}


def leave_native(runs_natively: Callable[[], bool], before: Wide, dtypes: list[torch.dtype]) -> bool:
    """Make the caller's next forward one like the first; False if that cannot be done.

    `runs_natively()` runs the forwards and says whether they give what they gave at first. A cache of one entry is
    right after the first time it is asked.
    """
    if runs_natively() or runs_natively():
        return True
    left = [tensor for tensor in _alive() if (known := before.get(id(tensor))) is None or known() is not tensor]
    for dtype in dtypes:
        for tensor in left:
            _make_narrow(tensor, dtype)
        if runs_natively():
            return True
    return False


def _alive() -> list[Tensor]:
    found = [thing for thing in gc.get_objects() if issubclass(type(thing), Tensor)]
    return [tensor for tensor in found if tensor.dtype in _WIDE]


def _make_narrow(tensor: Tensor, dtype: torch.dtype) -> None:
    try:
        tensor.data = tensor.data.to(torch.complex64 if tensor.is_complex() else dtype)
    except RuntimeError:  # one that nobody may write to
        return
