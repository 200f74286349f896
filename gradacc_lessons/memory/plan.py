"""From a target batch and a memory budget to micro-batches, with the reasons."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch
from torch import nn

from gradacc_lessons.memory import why
from gradacc_lessons.memory.binding import Binding, binding_moment
from gradacc_lessons.memory.equal import equal_peak, largest_divisor, what_equal_sizes_cost
from gradacc_lessons.memory.forecast import Forecast, balanced, fewest_between, smallest_window
from gradacc_lessons.memory.loop import LossFunction
from gradacc_lessons.memory.options import Option, options
from gradacc_lessons.memory.paste import FRAMEWORKS, loop
from gradacc_lessons.memory.profile import MemoryProfile
from gradacc_lessons.memory.sizes import LARGEST, bytes_in, readable, shown
from gradacc_lessons.memory.speed import Rates, checkpointing_slows, throughput
from gradacc_lessons.memory.trial import Measured, Trial, checked_device, why_not_here
from gradacc_lessons.recipe import Recipe

LARGEST_TARGET = 10_000_000
"""Examples per update. A larger number is a mistake: most likely tokens were counted, not examples."""


class NothingFits(ValueError):
    """No window fits in the budget. The text says by how much, why, and what would help."""


@dataclass(frozen=True)
class Plan:
    """Micro-batches that make up exactly the target batch and fit in the budget."""

    target_batch_size: int
    """Examples behind one update."""
    budget_bytes: int
    """How much memory there is for it."""
    recipe: Recipe
    """The recipe that was planned for; its own micro-batch size and N were not looked at."""
    device: str
    """The kind of device that it counts for: "cpu", "cuda" or "mps"."""
    micro_batch_sizes: tuple[int, ...]
    """Examples in each micro-batch of a window: they differ by at most one, the larger first."""
    predicted: MemoryProfile
    """The predicted memory of that window."""
    equal_peak_bytes: int | None
    """The predicted peak of the `equal` micro-batches; None if they were not followed, or the model refuses them."""
    measured: Measured | None
    """The peak of a real window; None if none was run."""
    trials: int
    """How many real windows were run; more than one only if the first took more than the budget."""
    options: tuple[Option, ...]
    """What else would lower the peak, and its price."""
    throughput: Rates
    """(micro-batch size, examples per second) as measured; empty if nothing was run."""
    why: str
    """The reasons, one paragraph a line."""

    @property
    def accumulation_steps(self) -> int:
        """N: how many micro-batches a window has."""
        return len(self.micro_batch_sizes)

    @property
    def weights(self) -> tuple[float, ...]:
        """What each micro-batch's MEAN loss is multiplied by: its share of the examples. They add up to 1."""
        return tuple(size / self.target_batch_size for size in self.micro_batch_sizes)

    @property
    def binding(self) -> Binding:
        """Which moment of the window decides."""
        return binding_moment(self.predicted)

    @property
    def equal(self) -> tuple[int, int]:
        """(micro-batch size, N) for frameworks, whose micro-batches are all of one size."""
        size = largest_divisor(self.target_batch_size, self.micro_batch_sizes[0])
        return size, self.target_batch_size // size

    def lines(self, framework: str) -> str:
        """The lines to paste for "huggingface", "accelerate", "lightning", "deepspeed", or a "loop" of your own."""
        if framework == "loop":
            return loop(self.micro_batch_sizes, self.recipe)
        if framework not in FRAMEWORKS:
            raise ValueError(f"there are lines for loop, {', '.join(FRAMEWORKS)}; not for {framework!r}")
        return FRAMEWORKS[framework](*self.equal, self.recipe)

    def __str__(self) -> str:
        measured = "not measured"
        if self.measured is not None:
            measured = f"{readable(self.measured.peak_bytes)} (by {self.measured.counter})"
        rows = [
            ("target", f"{self.target_batch_size:,} examples per update"),
            ("budget", readable(self.budget_bytes)),
            ("micro-batches", f"{why.shape(self.micro_batch_sizes)} examples"),
            ("predicted peak", f"{readable(self.predicted.peak_bytes)} ({self.predicted.counter})"),
            ("measured peak", measured),
        ]
        return "\n".join([*(f"{name:<16}{value}" for name, value in rows), "", self.why])

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON has it: numbers in bytes and examples."""
        size, count = self.equal
        return {
            "target_batch_size": self.target_batch_size,
            "budget_bytes": self.budget_bytes,
            "device": self.device,
            "accumulation_steps": self.accumulation_steps,
            "micro_batches": [
                {"count": self.micro_batch_sizes.count(size), "size": size}
                for size in dict.fromkeys(self.micro_batch_sizes)
            ],
            "equal_micro_batches": {"count": count, "size": size, "peak_bytes": self.equal_peak_bytes},
            "predicted": {
                "peak_bytes": self.predicted.peak_bytes,
                "by_category": self.predicted.by_category,
                "binding": self.binding,
                "counter": self.predicted.counter,
            },
            "measured": self.measured and {"peak_bytes": self.measured.peak_bytes, "counter": self.measured.counter},
            "trials": self.trials,
            "options": [
                {"name": o.name, "peak_bytes": o.peak_bytes, "saved_bytes": o.saved_bytes, "price": o.price}
                for o in self.options
            ],
            "throughput": [{"micro_batch_size": m, "examples_per_second": rate} for m, rate in self.throughput],
            "why": self.why.splitlines(),
        }


def plan(
    build_model: Callable[[], nn.Module],
    loss_fn: LossFunction,
    make_batch: Callable[[int], Any],
    recipe: Recipe,
    *,
    target_batch_size: int,
    budget_bytes: float | str,
    device: torch.device | str | None = None,
    verify: bool = True,
    explain: bool = True,
    forecast: Forecast | None = None,
    tell: Callable[[str], object] | None = None,
) -> Plan:
    """The fewest micro-batches that make up the target and fit in the budget.

    `build_model()` makes a new model; `loss_fn(model, batch)` is its mean loss; `make_batch(size)` gives the longest
    batch of `size` examples. Of the recipe, everything but micro-batch size and N counts. The budget is in bytes, or
    written as "24GiB".

    With `verify`, a real window is run where its predicted peak fits this machine's free memory, and the plan is only
    accepted if what it really takes is within the budget. `explain=False` leaves out all reasons but why it is this
    window, and what must be known to use it.
    `forecast` is one for the same model and recipe from an earlier plan, whose predictions are used again; `tell`
    hears what is being done.

        plan(task.build_model, task.loss_fn, task.make_batch, Recipe(optimizer="adamw"),
             target_batch_size=256, budget_bytes="64MiB").micro_batch_sizes

    NothingFits (a ValueError) if no window fits; ValueError, in one sentence, for what cannot be planned.
    """
    target, budget = _checked_target(target_batch_size), _checked_budget(budget_bytes)
    if forecast is None:
        forecast = Forecast(build_model, loss_fn, make_batch, recipe, device=checked_device(device), tell=tell)
    where = checked_device(forecast.device)
    count = smallest_window(forecast, target, budget)
    trial, only = None, None
    runs: dict[int, Measured] = {}
    if count is not None:
        only = why_not_here(forecast.peak(target, count), where) if verify else "no window was run, as was asked"
    if count is not None and only is None:
        trial = Trial(forecast)
        count, runs = _verified(trial, forecast, target, budget, count)
    if count is None:
        raise NothingFits(_nothing(forecast, target, budget, explain))
    sizes, profile, measured = balanced(target, count), forecast.profile(target, count), runs.get(count)
    reasons = [why.why_this_window(forecast, target, budget, count, runs)]
    if measured is None:
        reasons.append(f"This is a prediction only: {only}.")
    else:
        reasons.append(why.what_was_measured(profile.peak_bytes, measured, count))
    reasons.append(why.for_which_device(where.type))
    if count > 1 and forecast.has_batch_norm:
        reasons.append(why.what_batch_norm_does(target))
    found: tuple[Option, ...] = ()
    rates: Rates = ()
    if explain:
        more, found, rates = _explained(forecast, trial, target, count)
        above = max(measured.peak_bytes - profile.peak_bytes, 0) if measured is not None else 0
        reasons += [*more, what_equal_sizes_cost(forecast, sizes, budget - above)]
    equal = equal_peak(forecast, sizes) if explain or sizes[0] == sizes[-1] else None
    text = "\n".join(filter(None, reasons))
    return Plan(
        target, budget, forecast.recipe, where.type, sizes, profile, equal, measured, len(runs), found, rates, text
    )


def _verified(
    trial: Trial, forecast: Forecast, target: int, budget: int, count: int
) -> tuple[int | None, dict[int, Measured]]:
    """The fewest micro-batches, from N = `count` up, whose real peak is within the budget, and all windows that ran."""
    runs: dict[int, Measured] = {}

    def fits(accumulation_steps: int) -> bool:
        forecast.tell("running one real window")
        runs[accumulation_steps] = trial.peak(balanced(target, accumulation_steps))
        return runs[accumulation_steps].peak_bytes <= budget

    too_few, enough = count - 1, count
    while not fits(enough):
        if enough == target:
            return None, runs
        too_few, excess = enough, runs[enough].peak_bytes - forecast.peak(target, enough)
        enough = smallest_window(forecast, target, budget - excess, at_least=too_few + 1) or target

    def on_the_line(too_few: int, enough: int) -> int:  # through what was measured
        share = (budget - runs[enough].peak_bytes) / (runs[too_few].peak_bytes - runs[enough].peak_bytes)
        return math.ceil(target / ((1 - share) * target / enough + share * target / too_few))

    return fewest_between(too_few, enough, fits, on_the_line), runs


def _explained(
    forecast: Forecast, trial: Trial | None, target: int, count: int
) -> tuple[list[str], tuple[Option, ...], Rates]:
    """The further reasons, what else would help, and the throughput."""
    profile, size = forecast.profile(target, count), balanced(target, count)[0]
    found, unknown = options(forecast, target, count, binding_moment(profile))
    rates: Rates = ()
    if trial is not None:
        forecast.tell("timing micro-batches")
        rates = throughput(trial, size)
        found = checkpointing_slows(found, forecast, trial, size)
    forecast.tell("what one more example and a second micro-batch cost")
    reasons = [why.why_here(forecast, target, count), why.what_more_costs(forecast, target, count)]
    reasons += [*(option.sentence for option in found), *unknown]
    reasons += [why.what_was_timed(rates, size)] if trial is not None else []
    return reasons, found, rates


def _nothing(forecast: Forecast, target: int, budget: int, explain: bool) -> str:
    profile = forecast.profile(target, target)
    if profile.peak_bytes <= budget:
        return (
            f"no window fits in {readable(budget)}: one example at a time is predicted to take "
            f"{readable(profile.peak_bytes)}, but a real window took more than the budget"
        )
    found = options(forecast, target, target, binding_moment(profile))[0] if explain else None
    return why.why_nothing_fits(forecast, budget, target, found)


def _checked_target(target: object) -> int:
    size = int(target) if isinstance(target, Integral) and not isinstance(target, bool) else 0
    if size < 1:
        raise ValueError(f"the target batch must be a whole number of examples, at least 1; it is {shown(target)}")
    if size > LARGEST_TARGET:
        raise ValueError(f"the target batch counts examples, not tokens; it is more than {LARGEST_TARGET:,}")
    return size


def _checked_budget(budget: object) -> int:
    size = bytes_in(budget) if isinstance(budget, str) else budget
    real: Any = size if isinstance(size, Real) and not isinstance(size, bool) else 0
    if 1 <= real <= LARGEST:
        return int(real)
    if LARGEST < real < math.inf:
        raise ValueError("the budget is more memory than any machine has")
    raise ValueError(f"the budget must be a number of bytes above 0, or a size such as '24GiB'; it is {shown(budget)}")
