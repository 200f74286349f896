"""Lesson 05's second explorer: three layers, the same images, and every control moves the run."""

import pandas as pd
import pytest
import torch

from gradacc_lessons.lessons.norms import arranged, recipe_for
from gradacc_lessons.lessons.running_statistics import (
    MOMENTA,
    UPDATES,
    StatisticsFigure,
    explore_statistics,
    floor,
    micro_batches,
    share,
    statistics,
    statistics_sentence,
    statistics_table,
    weighed,
)
from gradacc_lessons.lessons.training import collect, training_windows
from gradacc_lessons.tasks import digits

PATIENCE = 120.0  # seconds; only a hang comes near it
WITHIN = 0.02


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return collect(statistics(recipe_for(8, 8), 0.1, "shuffled"))


def test_a_row_per_weight_and_per_micro_batch(rows: pd.DataFrame) -> None:
    for b, n in ((8, 8), (5, 7), (64, 1)):
        found = rows if (b, n) == (8, 8) else collect(statistics(recipe_for(b, n), 0.1, "shuffled"))
        assert len(found) == len(weighed(n)) + micro_batches(recipe_for(b, n))
        assert found["update"].iloc[-1] == UPDATES


def test_the_full_trace_is_that_of_the_whole_model_in_training_mode(rows: pd.DataFrame) -> None:
    task = digits("mlp", norm="batch", dtype=torch.float64)
    model = task.build_model()
    stream = training_windows(task, recipe_for(64, 1))
    for _ in range(UPDATES):
        model(arranged(next(stream)[0], "shuffled")[0])
    assert float((model[2].running_mean - rows["full"].iloc[-1]).abs().min()) < 1e-12


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
@pytest.mark.parametrize(("b", "n"), [(32, 2), (8, 8), (2, 32)])
@pytest.mark.parametrize("momentum", MOMENTA)
def test_the_corrected_mean_stays_within_two_percent_after_every_window(
    momentum: float, b: int, n: int, order: str
) -> None:
    found = collect(statistics(recipe_for(b, n), momentum, order))  # type: ignore[arg-type]
    assert found["mean_corrected"].max() < WITHIN
    assert found["mean_plain"].max() > WITHIN


def test_the_variance_is_not_promised() -> None:
    shuffled, ordered = (collect(statistics(recipe_for(8, 8), 0.1, order)).iloc[-1] for order in ("shuffled", "sorted"))  # type: ignore[arg-type]
    assert ordered["variance_corrected"] > WITHIN
    assert ordered["variance_corrected"] > 5 * shuffled["variance_corrected"]


def test_the_picture_shows_what_the_rows_say(rows: pd.DataFrame) -> None:
    figure = StatisticsFigure()
    for end in (1, 5, 12, len(rows)):
        assert figure.show(rows[:end]) == statistics_sentence(rows[:end])
        assert figure.png()
    assert list(figure._ring.get_data()[0]) == [8]
    low, high = figure._means.get_ylim()
    for name, line in figure._lines.items():
        assert list(line.get_ydata()) == [0.0, *rows[name].dropna()]
        assert low <= min(line.get_ydata()) and max(line.get_ydata()) <= high


def test_sentence_and_table_are_in_percent(rows: pd.DataFrame) -> None:
    said = statistics_sentence(rows)
    assert said.startswith(
        "b = 8, N = 8, momentum 0.1: the newest window weighs 0.57 in the running mean, and with the"
    )
    assert f"After {UPDATES} updates the running mean is" in said
    table = statistics_table(rows)
    assert list(table["updates"]) == [1, 3, 12, UPDATES]
    assert [share(value) for value in (0.5483, 0.0012, 4.711)] == ["55 %", "0.1 %", "471 %"]
    assert [floor(value) for value in (0.7, -0.1, 1.0)] == [0.5, -0.5, 1.0]


def test_each_control_moves_the_run() -> None:
    explorer = explore_statistics()
    seen = set()
    for values in ({"micro_batch_size": 16}, {"accumulation_steps": 3}, {"momentum": 0.3}, {"order": "sorted"}):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
        assert explorer.values.items() >= values.items()
        assert len(explorer.data) == explorer._bar.max
    assert len(seen) == 4
    for impossible, sentence in (
        ({"micro_batch_size": 1}, "whole number from 2 to 64"),
        ({"accumulation_steps": 0}, "whole number from 1 to 64"),
        ({"momentum": 2}, "must be one of"),
        ({"micro_batch_size": 5, "accumulation_steps": 1}, "a micro-batch of 1 image is left"),
        ({"micro_batch_size": 64, "accumulation_steps": 64}, "but the data has 1,536"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)
