"""Lesson 04, the short last window: every loop of the catalogue leaves its own trace on unit gradients."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gradacc_lessons import diagnose
from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.lessons import tails
from gradacc_lessons.lessons.tails import (
    LABELLED,
    LOOPS,
    RIGHT,
    TailFigure,
    applied_gradients,
    explore_tails,
    listed,
    loop_of,
    tail_sentence,
    tail_table,
    unit_trace,
)
from gradacc_lessons.lessons.training import collect

PATIENCE = 60.0
SIZES = [(10, 4), (8, 4), (2, 4), (1, 1), (7, 3), (24, 5), (11, 12)]
IDS = [tail for _, tail in LOOPS]


def traced(tail: str, m: int, n: int, epochs: int = 2) -> list[float]:
    return applied_gradients(collect(unit_trace(tail, m, n, epochs)))


@pytest.mark.parametrize(
    ("tail", "trace"),
    [
        (RIGHT, [1, 1, 1] * 3),
        ("tail_dropped", [1, 1] * 3),
        ("tail_leaks", [1, 1, 1.5, 1, 1.5, 1]),
        ("tail_underscaled", [1, 1, 0.5] * 3),
        ("tail_unscaled", [1, 1, 2] * 3),
    ],
)
def test_ten_micro_batches_and_n_4_give_each_loop_its_own_trace(tail: str, trace: list[float]) -> None:
    assert traced(tail, 10, 4, epochs=3) == pytest.approx(trace, abs=1e-12)


def test_no_two_loops_share_a_trace() -> None:
    assert len({tuple(np.round(traced(tail, 10, 4), 9)) for tail in IDS}) == len(LOOPS) == 5


def closed_form(tail: str, m: int, n: int, epochs: int) -> list[float]:
    """The trace by arithmetic: full windows, what is left over, and what becomes of it."""
    full, rest = divmod(m, n)
    last = {RIGHT: 1.0, "tail_underscaled": rest / n, "tail_unscaled": float(rest)}
    if tail in last:
        return ([1.0] * full + [last[tail]] * bool(rest)) * epochs
    first = 1.0 + (rest / n if tail == "tail_leaks" else 0.0)
    return [1.0] * full + ([first] + [1.0] * (full - 1) if full else []) * (epochs - 1)


@pytest.mark.parametrize(("m", "n"), SIZES)
@pytest.mark.parametrize("tail", IDS)
def test_every_length_of_epoch_gives_the_closed_form(tail: str, m: int, n: int) -> None:
    assert traced(tail, m, n, 3) == pytest.approx(closed_form(tail, m, n, 3), abs=1e-12)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_a_right_loop_makes_as_many_updates_as_there_are_windows(m: int, n: int) -> None:
    assert len(traced(RIGHT, m, n, 2)) == 2 * math.ceil(m / n)


def test_a_loop_that_drops_never_trains_on_an_epoch_shorter_than_n() -> None:
    assert traced("tail_dropped", 3, 4, 4) == []
    assert traced("tail_leaks", 3, 4, 4) == []


@pytest.mark.parametrize("tail", IDS[1:])
def test_the_loops_are_the_catalogues_and_have_the_mistake_they_are_named_for(tail: str) -> None:
    assert FAULTS[tail].lesson == "04_uneven_windows"
    assert diagnose(loop_of(tail), scope="tail").faults == (tail,)


def test_the_right_loop_is_right_in_the_strictest_scope() -> None:
    assert diagnose(loop_of(RIGHT), scope="items").outcome.name == "CORRECT"


def test_what_is_held_grows_until_an_update_empties_it() -> None:
    data = collect(unit_trace("tail_leaks", 10, 4, 2))
    assert list(data["held"]) == pytest.approx(
        [0.25, 0.5, 0.75, 1] * 2 + [0.25, 0.5, 0.75, 1, 1.25, 1.5] + [0.25, 0.5, 0.75, 1] + [0.25, 0.5]
    )
    assert list(data["position"][data["applied"].notna()]) == [4, 8, 14, 18]
    assert list(data["position"][data["right"].notna()]) == [4, 8, 10, 14, 18, 20]


def test_a_dropped_tail_is_never_even_run() -> None:
    data = collect(unit_trace("tail_dropped", 10, 4, 1))
    assert list(data["position"][data["held"].isna()]) == [9, 10]


# The explorer and its picture -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer() -> Any:
    return explore_tails()


def test_each_control_moves_the_run(explorer: Any) -> None:
    for values, words in (
        ({}, "the short window leaks: the updates apply 1, 1, 1.5, 1, where 1, 1, 1, 1, 1, 1 is right."),
        ({"tail": "tail_underscaled"}, "is divided by N: the updates apply 1, 1, 0.5, 1, 1, 0.5, where"),
        ({"micro_batches": 5}, "M = 5, N = 4, 1 micro-batch in the last window;"),
        ({"accumulation_steps": 5}, "M = 5, N = 5, every window is full, so there is no short one: the updates apply"),
        ({"epochs": 4}, "the updates apply 1, 1, 1, 1, and that is right."),
        ({"tail": "tail_dropped", "micro_batches": 2}, "there is no update at all, where 1, 1, 1, 1 is right."),
        ({"tail": RIGHT}, "each window is divided by its own length: the updates apply 1, 1, 1, 1, and that is right."),
        ({"tail": "tail_unscaled"}, "is not divided at all: the updates apply 2, 2, 2, 2, where 1, 1, 1, 1 is right."),
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        assert words in explorer.sentence, explorer.sentence
        assert explorer._bar.value == explorer._bar.max == len(explorer.data)


def test_impossible_values_are_refused_in_a_sentence(explorer: Any) -> None:
    for impossible, sentence in (
        ({"micro_batches": 0}, "whole number from 1 to 24"),
        ({"accumulation_steps": 13}, "whole number from 1 to 12"),
        ({"epochs": 5}, "whole number from 1 to 4"),
        ({"tail": "burnt"}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_an_error_in_a_loop_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no such loop")

    monkeypatch.setattr(tails, "loop_of", broken)
    failing = explore_tails()
    failing.start()
    with pytest.raises(RuntimeError, match="no such loop"):
        failing.wait(PATIENCE)
    assert "RuntimeError: no such loop" in failing._message.value


@pytest.mark.few(12)
@pytest.mark.parametrize(("m", "n"), SIZES)
@pytest.mark.parametrize("tail", IDS)
def test_discs_rings_and_values_stand_where_updates_are(tail: str, m: int, n: int) -> None:
    figure, data = TailFigure(), collect(unit_trace(tail, m, n, 2))
    figure.draw(data)
    figure.png()
    made = data.dropna(subset="applied")
    values = [words.get_text() for words in figure._values if words.get_text()]
    assert values == ([f"{value:.3g}" for value in made["applied"]] if len(made) <= LABELLED else [])
    np.testing.assert_array_equal(figure._discs.get_ydata(), data["applied"])
    np.testing.assert_array_equal(figure._rings.get_ydata(), data["right"])
    highest = max(1.0, *made["applied"]) if len(made) else 1.0
    for ax in (figure._buffer, figure._updates):
        assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] >= 1.2 * highest
    held = np.asarray(figure._held.get_ydata(), float)
    assert np.isnan(held).sum() == data["held"].isna().sum() + len(made), "the line is broken after each update"


@pytest.mark.parametrize("tail", IDS)
def test_where_every_window_is_full_nothing_is_said_of_a_short_one(tail: str) -> None:
    sentence = tail_sentence(collect(unit_trace(tail, 8, 4, 2)))
    assert sentence.endswith("so there is no short one: the updates apply 1, 1, 1, 1, and that is right.")


def test_the_end_of_an_epoch_is_named() -> None:
    figure = TailFigure()
    figure.draw(collect(unit_trace("tail_leaks", 10, 4, 2)))
    legend = figure._updates.get_legend()
    assert legend is not None and "end of an epoch" in [words.get_text() for words in legend.get_texts()]


def test_it_can_be_drawn_while_it_comes_in() -> None:
    rows = list(unit_trace("tail_leaks", 10, 4, 2))
    figure = TailFigure()
    for seen in range(1, len(rows) + 1):
        assert figure.show(pd.DataFrame(rows[:seen])).startswith("M = 10, N = 4, 2 micro-batches in the last window")
        figure.png()


def test_a_long_trace_is_cut_in_words() -> None:
    assert listed([1.0] * 12) == "1, 1, 1, 1, 1, 1, 1, 1, 1, 1 and 2 more"


def test_the_table_has_a_line_for_each_epoch() -> None:
    table = tail_table(collect(unit_trace("tail_dropped", 2, 4, 3)))
    assert list(table["updates of this loop"]) == ["none"] * 3
    assert list(table["updates of the right loop"]) == ["1"] * 3
