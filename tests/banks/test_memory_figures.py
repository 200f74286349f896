"""Lesson 03's questions are answered again by measuring: peaks of real windows, counted by the tracker."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from banks.course_content import draws, question

from gradacc_lessons.accumulation import Batch
from gradacc_lessons.lessons.peaks import LONGEST, measured, recipe_for
from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.profile import MemoryProfile
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.quiz.grade import grade_prediction
from gradacc_lessons.tasks import Task, chat

COUNTERS = 1000
"""Bytes that losses and the optimizer's counts of its updates take: next to nothing."""
Train = Callable[[torch.nn.Module, torch.optim.Optimizer, list[Batch], Task], object]


@cache
def task() -> Task:
    return chat(length=32)


def peak(b: int, n: int, optimizer: str = "adamw") -> float:
    return measured(LONGEST, recipe_for(optimizer, b, n)).peak_bytes / MEBIBYTE


def window(model: Any, optimizer: Any, batches: list[Batch], task: Task) -> None:
    for batch in batches:
        (task.loss_fn(model, batch) / len(batches)).backward()
    optimizer.step()
    optimizer.zero_grad()


def profiles(b: int, n: int, train: Train = window, windows: int = 1) -> list[MemoryProfile]:
    """The first windows of a new model, each measured by itself."""
    model = task().build_model()
    optimizer = torch.optim.AdamW(model.parameters())
    batches = [task().make_batch(b) for _ in range(n)]
    return [
        measure_peak(lambda: train(model, optimizer, batches, task()), model=model, optimizer=optimizer, inputs=batches)
        for _ in range(windows)
    ]


def test_the_prediction_is_right_on_the_line_and_wrong_where_the_whole_peak_is_multiplied() -> None:
    asked, (low, high, target) = question("mem-predict-peak"), (peak(b, 2) for b in (4, 8, 16))
    assert grade_prediction(asked, round(high + 2 * (high - low), 1), target).correct
    for wrong in (2 * high, 4 * low, high + (high - low), high):
        assert not grade_prediction(asked, wrong, target).correct


def test_the_formula_of_the_line_is_that_of_the_measured_peaks() -> None:
    low, high, target = (peak(b, 2) for b in (4, 8, 16))
    assert question("mem-line").answer.value({"low": low, "high": high}) == pytest.approx(target, rel=1e-3)


def test_one_gradient_buffer_whatever_n() -> None:
    asked = question("mem-gradients")
    one, two, four = (profiles(16, n, windows=2)[1] for n in (1, 2, 4))
    model = task().build_model()
    numbers = sum(parameter.numel() for parameter in model.parameters())
    batch = sum(tensor.nbytes for tensor in task().make_batch(16))
    for n, profile in ((2, two), (4, four)):
        rise = profile.peak_bytes - one.peak_bytes - (n - 1) * batch
        assert asked.answer.value({"p": numbers, "n": n}) == rise


def test_below_the_knee_the_update_decides() -> None:
    flat = [measured(32, recipe_for("adamw_foreach", b, 1)) for b in (1, 2, 4)]
    assert len({profile.peak_bytes - profile.by_category["inputs"] for profile in flat}) == 1
    assert {profile.phase for profile in flat} == {"update"}
    assert [option.id for option in question("mem-below-knee").options if option.correct] == ["update"]


def test_the_second_window_has_the_optimizers_state_and_no_older_gradients() -> None:
    first, second = profiles(16, 1, windows=2)
    state = second.by_category["optimizer state"]
    assert first.by_category["optimizer state"] < COUNTERS < state
    assert first.by_category["gradients"] == second.by_category["gradients"]
    assert second.peak_bytes - first.peak_bytes == pytest.approx(state, rel=0.01)


def test_what_helps_is_what_lowers_the_peak() -> None:
    before = measured(32, recipe_for("adamw", 16, 4))
    assert before.phase == "backward"
    after = {
        "lower-b": measured(32, recipe_for("adamw", 8, 8)),
        "raise-n": measured(32, recipe_for("adamw", 16, 8)),
        "sgd": measured(32, recipe_for("sgd", 16, 4)),
    }
    right = {option.id for option in question("mem-what-helps").options if option.correct}
    lowered = {name for name, profile in after.items() if profile.peak_bytes < before.peak_bytes}
    assert lowered == right & set(after)
    all_at_once = measured(32, recipe_for("adamw_foreach", 16, 4))  # the other kernel, of a peak that is in backward
    assert abs(all_at_once.peak_bytes - before.peak_bytes) < COUNTERS
    assert measured(128, recipe_for("adamw", 4, 4)).peak_bytes > measured(32, recipe_for("adamw", 4, 4)).peak_bytes


def test_deleting_a_loss_after_its_backward_frees_nothing() -> None:
    def deleting(model: Any, optimizer: Any, batches: list[Batch], task: Task, delete: bool = True) -> None:
        for batch in batches:
            loss = task.loss_fn(model, batch) / len(batches)
            loss.backward()
            if delete:
                del loss
        optimizer.step()
        optimizer.zero_grad()

    kept = profiles(16, 4, lambda *args: deleting(*args, delete=False))[0]
    assert abs(profiles(16, 4, deleting)[0].peak_bytes - kept.peak_bytes) < COUNTERS


def test_losses_kept_after_their_backward_cost_next_to_nothing_and_before_it_everything() -> None:
    def kept(model: Any, optimizer: Any, batches: list[Batch], task: Task, backward: bool = True) -> None:
        losses = []
        for batch in batches:
            loss = task.loss_fn(model, batch) / len(batches)
            if backward:
                loss.backward()
            losses.append(loss)
        optimizer.step()
        optimizer.zero_grad()

    plain = profiles(8, 4)[0].peak_bytes
    assert profiles(8, 4, kept)[0].peak_bytes - plain < COUNTERS
    assert profiles(8, 4, lambda *args: kept(*args, backward=False))[0].peak_bytes > 2 * plain


def test_the_report_with_its_graphs_takes_more_than_the_full_batch() -> None:
    spot = question("mem-spot-log")
    scope: dict[str, Any] = {}
    exec(spot.code, scope)

    def listing(model: Any, optimizer: Any, batches: list[Batch], task: Task) -> None:
        scope["train_epoch"](model, optimizer, batches, task.loss_fn, len(batches))

    assert profiles(8, 4, listing, windows=2)[1].peak_bytes > profiles(32, 1, windows=2)[1].peak_bytes
    assert "more memory than the full batch" in spot.prompt.en


def test_the_largest_b_is_the_last_that_fits() -> None:
    asked = question("mem-fit")
    for drawn in draws(asked):
        fits = [b for b in range(1, 100) if drawn["fixed"] + b * drawn["each"] <= 16]
        assert asked.answer.value(drawn) == max(fits)


def test_the_reported_bug_has_the_numbers_that_its_feedback_says() -> None:
    asked = question("mem-same-memory")
    assert all(number in asked.prompt.en for number in ("4", "128", "512"))
    (right,) = [option for option in asked.options if option.correct]
    assert f"{128 // 4} to {512 // 4}" in right.feedback.en
