"""The oracle against torch: gradients in closed form, optimizers, and every readable listing of the catalogue."""

import inspect
from functools import cache

import numpy as np
import pytest
import torch

from gradacc_lessons.detective.changes import CHANGES
from gradacc_lessons.detective.exchange import described
from gradacc_lessons.detective.faults import FAULTS, REFERENCE_SOURCE, TAUGHT_SOURCE, compiled, fault_loop
from gradacc_lessons.detective.oracle import Loop, predict
from gradacc_lessons.detective.rig import Bench
from gradacc_lessons.detective.scenarios import (
    KEYWORDS,
    NO_CLIPPING,
    SCENARIOS,
    SCOPES,
    Scenario,
    gradient,
    included,
    problem,
    scenarios,
)
from gradacc_lessons.detective.suspects import INNOCENT, Suspicion, close
from gradacc_lessons.detective.wire import pack, unpack

MEMORY_ONLY = {"sum_then_backward", "window_in_one_batch", "graphs_kept_alive"}
DIVIDES_BY_N = {
    "step_before_backward",
    "window_off_by_one",
    "windows_one_too_long_or_short",
    "tail_leaks",
    "tail_underscaled",
    "tail_unscaled",
}
"""Listings that are also a mean of means where micro-batches differ, and cannot well be written otherwise."""


def bench(scenario: Scenario) -> Bench:
    """What the child process builds, from the frame that it is sent."""
    specs, arrays = described([scenario])
    header, arrays = unpack(pack({"specs": specs}, arrays))
    (spec,) = header["specs"]
    length = range(spec["micro_batches"])
    return Bench(
        spec,
        [arrays[f"{scenario.name}/inputs/{k}"] for k in length],
        [arrays[f"{scenario.name}/labels/{k}"] for k in length],
        arrays[f"{scenario.name}/start"],
    )


def accepted(loop) -> list[str]:
    return [name for name in KEYWORDS if name in inspect.signature(loop).parameters]


def run(loop, scenario: Scenario) -> Bench:
    made = bench(scenario)
    made.run(loop, accepted(loop))
    return made


@cache
def ran(fault: str, scenario: Scenario) -> Bench:
    """What a listing of the catalogue leaves behind in a scenario."""
    return run(fault_loop(fault), scenario)


def add(suspicion: Suspicion, fault: str) -> list[Suspicion]:
    grown = [suspicion.add(fault, change) for change in CHANGES[fault]]
    return [one for one in grown if one is not None]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_gradients_are_those_of_autograd(scenario):
    made = bench(scenario)
    for index, batch in enumerate(made.batches):
        made.model.zero_grad()
        made.loss(made.model, batch).backward()
        ours = torch.nn.utils.parameters_to_vector(p.grad for p in made.model.parameters()).numpy()
        theirs = gradient(scenario, problem(scenario).start, index)
        assert np.abs(ours - theirs).max() <= 1e-14 * max(1.0, scenario.gain)


def test_nothing_is_clipped_by_accident():
    """Where nothing shall be clipped, gradients stay below anybody's threshold of 1, summed up and unscaled too."""
    for scenario in SCENARIOS:
        if scenario.gain < 1 and scenario.kind == "network":
            longest = max(np.linalg.norm(gradient(scenario, problem(scenario).start, k)) for k in range(3))
            assert longest * scenario.accumulation_steps < 1
        if scenario.max_norm < NO_CLIPPING:
            length = np.linalg.norm(gradient(scenario, problem(scenario).start, 0))
            assert length > 3 * scenario.max_norm


@pytest.mark.few(16)
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in MEMORY_ONLY])
def test_each_listing_does_what_its_switch_does(fault):
    """In each scenario of each scope, exactly; so a listing has this mistake and no other."""
    loop = fault_loop(fault)
    ways = add(INNOCENT, fault)
    if fault in DIVIDES_BY_N:
        ways += [more for way in ways for more in add(way, "mean_of_means")]
    tried = scenarios("items", accepted(loop))
    for level, scope in enumerate(SCOPES):
        here = [s for s in tried if SCOPES.index(s.scope) <= level]
        matching = [
            way for way in ways if all(close(np.array(ran(fault, s).ends), predict(way.loop, s).ends, s) for s in here)
        ]
        assert matching, scope
        alone = [way for way in matching if way.faults == {fault}]
        assert bool(alone) or (scope == "items" and fault in DIVIDES_BY_N)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in MEMORY_ONLY])
def test_a_fault_shows_in_its_scope_and_not_before(fault):
    for scope in SCOPES:
        wrong = any(
            not close(predict(way.loop, s).ends, predict(Loop(), s).ends, s)
            for way in add(INNOCENT, fault)
            for s in included(scope)
        )
        assert wrong == (SCOPES.index(scope) >= SCOPES.index(FAULTS[fault].scope))


@pytest.mark.parametrize("fault", sorted(MEMORY_ONLY))
def test_the_memory_faults_have_the_right_gradient(fault):
    for scenario in scenarios("items", ()):
        made = ran(fault, scenario)
        assert close(np.array(made.ends), predict(Loop(), scenario).ends, scenario)
    # Those that are kept for a report are never let go of: a window's by the end of it, and the next beside it.
    alive = 8 if fault == "graphs_kept_alive" else 4
    assert ran(fault, SCENARIOS[0]).record["graphs"] == pytest.approx(alive, abs=0.05)


def test_the_reference_is_right_everywhere_and_what_is_taught_first_with_full_windows():
    for scenario in scenarios("items", ()):
        made = run(compiled(REFERENCE_SOURCE), scenario)
        assert close(np.array(made.ends), predict(Loop(), scenario).ends, scenario)
        assert tuple(made.record["updates"]) == predict(Loop(), scenario).updates
        taught = run(compiled(TAUGHT_SOURCE), scenario)
        assert close(np.array(taught.ends), predict(Loop(), scenario).ends, scenario) == (scenario.scope == "windows")


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in MEMORY_ONLY])
def test_counts_are_predicted_too(fault):
    """Updates, backwards and learning rates, which tell apart what parameters cannot."""
    loop, ways = fault_loop(fault), add(INNOCENT, fault)
    for scenario in scenarios("windows", accepted(loop)):
        made = ran(fault, scenario)
        ways = [way for way in ways if close(np.array(made.ends), predict(way.loop, scenario).ends, scenario)]
    for scenario in scenarios("windows", accepted(loop)):
        made, wanted = ran(fault, scenario), predict(ways[0].loop, scenario)
        assert tuple(made.record["updates"]) == wanted.updates
        assert made.record["backwards"] == wanted.backwards
        np.testing.assert_allclose(made.rates, wanted.rates, rtol=1e-12)
        np.testing.assert_allclose(made.after_updates, wanted.after_updates, rtol=1e-8, atol=1e-10)
