"""Counts the bytes of every tensor while it lives, by watching each operation that PyTorch dispatches.

It sees what operations return, not what a kernel takes and gives back within one operation. It works the same on
real tensors and on the fake ones of `FakeTensorMode`, which have sizes and lifetimes but no memory.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from gradacc_lessons.memory.scratch import MAY_TAKE_SCRATCH, Kernel, kernel, mask_bytes
from gradacc_lessons.memory.uncounted import IN_BACKWARD, LAZY, CannotCount
from gradacc_lessons.memory.walk import Optimizers, optimizers_in
from gradacc_lessons.nested import tensors_in

Phase = Literal["forward", "backward", "update"]
_Stage = Phase | Literal["evaluation"]
Category = Literal["parameters", "gradients", "optimizer state", "saved activations", "inputs", "temporaries"]


_IN_PLACE_WHEN_ALONE = {
    "aten::add.Tensor", "aten::index_put", "aten::put", "aten::scatter.src", "aten::scatter.value", "aten::scatter_add",
    "aten::index_add", "aten::index_copy", "aten::masked_scatter",
}  # fmt: skip
"""What autograd does in place in backward, but never while a dispatch mode looks on (isTensorSubclassLike in its
input_buffer.cpp and FunctionsManual.cpp): where two gradients of one tensor meet, the second is added into the first,
and the gradient of what was chosen from a tensor is written into zeros."""


_KEEP_ROOM_FOR_EACH = {"aten::binary_cross_entropy", "aten::mse_loss", "aten::smooth_l1_loss"}
"""Losses whose one number keeps the room of the numbers that it is the mean of. Fake tensors do not know it."""


_backward_now = torch._C._current_graph_task_id
"""-1 outside of a backward. torch.utils.checkpoint asks the same way; there is no public name for it."""


@dataclass(slots=True)
class Piece:
    """One piece of memory: a tensor's storage, from its birth to its death."""

    size: int
    """Bytes."""
    born: int
    """Number of the operation that made it; -1 if it was there before."""
    category: Category | None
    """What it is for, where that is known while it lives."""
    died: int | None = None
    """Number of the operation after which it was freed; None if it is still there."""


class Tracker(AbstractContextManager["Tracker"]):
    """Watches what happens inside the `with` block. Nothing of the caller's is changed.

    `pieces` of memory, `phases` (one per operation), the names of all `operations`, and the `kernels` that take
    scratch (or the bytes of it), each with the number of its operation, are what it saw.
    """

    def __init__(self, model: nn.Module, optimizers: Optimizers, inputs: Any) -> None:
        self._model, self._optimizers, self._inputs = model, optimizers_in(optimizers), inputs
        self.pieces: list[Piece] = []
        self.phases: list[Phase] = []
        self._stages: list[_Stage] = []
        self.operations: set[str] = set()
        self.kernels: list[tuple[int, Kernel | int]] = []
        self._reused: list[tuple[Piece, int]] = []
        self._live: dict[int, tuple[Piece, _Storage, int]] = {}
        self._left: list[ref[Any]] = []
        self._traits: dict[int, _Traits] = {}
        self._masked = -1
        self._updating = self._updated = False
        self._mode = _Watch(self)

    def __enter__(self) -> Self:
        for tensor in (*self._model.parameters(), *self._model.buffers()):
            if is_lazy(tensor):
                raise CannotCount(LAZY)
            self._add(tensor, "parameters")
        self._mark_gradients()
        self._mark_state()
        for tensor in tensors_in(self._inputs):
            self._add(tensor, "inputs")
        self._hooks = [optimizer.register_step_pre_hook(self._before_update) for optimizer in self._optimizers]
        self._hooks += [optimizer.register_step_post_hook(self._after_update) for optimizer in self._optimizers]
        self._mode.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.__exit__(kind, error, trace)
        for hook in self._hooks:
            hook.remove()
        self._mark_gradients()
        self._mark_state()
        for piece, operation in self._reused:
            if piece.died == operation:
                piece.died = operation - 1
        self._settle_phases()
        # What an operation was given and nobody was seen to make is the caller's own.
        kept = (
            storage() for piece, storage, _ in self._live.values() if piece.born >= 0 and piece.category != "inputs"
        )
        self._left = [ref(storage) for storage in kept if storage is not None]
        self._live.clear()  # and with it the references that would go on counting

    def watch(self, operation: Any, arguments: tuple[Any, ...], options: dict[str, Any], result: Any) -> None:
        """One operation has run."""
        traits = self._traits.get(id(operation)) or self._learn(operation)
        if traits.computes_nothing:
            return
        now, live = len(self._stages), self._live
        for value in (*arguments, *options.values()) if options else arguments:
            # Nothing was seen to make what is new here: a batch that was loaded meanwhile, say. It counts from here on.
            if isinstance(value, Tensor):
                if _key(value) not in live:
                    self._add(value, "inputs", born=now)
            elif type(value) is list:
                for tensor in tensors_in(value):
                    if _key(tensor) not in live:
                        self._add(tensor, "inputs", born=now)
        stage = self._phase(traits.makes_something)
        self._enter_phase(stage)
        size = arguments[0].nbytes if traits.keeps_room else 0
        for tensor in (result,) if isinstance(result, Tensor) else tensors_in(result):
            self._add(tensor, None, born=now, at_least=size)
        if traits.may_take_scratch:
            used = kernel(operation, arguments, options, result) or mask_bytes(operation, arguments, result)
            if used:
                self.kernels.append((now, used))
        if stage == "backward":
            self.operations.add(traits.name_in_backward)
            if traits.finds_the_largest:
                self._room_for_the_largest(traits.name, arguments[0], result)
            if traits.in_place_when_alone:
                self._reuse(arguments[0], result)

    def _learn(self, operation: Any) -> "_Traits":
        traits = _traits(operation)
        if not traits.computes_nothing:
            self.operations.add(traits.name)
        self._traits[id(operation)] = traits
        return traits

    def _reuse(self, first: Any, total: Any) -> None:
        # If nobody else holds the first, it is gone right after this operation: then its memory would have become that
        # of the result. A view's first owner holds it, so views are never written into.
        pieces = [self._live[t.untyped_storage()._cdata][0] for t in (first, total) if isinstance(t, Tensor)]
        if len(pieces) == 2 and not first._is_view() and pieces[0].size == pieces[1].size and pieces[0].born >= 0:
            self._reused.append((pieces[0], len(self._stages) - 1))

    def _room_for_the_largest(self, name: str, mask: Any, result: Tensor) -> None:
        # Backward looks for the largest number of all (or the smallest, or the median) with masks: isnan of two
        # things, logical_and, eq, logical_or_; then sum, div, mul. Where nothing looks on it makes one mask, and has
        # zeros for the gradient before it takes the sum (evenly_distribute_backward in FunctionsManual.cpp).
        now = len(self._stages) - 1
        if name == "aten::logical_or_":
            masks = [piece for piece in self.pieces[-4:] if piece.size == mask.nbytes]
            if [piece.born for piece in masks] == [now - 4, now - 2, now - 1]:
                masks[0].size = masks[1].size = 0
                self._masked = now
        elif now == self._masked + 3:
            self._live[result.untyped_storage()._cdata][0].born = self._masked

    def _phase(self, makes_something: bool) -> _Stage:
        if self._updating:
            return "update"
        stage: _Stage = self._stages[-1] if self._stages else "forward"
        # After the update come zeros and averages of weights, in place. What makes something new is a model again.
        if stage == "update" and self._updated and not makes_something:
            return "update"
        # Backward runs without a graph of its own; where one is made, activations are being computed again.
        if torch.is_grad_enabled():
            return "forward"
        if _backward_now() != -1:
            return "backward"
        if stage == "update":
            return "evaluation" if self._updated else "update"
        return "update" if stage == "backward" else stage  # after a backward: clipping, say

    def _enter_phase(self, phase: _Stage) -> None:
        if phase == "backward":
            self._updated = False
        elif self._stages and self._stages[-1] == "backward":
            self._mark_gradients()
        self._stages.append(phase)

    def _settle_phases(self) -> None:
        # Around the optimizer's own step gradients are still looked at; a forward is what a backward follows.
        runs = [(phase, sum(1 for _ in run)) for phase, run in groupby(self._stages)]
        settled: list[Phase] = []
        for (phase, length), (then, _) in zip(runs, [*runs, ("update", 0)][1:], strict=True):
            around = phase == "forward" and then == "update" and settled
            settled += ["update" if around else "forward" if phase == "evaluation" else phase] * length
        self.phases = settled

    def _add(self, tensor: Tensor, category: Category | None, born: int = -1, at_least: int = 0) -> None:
        try:
            storage = tensor.untyped_storage()
        except RuntimeError:  # it has none of its own
            for part in _parts(tensor):
                self._add(part, category, born)
            return
        key, size = storage._cdata, storage.nbytes()
        if (known := self._live.get(key)) is not None:
            if known[2] == size:
                if category == "gradients" or category == "optimizer state":
                    known[0].category = category
                return
            self._died(key)
        if tensor.is_nested:
            _parts(tensor)
        piece = Piece(max(size, at_least), born, category)
        self.pieces.append(piece)
        reference = _Storage(storage, self._freed)
        reference.key = key
        self._live[key] = piece, reference, size

    def forget(self) -> None:
        """Let go of the caller's objects; what was counted stays."""
        self._model, self._optimizers, self._inputs = nn.Module(), [], ()

    def left_over(self) -> bool:
        """Whether a tensor that was made while this watched still lives."""
        return any(storage() is not None for storage in self._left)

    def _freed(self, storage: "_Storage") -> None:
        if storage.key in self._live:
            self._died(storage.key)

    def _died(self, key: int) -> None:
        piece, *_ = self._live.pop(key)
        piece.died = len(self._stages) - 1

    def _mark_gradients(self) -> None:
        for parameter in self._model.parameters():
            if parameter.grad is not None:
                self._add(parameter.grad, "gradients")

    def _mark_state(self) -> None:
        for tensor in tensors_in([list(optimizer.state.values()) for optimizer in self._optimizers]):
            self._add(tensor, "optimizer state")

    def _before_update(self, *_: Any) -> None:
        self._mark_gradients()
        self._updating = True

    def _after_update(self, *_: Any) -> None:
        self._mark_state()
        self._updating, self._updated = False, True


class _Watch(TorchDispatchMode):
    """Runs each operation and tells the tracker."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch's guard around each call costs as much as all that is done in it

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self._tracker = tracker

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self._tracker.watch(func, args, kwargs, result)
        return result


class _Storage(ref):  # type: ignore[type-arg]
    """A weak reference that knows which entry it stands for."""

    __slots__ = ("key",)
    key: int


class _Traits(NamedTuple):
    """What is asked of an operation each time it runs, and is always the same."""

    operation: Any
    """Kept, so that its id stays its own."""
    name: str
    name_in_backward: str
    computes_nothing: bool
    makes_something: bool
    """Whether it returns new memory: it writes into nothing, and what it returns is no view."""
    may_take_scratch: bool
    keeps_room: bool
    in_place_when_alone: bool
    finds_the_largest: bool
    """Whether it is one of those that find the largest number of all in backward."""


def _traits(operation: Any) -> _Traits:
    name, schema = operation.name(), operation._schema
    return _Traits(
        operation,
        name,
        name + IN_BACKWARD,
        operation.namespace in ("prim", "profiler"),
        not schema.is_mutable and all(returned.alias_info is None for returned in schema.returns),
        name in MAY_TAKE_SCRATCH,
        name in _KEEP_ROOM_FOR_EACH,
        name in _IN_PLACE_WHEN_ALONE,
        name in ("aten::logical_or_", "aten::mul.Tensor"),
    )


def _key(tensor: Tensor) -> int | None:
    """What its storage is known by; None if it has none of its own."""
    try:
        key: int = tensor.untyped_storage()._cdata
    except RuntimeError:
        return None
    return key


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """The tensors that hold a sparse tensor's memory. CannotCount for a layout whose memory cannot be looked at."""
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
    raise CannotCount(f"this run has a {layout} tensor, whose memory cannot be looked at: it is not counted here")
