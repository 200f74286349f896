"""Lesson 05's second explorer: three layers, the same images, and every control moves the run."""

import time
from statistics import mean

import pandas as pd
import pytest
import torch

from gradacc_lessons.lessons.norms import recipe_for
from gradacc_lessons.lessons.running_statistics import (
    LAYERS,
    MOMENTA,
    STATISTICS,
    UPDATES,
    StatisticsFigure,
    explore_statistics,
    new_layer,
    running_statistics,
    share,
    statistics,
    statistics_sentence,
    statistics_table,
    true_statistics,
)
from gradacc_lessons.lessons.training import collect, training_windows
from gradacc_lessons.tasks import digits

PATIENCE = 120.0  # seconds; only a hang comes near it
WITHIN = 0.02
SEEDS = range(5)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return collect(statistics(recipe_for(8, 8), 0.1, "shuffled"))


def test_the_true_statistics_are_those_of_one_batch_of_all_images() -> None:
    task = digits("mlp", norm="batch", dtype=torch.float64)
    model = task.build_model()
    model[2].momentum = 1.0
    model(task.train[0])
    for name, running in running_statistics(model[2]).items():
        assert torch.allclose(running, true_statistics()[name], rtol=1e-12)
        assert torch.equal(running_statistics(new_layer(0.1, "true"))[name], true_statistics()[name])


def test_whole_windows_are_the_whole_model_in_training_mode() -> None:
    task = digits("mlp", norm="batch", dtype=torch.float64)
    model, stream = task.build_model(), training_windows(task, recipe_for(64, 1))
    for row in statistics(recipe_for(8, 8), 0.1, "shuffled", "new"):
        model(next(stream)[0][0])
        for name, running in running_statistics(model[2]).items():
            true = true_statistics()[name]
            assert row[f"{name}_whole"] == pytest.approx(float((running - true).norm() / true.norm()), abs=1e-12)


@pytest.mark.parametrize("start", ["true", "new"])
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
@pytest.mark.parametrize(("b", "n"), [(32, 2), (8, 8), (2, 32)])
@pytest.mark.parametrize("momentum", MOMENTA)
def test_the_corrected_mean_stays_within_two_percent_after_every_window(
    momentum: float, b: int, n: int, order: str, start: str
) -> None:
    found = collect(statistics(recipe_for(b, n), momentum, order, start))  # type: ignore[arg-type]
    assert list(found["update"]) == list(range(1, UPDATES + 1))
    assert found["from_whole_corrected"].max() < WITHIN
    assert found["from_whole_plain"].max() > found["from_whole_corrected"].max()


@pytest.mark.parametrize("order", ["shuffled", "sorted"])
@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_correction_the_statistics_wander_far_and_with_it_the_mean_does_not(seed: int, order: str) -> None:
    found = collect(statistics(recipe_for(8, 8, seed), 0.1, order))  # type: ignore[arg-type]
    assert found["mean_plain"].mean() > 2 * found["mean_whole"].mean()
    assert found["variance_plain"].mean() > 2 * found["variance_whole"].mean()
    assert found["mean_corrected"].mean() == pytest.approx(found["mean_whole"].mean(), rel=0.1)


def test_the_more_micro_batches_the_further_they_wander() -> None:
    def wandering(b: int) -> float:
        runs = (collect(statistics(recipe_for(b, 64 // b, seed), 0.1, "shuffled")) for seed in SEEDS)
        return mean(float(run["mean_plain"].mean()) for run in runs)

    assert wandering(32) < wandering(8) < wandering(2)


@pytest.mark.parametrize("seed", SEEDS)
def test_from_0_and_1_faster_moves_help(seed: int) -> None:
    last = collect(statistics(recipe_for(8, 8, seed), 0.1, "shuffled", "new")).iloc[-1]
    for what in STATISTICS:
        assert last[f"{what}_plain"] < last[f"{what}_whole"]
        assert last[f"{what}_corrected"] == pytest.approx(last[f"{what}_whole"], rel=0.05)


def test_the_variance_is_not_promised() -> None:
    shuffled, ordered = (collect(statistics(recipe_for(8, 8), 0.1, order)) for order in ("shuffled", "sorted"))  # type: ignore[arg-type]
    assert shuffled["variance_corrected"].mean() < 2 * shuffled["variance_whole"].mean()
    assert ordered["variance_corrected"].mean() > 3 * ordered["variance_whole"].mean()


def test_the_picture_shows_what_the_rows_say(rows: pd.DataFrame) -> None:
    figure = StatisticsFigure()
    for end in (1, 5, 12, len(rows)):
        assert figure.show(rows[:end]) == statistics_sentence(rows[:end])
        assert figure.png()
    for what, (ax, lines) in figure._panels.items():
        for name, line in lines.items():
            assert list(line.get_ydata()) == list(100 * rows[f"{what}_{name}"])
            assert rows[f"{what}_{name}"].max() < ax.get_ylim()[1] / 100


def test_sentence_and_table_say_the_same(rows: pd.DataFrame) -> None:
    said, table = statistics_sentence(rows), statistics_table(rows)
    assert said.startswith("b = 8, N = 8, momentum 0.1, shuffled: the newest window weighs 0.57 in the running")
    assert f"From the true statistics, on average over {UPDATES} updates: the running mean is" in said
    assert list(table["BatchNorm sees"]) == list(LAYERS.values())
    for what in STATISTICS:
        assert all(each in said for each in table[f"{what}: on average"])
    assert "on average" not in statistics_sentence(rows[:3])
    assert "From 0 and 1, on average" in statistics_sentence(rows.assign(start="new"))
    assert [share(value) for value in (0.5483, 0.0012, 4.711)] == ["55 %", "0.1 %", "471 %"]


def test_each_control_moves_the_run() -> None:
    explorer = explore_statistics()
    seen = set()
    for values in (
        {"micro_batch_size": 16},
        {"accumulation_steps": 3},
        {"momentum": 0.3},
        {"order": "sorted"},
        {"start": "new"},
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
        assert explorer.values.items() >= values.items()
        assert len(explorer.data) == explorer._bar.max == UPDATES
    assert len(seen) == 5
    for impossible, sentence in (
        ({"micro_batch_size": 1}, "whole number from 2 to 64"),
        ({"accumulation_steps": 0}, "whole number from 1 to 64"),
        ({"momentum": 2}, "must be one of"),
        ({"start": "late"}, "must be one of"),
        ({"micro_batch_size": 5, "accumulation_steps": 1}, "with b = 5 and N = 1 the last micro-batch of an epoch"),
        ({"micro_batch_size": 64, "accumulation_steps": 64}, "but the data has 1,536"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_many_micro_batches_take_seconds_and_not_a_minute() -> None:
    explorer = explore_statistics()
    began = time.process_time()
    explorer.set(micro_batch_size=16, accumulation_steps=64)
    explorer.wait(PATIENCE)
    assert time.process_time() - began < 10
