"""Lesson 08's second explorer: real windows in float16, each loop of its list, and what is said of them."""

import pandas as pd
import pytest
import torch

from gradacc_lessons.detective.trace import trace
from gradacc_lessons.lessons.scaler_figure import NEAR, ScalerFigure, scaler_sentence, scaler_table
from gradacc_lessons.lessons.scaler_window import (
    FIRST_SCALE,
    LEARNING_RATE,
    LEAST_EXAMPLES,
    LEAST_STEPS,
    LOOPS,
    MAX_NORM,
    MOST_EXAMPLES,
    MOST_STEPS,
    WINDOWS,
    Loop,
    explore_scaler,
    run_window,
    scaled_training,
    windows_with_a_broken_image,
)
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.tasks import digits

BROKEN = 10
"""In window 3 of N = 4."""
A_RELU = 0.1
"""How far an update may be turned where float16 puts a ReLU on the other side of 0; a few per cent are seen."""


@pytest.fixture(scope="module")
def runs() -> dict[Loop, pd.DataFrame]:
    return {loop: collect(scaled_training(loop, 8, 4, BROKEN, "cpu")) for _, loop in LOOPS}


def wrong(run: pd.DataFrame) -> list[int]:
    """The windows whose update has another length than float32's, or is NaN."""
    return list(run["window"][~((run["length"] - run["right"]).abs() <= NEAR * run["right"])])


def test_a_right_loop_loses_one_window_and_its_next_is_right(runs: dict[Loop, pd.DataFrame]) -> None:
    run = runs["right"]
    assert list(run["window"][~run["updated"]]) == [3] and run["right"][2] == 0
    assert list(run["scale"][:4]) == [FIRST_SCALE, FIRST_SCALE, FIRST_SCALE, FIRST_SCALE / 2]
    assert list(run["scale"][4:]) == [FIRST_SCALE / 2, FIRST_SCALE / 2, FIRST_SCALE, FIRST_SCALE]
    assert not wrong(run) and (run["off"] < A_RELU).all()


def test_each_mistake_does_what_the_page_says(runs: dict[Loop, pd.DataFrame]) -> None:
    kept, unguarded, clipped, left = (
        runs[name] for name in ("zeroed_if_updated", "unguarded", "clipped_scaled", "left_out")
    )
    assert list(kept["window"][~kept["updated"]]) == [3, 4, 5, 6, 7, 8]
    assert kept["scale"].iloc[-1] == FIRST_SCALE / 2**5
    assert unguarded["length"][:2].notna().all() and unguarded["length"][2:].isna().all()
    assert clipped["length"][0] == pytest.approx(MAX_NORM / FIRST_SCALE, rel=0.01)
    assert list(clipped["window"][~clipped["updated"]]) == [3]
    assert left["updated"].all() and left["length"][2] / left["right"][2] == pytest.approx(3 / 4, rel=0.05)
    assert {loop: wrong(run) for loop, run in runs.items()} == {
        "right": [],
        "zeroed_if_updated": [4, 5, 6, 7, 8],
        "unguarded": [3, 4, 5, 6, 7, 8],
        "clipped_scaled": [1, 2, 4, 5, 6, 7, 8],
        "left_out": [3],
    }


@pytest.mark.parametrize("b", [LEAST_EXAMPLES, MOST_EXAMPLES])
@pytest.mark.parametrize("n", [LEAST_STEPS, MOST_STEPS])
def test_at_every_end_of_the_sliders_nothing_overflows_that_is_not_broken(b: int, n: int) -> None:
    run = collect(scaled_training("right", b, n, 0, "cpu"))
    assert run["updated"].all() and not wrong(run) and (run["off"] < A_RELU).all()
    last = collect(scaled_training("right", b, n, WINDOWS * n, "cpu"))
    assert list(last["updated"]) == [True] * 7 + [False] and last["place"][0] == n


def test_the_windows_are_full_and_one_image_of_one_micro_batch_is_broken() -> None:
    task = digits("mlp")
    cut, whole = (list(windows_with_a_broken_image(task, 32, 16, broken)) for broken in (20, 0))
    assert [len(window) for window in cut] == [16] * WINDOWS
    differ = [(k, m) for k in range(WINDOWS) for m in range(16) if not torch.equal(cut[k][m][0], whole[k][m][0])]
    assert differ == [(1, 3)]
    assert int((cut[1][3][0] != whole[1][3][0]).flatten(1).any(1).sum()) == 1
    assert float(task.train[0].max()) <= 1, "the task's own images stay as they are"


def test_what_a_tape_finds_in_each_loop() -> None:
    found = {}
    for _, loop in LOOPS:
        task = digits("mlp")
        model = task.build_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
        scaler = torch.amp.GradScaler("cpu")
        with trace(model, optimizer, scaler=scaler, accumulation_steps=4) as tape:
            for window in windows_with_a_broken_image(task, 8, 4, BROKEN):
                run_window(loop, model, optimizer, scaler, window, task)
        found[loop] = [finding.id for finding in tape.findings]
    assert found["right"] == found["unguarded"] == found["left_out"] == []
    assert found["clipped_scaled"] == ["clip_scaled_gradients"]
    assert found["zeroed_if_updated"] == ["not_finite_kept"]


def test_every_control_moves_the_picture_and_its_words() -> None:
    explorer = explore_scaler()
    explorer.start()
    explorer.wait(60)
    assert (
        "No update in window 3; the scale falls from 65,536 to 32,768 and is 65,536 in window 8." in explorer.sentence
    )
    explorer.set(broken=0)
    explorer.wait(60)
    assert "nothing is broken. Every window has an update" in explorer.sentence
    explorer.set(loop="zeroed_if_updated", broken=5)
    explorer.wait(60)
    assert "No update in windows 2, 3, 4, 5, 6, 7, 8" in explorer.sentence
    explorer.set(loop="unguarded")
    explorer.wait(60)
    assert "From window 2 on the weights are NaN." in explorer.sentence
    explorer.set(loop="left_out", micro_batch_size=4, accumulation_steps=2, broken=3)
    explorer.wait(60)
    assert "b = 4, N = 2; micro-batch 1 of window 2 is broken" in explorer.sentence
    assert "times as long as float32's" in explorer.sentence
    with pytest.raises(ValueError, match="8 windows of N = 2 have 16 micro-batches, so none is number 17"):
        explorer.set(broken=17)


def test_a_right_loop_is_said_to_be_right_wherever_a_relu_falls_on_the_other_side(
    runs: dict[Loop, pd.DataFrame],
) -> None:
    """As in window 5 with nothing broken: the update is some percent off, and as long as it should be."""
    whole = collect(scaled_training("right", 8, 4, 0, "cpu"))
    assert whole["off"].max() > NEAR
    assert scaler_sentence(whole).endswith("The 8 updates that were made are as long as float32's, to within 2 %.")
    assert scaler_sentence(runs["right"]).endswith("are as long as float32's, to within 2 %.")
    assert scaler_sentence(runs["left_out"]).endswith("The update of window 3 is 0.75 times as long as float32's.")


def test_no_update_and_a_single_one_are_said_so() -> None:
    none, one = (collect(scaled_training("zeroed_if_updated", 4, 2, broken, "cpu")) for broken in (1, 3))
    assert scaler_sentence(none).endswith("from 65,536 to 512. Nothing has been learned.")
    assert scaler_sentence(one).endswith("The update that was made is as long as float32's, to within 2 %.")
    for run in (none, one, none.iloc[:1]):
        assert ScalerFigure().draw(run) == scaler_sentence(run)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (("Right", 8, 4, 0), "the loop must be one of right, .*; it is 'Right'"),
        (("right", 8, 4, 33), "have 32 micro-batches, so none is number 33"),
        (("right", 8, 4, -1), "so none is number -1"),
        (("right", 0, 4, 0), "whole number of at least 1; it is 0"),
        (("right", 8, 2.5, 0), "whole number of at least 1; it is 2.5"),
    ],
)
def test_what_there_is_not_is_refused_in_a_sentence(chosen, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=sentence):
        next(scaled_training(*chosen, "cpu"))


def test_every_loop_is_drawn_and_tabled(runs: dict[Loop, pd.DataFrame]) -> None:
    figure = ScalerFigure()
    for run in runs.values():
        said = figure.show(run)
        assert said == scaler_sentence(run) and figure.png()[:4] == b"\x89PNG"
        assert len(scaler_table(run)) == WINDOWS
    assert list(scaler_table(runs["right"])["length applied"])[2] == "none"
