"""How many real runs a plan takes, and how many the rules of other tuners do."""

from collections.abc import Callable, Iterator
from statistics import mean

from benchmarks.row import Row

TARGET = 64
MODELS = ("CNN with BatchNorm", "chat GPT, tied")
BUDGETS = 7
"""Evenly between what single examples need and what the whole batch does."""


def plans(quick: bool) -> list[Row]:
    """A target is planned for a budget.

    64 examples per update, for a CNN and the chat model with AdamW, with seven budgets each, evenly between what
    one example at a time needs and what the whole batch does. A plan runs one real window, and its peak is the
    allocator's. The rules of Accelerate, Composer and Lightning search on the predicted peaks of the same windows: a
    run that would exceed the budget counts as failed. Runs are means over all budgets; "of the target" is the
    smallest effective batch that is reached, where N is left as it is.
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
        rows.append(
            Row(f"{name}: smallest batch, of the target", 100 * min(t.batch_reached for t in tunings) / TARGET, "%")
        )
    return rows


def _tried(quick: bool) -> Iterator[tuple[int, bool, Callable[[int], bool]]]:
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
                lambda size, most=budget, known=forecast: known.peak(2 * size, 2) <= most,
            )
