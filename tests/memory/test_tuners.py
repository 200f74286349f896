"""The other tools' search rules, replayed: their figures on a known curve, and their ends."""

from statistics import mean

import pytest

from gradacc_lessons.memory import tuners
from gradacc_lessons.memory.tuners import RULES


def on_every_capacity(rule, target):
    return [(capacity, rule(target, lambda size, _, c=capacity: size <= c)) for capacity in range(1, target + 1)]


@pytest.mark.parametrize(
    ("rule", "mean_trials", "most", "divides", "of_capacity"),
    [
        (tuners.accelerate, 10.27, 37, 0.035, 0.954),
        (tuners.composer, 2.96, 9, 1.0, 0.703),
        (tuners.lightning_power, 7.05, 9, 1.0, 0.703),
        (tuners.lightning_binary_search, 13.08, 17, 0.035, 0.939),
    ],
)
def test_the_rules_cost_what_a_simulation_of_their_sources_found(rule, mean_trials, most, divides, of_capacity):
    """A target of 256, and every capacity from 1 to 256 once."""
    found = on_every_capacity(rule, 256)
    assert mean(t.trials for _, t in found) == pytest.approx(mean_trials, abs=0.01)
    assert max(t.trials for _, t in found) == most
    assert mean(256 % t.micro_batch_size == 0 for _, t in found) == pytest.approx(divides, abs=0.001)
    assert mean(t.micro_batch_size / capacity for capacity, t in found) == pytest.approx(of_capacity, abs=0.001)


@pytest.mark.parametrize("rule", RULES)
def test_what_a_rule_settles_on_fits_and_its_trials_are_counted(rule):
    for capacity in range(1, 100):
        asked = []

        def fits(size, n, capacity=capacity, asked=asked):
            asked.append(size)
            return size <= capacity

        found = rule(99, fits)
        assert 1 <= found.micro_batch_size <= capacity
        assert found.trials == len(asked)
        assert found.failed == sum(size > capacity for size in asked)


@pytest.mark.parametrize("rule", RULES)
def test_only_composer_keeps_the_batch_that_was_asked_for(rule):
    found = rule(100, lambda size, n: size <= 30)
    assert (found.batch_reached == 100) == (rule is tuners.composer)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_asks_for_windows_of_the_n_that_it_would_run(rule):
    """Composer tries the whole batch at once, and then always all of it; who leaves N alone runs one micro-batch."""
    asked = []
    rule(100, lambda size, n: asked.append((size, n)) or size <= 7)
    if rule is tuners.composer:
        assert asked == [(100, 1), (50, 2), (25, 4), (12, 9), (6, 17)]
    else:
        assert len(asked) > 2 and {n for _, n in asked} == {1}


@pytest.mark.parametrize(
    ("rule", "batches"),
    [(tuners.accelerate, 1), (tuners.composer, 1), (tuners.lightning_power, 9), (tuners.lightning_binary_search, 15)],
)
def test_batches_are_those_of_the_trials_that_fit(rule, batches):
    """Up to 14 fit. Lightning runs three batches a trial: power fits at 2, 4 and 8; the search at 12 and 14 too."""
    assert rule(40, lambda size, n: size <= 14).batches == batches


@pytest.mark.parametrize("rule", [tuners.accelerate, tuners.composer, tuners.lightning_power])
def test_where_nothing_fits_the_rules_end_too(rule):
    found = rule(16, lambda size, n: False)
    assert found.micro_batch_size == 0 and found.failed == found.trials > 0


def test_lightning_ends_where_its_own_limits_are():
    assert tuners.lightning_power(10**6, lambda size, n: True).micro_batch_size == tuners.LIGHTNING_LARGEST
    assert tuners.lightning_binary_search(10**6, lambda size, n: True).micro_batch_size == int(8192 * 0.95)
    assert tuners.lightning_binary_search(10, lambda size, n: False).micro_batch_size == 1


@pytest.mark.long
@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 30, 31, 32, 200])
def test_accelerate_itself_does_the_same(capacity):
    memory = pytest.importorskip("accelerate.utils.memory")
    tried = []

    @memory.find_executable_batch_size(starting_batch_size=100)
    def train(batch_size):
        tried.append(batch_size)
        if batch_size > capacity:
            raise RuntimeError("CUDA out of memory.")
        return batch_size

    found = tuners.accelerate(100, lambda size, n: size <= capacity)
    assert (found.micro_batch_size, found.trials) == (train(), len(tried))
