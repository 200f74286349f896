"""Lesson 08's exercises: other ways to be right, other ways to make each mistake, and what the trial measures."""

import pytest
import torch

from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises_buffer import FLOAT32_SUM
from gradacc_lessons.quiz.exercises_precision import REPAIR_FP16
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_precision import FLOAT32, float32_sum, fp16_epoch

HEAD = """
from torch import autocast, float16
from torch.nn.utils import clip_grad_norm_


def train_epoch(model, optimizer, scaler, micro_batches, loss_fn, accumulation_steps, max_norm):
"""
BY_WINDOWS = (
    HEAD
    + """
    for start in range(0, len(micro_batches), accumulation_steps):
        optimizer.zero_grad()
        for batch in micro_batches[start : start + accumulation_steps]:
            with autocast("cpu", dtype=float16):
                loss = loss_fn(model, batch)
            scaler.scale(loss / accumulation_steps).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
"""
)
SCALED_THRESHOLD = (
    REPAIR_FP16.solution.replace("            scaler.unscale_(optimizer)\n", "")
    .replace("max_norm)\n        if", "max_norm)\n        if")
    .replace("model.parameters(), max_norm", "model.parameters(), max_norm * scaler.get_scale()")
)
"""Clipped before it is unscaled, to a threshold that is scaled as well: the same update."""
HOOKS = """
import torch


def add_up_gradients(model, micro_batches, loss_fn):
    sums = {p: torch.zeros(p.shape) for p in model.parameters()}

    def take(p):
        sums[p] += p.grad
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(take) for p in model.parameters()]
    for batch in micro_batches:
        loss_fn(model, batch).backward()
    for hook in hooks:
        hook.remove()
    return [total / len(micro_batches) for total in sums.values()]
"""
ASKED_FOR = """
import torch


def add_up_gradients(model, micro_batches, loss_fn):
    sums = None
    for batch in micro_batches:
        found = torch.autograd.grad(loss_fn(model, batch) / len(micro_batches), list(model.parameters()))
        sums = [g.float() for g in found] if sums is None else [s + g for s, g in zip(sums, found)]
    return tuple(sums)
"""


@pytest.mark.parametrize("source", [BY_WINDOWS, SCALED_THRESHOLD], ids=["by_windows", "scaled_threshold"])
def test_other_float16_loops_are_right_too(source: str) -> None:
    assert REPAIR_FP16.check(build(source, "train_epoch")).correct


@pytest.mark.parametrize("source", [HOOKS, ASKED_FOR], ids=["hooks", "asked_for"])
def test_other_buffers_are_right_too(source: str) -> None:
    assert FLOAT32_SUM.check(build(source, "add_up_gradients")).correct


SAME = [
    (each, fault, source)
    for each in (REPAIR_FP16, FLOAT32_SUM)
    if isinstance(each.judge, TrialCheck)
    for fault, sources in each.judge.same.items()
    for source in sources
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("each", "fault", "source"), SAME, ids=lambda value: getattr(value, "key", str(value)[:20]))
def test_the_same_mistake_written_otherwise_gets_the_same_message(each, fault: str, source: str) -> None:  # type: ignore[no-untyped-def]
    assert each.check(build(source, each.function)).mistake == fault


def test_the_starter_is_refused_by_the_scaler_as_it_says() -> None:
    tried = fp16_epoch(build(REPAIR_FP16.starter, "train_epoch"))
    assert tried(1, 0, 1e6)[0] == 1
    assert "unscale_() has already been called on this optimizer since the last update()" in REPAIR_FP16.statement.en


def test_an_error_of_the_learners_own_is_not_taken_for_a_refusal() -> None:
    broken = build(REPAIR_FP16.starter.replace("max_norm)\n        if", "max_nrom)\n        if"), "train_epoch")
    grade = REPAIR_FP16.check(broken)
    assert grade.mistake == "crashed" and "max_nrom" in grade.feedback.en


def test_a_broken_micro_batch_halves_the_scale_of_the_solution_once() -> None:
    tried = fp16_epoch(build(REPAIR_FP16.solution, "train_epoch"))
    assert [tried(1, broken, 1e6)[2] for broken in (0, 2)] == [12, 11]


def test_kahan_in_float32_clothes_is_told_that_it_is_bfloat16() -> None:
    """Right to its own last rounding, and still not what is asked: a float32 sum."""
    tried = float32_sum(build(FLOAT32_SUM.solution, "add_up_gradients"))
    assert tried(3, 64)[:2] == [float(FLOAT32), 1.0]
    rounded = FLOAT32_SUM.solution.replace("return buffers", "return [b.bfloat16().float() for b in buffers]")
    grade = FLOAT32_SUM.check(build(rounded, "add_up_gradients"))
    assert not grade.correct and grade.mistake is None and "visible checks hold" in grade.feedback.en


def test_the_trial_leaves_torchs_generator_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    float32_sum(build(FLOAT32_SUM.solution, "add_up_gradients"))(1, 2)
    fp16_epoch(build(REPAIR_FP16.solution, "train_epoch"))(1, 0, 1.0)
    assert torch.equal(torch.get_rng_state(), before)
