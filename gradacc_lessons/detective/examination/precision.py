"""Everything in reach in float64, so that rounding hides nothing."""

from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.detective.examination.conditions import WIDE
from gradacc_lessons.detective.examination.keep import exchange
from gradacc_lessons.detective.examination.reach import Reach

_MARK = "examined"


def widen(roots: dict[str, Any], reach: Reach) -> dict[int, Tensor]:
    """Give every tensor in reach its numbers in float64; a Snapshot from before puts the old ones back.

    A tensor takes float64 numbers itself. One whose gradient somebody waits for, by a graph that is still alive or as
    DistributedDataParallel does, would lose what hangs on it: another takes its place wherever it is referred to. The
    result has these by the id of the old one. Tensors that look at the same memory go on doing so.

    RuntimeError or TypeError for what cannot be widened.
    """
    tensors = [tensor for tensor in reach.tensors.values() if tensor.dtype in WIDE]
    awaited = [tensor for tensor in tensors if tensor.layout == torch.strided and _awaited(tensor)]
    instead = {id(tensor): _another(tensor) for tensor in awaited}
    if instead:
        for place in reach.places:
            exchange(place, instead)
        if any(id(tensor) in instead for tensor in Reach(roots).tensors.values()):
            raise RuntimeError("a parameter whose gradient something waits for is held where it cannot be exchanged")
    by_memory: dict[int, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.layout != torch.strided:
            _widen_together([tensor])
        elif id(tensor) not in instead:
            by_memory.setdefault(tensor.data.untyped_storage().data_ptr(), []).append(tensor)
    for sharing in by_memory.values():
        _widen_together(sharing)
    return instead


def _widen_together(sharing: list[Tensor]) -> None:
    """The tensors that look at one piece of memory."""
    if len(sharing) == 1 or len({tensor.dtype for tensor in sharing}) > 1:
        for tensor in sharing:
            tensor.data = tensor.data.to(WIDE[tensor.dtype])
        return
    storage = sharing[0].data.untyped_storage()
    narrow = torch.empty(0, dtype=sharing[0].dtype, device=sharing[0].device).set_(storage)
    memory = narrow.to(WIDE[narrow.dtype])
    for tensor in sharing:
        now = tensor.data
        tensor.data = memory.as_strided(now.size(), now.stride(), now.storage_offset())


def _another(tensor: Tensor) -> Tensor:
    values = tensor.detach().to(WIDE[tensor.dtype])  # no inference tensor, outside of inference mode
    another = nn.Parameter(values) if isinstance(tensor, nn.Parameter) else values
    another.requires_grad_(tensor.requires_grad)
    for hook in (tensor._backward_hooks or {}).values():
        another.register_hook(hook)
    return another


def _awaited(tensor: Tensor) -> bool:
    """Whether somebody keeps the node that adds up this tensor's gradient: a change of dtype would make a new one."""
    if tensor.is_inference():  # nobody may write to it
        return True
    if not tensor.is_leaf or not tensor.requires_grad:
        return False
    _node(tensor).metadata[_MARK] = True
    node = _node(tensor)
    return node.metadata.pop(_MARK, False) is True


def _node(tensor: Tensor) -> Any:
    with torch.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]  # type: ignore[union-attr]  # it has one: a leaf
