"""Runs that are refused instead of being counted wrong."""

from collections.abc import Set
from dataclasses import dataclass


class CannotCount(ValueError):
    """A run whose memory would be counted wrong, or that cannot be followed."""


@dataclass(frozen=True)
class _Reason:
    what: str
    """What is in the run."""
    why: str
    """What is wrong with a count of it."""
    instead: str
    """What to do."""


LAZY = (
    "this model has a lazy layer, whose size is known only after its first batch: give it its size, such as "
    "nn.Linear(64, 10) for nn.LazyLinear(10)"
)
_OR_MEASURE = "or measure it with `allocator_peak`"
_LSTM = _Reason(
    "an LSTM",
    "its CPU kernel takes scratch memory that no tensor stands for, and a count would be too low by up to a third",
    f"Use a GRU, {_OR_MEASURE}",
)
_PRODUCT = _Reason(
    "the gradient of a product of many numbers (prod or cumprod)",
    "autograd computes it another way while it is watched, and a count would be too high by up to a half",
    f"Use the sum of logarithms, {_OR_MEASURE}",
)
_BAG = _Reason(
    "an EmbeddingBag",
    "the kernel of its gradient takes scratch memory that depends on the numbers, and a count would be too low",
    f"Use an Embedding and a mean, {_OR_MEASURE}",
)
_BILINEAR = _Reason(
    "a Bilinear layer",
    "its kernel takes scratch memory that no tensor stands for, and a count would be far too low",
    f"Use torch.einsum, {_OR_MEASURE}",
)
IN_BACKWARD = " in backward"
"""Added to the name of an operation that only counts as one of a gradient."""
_UNCOUNTED = {
    "aten::mkldnn_rnn_layer": _LSTM,
    "aten::mkldnn_rnn_layer_backward": _LSTM,
    f"aten::cumprod{IN_BACKWARD}": _PRODUCT,
    "aten::_trilinear": _BILINEAR,
    "aten::_embedding_bag_backward": _BAG,
    "aten::_embedding_bag_dense_backward": _BAG,
}


def refuse_uncounted(operations: Set[str]) -> None:
    """CannotCount, in one sentence, if one of these operations makes a count wrong."""
    for name, reason in _UNCOUNTED.items():
        if name in operations:
            raise CannotCount(f"this model has {reason.what}: {reason.why}. {reason.instead}")
