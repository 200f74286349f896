"""A thousand plans: exact, as few micro-batches as can be, within the budget; and some of them really run."""

import random
from functools import cache
from statistics import mean

import pytest
from memory.small_models import NAMES, model

from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.plan import NothingFits, plan
from gradacc_lessons.memory.trial import ALLOCATOR
from gradacc_lessons.memory.tuners import RULES

LARGEST_TARGET = 96


class Cases:
    """One model's forecast, shared by all its plans, and random targets and budgets for it."""

    def __init__(self, parts, seed):
        self.parts, self.forecast, self.random = parts, Forecast(*parts), random.Random(seed)

    def one(self):
        target = self.random.randint(1, LARGEST_TARGET)
        low, high = self.forecast.peak(target, target), self.forecast.peak(target, 1)
        return target, self.random.randint(int(0.95 * low), int(1.05 * max(low, high)))

    def plan(self, target, budget, **wishes):
        return plan(
            *self.parts, target_batch_size=target, budget_bytes=budget, forecast=self.forecast, explain=False, **wishes
        )

    def room_for(self, target, accumulation_steps):
        """A budget that lies between what this window needs and what one with fewer micro-batches would."""
        enough = self.forecast.peak(target, accumulation_steps)
        more = self.forecast.peak(target, accumulation_steps - 1) if accumulation_steps > 1 else 1.1 * enough
        return int(max(0.75 * enough + 0.25 * more, 1.002 * enough))

    def check(self, target, budget):
        """Plan without running; what must hold of every plan."""
        try:
            found = self.plan(target, budget, verify=False)
        except NothingFits:
            assert self.known(target, budget) == []
            return None
        sizes = found.micro_batch_sizes
        assert sum(sizes) == target and max(sizes) - min(sizes) <= 1 and min(sizes) >= 1
        assert list(sizes) == sorted(sizes, reverse=True)
        assert found.predicted.peak_bytes <= budget
        assert sum(found.weights) == pytest.approx(1, abs=1e-12)
        assert min(self.known(target, budget)) == len(sizes)
        if len(sizes) > 1:
            assert self.forecast.peak(target, len(sizes) - 1) > budget
        return found

    def known(self, target, budget):
        """Every N whose window fits, by brute force over all windows that were ever followed."""
        counts = [n for n in range(1, target + 1) if self.forecast.knows(target, n)]
        return [n for n in counts if self.forecast.peak(target, n) <= budget]


@pytest.fixture(scope="module")
def case_of(tmp_path_factory):
    return cache(lambda name: Cases(model(name, tmp_path_factory.mktemp("configs")), name))


def test_some_plans_are_exact_minimal_and_within_the_budget(case_of):
    found = [case_of("MLP").check(*case_of("MLP").one()) for _ in range(12)]
    assert len({len(plan.micro_batch_sizes) for plan in found if plan}) > 2


@pytest.mark.parametrize("name", ["MLP", "GPT, tied"])
def test_a_real_window_is_within_the_budget(case_of, name):
    mine = case_of(name)
    budget = mine.room_for(13, 4)
    found = mine.plan(13, budget)
    assert found.trials == 1
    assert found.measured.counter == ALLOCATOR
    assert found.measured.peak_bytes <= budget
    assert found.predicted.peak_bytes == pytest.approx(found.measured.peak_bytes, rel=0.005)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_every_one_of_125_plans_is_exact_minimal_and_within_the_budget(case_of, name):
    found = [case_of(name).check(*case_of(name).one()) for _ in range(125)]
    assert sum(plan is not None for plan in found) > 60  # where the update binds, half of the budgets are too small
    print(f"{name}: 125 plans from {case_of(name).forecast.probes} windows followed")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_five_plans_really_run_within_their_budget(case_of, name):
    """Forty in all, the smallest with a single example in each micro-batch; the models with tied weights too."""
    mine = case_of(name)
    for target, n in ((7, 7), (24, 1), (24, 5), (31, 4), (64, 3)):
        budget = mine.room_for(target, n)
        found = mine.plan(target, budget)
        assert found.trials == 1
        assert found.measured.counter == ALLOCATOR and found.measured.peak_bytes <= budget
        print(f"{name}, {target}: {found.measured.peak_bytes:,} of {budget:,} bytes, {found.accumulation_steps} x")


@pytest.mark.parametrize("name", ["MLP", pytest.param("GPT, tied", marks=pytest.mark.long)])
def test_a_plan_takes_fewer_real_runs_than_any_tuner_on_the_same_curve(case_of, name):
    """Every trial of a tuner is a real run, and some run out of memory. A plan needs one run, and none fails."""
    mine, target = case_of(name), 32
    low, high = mine.forecast.peak(target, target), mine.forecast.peak(target, 1)
    budgets = [low + (high - low) * k // 8 for k in range(1, 8)]
    ours = [mine.plan(target, budget) for budget in budgets]
    assert all(found.measured.peak_bytes <= budget for found, budget in zip(ours, budgets, strict=True))
    print(f"plan: {mean(found.trials for found in ours):.1f} trials, none of them failed")
    for rule in RULES:
        tuned = [rule(target, lambda size, n, b=budget: mine.forecast.peak(size * n, n) <= b) for budget in budgets]
        print(
            f"{tuned[0].rule}: {mean(t.trials for t in tuned):.1f} trials, {mean(t.failed for t in tuned):.1f} failed"
        )
        assert mean(found.trials for found in ours) < mean(t.trials for t in tuned)
        assert sum(t.failed for t in tuned) > 0
