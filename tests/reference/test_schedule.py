"""The schedule counts updates: its shape against torch's own schedulers, its length against loops that run."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.accumulation import split, windows
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.schedule import factor, planned_updates, warmup_then_cosine


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)


def rates(scheduler: torch.optim.lr_scheduler.LRScheduler, updates: int) -> list[float]:
    found = []
    for _ in range(updates):
        found.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize(("warm_up", "total"), [(100, 240), (1, 10), (3, 40), (0, 12)])
def test_it_is_torchs_linear_warm_up_and_then_torchs_cosine(warm_up: int, total: int) -> None:
    ours = rates(warmup_then_cosine(optimizer(), warm_up, total), total)
    one = optimizer()
    falls = torch.optim.lr_scheduler.CosineAnnealingLR(one, total - warm_up)
    if warm_up:
        one = optimizer()
        rises = torch.optim.lr_scheduler.LinearLR(one, 1 / warm_up, 1.0, max(warm_up - 1, 1))
        first = rates(rises, warm_up)
        assert ours[:warm_up] == pytest.approx(first if warm_up > 1 else [0.5])
        one = optimizer()
        falls = torch.optim.lr_scheduler.CosineAnnealingLR(one, total - warm_up)
    assert ours[warm_up:] == pytest.approx(rates(falls, total - warm_up))


@given(st.integers(0, 300), st.integers(1, 300))
def test_it_rises_and_falls_within_0_and_1_and_every_planned_update_moves(warm_up: int, more: int) -> None:
    total = warm_up + more
    factors = [factor(update, warm_up, total) for update in range(total)]
    assert all(0 < each <= 1 for each in factors) and max(factors) == 1
    assert factors[:warm_up] == sorted(factors[:warm_up])
    assert factors[warm_up:] == sorted(factors[warm_up:], reverse=True)
    assert factor(total, warm_up, total) == factor(total + 7, warm_up, total) == 0


@given(st.integers(1, 200), st.integers(1, 20), st.integers(1, 20), st.integers(1, 4))
def test_the_plan_is_as_long_as_the_loop(examples: int, b: int, n: int, epochs: int) -> None:
    data = (torch.zeros(examples),)
    counted = sum(1 for _ in range(epochs) for _ in windows(split(data, b), n))
    assert planned_updates(examples, Recipe(b, n), epochs) == counted


def test_at_every_micro_batch_it_is_n_times_too_fast() -> None:
    """As in Lightning's issue 1476: a warm-up of 100 with N = 8 is over at update 13."""
    one = optimizer()
    scheduler = warmup_then_cosine(one, 100, 1000)
    one.step()
    found = []
    for _ in range(20):
        for _ in range(8):
            scheduler.step()
        found.append(one.param_groups[0]["lr"])
    assert next(update for update, rate in enumerate(found, start=1) if rate >= 0.4999) == 13


@pytest.mark.parametrize(("warm_up", "total"), [(-1, 10), (10, 10), (11, 10), (0, 0), (1.5, 10), (1, None)])
def test_a_plan_that_cannot_be_is_refused_in_a_sentence(warm_up: Any, total: Any) -> None:
    with pytest.raises(ValueError, match=f"it is {warm_up} of {total}"):
        warmup_then_cosine(optimizer(), warm_up, total)


@pytest.mark.parametrize(("examples", "epochs"), [(0, 1), (10, 0)])
def test_an_empty_plan_is_refused_in_a_sentence(examples: int, epochs: int) -> None:
    with pytest.raises(ValueError, match="at least 1 example and 1 epoch"):
        planned_updates(examples, Recipe(), epochs)
