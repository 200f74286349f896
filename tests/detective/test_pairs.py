"""Two mistakes in one loop: all pairs that can stand together, as the oracle predicts them."""

from functools import cache
from itertools import combinations

import pytest
from detective.imagined import observed, together

from gradacc_lessons.detective import verdict
from gradacc_lessons.detective.changes import CHANGES
from gradacc_lessons.detective.diagnosis import Outcome
from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.detective.oracle import Loop, predict
from gradacc_lessons.detective.scenarios import KEYWORDS, SCENARIOS, scenarios
from gradacc_lessons.detective.suspects import close, explain, likeliest
from gradacc_lessons.detective.verdict import judge
from gradacc_lessons.detective.wording import SENTENCES

PAIRS = [pair for pair in combinations(CHANGES, 2) if together(*pair) is not None]

AMOUNTS_TO = {
    # The sum of means divided once after all, by the window: what is left is that sizes do not count.
    ("missing_scale", "double_scale"): {"mean_of_means"},
    # The last running total holds the whole window, and the zeroing removes the earlier ones: only memory is wrong.
    ("running_total_backward", "zero_grad_every_micro_batch"): set(),
    # The ordinary loop has a name of its own.
    ("zero_grad_every_micro_batch", "step_every_micro_batch"): {"no_accumulation"},
    # The update comes right after the zeroing.
    ("zero_grad_every_micro_batch", "step_before_backward"): {"zero_grad_before_step"},
}
"""Pairs that together are something else."""
TOO_EARLY = {
    ("windows_one_too_long_or_short", "tail_unscaled"),
    ("windows_one_too_long_or_short", "tail_updated_differently"),
    ("accumulation_steps_ignored", "tail_unscaled"),
}
"""With another length there are short windows where all should be full, and what is wrong with those is not looked for
there: it gets no name."""


@cache
def diagnosed(pair):
    return judge(observed(together(*pair).loop), "items", "en")


def same_everywhere(one: Loop, other: Loop) -> bool:
    return all(
        close(predict(one, scenario).ends, predict(other, scenario).ends, scenario)
        for scenario in scenarios("items", KEYWORDS)
    )


OFTEN = ("missing_scale", "never_zero_grad", "tail_leaks")
"""Their pairs are always tried; those of the others when there is time."""


@pytest.mark.parametrize("first", [pytest.param(f, marks=() if f in OFTEN else pytest.mark.long) for f in CHANGES])
def test_pairs_are_named_as_far_as_they_can_be_told(first):
    """Both are named; or what is named leaves behind exactly the same; or several readings do, and only what they
    share is named, with a word that there is more."""
    for pair in PAIRS:
        if pair[0] != first:
            continue
        both = together(*pair)
        seen = observed(both.loop)
        found = diagnosed(pair)
        named = set(found.faults)
        if pair in AMOUNTS_TO:
            assert named == AMOUNTS_TO[pair], pair
            continue
        assert found.outcome is Outcome.WRONG, pair
        if pair in TOO_EARLY:
            assert named < set(pair), pair
            assert not named or "something else differs" in found.message, pair
            continue
        if named == set(pair):
            continue
        readings, broken = explain(seen)
        assert broken is None, pair
        assert all(same_everywhere(reading.loop, both.loop) for reading in readings), pair
        pushed = seen[0].record["pushed"]
        smallest = likeliest(readings, lambda loop, n=pushed: predict(loop, SCENARIOS[0]).backwards == n)
        assert named == set(frozenset.intersection(*smallest)), pair
        assert named, pair
        assert (len(smallest) > 1) == (SENTENCES["ambiguous"].en in found.message), pair


@pytest.mark.long
def test_most_pairs_are_named_in_full():
    full = sum(set(diagnosed(pair).faults) == set(pair) for pair in PAIRS)
    assert len(PAIRS) > 300
    assert full / len(PAIRS) > 0.75


SHOWN_WAYS = 3
"""Of each fault that many ways of writing it are always tried; the others when there is time."""


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        pytest.param(fault, change, marks=() if number < SHOWN_WAYS else pytest.mark.long)
        for fault in CHANGES
        for number, change in enumerate(CHANGES[fault])
    ],
)
def test_each_way_of_writing_a_fault_is_recognised(fault, change):
    found = judge(observed(Loop(**change)), "items", "en")
    assert found.faults == (fault,)
    assert FAULTS[fault].message.en in found.message


def test_explanations_that_share_no_mistake_are_not_called_unknown(monkeypatch):
    apart = [frozenset({"missing_scale"}), frozenset({"never_zero_grad", "double_scale"})]
    monkeypatch.setattr(verdict, "likeliest", lambda held, backwards: apart)
    found = judge(observed(Loop(weight="one"), "windows"), "windows", "en")
    assert (found.outcome, found.faults) == (Outcome.WRONG, ())
    assert found.message.startswith(
        "The loop is wrong, and several mistakes of the catalogue explain that equally well."
    )
    assert found.to("nl").startswith("De lus is fout, en meerdere fouten uit de catalogus verklaren dat even goed.")
    assert "4 times as long as it should be" in found.message
