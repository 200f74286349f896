"""Predicted peaks for windows of every shape: each shape is followed once, and kept."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from gradacc_lessons.memory.loop import LossFunction, in_precision
from gradacc_lessons.memory.predict import TRACED_MICRO_BATCHES, input_bytes, predict_window
from gradacc_lessons.memory.profile import MemoryProfile
from gradacc_lessons.recipe import Recipe

FIXED = ("parameters", "gradients", "optimizer state", "inputs")
"""What does not grow with a micro-batch, the window as a whole being given."""

DOUBT = 0.05
"""How far the line may lie above the budget before it is believed."""


def balanced(target: int, accumulation_steps: int) -> tuple[int, ...]:
    """`target` examples in so many micro-batches whose sizes differ by at most one, the larger first.

    >>> balanced(10, 3)
    (4, 3, 3)
    """
    size, larger = divmod(target, accumulation_steps)
    return (size + 1,) * larger + (size,) * (accumulation_steps - larger)


class RefusesOne(ValueError):
    """The model cannot be trained on micro-batches of one example (as BatchNorm may not)."""


class _Point(NamedTuple):
    """What forward and backward need at one micro-batch size, the inputs not counted."""

    size: int
    """Examples in the micro-batch."""
    in_use: int
    """The most bytes that are in use in a forward or a backward."""
    growing: int
    """How many of these are activations and temporaries, which may grow with the size."""


class Forecast:
    """How much memory any window of a model would take. Plans for other targets and budgets can share one.

    `tell(sentence)` hears what is being followed, before it is.
    """

    def __init__(
        self,
        build_model: Callable[[], nn.Module],
        loss_fn: LossFunction,
        make_batch: Callable[[int], Any],
        recipe: Recipe,
        *,
        device: torch.device | str | None = None,
        tell: Callable[[str], object] | None = None,
    ) -> None:
        self.build_model, self.loss_fn, self.make_batch = build_model, loss_fn, make_batch
        self.recipe, self.device, self.tell = recipe, device, tell or (lambda _: None)
        self._followed: dict[tuple[int, ...], MemoryProfile] = {}
        self._variants: dict[Recipe, Forecast] = {}
        self._smallest: tuple[int, Any] | None = None
        self.has_batch_norm = False
        """Whether a model that was followed normalises by what is in its micro-batch."""

    @property
    def probes(self) -> int:
        """How many windows have been followed so far."""
        return len(self._followed)

    def knows(self, target: int, accumulation_steps: int) -> bool:
        """Whether this window has been followed already, so that its peak is there at once."""
        return _head(target, accumulation_steps) in self._followed

    def variant(self, **changes: Any) -> "Forecast":
        """The forecast for the same model under a recipe with these changes."""
        recipe = replace(self.recipe, **changes)
        if recipe not in self._variants:
            self._variants[recipe] = Forecast(
                self.build_model, self.loss_fn, self.make_batch, recipe, device=self.device, tell=self.tell
            )
        return self._variants[recipe]

    def peak(self, target: int, accumulation_steps: int) -> int:
        """The predicted peak, in bytes, of a window of `target` examples in so many micro-batches."""
        head = _head(target, accumulation_steps)
        return self._window(head).peak_bytes + self._waiting(target, accumulation_steps)

    def profile(self, target: int, accumulation_steps: int) -> MemoryProfile:
        """The same with its parts and its timeline."""
        profile = self._window(_head(target, accumulation_steps))
        waiting = self._waiting(target, accumulation_steps)
        timeline = profile.timeline.copy()
        timeline[["inputs", "total"]] += waiting
        parts = {**profile.by_category, "inputs": profile.by_category["inputs"] + waiting}
        return replace(profile, peak_bytes=profile.peak_bytes + waiting, by_category=parts, timeline=timeline)

    def cost_of_accumulating(self, size: int) -> int:
        """What a second micro-batch of `size` adds to the peak of the first, its own inputs apart, in bytes."""
        pair, one = self._window((size, size)), self._window((size,))
        return pair.peak_bytes - one.peak_bytes - self._inputs(size)

    def cost_of_an_example(self, size: int) -> float:
        """What one more example in each micro-batch adds to the forwards and backwards, near this size, in bytes."""
        for more in (size, size + 1):  # a line needs two sizes, and a plan may have looked at one only
            if len({point.size for point in self._growth()}) < 2:
                self._window((more, more))
        near, other = _two_nearest(self._growth(), lambda point: abs(point.size - size))
        assert other is not None
        return max((near.in_use - other.in_use) / (near.size - other.size), 0.0)

    def guess(self, target: int, budget_bytes: int) -> int:
        """How many micro-batches it will take, going by what has been followed so far."""
        room = budget_bytes - self._inputs(target)
        points = self._growth()

        def distance(point: _Point) -> float:
            return abs(point.in_use - room)

        size, in_use, _ = min(points, key=distance)
        slope = _slope(points, distance)
        fitting = math.floor(size + (room - in_use) / slope) if slope > 0 else target
        return math.ceil(target / min(max(fitting, 1), target))

    def may_fit_alone(self, target: int, budget_bytes: int) -> bool:
        """Whether it is worth following one batch of all `target` examples: False only if it cannot fit.

        At each moment of a window, what is in use is a straight line in the size: something fixed, and so much for
        each example. The peak is the highest of these lines, and a maximum of lines bends upwards: it rises faster
        the larger the size. Peaks of 10 MiB at 4 examples and 14 MiB at 8 rise by 1 MiB an example, so that 16
        examples take 22 MiB or more.
        """
        by_size = {point.size: point for point in self._growth()}
        if len(by_size) < 2:
            return True
        (size, in_use, _), (other, less, _) = sorted(by_size.values(), reverse=True)[:2]
        least = in_use + (in_use - less) / (size - other) * (target - size)
        # The points are of two micro-batches: the second has the first one's gradients beside it, and each fresh
        # gradient until it is added to them; alone it has neither. With 3 MiB of gradients that is up to 6 MiB less.
        gradients = max(profile.by_category["gradients"] for profile in self._followed.values())
        return least - 2 * gradients + self._inputs(target) <= budget_bytes * (1 + DOUBT)

    def _growth(self) -> list[_Point]:
        """A point for each window that was followed; only for those of two micro-batches, if there are any.

        After micro-batches of 13 it may say (13, 30 MiB, 26 MiB): 30 MiB at most, and but for 4 MiB of parameters,
        gradients and optimizer state all of it may grow with the size.
        """
        accumulated = any(len(head) > 1 for head in self._followed)
        points = []
        for head, profile in self._followed.items():
            if len(head) > 1 or not accumulated:
                rows = profile.timeline[profile.timeline["phase"] != "update"]
                without_inputs = (rows["total"] - rows["inputs"]).to_numpy()
                at = int(without_inputs.argmax())
                fixed = sum(int(rows[name].iloc[at]) for name in FIXED)
                # The peak of a pair is in one of its two halves: which one says of what size it is.
                size = head[0] if at < len(rows) / 2 else head[-1]
                points.append(_Point(size, int(without_inputs[at]), int(rows["total"].iloc[at]) - fixed))
        return points

    def _window(self, head: tuple[int, ...]) -> MemoryProfile:
        if head not in self._followed:
            sizes = " and ".join(f"{size:,}" for size in dict.fromkeys(head))
            shape = f"micro-batches of {sizes}" if len(head) > 1 else f"one batch of {sizes}"
            self.tell(f"following {shape} through the model")
            self._followed[head] = predict_window(
                self.build_model, self._watched, self._made, self.recipe, head, device=self.device
            )
        return self._followed[head]

    def _watched(self, model: nn.Module, batch: Any) -> torch.Tensor:
        norms = (module for module in model.modules() if isinstance(module, _BatchNorm))
        self.has_batch_norm |= any(norm.training or norm.running_mean is None for norm in norms)
        return self.loss_fn(model, batch)

    def _made(self, size: int) -> Any:
        batch = in_precision(self.make_batch(size), self.recipe)
        if self._smallest is None or size < self._smallest[0]:
            self._smallest = size, batch
        return batch

    def _inputs(self, examples: int) -> int:
        assert self._smallest is not None  # a window has been followed
        return input_bytes(self._smallest[1], self._smallest[0], examples)

    def _waiting(self, target: int, accumulation_steps: int) -> int:
        """The inputs of the micro-batches that were not followed."""
        rest = max(accumulation_steps - TRACED_MICRO_BATCHES, 0)
        size, larger = divmod(target, accumulation_steps)
        bigger = min(max(larger - TRACED_MICRO_BATCHES, 0), rest)
        ones = bigger * self._inputs(size + 1) if bigger else 0
        return ones + (rest - bigger) * self._inputs(size)


def smallest_window(forecast: Forecast, target: int, budget_bytes: int, at_least: int = 1) -> int | None:
    """The smallest N, from `at_least` up, whose window is predicted to fit; None if no window does.

    From N = 2 on, more micro-batches need less. One batch of everything is a case of its own: no gradient waits
    beside its activations, so it may fit where two halves do not.

    RefusesOne if what fits is a micro-batch of one example and the model refuses those.
    """
    alone = at_least == 1
    refused: RefusesOne | None = None
    if alone and target <= 3 and forecast.peak(target, 1) <= budget_bytes:  # halves would be single examples
        return 1
    try:
        several = _fewest_of_several(forecast, target, budget_bytes, max(at_least, 2)) if target > 1 else None
    except RefusesOne as error:
        several, refused = None, error
    worth_it = alone and target > 3 and forecast.may_fit_alone(target, budget_bytes)
    if worth_it and forecast.peak(target, 1) <= budget_bytes:
        return 1
    if refused is not None:
        raise refused
    return several


def _fewest_of_several(forecast: Forecast, target: int, budget_bytes: int, at_least: int) -> int | None:
    def fits(accumulation_steps: int) -> bool:
        if target < 2 * accumulation_steps:
            return _with_single_examples(forecast, target, accumulation_steps) <= budget_bytes
        return forecast.peak(target, accumulation_steps) <= budget_bytes

    too_few, enough = at_least - 1, max(target // 2, at_least)  # no micro-batch of one before it must be
    if not fits(enough):
        if enough == target or not fits(target):
            return None
        too_few, enough = enough, target
    return fewest_between(too_few, enough, fits, lambda *_: forecast.guess(target, budget_bytes))


def fewest_between(too_few: int, enough: int, fits: Callable[[int], bool], guess: Callable[[int, int], int]) -> int:
    """The smallest N that fits, between one that does not and one that does; more micro-batches need less.

    `guess(too_few, enough)` is nearly always right at once; that it is not trusted for ever bounds the search.
    """
    turn = 0
    while enough - too_few > 1:
        between = round(math.sqrt(too_few * enough)) if turn % 3 == 2 else guess(too_few, enough)
        between = min(max(between, too_few + 1), enough - 1)
        if fits(between):
            enough = between
        else:
            too_few = between
        turn += 1
    return enough


def _with_single_examples(forecast: Forecast, target: int, accumulation_steps: int) -> int:
    """The peak of a window that has micro-batches of one example, once it is known that the model takes those."""
    try:
        forecast.peak(1, 1)
    except ValueError as error:
        raise RefusesOne(f"only micro-batches of one example may fit, and the model refuses those: {error}") from error
    return forecast.peak(target, accumulation_steps)


def _head(target: int, accumulation_steps: int) -> tuple[int, ...]:
    """The sizes of the micro-batches that are followed."""
    size, larger = divmod(target, accumulation_steps)
    followed = min(accumulation_steps, TRACED_MICRO_BATCHES)
    return tuple(size + 1 if k < larger else size for k in range(followed))


def _two_nearest(points: list[_Point], distance: Callable[[_Point], float]) -> tuple[_Point, _Point | None]:
    """The nearest point, and the nearest of those of another size."""
    nearest = sorted(points, key=distance)
    return nearest[0], next((point for point in nearest if point.size != nearest[0].size), None)


def _slope(points: list[_Point], distance: Callable[[_Point], float]) -> float:
    """Bytes per example near a point, for a guess. Where no second size says it, all that may grow is taken to."""
    near, other = _two_nearest(points, distance)
    if other is not None and (slope := (near.in_use - other.in_use) / (near.size - other.size)) > 0:
        return slope
    return near.growing / near.size
