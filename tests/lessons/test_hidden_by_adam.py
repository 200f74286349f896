"""Lesson 02, what optimizers hide: relations over seeds, and what the explorer's controls do."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch

from gradacc_lessons import Recipe
from gradacc_lessons.lessons import hidden_by_adam
from gradacc_lessons.lessons.hidden_by_adam import (
    MISTAKES,
    SETTINGS,
    UPDATES,
    LockstepFigure,
    explore_optimizers,
    last_distance,
    lockstep,
    over_seeds,
    seeds_table,
)
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.tasks import digits

PATIENCE = 120.0  # seconds; only a hang comes near it
SHORT = 6  # updates, where only the controls are tested


@pytest.fixture(scope="module")
def missing() -> pd.DataFrame:
    """Five seeds of each optimizer, without 1/N."""
    return collect(over_seeds())


def test_adam_hides_a_missing_1_over_n_and_sgd_does_not(missing: pd.DataFrame) -> None:
    by = missing.groupby("setting")["distance"]
    assert by.count().min() >= 5
    assert by.min()["sgd"] > 1
    assert by.median()["sgd"] > 1000 * by.median()["adam"]
    assert by.median()["sgd"] > 1000 * by.median()["adamw"]
    assert by.median()["sgd"] > 1000 * by.median()["adam_fast"]


@pytest.mark.parametrize("setting", ["adam_clip", "adam_eps", "adam_l2"])
def test_clipping_eps_and_coupled_l2_show_it(missing: pd.DataFrame, setting: str) -> None:
    """In every seed, not only in the median."""
    by = missing.groupby("setting")["distance"]
    assert by.min()[setting] > 10 * by.max()["adam"]
    assert by.median()[setting] > 20 * by.median()["adam"]


@pytest.mark.long
def test_a_larger_learning_rate_hides_it_a_little_less_as_training_goes_on() -> None:
    data = collect(over_seeds(settings=["adam", "adam_fast"], updates=80))
    apart = data.pivot(index="seed", columns="setting", values="distance")
    assert (apart["adam_fast"] > apart["adam"]).sum() >= 4
    assert apart["adam_fast"].median() > apart["adam"].median()


@pytest.mark.parametrize("mistake", ["none", "twice"])
def test_adam_does_not_hide_a_divisor_that_changes_within_the_window(mistake: Any) -> None:
    hidden = collect(over_seeds(mistake, settings=["adam"], seeds=3, updates=20))["distance"]
    running = collect(over_seeds("running", settings=["adam"], seeds=3, updates=20))["distance"]
    assert running.min() > 10 * hidden.max()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_under_adam_a_divisor_of_k_plus_1_ends_near_a_fifth_and_a_missing_1_over_n_far_below(seed: int) -> None:
    """What the lesson says of the explorer's curve, which is drawn for 80 updates with b = 8 and N = 16."""
    recipe = replace(SETTINGS["adam"].recipe(8, 16), precision="float64", seed=seed)
    task = digits("mlp", dtype=torch.float64)
    running, missing = (
        [row["distance"] for row in lockstep(task, recipe, mistake, UPDATES)]  # type: ignore[arg-type]
        for mistake in ("running", "none")
    )
    assert running[0] > 2 * running[-1]
    assert all(0.15 < distance < 0.3 for distance in running[UPDATES // 2 :])
    assert max(missing) < 0.01


def test_sgd_without_1_over_n_is_sgd_with_n_times_the_learning_rate() -> None:
    """The oracle: the wrong run is the right loop at another learning rate."""
    task = digits("mlp", dtype=torch.float64)
    wrong = collect(lockstep(task, Recipe(8, 4, learning_rate=0.05), "none", SHORT))["loss_wrong"]
    faster = collect(lockstep(task, Recipe(8, 4, learning_rate=0.2), "none", SHORT))["loss_right"]
    assert list(wrong) == pytest.approx(list(faster), rel=1e-10)


def test_with_one_micro_batch_every_divisor_is_right() -> None:
    for _, mistake in MISTAKES:
        assert last_distance(lockstep(digits(), Recipe(8, 1), mistake, SHORT)) == 0.0  # type: ignore[arg-type]


def test_a_run_that_is_no_longer_finite_stops_with_a_mark_and_a_word() -> None:
    data = collect(lockstep(digits("cnn"), Recipe(8, 16, learning_rate=2.0, optimizer="momentum"), "none", 30))
    stopped = int(data["stopped"].dropna().iloc[0])
    assert 1 < stopped <= 30
    assert data["loss_wrong"][data["update"] >= stopped].isna().all()
    assert data["loss_right"].notna().all()
    figure = LockstepFigure()
    assert f"stopped being finite at update {stopped}" in figure.draw(data)
    assert "no longer a number" in figure._end_words.get_text()
    assert list(figure._end.get_xdata()) == [stopped - 1]
    figure.png()
    figure.update(collect(lockstep(digits(), Recipe(8, 2), "none", 3)))
    assert figure._end_words.get_text() == ""


def test_each_control_moves_the_run_and_impossible_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_by_adam, "UPDATES", SHORT)
    explorer = explore_optimizers()
    explorer.set(micro_batch_size=4, accumulation_steps=3)
    explorer.wait(PATIENCE)
    assert "b = 4, N = 3" in explorer.sentence
    for name, setting in SETTINGS.items():
        explorer.set(optimizer=name)
        explorer.wait(PATIENCE)
        assert explorer.sentence.startswith(setting.label)
        assert len(explorer.data) == SHORT
    for words, mistake in MISTAKES:
        explorer.set(mistake=mistake)
        explorer.wait(PATIENCE)
        assert words in explorer.sentence
    with pytest.raises(ValueError, match="64 x 32 = 2,048 examples per update"):
        explorer.set(micro_batch_size=64, accumulation_steps=32)
    with pytest.raises(ValueError, match="Optimizer must be one of"):
        explorer.set(optimizer="lion")
    with pytest.raises(ValueError, match="whole number from 1 to 32"):
        explorer.set(accumulation_steps=33)


def test_the_explorer_starts_with_a_run_that_blows_up() -> None:
    twin = explore_optimizers().static()
    assert "it had climbed to" in twin.sentence
    assert list(twin.table["update"]) == [1, UPDATES // 2 + 1, UPDATES]


def test_a_newer_choice_stops_the_older_run_within_one_update() -> None:
    explorer = explore_optimizers()
    explorer.set(accumulation_steps=32)
    explorer.set(accumulation_steps=2)
    explorer.wait(PATIENCE)
    assert "N = 2" in explorer.sentence
    assert len(explorer.data) == UPDATES


def test_the_table_gives_powers_of_ten(missing: pd.DataFrame) -> None:
    table = seeds_table(missing)
    assert list(table["optimizer"]) == [setting.label for setting in SETTINGS.values()]
    column = table.set_index("optimizer")["smaller than SGD's"]
    assert column["SGD, lr 0.5"] == ""
    assert column["Adam, lr 0.001"] == "more than 1,000 times"
    assert column["Adam, lr 0.001, eps 0.001"] == "more than 10 times"


def test_an_error_in_the_experiment_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no device")

    monkeypatch.setattr(hidden_by_adam, "lockstep", broken)
    explorer = explore_optimizers()
    explorer.start()
    with pytest.raises(RuntimeError, match="no device"):
        explorer.wait(PATIENCE)
    assert "RuntimeError: no device" in explorer._message.value
