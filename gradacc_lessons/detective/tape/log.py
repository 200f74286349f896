"""The raw log of a tape, and how it becomes events."""

import weakref
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from gradacc_lessons.detective.tape.events import During, Event, Kind
from gradacc_lessons.detective.tape.gradients import Change
from gradacc_lessons.detective.tape.reading import Reader

WAITING = 1024
"""As many entries wait before their tensors are looked into: each look would make a GPU wait."""


class Pass:
    """One forward of the model that kept a graph."""

    def __init__(self, items: int | None, whole: bool, through: bool, synchronises: bool) -> None:
        self.items, self.whole, self.through, self.synchronises = items, whole, through, synchronises
        self.micro_batch: int | None = None
        self.kept = False
        self._in_graph: list[weakref.ref[Any]] = []

    def watch(self, arrival: object) -> None:
        """`arrival` lives as long as the graph."""
        self._in_graph.append(weakref.ref(arrival))

    def alive(self) -> bool:
        """Whether the graph still exists."""
        return any(reference() is not None for reference in self._in_graph)


@dataclass
class Raw:
    """An entry as the hooks write it: tensors that nobody has looked into yet."""

    kind: Kind
    micro_batch: int
    update: int
    seconds: float
    during: During
    change: Change | None = None
    items: int | None = None
    tensors: int = 0
    moves: int = 0
    rate: float | None = None
    optimizer: int = 0
    graphs: int = 0
    through: bool = False
    again: bool = False
    closure: bool = False
    synchronised: bool = False
    one_pass: Pass | None = None
    passes: list[Pass] = field(default_factory=list)
    received: set[int] = field(default_factory=set)
    scales: list[Tensor] = field(default_factory=list)
    """Of a backward: what arrived at a loss; of unscale: the scale; of an update: whether it is to be skipped."""


class Log:
    """Entries that wait, and the events that the others became."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.received: dict[int, int] = {}
        self._waiting: list[Raw] = []
        self._reader = Reader()

    def append(self, raw: Raw) -> None:
        """Add an entry."""
        self._waiting.append(raw)
        if len(self._waiting) >= WAITING and raw.kind == "update":
            self.settle()

    def settle(self, *, everything: bool = False) -> None:
        """Turn entries into events: all of them, or those before the first forward that may yet go backward."""
        done = 0
        for raw in self._waiting:
            one = raw.one_pass
            if not everything and one is not None and one.micro_batch is None and one.alive():
                break
            done += 1
            if raw.change is not None:
                self._gradients(raw, raw.change)
            else:
                self.events.append(self._event(raw))
        del self._waiting[:done]

    def _gradients(self, raw: Raw, change: Change) -> None:
        for written in self._reader.read(change):
            event = Event(
                written.what,
                raw.micro_batch,
                raw.update,
                raw.seconds,
                raw.during,
                factor=written.factor,
                tensors=written.tensors,
                complete=written.complete,
                finite=written.finite,
                norm=written.norm,
                scaled=written.scaled,
            )
            self.events.append(event)

    def _event(self, raw: Raw) -> Event:
        factor, items, complete, finite = None, raw.items, False, True
        micro_batch: int | None = raw.micro_batch
        if raw.one_pass is not None:
            micro_batch = raw.one_pass.micro_batch
        if raw.kind == "backward":
            self._reader.accumulated(raw.received, synchronised=raw.synchronised)
            for index in raw.received:
                self.received[index] = self.received.get(index, 0) + 1
            items = _together(raw.passes)
            raw.through = bool(raw.passes) and all(one.through for one in raw.passes)
            factor = sum(float(scale) for scale in raw.scales) if raw.scales else None
        if raw.kind == "update":
            complete = bool(self._reader.live) or raw.during == "backward"
            finite = not any(bool(found) for found in raw.scales)
        if raw.kind == "unscale":
            factor = 1 / float(raw.scales[0])
        return Event(
            raw.kind, micro_batch, raw.update, raw.seconds, raw.during, items, factor,
            tensors=len(raw.received) or raw.tensors, moves=raw.moves, rate=raw.rate, optimizer=raw.optimizer,
            complete=complete, finite=finite, through=raw.through, graphs=raw.graphs, again=raw.again,
            closure=raw.closure, forwards=len(raw.passes),
        )  # fmt: skip


def _together(passes: list[Pass]) -> int | None:
    """The items of a backward: all that went through the model, or the most where only parts of it were called."""
    items = [one.items for one in passes if one.items is not None]
    if not items:
        return None
    return sum(items) if all(one.whole for one in passes) else max(items)
