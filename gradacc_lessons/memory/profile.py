"""What a measurement or a prediction of memory found: the peak, what it was made of, and how it came about."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd

from gradacc_lessons.memory.scratch import scratch_bytes
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.memory.tracker import Category, Phase, Piece, Tracker

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True)
class MemoryProfile:
    """The bytes of a run over time, by what they are for."""

    peak_bytes: int
    """The most that was in use at one moment, by `counter`."""
    by_category: dict[Category, int]
    """What the tracker's peak was made of, in bytes."""
    phase: Phase
    """In which phase of the loop the tracker's peak falls."""
    timeline: pd.DataFrame
    """One row per operation: its `phase`, and the bytes alive while it ran: a column per category, and `total`."""
    counter: str
    """Who counted `peak_bytes`."""
    cannot_see: str
    """What that counter does not count."""
    reserved_bytes: int | None = None
    """The most that PyTorch had taken from a CUDA or MPS device; None elsewhere."""

    @property
    def sentence(self) -> str:
        """The peak in words."""
        parts = sorted(self.by_category.items(), key=lambda part: -part[1])
        largest = ", ".join(f"{name} {readable(size)}" for name, size in parts if size * 100 >= self.peak_bytes)
        return f"The peak is {readable(self.peak_bytes)}, in the {self.phase} phase: {largest}."

    def figure(self) -> "Figure":
        """Stacked areas over the operations, with the phases marked."""
        from gradacc_lessons.memory.picture import picture

        return picture(self)


def profile_of(tracker: Tracker) -> tuple[pd.DataFrame, dict[Category, int], Phase]:
    """The timeline of what a tracker saw, and the parts and the phase of its peak.

    ValueError if it saw no operation.
    """
    if not tracker.phases:
        raise ValueError("nothing ran on tensors, so there is no memory to count")
    timeline = _timeline(tracker)
    at = int(timeline["total"].to_numpy().argmax())
    parts: dict[Category, int] = {name: int(timeline[name].iloc[at]) for name in CATEGORIES}
    return timeline, parts, tracker.phases[at]


def _timeline(tracker: Tracker) -> pd.DataFrame:
    length = len(tracker.phases)
    changes: dict[Category, Any] = {name: np.zeros(length + 1, dtype=np.int64) for name in CATEGORIES}
    # An activation is saved if it was made in a forward and is still there when backward begins.
    turns = [k + 1 for k, (now, then) in enumerate(pairwise(tracker.phases)) if (now, then) == ("forward", "backward")]
    for piece in tracker.pieces:
        category = piece.category or _category(piece, tracker.phases, turns)
        changes[category][max(piece.born, 0)] += piece.size
        if piece.died is not None:
            changes[category][piece.died + 1] -= piece.size
    for operation, kernel in tracker.kernels:
        scratch = kernel if isinstance(kernel, int) else scratch_bytes(kernel)
        changes["temporaries"][operation] += scratch
        changes["temporaries"][operation + 1] -= scratch
    columns: dict[str, Any] = {name: change.cumsum()[:length] for name, change in changes.items()}
    return pd.DataFrame({"phase": tracker.phases, **columns, "total": np.sum(list(columns.values()), axis=0)})


def _category(piece: Piece, phases: list[Phase], turns: list[int]) -> Category:
    if phases[piece.born] != "forward":
        return "temporaries"
    turn = bisect_left(turns, piece.born)
    saved = turn < len(turns) and (piece.died is None or piece.died >= turns[turn])
    return "saved activations" if saved else "temporaries"
