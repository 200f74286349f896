"""Lesson 02, break it: what each catalogued loop puts into its updates, and that the chooser shows and names it."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.lessons import fault_chooser
from gradacc_lessons.lessons.fault_chooser import EXAMPLES, dye, dye_sentence, explore_faults
from gradacc_lessons.lessons.training import collect

PATIENCE = 120.0  # seconds; the first diagnosis starts a process that imports torch


def first_update(fault: str, b: int = 4, n: int = 4) -> Any:
    return next(dye(fault, b, n))["weights"]


@pytest.mark.parametrize(
    ("fault", "weights"),
    [
        ("missing_scale", [1, 1, 1, 1]),
        ("double_scale", [1 / 16] * 4),
        ("running_scale", [1, 1 / 2, 1 / 3, 1 / 4]),
        ("divided_by_micro_batch_size", [1 / 4] * 4),
        ("divided_by_epoch_length", [1 / 10] * 4),
        ("grad_divided_every_micro_batch", [1 / 256, 1 / 64, 1 / 16, 1 / 4]),
        ("zero_grad_every_micro_batch", [0, 0, 0, 1 / 4]),
        ("zero_grad_before_step", [0, 0, 0, 0]),
        ("clip_too_late", [1 / 4] * 4),
    ],
)
def test_the_dye_shows_the_closed_form_of_the_mistake(fault: str, weights: list[float]) -> None:
    np.testing.assert_allclose(first_update(fault), weights + [0] * 6, rtol=0, atol=1e-12)


@pytest.mark.parametrize("b", [1, 3, 7, 20])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_right_weights_are_shares_of_the_window(b: int, n: int) -> None:
    micro_batches = -(-EXAMPLES // b)
    updates = 2 * -(-micro_batches // n)
    rows = list(islice(dye("never_zero_grad", b, n), updates))
    assert all(row["diagnosis"] is None for row in rows)
    for row in rows:
        assert row["right"].sum() == pytest.approx(1, abs=1e-12)
        assert 0 < (row["right"] > 0).sum() <= n


def test_memory_faults_have_right_updates_and_graphs_that_pile_up() -> None:
    for fault in ("sum_then_backward", "window_in_one_batch"):
        data = collect(dye(fault, 4, 4))
        for weights, right in zip(data["weights"], data["right"], strict=True):
            np.testing.assert_allclose(weights, right, rtol=0, atol=1e-12)
        assert data["graphs"].iloc[0] > 2


CHOSEN = (*list(FAULTS)[::8], "sum_then_backward")
"""Faults that are always chosen in the explorer; the others when there is time."""


@pytest.mark.few(14)
@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_fault_is_named_in_the_sentence(fault: str) -> None:
    data = collect(dye(fault, 4, 4))
    assert FAULTS[fault].message.en.split(".")[0] in dye_sentence(data)
    assert data["diagnosis"].iloc[-1].faults == (fault,)


@pytest.mark.parametrize("fault", [f if f in CHOSEN else pytest.param(f, marks=pytest.mark.long) for f in FAULTS])
def test_each_fault_can_be_chosen_is_listed_and_is_named(fault: str, explorer: Any) -> None:
    explorer.set(fault=fault)
    explorer.wait(PATIENCE)
    assert FAULTS[fault].message.en.split(".")[0] in explorer.sentence
    assert explorer.data["diagnosis"].iloc[-1].faults == (fault,)
    shown = explorer._controls["fault"].listing.value
    assert "def train_epoch" in shown
    assert shown.count("\n") == FAULTS[fault].source.count("\n")


@pytest.fixture(scope="module")
def explorer() -> Any:
    return explore_faults()


def test_sliders_recut_the_epoch_and_impossible_windows_are_refused(explorer: Any) -> None:
    explorer.set(fault="missing_scale", micro_batch_size=5, accumulation_steps=2)
    explorer.wait(PATIENCE)
    assert "b = 5, N = 2, 8 micro-batches: update 1 of epoch 1 is 2 times as long as it should be" in explorer.sentence
    assert len(explorer.data) == 2 * 4 + 1
    assert explorer._bar.value == explorer._bar.max == 2 * 4 + 1
    with pytest.raises(ValueError, match=f"20 x 3 = 60 examples per update, but the data has {EXAMPLES}"):
        explorer.set(micro_batch_size=20, accumulation_steps=3)
    with pytest.raises(ValueError, match="whole number from 1 to 20"):
        explorer.set(micro_batch_size=0)
    with pytest.raises(ValueError, match="Mistake must be one of"):
        explorer.set(fault="no such mistake")


@pytest.mark.parametrize(
    ("b", "n", "words"),
    [
        (3, 4, "14 micro-batches, the last of 1 example, and 2 micro-batches in the last window"),
        (7, 5, "6 micro-batches, the last of 5 examples, and 1 micro-batch in the last window"),
        (7, 3, "6 micro-batches, the last of 5 examples"),
        (4, 4, "10 micro-batches, and 2 micro-batches in the last window"),
        (5, 4, "8 micro-batches"),
    ],
)
def test_the_sentence_says_what_is_uneven_about_the_cut(b: int, n: int, words: str) -> None:
    data = collect(islice(dye("missing_scale", b, n), 4))
    assert dye_sentence(data) == f"b = {b}, N = {n}, {words}: the loop has run, and diagnose is looking at it."
    micro_batches = int(words.split()[0])
    assert len(data["right"].iloc[0]) == micro_batches


def test_the_picture_comes_before_the_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(fault_chooser, "named", lambda fault: asked.append(fault))
    rows = dye("missing_scale", 4, 4)
    for _ in range(6):
        assert next(rows)["diagnosis"] is None
    assert asked == []
    next(rows)
    assert asked == ["missing_scale"]


def test_the_static_twin_has_the_weights_in_words(explorer: Any) -> None:
    twin = explorer.static(fault="tail_dropped", micro_batch_size=3, accumulation_steps=4)
    assert twin.table["weights in this loop"].iloc[-1] == "no update"
    assert twin.table["right weights"].iloc[-1] == "13: 0.75, 14: 0.25"


def test_an_error_in_the_experiment_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("nothing to run")

    monkeypatch.setattr(fault_chooser, "fault_loop", broken)
    failing = explore_faults()
    failing.start()
    with pytest.raises(RuntimeError, match="nothing to run"):
        failing.wait(PATIENCE)
    assert "RuntimeError: nothing to run" in failing._message.value
