"""How many real runs a plan takes, and how many the rules of other tuners do."""

from collections.abc import Iterator
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

from benchmarks.row import Row

if TYPE_CHECKING:
    from gradacc_lessons.memory.forecast import Forecast
    from gradacc_lessons.memory.tuners import Fits

TARGET = 64
MODELS = ("CNN with BatchNorm", "chat GPT, tied")
BUDGETS = 7
"""Evenly between what single examples need and what the whole batch does."""


def plans(quick: bool) -> list[Row]:
    """A target is planned for a budget.

    64 examples per update, for a CNN and the chat model with AdamW, with seven budgets each, evenly between what
    one example at a time needs and what the whole batch does. A plan runs one real window, and its peak is the
    allocator's. The rules of Accelerate, Composer and Lightning search on predicted peaks: a run that would exceed the
    budget counts as failed. Composer is asked about windows of the whole target, in as many micro-batches as its size
    takes; the others leave N alone, so that they are asked about one micro-batch with N = 1. Runs and batches are
    means over all budgets. Batches are those that run through in the trials that fit, which are three a trial with
    Lightning. "Of the target" is the smallest effective batch that is reached.
    """
    from gradacc_lessons.memory.tuners import RULES

    tried = list(_tried(quick))
    rows = [
        Row("plan: real runs", mean(trials for trials, *_ in tried), "runs"),
        Row("plan: over its budget", 100 * mean(over for _, over, _ in tried), "%", at_most=0),
        Row("plan: smallest batch, of the target", 100, "%"),
    ]
    for rule in RULES:
        tunings = [rule(TARGET, fits) for *_, fits in tried]
        name = tunings[0].rule
        rows.append(Row(f"{name}: real runs", mean(t.trials for t in tunings), "runs"))
        rows.append(Row(f"{name}: of them failed", mean(t.failed for t in tunings), "runs"))
        rows.append(Row(f"{name}: batches run through", mean(t.batches for t in tunings), "batches"))
        rows.append(
            Row(f"{name}: smallest batch, of the target", 100 * min(t.batch_reached for t in tunings) / TARGET, "%")
        )
    return rows


def _tried(quick: bool) -> Iterator[tuple[int, bool, "Fits"]]:
    """For each model and budget: the plan's real runs, whether its peak was over the budget, and what fits there."""
    from benchmarks.memory_models import SUBJECTS
    from gradacc_lessons.memory.forecast import Forecast
    from gradacc_lessons.memory.plan import plan
    from gradacc_lessons.recipe import Recipe

    for name in MODELS[:1] if quick else MODELS:
        subject = SUBJECTS[name]()
        parts = subject.build_model, subject.loss_fn, subject.make_batch, Recipe(optimizer="adamw", learning_rate=1e-3)
        forecast = Forecast(*parts)
        low, high = forecast.peak(TARGET, TARGET), forecast.peak(TARGET, 1)
        for k in range(1, 2 if quick else BUDGETS + 1):
            budget = low + (high - low) * k // (BUDGETS + 1)
            found = plan(*parts, target_batch_size=TARGET, budget_bytes=budget, forecast=forecast, explain=False)
            assert found.measured is not None and sum(found.micro_batch_sizes) == TARGET
            yield (
                found.trials,
                found.measured.peak_bytes > budget,
                partial(_fits, forecast, budget),
            )


def _fits(forecast: "Forecast", budget: int, size: int, accumulation_steps: int) -> bool:
    return forecast.peak(size * accumulation_steps, accumulation_steps) <= budget
