"""What a plan says of its peak, and of what adding up costs, is what its numbers say."""

from itertools import pairwise

import pytest
import torch
from memory.plans import SMALL, examples, planned, small
from memory.small_models import classes, mlp, model, vectors
from torch import nn

from gradacc_lessons.memory import why
from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.options import options
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.memory.speed import checkpointing_slows
from gradacc_lessons.recipe import Recipe


class Frozen(nn.Module):
    """A frozen trunk with large results, and a small head that is trained."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 8)).requires_grad_(False)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.trunk(x))


class Table(nn.Module):
    """An embedding whose gradient is much larger than all activations."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(20_000, 32), nn.Linear(32, 10)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))


def tokens(size):
    return torch.zeros(size, 4, dtype=torch.long), torch.zeros(size, dtype=torch.long)


def test_the_peak_of_a_frozen_trunk_is_in_a_forward():
    forecast = Forecast(Frozen, classes, examples, Recipe())
    assert forecast.profile(512, 4).phase == "forward"
    found = planned(Frozen, classes, examples, target=512, budget=forecast.peak(512, 4), forecast=forecast)
    assert found.binding == "forward"
    said = why.why_here(forecast, 512, 4)
    assert said.startswith("The peak comes in a forward, while results are there that backward does not need")
    assert "a smaller micro-batch lowers it" in said
    assert forecast.cost_of_an_example(128) == pytest.approx(2 * 4096 * 4, rel=0.02)


@pytest.mark.parametrize(("count", "set_to_none"), [(1, True), (4, True), (1, False)])
def test_gradients_of_before_are_named_only_where_there_are_any(count, set_to_none):
    forecast = Forecast(Table, classes, tokens, Recipe(set_to_none=set_to_none))
    said = why.why_here(forecast, 16, count)
    before = count > 1 or not set_to_none
    assert said.startswith("The peak comes further on in backward, when most saved activations are gone and ")
    assert ("fresh gradients come beside those of before" in said) == before
    assert ("the gradients come; " in said) != before
    assert "a smaller micro-batch hardly lowers it" in said  # 2 KiB an example, beside 2.4 MiB of gradients
    assert forecast.cost_of_an_example(16) < 4096


def test_checkpointing_is_not_said_to_keep_all_activations():
    parts = model("GPT, tied", None)
    assert parts[3].checkpointing
    said = why.why_here(Forecast(*parts), 8, 2)
    assert "the inputs of the checkpointed blocks are there" in said and "most saved activations" not in said


def test_a_single_example_is_not_told_to_shrink():
    forecast = Forecast(small, classes, examples, SMALL)
    assert "smaller micro-batch" not in why.why_here(forecast, 8, 8)
    assert "smaller micro-batch" in why.why_here(forecast, 8, 4)


def test_what_adding_up_costs_and_why():
    """With kept gradients nothing, whatever binds; in the update nothing; else what the gradients take, or less."""
    kept = Forecast(mlp, classes, vectors, Recipe(set_to_none=False))
    assert kept.profile(128, 2).phase == "backward" and kept.cost_of_accumulating(64) == 0
    said = why.what_more_costs(kept, 128, 2)
    assert said.endswith("costs nothing: with set_to_none=False the gradients are in memory all the time.")
    free = Forecast(mlp, classes, vectors, Recipe())
    assert why.what_more_costs(free, 128, 2).endswith("more than one alone: the gradients that wait for the others.")
    gradients = sum(p.nbytes for p in mlp().parameters())
    update = Forecast(mlp, classes, vectors, SMALL)
    assert update.profile(4, 2).phase == "update" and update.cost_of_accumulating(2) == 0
    waiting = f"the gradients that wait for the others take {readable(gradients)}"
    assert f"costs nothing: {waiting}, but in the update all of them" in why.what_more_costs(update, 4, 2)
    size = next(size for size in range(4, 200) if 0 < update.cost_of_accumulating(size) < 0.9 * gradients)
    said = why.what_more_costs(update, 2 * size, 2)
    assert f"costs {readable(update.cost_of_accumulating(size))} more than one alone: {waiting}, but " in said
    assert update.profile(size, 1).phase == "update" and "one alone has its peak in the update" in said


@pytest.mark.parametrize(
    ("rates", "largest", "words"),
    [
        ([(1, 20.0), (2, 23.0), (4, 23.1)], 8,
         "From 2 to 4 it hardly changed (by less than 5%): that bought no speed. Larger ones, up to the planned 8, "
         "were not timed: that would have taken too long."),
        ([(128, 3000.0), (256, 4425.0), (512, 2932.0)], 512, "It was highest at 256, and fell by 34% up to 512."),
        ([(1, 10.0), (2, 19.0)], 2, "It still grew at 2."),
        ([(1, 10.0), (2, 6.0), (4, 10.0)], 4, "It went up and down, with no clear gain from 1 to 4."),
        ([(1, 0.5)], 1, "forward and backward: 0.50 at 1."),
        ([(1, 12.0)], 9, "12 at 1. Larger ones, up to the planned 9, were not timed: that would have taken too long."),
        ([], 3, "No micro-batch was timed: this model refuses the small ones, and larger ones take too long."),
    ],
)  # fmt: skip
def test_of_speed_it_says_only_what_was_timed(rates, largest, words):
    assert why.what_was_timed(rates, largest).endswith(words)


class SlowTrial:
    """A model of which one micro-batch takes a second for each example."""

    def seconds(self, size, times=3):
        return float(size)


def test_a_price_that_was_not_timed_says_why():
    parts = model("mixture of experts", None)
    forecast = Forecast(*parts)
    found, _ = options(forecast, 48, 2, "turn")
    priced = checkpointing_slows(found, forecast, SlowTrial(), 24)
    (option,) = (option for option in priced if option.name == "activation checkpointing")
    assert option.price.endswith("; not timed here, as one micro-batch takes more than 2 seconds")


def test_it_says_for_which_device_and_what_needs_room_beside_it():
    for device, words in {
        "cpu": "This counts for training on the CPU: for a GPU, plan with the device cuda or mps.",
        "cuda": "leave room on the card beside it for the CUDA context, fragmentation and other processes.",
        "mps": "This counts for training on MPS, and counts tensors only",
    }.items():
        found = planned(device=device)
        assert words in found.why and found.as_dict()["device"] == device


@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.LayerNorm])
def test_batch_norm_is_warned_of_where_a_window_has_more_than_one_micro_batch(norm):
    def with_norm():
        return nn.Sequential(nn.Linear(64, 256), norm(256), nn.ReLU(), nn.Linear(256, 10))

    forecast = Forecast(with_norm, classes, examples, SMALL)
    warned = "BatchNorm in this model normalises each micro-batch by itself, so the window does not give"
    several = planned(with_norm, target=600, budget=forecast.peak(600, 3), forecast=forecast)
    assert (warned in several.why) == (norm is nn.BatchNorm1d) and several.accumulation_steps == 3
    assert warned not in planned(with_norm, target=600, budget="1GiB", forecast=forecast).why


def test_batch_norm_that_stays_in_evaluation_is_not_warned_of():
    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(False)

    def with_norm():
        return nn.Sequential(nn.Linear(64, 256), Frozen(256), nn.ReLU(), nn.Linear(256, 10))

    forecast = Forecast(with_norm, classes, examples, SMALL)
    assert "BatchNorm" not in planned(with_norm, target=600, budget=forecast.peak(600, 3), forecast=forecast).why


def test_no_line_of_progress_comes_twice_in_a_row():
    heard = []
    forecast = Forecast(small, classes, examples, SMALL, tell=heard.append)
    budget = Forecast(small, classes, examples, SMALL).peak(998, 3)
    planned(target=998, budget=budget, forecast=forecast, explain=True)
    assert len(heard) > 5 and all(one != other for one, other in pairwise(heard))
