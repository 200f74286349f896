"""Lesson 10's first explorer: peaks as the allocator counts them, times in turns, and the price of checkpointing."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.lessons import peak_and_time as lesson
from gradacc_lessons.lessons.peak_and_time import (
    CUTS,
    LARGEST_WINDOW,
    LENGTH,
    LOWEST,
    TURNS,
    PlaneFigure,
    by_point,
    cuts_of,
    explore_peak_and_time,
    peak_and_time,
    plane_sentence,
    plane_table,
    price,
)
from gradacc_lessons.lessons.peaks import Window, predicted, recipe_for, shorter
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.loop import bring_state_into_being, one_update
from gradacc_lessons.memory.predict import built
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import chat

PATIENCE = 120.0  # seconds; only a hang comes near it
ALLOCATOR_WITHIN = 0.001


@pytest.fixture(scope="module")
def points() -> pd.DataFrame:
    """One run of a small window: 4 examples."""
    return collect(peak_and_time(recipe_for("adamw", 2, 2), 1.5))


def invented(times: dict[tuple[int, bool], list[float]], prediction: float | None = None) -> pd.DataFrame:
    """Rows with these seconds, for windows of 8 examples; b = 4 is chosen."""
    rows = [
        {"b": b, "n": 8 // b, "checkpointing": again, "peak": 20.0 * b + 10 * (not again), "seconds": seconds}
        for (b, again), turns in times.items()
        for seconds in turns
    ]
    return pd.DataFrame(rows).assign(chosen_b=4, chosen_n=2, prediction=prediction)


PLAIN_AND_AGAIN = {
    (8, False): [2.0, 1.9],
    (8, True): [2.6, 2.5],
    (4, False): [1.0, 3.0],
    (4, True): [1.4, 1.25],
}


@given(st.integers(1, 40), st.integers(1, 16))
def test_every_cut_is_of_the_same_window_and_the_chosen_one_is_among_them(b: int, n: int) -> None:
    cuts = cuts_of(Recipe(micro_batch_size=b, accumulation_steps=n))
    assert (b, n) in cuts and (b * n, 1) in cuts
    assert {size * steps for size, steps in cuts} == {b * n}
    assert len(cuts) <= CUTS + 1
    without = [size for size, _ in cuts if size != b]
    assert all(2 * small <= large for large, small in pairwise(without))


def test_all_points_take_turns_and_each_is_measured_once(points: pd.DataFrame) -> None:
    turn = len(points) // TURNS
    columns = ["b", "n", "checkpointing", "peak"]
    first = points[columns].iloc[:turn]
    assert not first[columns[:3]].duplicated().any()
    for k in range(1, TURNS):
        assert points[columns].iloc[k * turn : (k + 1) * turn].reset_index(drop=True).equals(first)
    assert (points["seconds"] > 0).all()
    assert turn == 2 * len(cuts_of(recipe_for("adamw", 2, 2)))


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_peak_is_what_the_allocator_reports(points: pd.DataFrame, checkpointing: bool) -> None:
    recipe = replace(recipe_for("adamw", 4, 1), checkpointing=checkpointing)
    task = shorter(chat(), LENGTH)
    model = built(task.build_model, recipe)
    optimizer = make_optimizer(model, recipe)
    bring_state_into_being(optimizer, recipe)
    window = [task.make_batch(4)]
    before = bytes_in_use(model, optimizer, window)
    counted = allocator_peak(lambda: one_update(model, optimizer, window, task.loss_fn, recipe), before)
    shown = points[(points["b"] == 4) & (points["checkpointing"] == checkpointing)]["peak"].iloc[0]
    assert shown * MEBIBYTE == pytest.approx(counted, rel=ALLOCATOR_WITHIN)
    assert predicted(LENGTH, recipe).peak_bytes == pytest.approx(counted, rel=ALLOCATOR_WITHIN)


def test_two_micro_batches_of_a_window_have_the_peak_of_all() -> None:
    window = Window(LENGTH, recipe_for("adamw", 4, 4))
    assert window.profile(2).peak_bytes == window.profile().peak_bytes
    assert window.profile(1).peak_bytes < window.profile(2).peak_bytes


def test_the_clock_leaves_the_number_of_threads_as_it_was() -> None:
    threads = torch.get_num_threads()
    assert Window(LENGTH, recipe_for("sgd", 2, 1)).seconds() > 0
    assert torch.get_num_threads() == threads


def test_checkpointing_lowers_every_peak_and_costs_time(points: pd.DataFrame) -> None:
    found = by_point(points)
    plain, again = (found[found["checkpointing"] == value].set_index("b") for value in (False, True))
    assert (again["peak"] < plain["peak"]).all()
    assert plain["peak"].is_monotonic_decreasing  # by falling b
    assert price(points) > 1
    assert plain["time"].min() == 1


def test_the_quickest_turn_counts_and_the_price_is_that_of_the_chosen_b() -> None:
    data = invented(PLAIN_AND_AGAIN)
    assert list(by_point(data)["time"]) == pytest.approx([1.9, 2.5, 1.0, 1.25])
    assert price(data) == pytest.approx(1.25)
    assert list(plane_table(data)["times as long"]) == ["1.32", "1.25"]
    assert plane_sentence(data) == (
        "b = 4, N = 2: 90.0 MiB without checkpointing and 80.0 MiB with it, in 1.25 times the time."
    )


def test_until_both_times_are_there_it_is_measuring() -> None:
    data = invented({(8, False): [2.0], (8, True): [2.6], (4, False): [1.0]}, 1.3)
    figure = PlaneFigure()
    assert figure.draw(data) == "b = 4, N = 2: measuring."
    assert pd.isna(price(data))
    assert not len(figure._guess.get_ydata())


def test_a_prediction_leads_from_the_plain_point_to_above_the_checkpointed_one() -> None:
    figure = PlaneFigure()
    figure.draw(invented(PLAIN_AND_AGAIN, 1.5))
    assert list(figure._guess.get_xdata()) == [90.0, 80.0]
    assert list(figure._guess.get_ydata()) == pytest.approx([1.0, 1.5])


@pytest.mark.parametrize("guess", [1.33, 0.0, 50.0])
def test_a_prediction_is_drawn_inside_the_picture_whatever_it_is(guess: float) -> None:
    figure = PlaneFigure()
    sentence = figure.draw(invented(PLAIN_AND_AGAIN, guess))
    assert sentence.endswith(f"You predicted {guess:g} times.")
    low, high = figure._ax.get_ylim()
    assert low == LOWEST <= figure._guess.get_ydata()[-1] < high
    assert high <= 2 * 2.5  # a wild guess does not flatten the points
    assert "You predicted" not in figure.update(invented(PLAIN_AND_AGAIN))
    assert not len(figure._guess.get_ydata())


def test_each_point_has_its_b_and_the_chosen_ones_are_larger() -> None:
    figure = PlaneFigure()
    figure.draw(invented(PLAIN_AND_AGAIN))
    assert [text.get_text() for text in figure._names][:5] == ["b = 8", "b = 8", "b = 4", "b = 4", ""]
    plain, again = figure._chosen
    assert (list(plain.get_xdata()), list(again.get_xdata())) == ([90.0], [80.0])
    assert figure.png().startswith(b"\x89PNG")


def test_each_control_moves_the_run_and_a_window_too_large_to_time_is_refused() -> None:
    explorer = explore_peak_and_time()
    for values in (
        {"micro_batch_size": 2, "accumulation_steps": 1},
        {"micro_batch_size": 1},
        {"accumulation_steps": 2},
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        b, n = explorer.values["micro_batch_size"], explorer.values["accumulation_steps"]
        assert explorer.sentence.startswith(f"b = {b}, N = {n}: ")
        assert len(explorer.data) == 2 * TURNS * len(cuts_of(Recipe(micro_batch_size=b, accumulation_steps=n)))
    for impossible, sentence in (
        ({"micro_batch_size": 40, "accumulation_steps": 2}, f"40 x 2 = 80 .* at most {LARGEST_WINDOW}"),
        ({"micro_batch_size": 0}, "whole number from 1 to 40"),
        ({"accumulation_steps": 17}, "whole number from 1 to 16"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_the_explorer_waits_for_the_prediction_and_draws_it(predicted: Any) -> None:
    explorer = explore_peak_and_time(predicted("fit-predict-price"))
    assert explorer.waiting
    explorer = explore_peak_and_time(predicted("fit-predict-price", 1.5))
    explorer.set(micro_batch_size=2, accumulation_steps=1)
    explorer.wait(PATIENCE)
    assert explorer.sentence.endswith("You predicted 1.5 times.")


def test_an_error_in_the_measurement_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no <memory> to count")

    monkeypatch.setattr(lesson, "Window", broken)
    explorer = explore_peak_and_time()
    explorer.start()
    with pytest.raises(RuntimeError, match="to count"):
        explorer.wait(PATIENCE)
    assert "no &lt;memory&gt; to count" in explorer._message.value
