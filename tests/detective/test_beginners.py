"""Textbook loops in all the ways in which beginners write them: none is misjudged, and few stay without a name."""

from collections import defaultdict
from functools import cache

import numpy as np
import pytest
from detective.beginner_loops import LENGTHS, ZEROS, Way, calls_of, loop_of, ways

from gradacc_lessons.detective.exchange import described, read_observations
from gradacc_lessons.detective.faults import REFERENCE_SOURCE, compiled
from gradacc_lessons.detective.rig import run_all
from gradacc_lessons.detective.scenarios import SCOPES, scenarios
from gradacc_lessons.detective.suspects import close
from gradacc_lessons.detective.verdict import judge

MOST_UNNAMED = 0.02
"""Of the wrong ways. Those left make four mistakes at once, or do what no single word of the catalogue covers."""
ALL = list(ways())
SOME = ALL[::236]
"""Among them every place of zero_grad, every test, divisor and tail."""


def ran(loop):
    """What the loop leaves behind in each scenario; ours, so it runs in this process."""
    specs, arrays = described(scenarios("items", []))
    records, found, _ = run_all(specs, arrays, loop, [])
    return {"records": records, "accepted": []}, found


@cache
def right():
    return {o.scenario: o.ends for o in read_observations(*ran(compiled(REFERENCE_SOURCE)), "items")}


_JUDGED: dict = {}


def judged(way: Way, scope: str) -> tuple[bool, bool, frozenset]:
    """Whether the parameters are right, whether the diagnosis says so, and what it names."""
    observations = read_observations(*_ran(way), scope)
    # One judgement is enough for what leaves the same numbers and counts.
    key = scope, b"".join(o.ends.tobytes() for o in observations), observations[0].record["pushed"]
    if key not in _JUDGED:
        found = judge(observations, scope, "en")
        fine = all(close(o.ends, right()[o.scenario], o.scenario) for o in observations)
        _JUDGED[key] = fine, found.correct, frozenset(found.faults)
    return _JUDGED[key]


_RAN: dict = {}


def _ran(way: Way):
    calls = calls_of(way)  # more than half of the texts ask for the same as another one
    if calls not in _RAN:
        _RAN[calls] = ran(loop_of(way))
    return _RAN[calls]


def misjudged(some: list[Way]) -> tuple[list, float]:
    """The ways that get a wrong verdict or a wrong name; and the share of the wrong ones that get no name."""
    bad, wrong, unnamed = [], 0, 0
    for way in some:
        for scope in SCOPES:
            fine, called_correct, named = judged(way, scope)
            if fine != called_correct or not named <= way.mistakes:
                bad.append((scope, way, named))
            wrong += not fine
            unnamed += not fine and not named
    return bad, unnamed / wrong


def test_the_combinations_are_many_and_all_can_be_read():
    assert len(ALL) > 2000
    for field in ("zeros", "test", "step", "scale", "tail"):
        assert {getattr(way, field) for way in SOME} == {getattr(way, field) for way in ALL}


@pytest.mark.long
def test_what_asks_for_the_same_leaves_the_same():
    """So that one run is enough for all of them."""
    assert set(LENGTHS) == {(len(s.sizes), s.accumulation_steps) for s in scenarios("items", [])}
    alike = defaultdict(list)
    for way in ALL:
        alike[calls_of(way)].append(way)
    assert 2 * len(alike) < len(ALL)
    for ways_alike in list(alike.values())[:: len(alike) // 5]:
        (_, first), (_, last) = ran(loop_of(ways_alike[0])), ran(loop_of(ways_alike[-1]))
        assert all(np.array_equal(first[name], last[name]) for name in first)


def test_some_of_the_ways():
    bad, _ = misjudged(SOME)
    assert not bad


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("zeros", ZEROS, ids=lambda zeros: " and ".join(zeros) or "nowhere")
def test_all_ways(zeros):
    bad, unnamed = misjudged([way for way in ALL if way.zeros == zeros])
    assert not bad
    assert unnamed <= MOST_UNNAMED
