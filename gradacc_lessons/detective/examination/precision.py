"""Everything in reach in float64, so that rounding hides nothing."""

import torch
from torch import Tensor

from gradacc_lessons.detective.examination.conditions import WIDE
from gradacc_lessons.detective.examination.reach import Reach


def widen(reach: Reach) -> None:
    """Give every tensor in reach its numbers in float64. A Snapshot from before puts the old ones back.

    Tensors that look at the same memory go on doing so. RuntimeError or TypeError for a kind of tensor that cannot be
    widened.
    """
    tensors = [tensor for tensor in reach.tensors.values() if tensor.dtype in WIDE]
    by_memory: dict[int, list[Tensor]] = {}
    for tensor in tensors:
        by_memory.setdefault(tensor.data.untyped_storage().data_ptr(), []).append(tensor)
    for sharing in by_memory.values():
        if len(sharing) == 1 or len({tensor.dtype for tensor in sharing}) > 1:
            for tensor in sharing:
                tensor.data = tensor.data.to(WIDE[tensor.dtype])
            continue
        memory = _whole_memory(sharing[0]).to(WIDE[sharing[0].dtype])
        for tensor in sharing:
            now = tensor.data
            tensor.data = memory.as_strided(now.size(), now.stride(), now.storage_offset())


def _whole_memory(tensor: Tensor) -> Tensor:
    storage = tensor.data.untyped_storage()
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
