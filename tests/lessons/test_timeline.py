"""Lesson 07's timeline: every loop on its list is run under a tape, and what is shown is what the tape says."""

import math
from typing import Any

import pytest
from matplotlib.patches import Rectangle

from gradacc_lessons import diagnose
from gradacc_lessons.detective.faults import FAULTS, compiled, fault_loop
from gradacc_lessons.lessons import timeline as lesson
from gradacc_lessons.lessons.timeline import (
    RIGHT,
    RIGHT_SOURCE,
    SHOWN,
    TapeFigure,
    explore_timeline,
    findings_table,
    source_of,
    taped,
    timeline,
    timeline_sentence,
    written,
)
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.recipe import Recipe

PATIENCE = 60.0
WITHOUT_FINDING = {"tail_dropped", "tail_updated_differently", "clip_before_scaling", "scheduler_once_per_epoch"}
"""What these do shows in the picture, and an order alone does not make it wrong; `diagnose` names them."""


def run(loop: str, b: int = 4, n: int = 4, examples: int = 38) -> Any:
    return collect(timeline(loop, b, n, examples))


@pytest.mark.parametrize("loop", SHOWN)
def test_each_mistake_is_found_by_the_tape_or_said_not_to_be(loop: str) -> None:
    data = run(loop)
    found = [finding.id for finding in data["tape"].iloc[0].findings]
    assert found == ([] if loop in WITHOUT_FINDING else [loop])
    sentence = timeline_sentence(data)
    assert FAULTS[loop].title.en in sentence and ("No finding" in sentence) == (loop in WITHOUT_FINDING)
    assert "Nothing wrong" not in sentence


@pytest.mark.parametrize("loop", sorted(WITHOUT_FINDING))
def test_what_the_tape_cannot_call_wrong_diagnose_can(loop: str) -> None:
    assert diagnose(fault_loop(loop)).faults == (loop,)


def test_the_list_has_every_mistake_of_this_lesson_that_an_order_can_show() -> None:
    of_this_lesson = {fault.id for fault in FAULTS.values() if fault.lesson == "07_once_per_window"}
    assert of_this_lesson - set(SHOWN) == {"max_norm_ignored", "scheduler_never", "scheduler_twice"}


@pytest.mark.parametrize(("b", "n", "examples"), [(4, 4, 38), (1, 1, 8), (8, 2, 16), (16, 3, 80), (5, 12, 80)])
def test_the_right_loop_has_nothing_wrong_whatever_the_sizes(b: int, n: int, examples: int) -> None:
    data = run(RIGHT, b, n, examples)
    tape, recipe = data["tape"].iloc[0], Recipe(b, n)
    assert tape.findings == [] and "Nothing wrong was found." in timeline_sentence(data)
    updates = [window for window in tape.windows if window.outcome == "updated"]
    assert len(updates) == 2 * recipe.updates_per_epoch(examples)
    for window in updates:
        kinds = [event.kind for event in window.events]
        assert kinds == ["forward", "backward"] * len(window.fresh) + ["clip", "update", "zero_grad", "schedule"]
    assert sum(window.items or 0 for window in updates) == 2 * examples


def test_the_right_loop_is_right_in_the_strictest_scope() -> None:
    assert diagnose(compiled(RIGHT_SOURCE)).outcome.name == "CORRECT"


def test_a_written_timeline_has_a_line_per_micro_batch_in_order() -> None:
    tape = taped(compiled(RIGHT_SOURCE), Recipe(4, 4), 38, 1)
    lines = written(tape.events).splitlines()
    assert len(lines) == 10 and lines[0] == " 1  forward backward"
    end = " forward backward clip update zero_grad schedule"
    assert [k for k, line in enumerate(lines, start=1) if line.endswith(end)] == [4, 8, 10]
    assert written([]) == ""


# The explorer and its picture -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer() -> Any:
    return explore_timeline()


def test_each_control_moves_the_run(explorer: Any) -> None:
    for values, words in (
        ({}, "Micro-batches per update: 1, 1, 1, 1, 1, 1. Gradients zeroed within the window."),
        ({"loop": RIGHT}, "the right loop: 20 micro-batches, 6 updates. Micro-batches per update: 4, 4, 2, 4, 4, 2."),
        ({"loop": "tail_leaks"}, "Micro-batches per update: 4, 4, 6, 4. The short last window leaks"),
        ({"micro_batch_size": 8}, "b = 8, N = 4, 1 micro-batch in the last window"),
        ({"accumulation_steps": 3}, "b = 8, N = 3, 2 micro-batches in the last window"),
        ({"examples": 48}, "b = 8, N = 3, the mistake"),
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        assert words in explorer.sentence, explorer.sentence
        assert explorer._bar.value == explorer._bar.max == 1


def test_the_listing_follows_the_list(explorer: Any) -> None:
    for loop in (RIGHT, "clip_too_late"):
        explorer.set(loop=loop)
        explorer.wait(PATIENCE)
        shown = explorer._controls["loop"].listing.value
        assert "".join(source_of(loop).split()) in "".join(shown.split())


def test_impossible_values_are_refused_in_a_sentence(explorer: Any) -> None:
    for impossible, sentence in (
        ({"micro_batch_size": 0}, "whole number from 1 to 16"),
        ({"examples": 7}, "whole number from 8 to 80"),
        ({"loop": "burnt"}, "must be one of"),
        ({"micro_batch_size": 16, "accumulation_steps": 12, "examples": 80}, "16 x 12 = 192 examples per update"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_an_unknown_loop_to_begin_with_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="Loop must be one of 'right'"):
        explore_timeline("burnt")


def test_an_error_in_a_loop_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no such loop")

    monkeypatch.setattr(lesson, "taped", broken)
    failing = explore_timeline()
    failing.start()
    with pytest.raises(RuntimeError, match="no such loop"):
        failing.wait(PATIENCE)
    assert "RuntimeError: no such loop" in failing._message.value


@pytest.mark.parametrize(("b", "n", "examples"), [(4, 4, 38), (1, 12, 80)])
def test_the_picture_is_the_tapes_own_and_as_large_as_it_says(b: int, n: int, examples: int) -> None:
    data, figure = run("zero_grad_every_micro_batch", b, n, examples), TapeFigure()
    first = figure.show(data)
    assert figure.show(data) == first and figure.figure is not None
    assert (figure.width, figure.height) == tuple(round(side) for side in figure.figure.bbox.size)
    assert figure.png().startswith(b"\x89PNG")
    bars = [patch for patch in figure.figure.axes[0].patches if isinstance(patch, Rectangle) and patch.get_width() < 1]
    hollow = [bar for bar in bars if bar.get_facecolor()[:3] == (1, 1, 1)]
    drawn = min(2 * math.ceil(examples / b), 40)
    assert len(bars) == 2 * drawn
    lost = {number for window in data["tape"].iloc[0].windows for number in window.lost if number <= drawn}
    assert len(hollow) == len(lost) > 0


def test_marks_stay_within_their_window() -> None:
    """Nothing that belongs to a window reaches into the next, or over the edge."""
    figure = TapeFigure()
    figure.draw(run(RIGHT))
    figure.png()
    assert figure.figure is not None
    (ax,) = figure.figure.axes
    to_data = ax.transData.inverted()
    half = to_data.transform((7 / 72 * 100 / 2, 0))[0] - to_data.transform((0, 0))[0]
    for line in ax.lines:
        for x in line.get_xdata():
            assert float(x) + half <= math.floor(float(x)) + 0.5 + 0.02


def test_the_table_says_what_was_found_and_what_is_asked() -> None:
    table = findings_table(run("tail_leaks"))
    assert list(table["the tape"]) == ["found"] and table["lesson"].iloc[0] == "04"
    right = findings_table(run(RIGHT))
    assert list(right["the tape"]) == ["found", "asks"] and right["what"].iloc[0] == "nothing"
