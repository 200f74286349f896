"""What a loop is tried on: small problems with known gradients, one row of numbers per situation.

`network` is a two-layer classifier, so that gradients depend on the parameters and the order of updates matters.
`tracer` is a linear model in which the mean loss of micro-batch k is the k-th weight: each update then shows with
what weight each micro-batch went into it, as dye shows where water went.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gradacc_lessons.detective.wire import Array

Scope = Literal["windows", "tail", "items"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""From the weakest demand to the strictest."""
Keyword = Literal["count", "max_norm", "scheduler"]
KEYWORDS: tuple[Keyword, ...] = get_args(Keyword)
"""What a loop may also accept, by keyword."""

Clip = Literal["norm", "value", "largest", "parameter"]
CLIPS: tuple[Clip, ...] = get_args(Clip)
"""The ways in which torch.nn.utils clips."""

EPOCHS = 2
"""Two, so that what leaks out of one epoch is seen in the next."""
IGNORED = -100
"""The label that does not count, as in torch's cross_entropy."""
NO_CLIPPING = 1e6
"""Passed as max_norm where nothing shall be clipped; no gradient here comes near it."""
FEATURES, HIDDEN, CLASSES = 5, 6, 3


@dataclass(frozen=True)
class Scenario:
    """One situation in which the loop runs for two epochs."""

    name: str
    """Unique; evidence and answers refer to it."""
    scope: Scope
    """The weakest scope that includes it."""
    sizes: tuple[int, ...]
    """Examples in each micro-batch."""
    accumulation_steps: int
    """Micro-batches per window."""
    kind: Literal["network", "tracer"] = "network"
    """Which model."""
    optimizer: Literal["sgd", "momentum", "adam"] = "sgd"
    """Which optimizer the loop is given."""
    learning_rate: float = 8.0
    """Its learning rate before any schedule; large because the gradients are small."""
    gain: float = 0.05
    """Factor of the loss. Small, so that somebody's clipping at 1.0 does not interfere."""
    ignored: tuple[int, ...] = ()
    """Labels in each micro-batch that do not count; empty where all do."""
    max_norm: float = NO_CLIPPING
    """What a loop that accepts max_norm is asked to clip to."""
    decay: float = 1.0
    """Factor of the learning rate at each call of scheduler.step()."""
    needs: Keyword | None = None
    """Only for loops that accept this keyword."""
    unless: Keyword | None = None
    """Only for loops that do not accept this keyword."""
    clip_by: Clip = "norm"
    """What max_norm bounds: the length of the gradient, each of its entries, its largest entry, or the length of each
    parameter's part."""

    @property
    def windows(self) -> list[range]:
        """The micro-batches (indices) of each window of an epoch."""
        length, size = len(self.sizes), self.accumulation_steps
        return [range(start, min(start + size, length)) for start in range(0, length, size)]


_EQUAL = (3,) * 8
_TAIL = (3,) * 10
_RAGGED = (3, 1, 2, 4, 2, 5, 1, 1, 4, 1)

SCENARIOS: tuple[Scenario, ...] = (
    # The two max_norm are numbers that nobody writes into a loop, and so are their halves, thirds and quarters.
    Scenario("windows", "windows", _EQUAL, 4),
    Scenario("momentum", "windows", (3,) * 6, 2, optimizer="momentum", learning_rate=4.0),
    Scenario("adam", "windows", (2,) * 6, 3, optimizer="adam", learning_rate=0.05),
    Scenario("trace of windows", "windows", _EQUAL, 4, kind="tracer", learning_rate=20.0),
    Scenario("clip", "windows", _EQUAL, 4, gain=30.0, learning_rate=0.3, max_norm=1.7, needs="max_norm"),
    Scenario("large gradients", "windows", _EQUAL, 4, gain=30.0, learning_rate=0.3, unless="max_norm"),
    Scenario("schedule", "windows", _EQUAL, 4, decay=0.7, needs="scheduler"),
    Scenario("tail", "tail", _TAIL, 4),
    Scenario("short epoch", "tail", (3, 3, 3), 4),
    Scenario("trace of the tail", "tail", _TAIL, 4, kind="tracer", learning_rate=20.0),
    Scenario("clip the tail", "tail", _TAIL, 4, gain=30.0, learning_rate=0.3, max_norm=2.3, needs="max_norm"),
    Scenario("schedule the tail", "tail", _TAIL, 4, decay=0.7, needs="scheduler"),
    Scenario("items", "items", _RAGGED, 4),
    Scenario("trace of items", "items", _RAGGED, 4, kind="tracer", learning_rate=20.0),
    Scenario(
        "counted",
        "items",
        (4, 5, 3, 4, 6, 4, 5, 4, 4, 3),
        4,
        ignored=(0, 4, 1, 2, 1, 0, 4, 2, 3, 0),
        needs="count",
    ),
)


def included(scope: Scope) -> list[Scenario]:
    """All situations of `scope` and of the weaker ones."""
    return [s for s in SCENARIOS if SCOPES.index(s.scope) <= SCOPES.index(scope)]


def scenarios(scope: Scope, accepted: Collection[str]) -> list[Scenario]:
    """The situations that `scope` includes for a loop that accepts these keywords."""
    return [s for s in included(scope) if s.needs in (None, *accepted) and s.unless not in accepted]


@dataclass(frozen=True)
class Problem:
    """The numbers of a scenario."""

    inputs: tuple[Array, ...]
    """One array per micro-batch, (examples, features)."""
    labels: tuple[NDArray[np.int64], ...]
    """One array per micro-batch, (examples,)."""
    start: Array
    """All parameters before the first epoch, flat, in torch's order."""

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many labels count, in each micro-batch."""
        return tuple(int((labels != IGNORED).sum()) for labels in self.labels)


@lru_cache(maxsize=64)
def problem(scenario: Scenario) -> Problem:
    """The same numbers at every call."""
    random = np.random.default_rng([7, *map(ord, scenario.name)])
    if scenario.kind == "tracer":
        length = len(scenario.sizes)
        rows = tuple(np.eye(length)[[k] * size] for k, size in enumerate(scenario.sizes))
        return Problem(rows, tuple(np.zeros(size, np.int64) for size in scenario.sizes), np.zeros(length))
    inputs = tuple(random.normal(size=(size, FEATURES)) + random.normal(size=FEATURES) for size in scenario.sizes)
    labels = tuple(random.integers(CLASSES, size=size) for size in scenario.sizes)
    for label, ignored in zip(labels, scenario.ignored, strict=False):
        label[:ignored] = IGNORED
    parameters = FEATURES * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES
    return Problem(inputs, labels, random.normal(scale=0.4, size=parameters))


def parts(scenario: Scenario, vector: Array) -> list[Array]:
    """The part of a flat vector that belongs to each of the model's parameters, in torch's order."""
    if scenario.kind == "tracer":
        return [vector]
    return list(np.split(vector, np.cumsum([FEATURES * HIDDEN, HIDDEN, HIDDEN * CLASSES])))


def gradient(scenario: Scenario, parameters: Array, index: int) -> Array:
    """The gradient of the mean loss of micro-batch `index` at `parameters`, flat, in closed form."""
    data = problem(scenario)
    if scenario.kind == "tracer":
        row: Array = data.inputs[index][0]
        return row * scenario.gain
    one, two, three = (
        FEATURES * HIDDEN,
        FEATURES * HIDDEN + HIDDEN,
        FEATURES * HIDDEN + HIDDEN + HIDDEN * CLASSES,
    )
    first, second = parameters[:one].reshape(HIDDEN, FEATURES), parameters[two:three].reshape(CLASSES, HIDDEN)
    inputs, labels = data.inputs[index], data.labels[index]
    hidden = np.tanh(inputs @ first.T + parameters[one:two])
    scores = hidden @ second.T + parameters[three:]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    error = scores / scores.sum(axis=1, keepdims=True)
    counts = labels != IGNORED
    error[counts.nonzero()[0], labels[counts]] -= 1.0
    error *= counts[:, None] * (scenario.gain / counts.sum())
    below = (error @ second) * (1.0 - hidden**2)
    return np.concatenate(
        [(below.T @ inputs).ravel(), below.sum(axis=0), (error.T @ hidden).ravel(), error.sum(axis=0)]
    )
