"""Loops with one mistake: it is found, and nothing else is."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from detective.correct_loops import CORRECT
from detective.double_loops import DOUBLE
from detective.tape.bench import EPOCHS, LENGTH, N, batches, ids, net, taped
from detective.tape.wrong_loops import WRONG
from torch.nn import functional as F

from gradacc_lessons import Tape
from gradacc_lessons.detective.faults import FAULTS, fault_loop
from gradacc_lessons.detective.tape.said import OWN, SAID

IN_THE_CATALOGUE = {
    "grad_divided_every_micro_batch", "zero_grad_every_micro_batch", "backward_once_per_window", "never_zero_grad",
    "zero_grad_before_step", "step_every_micro_batch", "updated_twice", "no_accumulation", "step_before_backward",
    "window_off_by_one", "windows_one_too_long_or_short", "one_update_per_epoch", "tail_leaks",
    "clip_every_micro_batch", "clip_too_late", "scheduler_every_micro_batch", "scheduler_before_update",
    "sum_then_backward", "graphs_kept_alive",
}  # fmt: skip
"""The faults whose own loop shows what is wrong with it to a tape."""
OTHERWISE = {"running_total_backward": "graphs_kept_alive", "window_in_one_batch": "no_accumulation"}
"""Faults that a tape sees by something else that is true of their loop."""

IN_PROCESSES = {"all_reduce_every_micro_batch"}
"""Shown in test_processes.py."""


def _run(loop: Callable[..., Any], **given: Any) -> Tape:
    """Two epochs of a `train_epoch`."""
    model, data = net().double(), [(x.double(), labels) for x, labels in batches()]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda tick: 0.9**tick)
    offered = {"max_norm": 0.5, "scheduler": scheduler, "count": lambda batch: len(batch[1])}
    keywords = {name: value for name, value in offered.items() if name in inspect.signature(loop).parameters}
    with taped(model, optimizer, keywords.get("scheduler"), **given) as tape:
        for _ in range(EPOCHS):
            loop(model, optimizer, data, lambda m, b: 20 * F.cross_entropy(m(b[0]), b[1]), N, **keywords)
    return tape


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_catalogue(fault: str) -> None:
    expected = [fault] if fault in IN_THE_CATALOGUE else [OTHERWISE[fault]] if fault in OTHERWISE else []
    assert ids(_run(fault_loop(fault))) == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRONG)
def test_found_and_nothing_else(name: str) -> None:
    (found,) = ids(WRONG[name]())
    assert name.startswith(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loop", DOUBLE)
def test_of_two_mistakes_those_are_found_that_an_order_shows(loop: Callable[..., Any]) -> None:
    unseen = {"missing_scale", "double_scale", "tail_underscaled", "tail_dropped"}
    assert set(ids(_run(loop))) == DOUBLE[loop] - unseen


def test_every_finding_has_a_loop() -> None:
    shown = IN_THE_CATALOGUE | IN_PROCESSES | {known for known in SAID for name in WRONG if name.startswith(known)}
    assert shown == set(SAID)
    assert set(SAID) <= OWN.keys() | FAULTS.keys() and not OWN.keys() & FAULTS.keys()


@pytest.mark.parametrize("name", CORRECT)
def test_loops_that_diagnose_calls_correct_have_no_findings(name: str) -> None:
    assert _run(CORRECT[name]).findings == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", ["tail_dropped", "stops_after_first_window"])
def test_an_epoch_that_is_not_run_to_its_end_is_asked_about(fault: str) -> None:
    tape = _run(fault_loop(fault))
    assert any(f"an epoch was said to have {LENGTH}" in question.en for question in tape.questions)
