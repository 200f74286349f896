"""What happens in a training loop, one event at a time."""

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal[
    "forward",
    "evaluation",
    "backward",
    "unscale",
    "clip",
    "gradient",
    "update",
    "schedule",
    "zero_grad",
    "parameters",
    "buffers",
    "watched",
    "all_reduce",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
During = Literal["loop", "forward", "backward", "update"]


@dataclass(frozen=True)
class Event:
    """One thing that the loop did, or that was found done when a hook next looked."""

    kind: Kind
    """What it was. "evaluation" is a forward that keeps no graph; "gradient" and "parameters" are writes into
    gradients and trainable parameters that are none of the other kinds; "buffers" are writes into the model's buffers,
    such as running statistics; "watched" are writes into its frozen parameters and into the watched modules."""
    micro_batch: int | None
    """The micro-batch it belongs to or comes after: 1 is the first that went backward, 0 is before that. A forward
    has the number of the micro-batch that it became; None if it never went backward."""
    update: int
    """How many updates there were before it."""
    seconds: float
    """When, in seconds since the tape began."""
    during: During = "loop"
    """Within a forward, within a backward (an optimizer that steps in a hook), within an optimizer's step (as a
    closure does), or in the loop itself."""
    items: int | None = None
    """Of a forward or backward: the examples, or what `count` counts. None where no forward was seen."""
    factor: float | None = None
    """Of unscale, clip and gradient: what the gradient was multiplied by; None if not by one number. Of a backward
    through a loss that the model itself returns: the number that this loss was multiplied by."""
    tensors: int = 0
    """How many parameters or buffers it concerned."""
    moves: int = 0
    """Of schedule: how many times it moved, where the scheduler tells."""
    rate: float | None = None
    """Of schedule and update: the learning rate of the first parameter group, as it is from then on."""
    optimizer: int = 0
    """Of update: which optimizer, in the order of their first updates."""
    complete: bool = False
    """Of zero_grad: no gradient is left. Of update: something else than zero was there to apply."""
    finite: bool = True
    """Of update, unscale and zero_grad: whether the gradients that were looked at were finite."""
    norm: float | None = None
    """Of clip: the norm that it left, where that was taken: before the first updates."""
    scaled: float | None = None
    """Of clip: how many times too long the gradient was, as it was unscaled only afterwards; None if it was not."""
    through: bool = False
    """Of a forward or backward: the model's input was itself computed with a graph, so the gradient passes on."""
    graphs: int = 0
    """Of a forward: the earlier micro-batches whose graph is kept after their backward. Of an update: the forwards
    whose graph is kept and that did not go backward."""
    again: bool = False
    """Of a backward: it came through forwards that had gone backward before, so it is no micro-batch of its own."""
    closure: bool = False
    """Of an update: it ran a forward and backward within its step."""
    forwards: int = 0
    """Of a backward: how many forwards it came through for the first time."""
