"""What the checks look at: windows, what was given, and where epochs end."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gradacc_lessons.detective.tape.windows import Window
from gradacc_lessons.text import Text


@dataclass(frozen=True)
class Given:
    """What the caller said about the loop."""

    accumulation_steps: int | None
    """N; None where it was not said."""
    micro_batches_per_epoch: int | None
    """How many micro-batches one epoch has."""
    counted: bool
    """Whether `count` was given."""


@dataclass(frozen=True)
class Facts:
    """What is known about the model and its gradients beside the events."""

    never: tuple[str, ...]
    """Names of trainable parameters that no backward reached."""
    trainable: int
    """How many trainable parameters there are."""
    low_precision: tuple[str, ...]
    """The 16-bit dtypes in which gradients were added up."""
    tokens: bool
    """The model is called with whole numbers in rows, which may be tokens."""
    before: bool = False
    """There were gradients when the tape began."""
    told_items: bool = False
    """The model was told how many items its whole window has, as transformers' Trainer does."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a loop."""

    id: str
    """Of the catalogue in faults.py where it is there too."""
    title: Text
    """In a few words."""
    said: Text
    """What was seen, with its numbers."""
    lesson: str
    """The notebook (file stem) that explains it."""
    windows: tuple[int, ...] = ()
    """In which windows it was seen."""

    def __str__(self) -> str:
        return f"{self.title.en}. {self.said.en}"


class View:
    """The windows of a tape, and questions that several checks ask about them."""

    def __init__(self, windows: Sequence[Window], facts: Facts, given: Given) -> None:
        self.windows, self.facts, self.given = list(windows), facts, given
        self.n, self.epoch_length = given.accumulation_steps, given.micro_batches_per_epoch
        self.updated = [one for one in self.windows if one.outcome == "updated" and not one.elsewhere]

    @cached_property
    def places(self) -> dict[int, int]:
        """Micro-batch -> its place among those that are meant for this model, from 0."""
        meant = {number for window in self.windows for number in (*window.fresh, *window.lost)}
        return {number: place for place, number in enumerate(sorted(meant))}

    def epoch(self, micro_batch: int) -> int | None:
        """The epoch of a micro-batch, from 0; None where the length of an epoch is not known."""
        return None if self.epoch_length is None else self.places[micro_batch] // self.epoch_length

    def ends_epoch(self, micro_batch: int) -> bool:
        """Whether it is known to be the last of its epoch."""
        return self.epoch_length is not None and (self.places[micro_batch] + 1) % self.epoch_length == 0

    def crosses(self, window: Window) -> bool:
        """Whether the window has micro-batches of more than one epoch."""
        return len({self.epoch(number) for number in window.fresh}) > 1

    def expected(self, window: Window) -> bool:
        """Whether the window is as long as it should be: N, or what is left of its epoch."""
        if self.n is None or len(window.fresh) == self.n or not window.fresh:
            return True
        if self.epoch_length is None or self.crosses(window):
            return False
        begins = self.places[window.fresh[0]] % self.epoch_length
        return begins % self.n == 0 and len(window.fresh) == min(self.n, self.epoch_length - begins)

    @cached_property
    def lengths(self) -> list[int]:
        """How many new micro-batches each update applies, updates without any left out."""
        return [len(window.fresh) for window in self.updated if window.fresh]
