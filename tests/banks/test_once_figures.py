"""Lesson 07's questions are answered again: by tapes of real loops, by counting, by gradients that are carried out."""

from itertools import permutations
from typing import Any

import pytest
import torch
from banks.course_content import check_rounded, draws, question
from torch import nn

from gradacc_lessons import trace
from gradacc_lessons.accumulation import split, windows
from gradacc_lessons.detective.faults import fault_loop
from gradacc_lessons.lessons.schedule_units import FIRST, WARM_UP, highest, two_units
from gradacc_lessons.lessons.timeline import taped, written
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.quiz.grade import grade, grade_prediction
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.ema import EMA
from gradacc_lessons.tasks import digits


def right(question_id: str) -> set[str]:
    return {option.id for option in question(question_id).options if option.correct}


def test_the_prediction_is_graded_by_the_run_that_it_is_about() -> None:
    asked = question("once-predict-peak")
    assert "240 updates" in asked.prompt.en and f"first {WARM_UP}" in asked.prompt.en
    assert f"N = {FIRST.accumulation_steps}" in asked.prompt.en
    measured = highest(collect(two_units(digits("mlp"), FIRST, WARM_UP, "micro-batch", updates=20)))[0]
    assert measured == 13
    for close in (12.0, 12.5, 13.0):
        assert grade_prediction(asked, close, measured).correct
    for far in (8.0, 30.0, 100.0, 240.0):
        assert not grade_prediction(asked, far, measured).correct


def test_of_each_window_one_micro_batch_reaches_the_weights() -> None:
    asked = question("once-lost")
    for drawn in draws(asked):
        b, m, n = (int(drawn[name]) for name in ("b", "m", "n"))
        tape = taped(fault_loop("zero_grad_every_micro_batch"), Recipe(b, n), b * m, 1)
        updates = [window for window in tape.windows if window.outcome == "updated"]
        assert asked.answer.value(drawn) == sum(window.items or 0 for window in updates)
        assert asked.mistakes[1].formula.value(drawn) == b * sum(len(window.lost) for window in updates)
        assert asked.mistakes[2].formula.value(drawn) == len(updates)


def shown(fault: str, micro_batches: int) -> str:
    return written(taped(fault_loop(fault), Recipe(4, 4), 4 * micro_batches, 1).events)


def test_the_timeline_is_that_of_the_right_option_and_of_no_other() -> None:
    asked = question("once-read")
    lines = [line.strip() for line in asked.code.strip().splitlines()]
    for option in asked.options:
        same = [line.strip() for line in shown(option.id, len(lines)).splitlines()] == lines
        assert same == option.correct, option.id


ROOM = 0.5
"""The norm to clip to: less than that of the gradient."""


def carried_out(order: tuple[str, ...]) -> list[float]:
    """What two windows in this order leave: the weight, its average, what waits in `.grad`, the learning rate."""
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    nn.init.ones_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    optimizer.step()  # without a gradient: torch need not warn
    ema = EMA(model, 0.9)
    for size in (0.2, 0.3):  # a third of a window is too short to be clipped
        first = torch.full((1, 1), size, dtype=torch.float64)
        model(first).sum().backward()  # the first micro-batch of the window
        what: dict[str, Any] = {
            "backward": lambda first=first: model(2 * first).sum().backward(),
            "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), ROOM),
            "update": optimizer.step,
            "average": ema.update,
            "schedule": schedule.step,
            "zero": optimizer.zero_grad,
        }
        for event in order:
            what[event]()
    waits = 0.0 if model.weight.grad is None else float(model.weight.grad)
    average = float(next(ema.average.parameters()))
    return [float(model.weight.detach()), average, waits, optimizer.param_groups[0]["lr"]]


def test_the_accepted_orders_are_those_that_do_the_right_thing() -> None:
    """All 720 are carried out, two windows each, on a model of one weight."""
    asked = question("once-order")
    wanted = [1 - 0.5 * ROOM - 0.4 * ROOM, 0.0, 0.0, 0.5 * 0.8**2]
    wanted[1] = 0.9 * (0.9 + 0.1 * (1 - 0.5 * ROOM)) + 0.1 * wanted[0]
    good = {order for order in permutations(item.id for item in asked.items) if _same(carried_out(order), wanted)}
    assert good == set(asked.orders)


def _same(found: list[float], wanted: list[float]) -> bool:
    return found == pytest.approx(wanted, abs=1e-5)  # torch adds 1e-6 to the norm that it divides by


def test_clipping_after_each_backward_leaves_what_the_answer_says() -> None:
    asked = question("once-clip")
    for drawn in draws(asked):
        weight = nn.Parameter(torch.zeros(2, dtype=torch.float64))
        for gradient in ((drawn["a"], 0), (0, drawn["c"])):
            (weight * torch.tensor(gradient, dtype=torch.float64)).sum().backward()
            nn.utils.clip_grad_norm_([weight], 1.0)
        assert weight.grad is not None
        assert asked.answer.value(drawn) == pytest.approx(float(weight.grad[0]), abs=1e-5)
        once = torch.tensor([drawn["a"], drawn["c"]], dtype=torch.float64)
        assert asked.mistakes[0].formula.value(drawn) == pytest.approx(float(once[0] / once.norm()))


def spotted(listing: str) -> list[str]:
    names = {"clip_grad_norm_": nn.utils.clip_grad_norm_}
    exec(listing, names)
    loop: Any = names["train_epoch"]
    return [finding.id for finding in taped(loop, Recipe(4, 4), 32, 1).findings]


def test_the_accepted_line_is_what_is_wrong_and_moving_it_repairs_the_loop() -> None:
    asked = question("once-spot-schedule")
    assert spotted(asked.code) == ["scheduler_every_micro_batch"]
    (line,) = asked.line
    lines = asked.listing()
    lines[line - 1] = "    " + lines[line - 1]
    assert "Four spaces more" in asked.feedback.correct.en
    assert spotted("\n".join(lines)) == []


def test_a_tool_that_counts_micro_batches_warms_up_for_as_long_as_was_wanted() -> None:
    asked = question("once-in-micro-batches")
    for drawn in draws(asked):
        n, typed = int(drawn["n"]), int(asked.answer.value(drawn))
        moves = [moves for moves in range(1, typed + 1) if moves % n == 0]  # one update after so many moves
        assert len(moves) == drawn["w"] and moves[-1] == typed


def test_what_is_left_of_the_average_is_what_the_class_leaves() -> None:
    asked = question("once-ema")
    for drawn in draws(asked):
        model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
        nn.init.ones_(model.weight)
        ema = EMA(model, 0.9)
        nn.init.zeros_(model.weight)  # the weights stand still from here on
        for _ in range(int(drawn["n"])):
            ema.update()
        assert asked.answer.value(drawn) == pytest.approx(float(next(ema.average.parameters())))


def test_the_listing_logs_what_the_right_option_says() -> None:
    asked, task = question("once-log-code"), digits("mlp", dtype=torch.float64)
    model, window, logged = task.build_model(), split(task.train, 8)[:4], list[float]()
    losses = [float(task.loss_fn(model, batch).detach()) for batch in window]
    names = {"window": window, "model": model, "loss_fn": task.loss_fn, "log": logged.append}
    exec(asked.code, names | {"optimizer": torch.optim.SGD(model.parameters(), lr=0.1)})
    said = {"last-part": losses[-1] / 4, "mean": sum(losses) / 4, "last": losses[-1], "sum": sum(losses)}
    assert {name for name, value in said.items() if logged == [pytest.approx(value)]} == right("once-log-code")


def test_independent_losses_scatter_as_the_answer_says() -> None:
    asked = question("once-scatter")
    for drawn in draws(asked):
        n = int(drawn["n"])
        losses = torch.randn(20_000, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
        ratio = float(losses[:, -1].std() / losses.mean(dim=1).std())
        assert asked.answer.value(drawn) == pytest.approx(ratio, rel=0.03)


def test_an_evaluation_in_mid_window_repeats_itself_and_changes_nothing() -> None:
    task, found = digits("mlp", dtype=torch.float64), list[float]()
    model = task.build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with trace(model, optimizer, accumulation_steps=8) as tape:
        for k, batch in enumerate(split(task.train, 8)[:24], start=1):
            (task.loss_fn(model, batch) / 8).backward()
            if k % 8 == 0:
                optimizer.step()
                optimizer.zero_grad()
            with torch.no_grad():
                found.append(float(task.loss_fn(model.eval(), task.test)))
            model.train()
    assert tape.findings == [] and right("once-evaluate") == {"eight-times"}
    runs = [found[:7], found[7:15], found[15:23]]
    assert [len(set(run)) for run in runs] == [1, 1, 1] and len(set(found)) == 4


def test_the_window_ends_where_the_answer_says() -> None:
    asked = question("once-save-when")
    for drawn in draws(asked):
        s, n = int(drawn["s"]), int(drawn["n"])
        ends = [window[-1] for window in windows(range(1, s + 2 * n), n) if len(window) == n]
        assert asked.answer.value(drawn) == next(end for end in ends if end >= s)


def test_what_a_checkpoint_needs_is_what_the_checkpoints_tests_leave_out() -> None:
    """tests/reference/test_checkpoint.py leaves each of these out, and the resumed run is another one."""
    from reference.test_checkpoint import test_what_it_holds_is_needed

    (mark,) = test_what_it_holds_is_needed.pytestmark
    assert set(mark.args[1]) == right("once-resume")


@pytest.mark.parametrize(("question_id", "places"), [("once-clip", 2), ("once-ema", 2), ("once-scatter", 1)])
def test_a_rounded_value_is_the_value(question_id: str, places: int) -> None:
    asked = question(question_id)
    if places == 2:
        assert "Give two decimals." in asked.prompt.en and "Geef twee decimalen." in asked.prompt.nl
        check_rounded(asked, 2)
        return
    for drawn in draws(asked):
        assert grade(asked, round(asked.answer.value(drawn), places), drawn).correct
