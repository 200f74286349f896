"""The average of the weights is torch's own EMA and the closed form; moved N times, it forgets as decay ** N does."""

from typing import Any

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gradacc_lessons.lessons.training import add_gradient, parameters, training_windows
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.ema import EMA
from gradacc_lessons.tasks import digits

RECIPE = Recipe(8, 4, learning_rate=0.5)
DECAY = 0.9


def test_over_a_real_run_it_is_torchs_and_the_closed_form() -> None:
    task = digits("mlp", norm="batch", dtype=torch.float64)
    model = task.build_model()
    ema = EMA(model, DECAY)
    theirs = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
    theirs.update_parameters(model)  # their first call copies
    optimizer, stream, seen = torch.optim.SGD(model.parameters(), lr=0.5), training_windows(task, RECIPE), []
    start = parameters(model)
    for _ in range(12):
        add_gradient(model, next(stream), task, RECIPE)
        optimizer.step()
        optimizer.zero_grad()
        ema.update()
        theirs.update_parameters(model)
        seen.append(parameters(model))
    shares = [(1 - DECAY) * DECAY**back for back in reversed(range(12))]
    closed = DECAY**12 * start + sum(share * each for share, each in zip(shares, seen, strict=True))
    assert float((parameters(ema.average) - closed).abs().max()) < 1e-12
    assert float((parameters(ema.average) - parameters(theirs.module)).abs().max()) < 1e-12
    for ours, now in zip(ema.average.buffers(), model.buffers(), strict=True):
        assert torch.equal(ours, now)


@pytest.mark.parametrize("n", [1, 4, 16])
def test_between_two_updates_n_moves_are_one_with_the_decay_to_the_n(n: int) -> None:
    task = digits("mlp", dtype=torch.float64)
    model = task.build_model()
    often, once = EMA(model, DECAY), EMA(model, DECAY**n)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1
    for _ in range(n):
        often.update()
    once.update()
    assert float((parameters(often.average) - parameters(once.average)).abs().max()) < 1e-12


def test_it_leaves_the_model_alone_and_is_no_part_of_training() -> None:
    task = digits("mlp", dtype=torch.float64)
    model = task.build_model().train()
    task.loss_fn(model, task.train).backward()
    before, grads = parameters(model), [parameter.grad.clone() for parameter in model.parameters()]
    ema = EMA(model, DECAY)
    ema.update()
    assert torch.equal(parameters(model), before) and model.training and not ema.average.training
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), grads, strict=True))
    assert all(p.grad is None and not p.requires_grad for p in ema.average.parameters())


@pytest.mark.parametrize("decay", [-0.1, 1.0, 1.5, float("nan"), "0.9", None])
def test_an_impossible_decay_is_refused_in_a_sentence(decay: Any) -> None:
    with pytest.raises(ValueError, match="a decay is a number from 0 up to, not including, 1"):
        EMA(digits("mlp").build_model(), decay)
