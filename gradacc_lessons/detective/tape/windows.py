"""Which micro-batches went into which update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gradacc_lessons.detective.tape.events import Event, Kind

Outcome = Literal["updated", "skipped", "open"]


@dataclass(frozen=True)
class Window:
    """What happened from one update to the next."""

    number: int
    """1 for the first."""
    micro_batches: tuple[int, ...]
    """Those whose gradient was there at the update, also if an earlier update had applied it already."""
    fresh: tuple[int, ...]
    """Of these, those that no earlier update had applied."""
    lost: tuple[int, ...]
    """Those that were zeroed before any update applied them."""
    items: int | None
    """The items of `micro_batches`; None where they are not known."""
    outcome: Outcome
    """"updated"; "skipped" if gradients that were not finite were thrown away, as a GradScaler does; "open" if the
    tape ended before an update."""
    events: tuple[Event, ...] = ()
    """What happened in it, the update and what follows it up to the next forward or backward included."""

    def of(self, *kinds: Kind) -> list[Event]:
        """Its events of these kinds."""
        return [event for event in self.events if event.kind in kinds]

    @property
    def elsewhere(self) -> bool:
        """Whether the loop put gradients into place itself: which micro-batches are in them cannot be seen."""
        until = [event.kind for event in self.events].index("update") if self.of("update") else len(self.events)
        written = [event for event in self.events[:until] if event.kind == "gradient"]
        return any(event.complete or event.factor is None for event in written)


class _Cutting:
    """Walks along the events and keeps what is in the gradient."""

    def __init__(self) -> None:
        self.windows: list[Window] = []
        self.items: dict[int, int | None] = {}
        self.held: list[int] = []
        self.applied: set[int] = set()
        self.through: set[int] = set()
        self.at_update: list[int] | None = None
        self.skipped = self.used = False
        self.optimizers: set[int] = set()
        self.lost: list[int] = []
        self.events: list[Event] = []

    def close(self, outcome: Outcome, held: list[int]) -> None:
        """A window ends; `held` was in the gradient."""
        items = [self.items.get(number) for number in held]
        total = sum(item for item in items if item is not None) if None not in items else None
        fresh = tuple(number for number in held if number not in self.applied)
        number = len(self.windows) + 1
        self.windows.append(Window(number, tuple(held), fresh, tuple(self.lost), total, outcome, tuple(self.events)))
        if outcome != "open":
            self.applied |= set(held)
        self.lost, self.events, self.at_update, self.optimizers = [], [], None, set()

    def close_update(self) -> None:
        """What follows an update belongs to it until the loop goes on."""
        if self.at_update is not None:
            self.close("skipped" if self.skipped else "updated", self.at_update)

    def update(self, event: Event) -> None:
        """Several optimizers, each once, make one update together. A fused one may be told to skip it."""
        if event.optimizer in self.optimizers:
            self.close_update()
        if self.at_update is None:
            self.at_update = list(self.held)
        if event.during == "backward":  # parameter by parameter, each as soon as it has its gradient
            self.held = []
        self.skipped = not event.finite
        self.optimizers.add(event.optimizer)
        self.events.append(event)

    def backward(self, event: Event) -> None:
        """A micro-batch is added to the gradient."""
        self.used, number = False, event.micro_batch or 0
        if not event.again:
            self.held.append(number)
            self.items[number] = event.items
            if event.through:
                self.through.add(number)

    def zeroed(self, event: Event) -> None:
        """What was in the gradient is gone; lost, if no update had applied it."""
        waiting = [] if self.at_update is not None else [n for n in self.held if n not in self.applied]
        held, self.held = self.held, []
        if waiting and not event.finite:
            self.close("skipped", held)
        elif (
            event.during != "update" and not self.used
        ):  # a closure tries out gradients that no update is meant to apply
            # What only passes through, on its way to another model, was not meant for this one either.
            self.lost += [number for number in waiting if number not in self.through]


def windows_of(events: Sequence[Event]) -> list[Window]:
    """Cut the events of a tape at its updates."""
    cut = _Cutting()
    for event in events:
        if event.kind == "update":
            cut.update(event)
            continue
        if event.kind == "backward" or (event.kind in ("forward", "evaluation") and event.during == "loop"):
            cut.close_update()
        cut.events.append(event)
        if event.kind == "backward":
            cut.backward(event)
        elif event.kind == "parameters":
            cut.used = True  # somebody has done something with the gradients by hand
        elif event.kind == "zero_grad" and event.complete:
            cut.zeroed(event)
    cut.close_update()
    waiting = [number for number in cut.held if number not in cut.applied]
    if waiting or cut.lost or not cut.windows:
        cut.close("open", waiting)
    return cut.windows
