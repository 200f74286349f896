"""The state of everything in reach: remembered, compared, and put back."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch
from torch import Tensor
from torch.autograd.grad_mode import _unsafe_preserve_version_counter

from gradacc_lessons.detective.examination.generators import (
    SEED,
    everybodys_generators,
    put_generators_back,
    set_state,
    state_of,
)
from gradacc_lessons.detective.examination.reach import Place, Reach, label
from gradacc_lessons.device import seeded

_GONE = object()
"""Where there was no value."""


@dataclass
class _Kept:
    """One tensor as it was."""

    tensor: Tensor
    """The caller's object."""
    storage: Tensor
    """Another object for the same memory."""
    values: Tensor
    """A copy of the numbers."""
    grad: Tensor | None
    """The object that was its gradient."""
    requires_grad: bool
    """Whether it wanted one."""


class Snapshot:
    """What everything in reach was at one moment."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self._tensors = {name: _kept(tensor) for name, tensor in reach.tensors.items()}
        self._places = [(place, _read(place)) for place in reach.places]
        self._arrays = {name: (array, array.copy()) for name, array in reach.arrays.items()}
        self._generators = [(generator, state_of(generator)) for generator in reach.generators]

    def put_back(self) -> None:
        """Make everything what it was, each object itself; what has not changed is not touched."""
        for place, content in self._places:
            _write(place, content)
        for kept in self._tensors.values():
            _restore(kept)
        for array, values in self._arrays.values():
            if array.flags.writeable and not _same_array(array, values):
                array[...] = values
        for generator, state in self._generators:
            set_state(generator, state)

    def changes(self, reach: Reach) -> dict[str, Any]:
        """By name, what is different now: copies of tensors and arrays, and numbers. `reach` is from now."""
        found: dict[str, Any] = {}
        for name, tensor in reach.tensors.items():
            before = self._tensors.get(name)
            if name.endswith(".grad"):
                continue
            if before is None or not _same_values(tensor.data, before.values):
                found[name] = tensor.detach().clone()
        for name, array in reach.arrays.items():
            before_array = self._arrays.get(name)
            if before_array is None or not _same_array(array, before_array[1]):
                found[name] = array.copy()
        earlier = {(id(place.holder), place.key): content for place, content in self._places}
        for place in reach.places:
            found.update(_different_numbers(place, earlier.get((id(place.holder), place.key))))
        return found


@contextmanager
def settings_kept() -> Iterator[None]:
    """What belongs to the whole process: every random generator, torch's default dtype and its gradient mode.

    Nobody else of the course draws from the generators meanwhile. Inference mode is left for the body: what is made in
    it has no gradient.
    """
    states = everybodys_generators()
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        with torch.inference_mode(False), seeded(SEED):
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        put_generators_back(states)


@contextmanager
def versions_kept(reach: Reach) -> Iterator[None]:
    """Autograd's count of how often each tensor was written to: a graph that the caller still holds looks at it."""
    with ExitStack() as stack:
        for tensor in reach.tensors.values():
            if not tensor.is_inference():
                stack.enter_context(_unsafe_preserve_version_counter(tensor))
        yield


def _kept(tensor: Tensor) -> _Kept:
    grad = tensor.grad if tensor.is_leaf else None
    return _Kept(tensor, tensor.data, tensor.data.clone(), grad, tensor.requires_grad)


def _restore(kept: _Kept) -> None:
    """Through `.data`, which leaves the version counter alone: a graph that the caller still holds stays valid."""
    tensor = kept.tensor
    now = tensor.data
    if now.dtype != kept.storage.dtype or now.shape != kept.storage.shape or not _same_memory(now, kept.storage):
        tensor.data = kept.storage
    if not _same_values(kept.storage, kept.values):
        kept.storage.copy_(kept.values)
    if tensor.is_leaf:
        if tensor.requires_grad != kept.requires_grad:
            tensor.requires_grad_(kept.requires_grad)
        if tensor.grad is not kept.grad:
            tensor.grad = kept.grad


def _same_values(one: Tensor, other: Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape or one.layout != other.layout:
        return False
    return all(map(torch.equal, dense_parts(one), dense_parts(other)))


def _same_memory(one: Tensor, other: Tensor) -> bool:
    if one.layout != torch.strided:  # its parts are made anew each time they are asked for
        return all(a.data_ptr() == b.data_ptr() for a, b in zip(dense_parts(one), dense_parts(other), strict=True))
    return one.data_ptr() == other.data_ptr() if one.is_quantized else one.is_set_to(other)


def dense_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """The dense tensors that a sparse one is made of; a dense one itself."""
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


def _same_array(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return (
        bool(one.tobytes() == other.tobytes())
        if one.dtype != object
        else all(a is b for a, b in zip(one.flat, other.flat, strict=True))
    )


def _read(place: Place) -> Any:
    holder = place.holder
    if place.kind == "mapping":
        return dict(holder)
    if place.kind in ("list", "set", "deque"):
        return list(holder)
    if place.kind == "cell":
        try:
            return holder.cell_contents
        except ValueError:
            return _GONE
    if place.kind == "global":
        return holder.get(place.key, _GONE)
    return getattr(holder, place.key, _GONE)


def _write(place: Place, content: Any) -> None:
    now = _read(place)
    holder = place.holder
    if place.kind == "mapping":
        kind = OrderedDict if isinstance(holder, OrderedDict) else dict  # not what a subclass makes of it
        if list(now) != list(content):
            kind.clear(holder)
            kind.update(holder, content)
        else:
            for key, value in content.items():
                if now[key] is not value:
                    kind.__setitem__(holder, key, value)
    elif place.kind in ("list", "deque"):
        if not _same_objects(now, content):
            holder.clear()
            holder.extend(content)
    elif place.kind == "set":
        if holder != set(content):
            holder.clear()
            holder.update(content)
    elif now is not content:
        _write_entry(place, content)


def _same_objects(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def exchange(place: Place, instead: dict[int, Any]) -> None:
    """Put other objects where those with these ids are."""
    now = _read(place)
    if place.kind == "mapping":
        _write(place, {key: instead.get(id(value), value) for key, value in now.items()})
    elif place.kind in ("list", "deque"):
        _write(place, [instead.get(id(value), value) for value in now])
    elif place.kind != "set" and id(now) in instead:
        _write(place, instead[id(now)])


def _write_entry(place: Place, content: Any) -> None:
    if place.kind == "global":
        if content is _GONE:
            place.holder.pop(place.key, None)
        else:
            place.holder[place.key] = content
    elif place.kind == "cell":
        if content is _GONE:
            del place.holder.cell_contents
        else:
            place.holder.cell_contents = content
    elif content is _GONE:
        (type if place.kind == "class" else object).__delattr__(place.holder, place.key)
    else:
        (type if place.kind == "class" else object).__setattr__(place.holder, place.key, content)


def _different_numbers(place: Place, before: Any) -> Iterator[tuple[str, float]]:
    """The Python numbers in a place that are not what they were, by name."""
    now = _read(place)
    if place.kind == "mapping":
        entries = [(key, value, (before or {}).get(key, _GONE)) for key, value in now.items()]
    elif place.kind in ("list", "deque"):
        old = before or []
        if _same_objects(now, old):
            return
        entries = [(k, value, old[k] if k < len(old) else _GONE) for k, value in enumerate(now)]
    elif place.kind == "set":
        entries = []
    else:
        entries = [("", now, _GONE if before is None else before)]
    for key, value, earlier in entries:
        before_it = earlier if isinstance(earlier, int | float) else None  # a tensor's == is no truth value
        if isinstance(value, int | float) and value is not earlier and value != before_it:
            name = f"{place.name}.{label(key)}" if place.name and key != "" else place.name or label(key)
            yield name, float(value)
