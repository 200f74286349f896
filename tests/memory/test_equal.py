"""What frameworks make of a plan, and which target would suit them."""

import re

import pytest
from memory.plans import SMALL, examples, planned, small
from memory.small_models import classes
from torch import nn

from gradacc_lessons.memory.equal import largest_divisor, what_equal_sizes_cost
from gradacc_lessons.memory.forecast import Forecast, balanced
from gradacc_lessons.memory.sizes import readable

ENOUGH = 2**40


@pytest.fixture(scope="module")
def forecast():
    return Forecast(small, classes, examples, SMALL)


@pytest.mark.parametrize("target", [1, 7, 12, 97, 256])
def test_the_largest_divisor_is_one_and_no_larger_number_is(target):
    for at_most in range(1, target + 1):
        found = largest_divisor(target, at_most)
        assert target % found == 0 and found <= at_most
        assert not any(target % size == 0 for size in range(found + 1, at_most + 1))


def test_what_one_size_costs_is_said_only_where_it_costs(forecast):
    assert what_equal_sizes_cost(forecast, [32] * 8, ENOUGH) == ""
    said = what_equal_sizes_cost(forecast, balanced(256, 5), ENOUGH)
    peak = readable(forecast.peak(256, 8))
    assert f"fits is 32: 8 forwards and backwards for each update instead of 5, predicted peak {peak}. " in said


def advised(forecast, sizes, room):
    said = what_equal_sizes_cost(forecast, sizes, room)
    return tuple(map(int, re.search(r"A target of (\d+) = (\d+) x (\d+) would need no more than", said).groups()))


@pytest.mark.parametrize(("target", "count"), [(26, 3), (40, 3), (256, 3), (256, 5), (37, 10), (101, 12), (59, 2)])
def test_the_target_it_advises_is_the_nearest_there_is(forecast, target, count):
    """By trying them all: no more micro-batches than the plan's, and none larger."""
    sizes = balanced(target, count)
    nearby, turns, size = advised(forecast, sizes, ENOUGH)
    assert nearby == turns * size and turns <= count and size <= sizes[0]
    reachable = [n * b for n in range(1, count + 1) for b in range(1, sizes[0] + 1)]
    assert abs(nearby - target) == min(abs(other - target) for other in reachable)


def test_it_advises_no_target_that_does_not_fit(forecast):
    """27 = 3 x 9 is nearer to 26 than 24 = 3 x 8, and takes a little more than 9, 9 and 8."""
    assert advised(forecast, (9, 9, 8), forecast.peak(27, 3)) == (27, 3, 9)
    assert advised(forecast, (9, 9, 8), forecast.peak(27, 3) - 1) == (24, 3, 8)
    assert forecast.peak(26, 3) < forecast.peak(27, 3)


def test_a_plan_has_the_peak_of_its_equal_micro_batches(forecast):
    found = planned(target=998, budget=forecast.peak(998, 3), forecast=forecast, explain=True)
    size, count = found.equal
    assert (size, count) == (2, 499) and found.equal_peak_bytes == forecast.peak(998, 499)
    assert found.as_dict()["equal_micro_batches"] == {"count": 499, "size": 2, "peak_bytes": found.equal_peak_bytes}
    same = planned(target=999, budget=forecast.peak(999, 3), forecast=forecast)
    assert same.equal == (333, 3) and same.equal_peak_bytes == same.predicted.peak_bytes


def test_a_model_that_refuses_single_examples_is_not_given_them_in_silence():
    def with_norm():
        return nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 10))

    forecast = Forecast(with_norm, classes, examples, SMALL)
    found = planned(with_norm, target=997, budget=forecast.peak(997, 3), forecast=forecast, explain=True)
    assert found.equal_peak_bytes is None
    assert "fits is 1, and this model refuses such small ones. A target of 996 = 3 x 332 would" in found.why
