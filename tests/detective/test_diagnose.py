"""Real loops through the real worker: every listing, right loops in many styles, and wrong ones nobody catalogued."""

import threading
from functools import cache
from html.parser import HTMLParser

import pytest
from detective import wrong_loops
from detective.correct_loops import CORRECT, slices
from detective.double_loops import DOUBLE, NAMED_IN_EVERY_SCOPE, clips_inside_and_divides_the_tail_by_n
from detective.wrong_loops import UNCATALOGUED
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradacc_lessons import diagnose
from gradacc_lessons.detective import limits
from gradacc_lessons.detective.diagnose import Outcome
from gradacc_lessons.detective.faults import FAULTS, REFERENCE_SOURCE, TAUGHT_SOURCE, compiled, fault_loop
from gradacc_lessons.detective.scenarios import SCOPES
from gradacc_lessons.text import LANGUAGES

DIVIDES_BY_N = {
    "step_before_backward",
    "window_off_by_one",
    "windows_one_too_long_or_short",
    "tail_leaks",
    "tail_underscaled",
    "tail_unscaled",
}


def expected(fault: str, scope: str) -> set[str]:
    if SCOPES.index(scope) < SCOPES.index(FAULTS[fault].scope):
        return set()
    return {fault} | ({"mean_of_means"} if scope == "items" and fault in DIVIDES_BY_N else set())


@cache
def diagnosed(fault: str, scope: str):
    """The diagnosis of a listing, for all who ask."""
    return diagnose(fault_loop(fault), scope)


@cache
def unknown(name: str):
    """The diagnosis of a loop that nobody has catalogued."""
    return diagnose(UNCATALOGUED[name], "windows")


def told_apart(fault: str) -> list:
    """The scope in which a fault shows; and, when there is time, all others."""
    own = FAULTS[fault].scope
    return [pytest.param(fault, scope, marks=() if scope == own else pytest.mark.long) for scope in SCOPES]


@pytest.mark.parametrize(("fault", "scope"), [case for fault in FAULTS for case in told_apart(fault)])
def test_every_listing_gets_its_own_name(fault, scope):
    found = diagnosed(fault, scope)
    assert set(found.faults) == expected(fault, scope)
    assert found.outcome is (Outcome.WRONG if found.faults else Outcome.CORRECT)
    for name in found.faults:
        assert FAULTS[name].message.en in found.message


@pytest.mark.parametrize("name", CORRECT)
def test_right_loops_of_every_style_pass(name):
    found = diagnose(CORRECT[name])
    assert found.outcome is Outcome.CORRECT, found.message
    assert found.faults == () and found.correct
    assert found.evidence["graphs_alive"] < 1.1
    assert all(row["gradient"] == pytest.approx(1, abs=1e-6) for row in found.evidence["trace"])


@pytest.mark.parametrize("loop", DOUBLE, ids=lambda loop: loop.__name__)
def test_two_mistakes_are_both_named(loop):
    assert set(diagnose(loop, "tail").faults) == DOUBLE[loop]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("loop", NAMED_IN_EVERY_SCOPE, ids=lambda loop: loop.__name__)
def test_common_loops_are_named_whatever_is_asked(loop, scope):
    assert set(diagnose(loop, scope).faults) - {"mean_of_means"} == NAMED_IN_EVERY_SCOPE[loop]


def test_three_mistakes_are_three_lines():
    lines = diagnose(list(NAMED_IN_EVERY_SCOPE)[-1], "windows").message.split("\n")
    assert [line.split(":")[0] for line in lines[1:]] == ["There is a second mistake", "There is another mistake"]


@pytest.mark.few(5)
@pytest.mark.parametrize("name", UNCATALOGUED)
def test_what_nobody_has_catalogued_is_wrong_without_a_name(name):
    """It differs where windows are full already, so no scope knows more."""
    found = unknown(name)
    assert found.outcome is Outcome.WRONG
    assert found.faults == ()
    assert "Measured in full windows of equal micro-batches: " in found.message


@pytest.mark.parametrize(
    ("name", "said"),
    {
        "nine_tenths": "update 1 of epoch 1 is 0.9 times as long as it should be, in the right direction",
        "sign_flip": "update 1 of epoch 1 points the opposite way",
        "noise": "update 1 of epoch 1 points another way (cosine",
        "skips_the_third": "micro-batch 3 of the epoch does not count in update 1",
        "first_twice": "micro-batch 1 of the epoch counts 2 times as much",
        "two_updates_per_window": "it makes 8 updates in two epochs where 4 belong",
    }.items(),
)
def test_what_was_measured_is_said(name, said):
    assert said in unknown(name).message


def test_what_is_taught_first_is_right_with_full_windows_and_no_further():
    taught = compiled(TAUGHT_SOURCE)
    assert diagnose(taught, "windows").correct
    assert diagnose(taught, "tail").faults == ("tail_dropped",)
    assert diagnose(taught).faults == ("tail_dropped", "mean_of_means")
    assert diagnose(compiled(REFERENCE_SOURCE)).correct


def test_a_named_mistake_beside_an_unknown_one():
    """What is certain is named; what is not is said to be there."""

    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for start in range(0, len(micro_batches), accumulation_steps):
            window = micro_batches[start : start + accumulation_steps]
            optimizer.zero_grad()
            for batch in window[:4] if len(window) == accumulation_steps else window[:1]:
                loss_fn(model, batch).backward()
            optimizer.step()

    found = diagnose(loop, "tail")
    assert found.faults == ("missing_scale",)
    assert "a short last window something else differs" in found.message


@pytest.mark.parametrize("language", LANGUAGES)
def test_messages_come_in_the_language_asked_for(language):
    other = "nl" if language == "en" else "en"
    for loop, scope in ((fault_loop("tail_leaks"), "tail"), (slices, "windows"), (wrong_loops.sign_flip, "windows")):
        found = diagnose(loop, scope, language=language)
        assert found.message == found.to(language) != found.to(other)
        assert found.to(other) == diagnose(loop, scope, language=other).message
    assert found.message.startswith({"en": "The loop is wrong", "nl": "De lus is fout"}[language])
    assert "the opposite way" in found.to("en") and "precies de andere kant op" in found.to("nl")
    crashed = diagnose(wrong_loops.divides_by_zero, language=language)
    assert "(line " in crashed.to("en") and "(regel " in crashed.to("nl")
    with pytest.raises(ValueError, match="'de' is not one of en, nl"):
        found.to("de")


def test_evidence_is_what_was_measured():
    evidence = diagnosed("tail_leaks", "tail").evidence
    assert [row["gradient"] for row in evidence["trace"]] == pytest.approx([1, 1, 1.5, 1])
    assert [(row["epoch"], row["update"]) for row in evidence["trace"]] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert evidence["trace"][2]["weights"] == pytest.approx([0.25] * 4 + [0] * 4 + [0.25] * 2)
    assert (evidence["updates"], evidence["updates_expected"]) == (4, 6)
    assert (evidence["micro_batches"], evidence["backwards"]) == (20, 20)
    assert diagnosed("sum_then_backward", "windows").evidence["graphs_alive"] == pytest.approx(4, abs=0.05)
    underscaled = diagnosed("tail_underscaled", "tail").evidence["trace"]
    assert [row["gradient"] for row in underscaled] == pytest.approx([1, 1, 0.5] * 2)
    missing = diagnosed("missing_scale", "windows").evidence["trace"]
    assert [row["gradient"] for row in missing] == pytest.approx([4] * 4)


def test_what_a_loop_prints_comes_back_cut():
    found = diagnose(CORRECT["looks twice"])
    assert found.evidence["printed"].startswith("loss before:")
    assert len(found.evidence["printed"]) <= limits.SHOWN_OUTPUT


class Balanced(HTMLParser):
    """Fails on a tag that is not closed; collects the tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_escaped_and_whole():
    for found in (diagnose(wrong_loops.html), diagnose(fault_loop("missing_scale"), language="nl")):
        parser = Balanced()
        parser.feed(found._repr_html_())
        assert not parser.open
        assert "script" not in parser.seen
        assert found.message.split("\n")[0][:20] in str(found)
    assert "<td>4</td>" in found._repr_html_()
    assert 'lang="nl"' in found._repr_html_()


TRACE = "gradient applied (1 = right)"


def test_a_trace_is_shown_where_it_shows_the_mistake_and_only_there():
    for fault, scope, shown in (
        ("missing_scale", "items", "4, 4, 4, 4"),
        ("tail_underscaled", "items", "1, 1, 0.5, 1, 1, 0.5"),
        ("tail_dropped", "items", "1, 1, 1, 1"),  # where six belong: the number tells
        ("clip_every_micro_batch", "items", None),  # nothing is clipped where gradients are traced
        ("mean_of_means", "items", None),  # each update is whole, and made of the wrong shares
    ):
        found = diagnosed(fault, scope)
        assert (f"{TRACE}: {shown}" in str(found)) if shown else (TRACE not in str(found)), fault
        assert ("<table" in found._repr_html_()) == bool(shown), fault


def test_of_two_mistakes_the_trace_shows_the_one_that_it_can():
    found = diagnose(clips_inside_and_divides_the_tail_by_n, "tail")
    assert set(found.faults) == {"clip_every_micro_batch", "tail_underscaled"}
    assert found.evidence["measured_in"] == "tail"
    assert f"{TRACE}: 1, 1, 0.5, 1, 1, 0.5" in str(found)


MISBEHAVIOUR = {
    "does_nothing": (Outcome.WRONG, "without a single forward"),
    "forward_only": (Outcome.WRONG, "none goes backward"),
    "backward_only": (Outcome.WRONG, "the optimizer never updates"),
    "own_optimizer": (Outcome.WRONG, "an optimizer of its own"),
    "by_hand": (Outcome.WRONG, "without optimizer.step()"),
    "scales_the_rate": (Outcome.WRONG, "changes the learning rate: 8 was given, and update 1 runs with 2."),
    "normalises_in_place": (Outcome.WRONG, "changes the micro-batches"),
    "eats_the_list": (Outcome.WRONG, "changes the list of micro-batches"),
    "shuffles_the_list": (Outcome.WRONG, "changes the list of micro-batches"),
    "four_parameters": (Outcome.WRONG, "needs these five parameters"),
    "asks_for_more": (Outcome.WRONG, "needs these five parameters"),
    "yields": (Outcome.WRONG, "contains yield"),
    "is_async": (Outcome.WRONG, "declared async"),
    "not_started": (Outcome.NOT_ATTEMPTED, "Nothing to check yet"),
    "divides_by_zero": (Outcome.CRASHED, "ZeroDivisionError: division by zero (line"),
    "usual_loss": (Outcome.CRASHED, "loss_fn(model, batch)"),
    "raises_strangely": (Outcome.CRASHED, "stops with BadWords (line"),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_misbehaviour_is_named_in_words(name):
    found = diagnose(getattr(wrong_loops, name), "windows")
    outcome, said = MISBEHAVIOUR[name]
    assert found.outcome is outcome
    assert said in found.message
    assert found.faults == ()
    assert "Traceback" not in found.message


@pytest.mark.parametrize(
    "clip", ["pass", "clip_grad_norm_(model.parameters(), 1e6)", "clip_grad_value_(model.parameters(), 1e6)"]
)
def test_what_is_said_of_clipping_that_never_cuts_is_true_of_each_way_not_to(clip):
    source = FAULTS["clip_too_late"].source
    late = "        optimizer.step()\n        clip_grad_norm_(model.parameters(), max_norm)\n"
    assert source.count(late) == 1
    never = source.replace(late, f"        {clip}\n        optimizer.step()\n").replace(
        "import clip_grad_norm_", "import clip_grad_norm_, clip_grad_value_"
    )
    diagnosis = diagnose(compiled(never), "windows")
    assert diagnosis.faults == ("clip_too_late",)
    ways = ("The clipping comes after the update", "it is missing", "its threshold is not max_norm but higher")
    assert all(way in diagnosis.message for way in ways)


def test_a_crash_shows_the_learners_own_line():
    found = diagnose(wrong_loops.divides_by_zero)
    assert "return 1 / 0" in found.message
    found = diagnose(wrong_loops.usual_loss)
    assert "loss_fn(model(inputs), labels).backward()" in found.message


@pytest.mark.parametrize("thing", [None, 3, "train_epoch", REFERENCE_SOURCE])
def test_what_is_no_function_gets_a_sentence(thing):
    found = diagnose(thing)
    assert found.outcome is Outcome.WRONG
    assert type(thing).__name__ in found.message


def test_what_cannot_travel_gets_a_sentence():
    lock = threading.Lock()

    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        with lock:
            optimizer.step()

    found = diagnose(loop)
    assert found.outcome is Outcome.CRASHED
    assert "cannot be sent" in found.message


def test_wrong_arguments_of_our_own_callers_are_errors():
    with pytest.raises(ValueError, match="'all' is not one of windows, tail, items"):
        diagnose(slices, "all")
    with pytest.raises(ValueError, match="'de' is not one of en, nl"):
        diagnose(slices, language="de")
    for limit in (0, -1, float("nan"), float("inf"), 3601, 1e10):
        with pytest.raises(ValueError, match="positive number of seconds, 3600 at most"):
            diagnose(slices, time_limit=limit)
    assert diagnose(slices, "windows", time_limit=3600).correct


FIRST_ONLY = ["keep", "skip", "skip", "skip"]
"""Only one micro-batch of each window counts, whatever N is: that has a name."""


@settings(max_examples=10, deadline=None)
@example(["skip", "skip", "skip", "keep"])
@example(FIRST_ONLY)
@given(st.lists(st.sampled_from(["skip", "half", "double", "keep"]), min_size=4, max_size=4))
def test_any_weights_within_a_window_are_right_only_when_all_are_kept(weights):
    """Whatever is done to the micro-batches of a window, a verdict of CORRECT needs all of them in full."""
    factor = {"skip": 0.0, "half": 0.5, "double": 2.0, "keep": 1.0}
    factors = [factor[weight] for weight in weights]

    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for start in range(0, len(micro_batches), accumulation_steps):
            window = micro_batches[start : start + accumulation_steps]
            optimizer.zero_grad()
            for k, batch in enumerate(window):
                (loss_fn(model, batch) * factors[k] / len(window)).backward()
            optimizer.step()

    found = diagnose(loop, "windows")
    assert found.correct == (set(weights) == {"keep"})
    if set(weights) == {"keep"}:
        return
    known = {"backward_once_per_window"} if weights == FIRST_ONLY else set()
    assert set(found.faults) == known
    moved = [row["weights"][:4] for row in found.evidence["trace"] if row["update"] == 1]
    assert moved[0] == pytest.approx([f / 4 for f in factors])
