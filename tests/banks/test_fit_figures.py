"""Lesson 10's questions are answered again: by measured and followed windows, by gradients, by the tuners' rules."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from banks.course_content import EQUAL, all_banks, draws, question, texts
from torch import Tensor, nn

from gradacc_lessons.lessons.peaks import LONGEST, OPTIMIZERS, predicted, recipe_for
from gradacc_lessons.memory.checkpointing import checkpoint_blocks
from gradacc_lessons.memory.forecast import Forecast, balanced
from gradacc_lessons.memory.plan import Plan, plan
from gradacc_lessons.memory.predict import predict_peak
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.memory.tuners import accelerate, composer
from gradacc_lessons.quiz.grade import grade_prediction
from gradacc_lessons.quiz.judge_fit import measured_window
from gradacc_lessons.tasks import Task, chat, digits

WIDTH, LENGTH = 128, 32


def right(question_id: str) -> set[str]:
    return {option.id for option in question(question_id).options if option.correct}


@cache
def forecast() -> Forecast:
    task = digits("cnn")
    return Forecast(task.build_model, task.loss_fn, task.make_batch, OPTIMIZERS["adamw"])


def planned(target: int, most: int) -> Plan:
    """The plan for a budget in which micro-batches of up to `most` fit, and no larger ones."""
    waiting = sum(tensor.nbytes for tensor in forecast().make_batch(1)) * (target - 2 * most)
    return plan(
        *(forecast().build_model, forecast().loss_fn, forecast().make_batch, forecast().recipe),
        target_batch_size=target,
        budget_bytes=forecast().peak(2 * most, 2) + waiting,
        verify=False,
        explain=False,
        forecast=forecast(),
    )


# Predict, then measure --------------------------------------------------------------------------------------------


def test_what_is_not_counted_is_what_a_prediction_cannot_see() -> None:
    profile = predicted(32, recipe_for("adamw_foreach", 2, 2))
    assert profile.phase == "update" and profile.by_category["temporaries"] > 0.9 * profile.by_category["parameters"]
    head = predicted(32, recipe_for("adamw", 16, 2))
    assert head.phase == "backward"
    numbers = sum(parameter.nbytes for parameter in chat().build_model().parameters())
    assert head.by_category["gradients"] == numbers  # the first one's wait while the second runs
    assert head.by_category["optimizer state"] == pytest.approx(2 * numbers, rel=0.001)
    assert right("fit-not-counted") == {"context", "pieces"}


def test_a_plan_for_shorter_texts_does_not_hold_for_longer_ones() -> None:
    shorter_ones = predicted(64, recipe_for("adamw", 8, 2)).peak_bytes
    assert predicted(LONGEST, recipe_for("adamw", 8, 2)).peak_bytes > 1.3 * shorter_ones
    assert right("fit-longest") == {"longer"}


# Activation checkpointing -----------------------------------------------------------------------------------------


def saved_per_example(layers: int, checkpointing: bool) -> float:
    """Bytes of activations that one more example brings at the peak."""
    task = chat(length=LENGTH, width=WIDTH, layers=layers)
    recipe = replace(recipe_for("adamw", 1, 2), checkpointing=checkpointing)

    def saved(b: int) -> int:
        parts = task.build_model, task.loss_fn, task.make_batch
        profile = predict_peak(*parts, replace(recipe, micro_batch_size=b))
        assert profile.phase == "backward"
        return profile.by_category["saved activations"]

    return (saved(32) - saved(16)) / 16


def test_what_is_kept_is_every_input_and_the_inside_of_one_block() -> None:
    plain = {layers: saved_per_example(layers, False) for layers in (4, 8)}
    again = {layers: saved_per_example(layers, True) for layers in (4, 8)}
    given = LENGTH * WIDTH * 4
    inside = (plain[8] - plain[4]) / 4 - given
    assert again[8] - again[4] == 4 * given
    answer = question("fit-kept").answer
    for layers in (4, 8):
        blocks = answer.value({"blocks": layers, "input": given, "inside": inside})
        assert blocks == pytest.approx(again[layers], rel=0.1)  # the rest is outside the blocks
        for mistake in question("fit-kept").mistakes:
            value = mistake.formula.value({"blocks": layers, "input": given, "inside": inside})
            assert value != pytest.approx(again[layers], rel=0.1), mistake.formula.text


def counted_calls(n: int, checkpointing: bool) -> tuple[int, int]:
    """(forwards, backwards) of one block in a window."""
    model, calls = small_model(0.0), [0, 0]

    def forward(*_: Any) -> None:
        calls[0] += 1

    def backward(*_: Any) -> None:
        calls[1] += 1

    model[1][0].register_forward_hook(forward)
    model[1][0].weight.register_post_accumulate_grad_hook(backward)
    if checkpointing:
        assert checkpoint_blocks(model) == 3
    for _ in range(n):
        model(torch.ones(2, 4, dtype=torch.float64)).mean().backward()
    return calls[0], calls[1]


def test_the_time_is_that_of_the_calls_that_are_made() -> None:
    asked = question("fit-time")
    for drawn in draws(asked):
        forwards, backwards = counted_calls(int(drawn["n"]), True)
        assert asked.answer.value(drawn) == forwards * drawn["f"] + backwards * drawn["g"]
        forwards, backwards = counted_calls(int(drawn["n"]), False)
        assert asked.mistakes[0].formula.value(drawn) == forwards * drawn["f"] + backwards * drawn["g"]


def test_the_price_is_graded_around_what_one_more_forward_costs() -> None:
    asked, one_more = question("fit-predict-price"), 4 / 3
    for close in (1.2, 4 / 3, 1.5):
        assert grade_prediction(asked, close, one_more).correct
    for wrong in (1.0, 1.1, 1.6, 2.0, 1 / 3):
        assert not grade_prediction(asked, wrong, one_more).correct
    for clock in (1.2, 1.5):  # what a clock makes of it, a tenth to either side
        assert grade_prediction(asked, one_more, clock).correct


def small_model(dropout: float) -> nn.Sequential:
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(dropout), nn.Linear(4, 4)) for _ in range(3)]
    return nn.Sequential(*blocks).to(torch.float64)


def gradient(checkpointing: bool) -> Tensor:
    model = small_model(0.5)
    if checkpointing:
        checkpoint_blocks(model)
    torch.manual_seed(1)
    model(torch.arange(32, dtype=torch.float64).view(8, 4)).square().mean().backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def test_the_gradient_is_the_same_with_dropout_too() -> None:
    assert torch.equal(gradient(False), gradient(True))
    assert counted_calls(1, True) == (2, 1)  # a block's forward twice, its gradient once
    plain, again = (predicted(LONGEST, replace(recipe_for("adamw", 8, 2), checkpointing=c)) for c in (False, True))
    assert plain.by_category["optimizer state"] == again.by_category["optimizer state"]
    assert right("fit-checkpoint-facts") == {"gradient", "inputs"}


# Peak against time ------------------------------------------------------------------------------------------------


def test_the_table_of_four_windows_is_measured() -> None:
    asked = question("fit-both-fit")
    rows = [re.split(r"\s{2,}", line.strip()) for line in asked.code.strip().splitlines()[1:]]
    fitting = {}
    for b, n, checkpointed, peak, work in rows:
        again = checkpointed == "yes"
        assert int(b) * int(n) == 60
        measured = measured_window(int(b), int(n), again).peak_bytes / MEBIBYTE
        assert f"{measured:.1f}" == peak
        forwards, backwards = counted_calls(1, again)
        assert work == f"{forwards}, {backwards}"
        if measured <= 60:
            fitting[b, again] = forwards + backwards
    assert min(fitting, key=lambda row: fitting[row]) == ("10", False)  # the third row
    assert [row[0] for row in rows][2] == "10" and rows[2][2] == "no" and right("fit-both-fit") == {"third"}
    assert ("30", True) in fitting and ("10", True) in fitting


def test_checkpointing_does_nothing_where_the_update_decides() -> None:
    recipe = recipe_for("adamw_foreach", 1, 1)
    plain, again = (predicted(32, replace(recipe, checkpointing=c)) for c in (False, True))
    assert plain.phase == again.phase == "update" and plain.peak_bytes == again.peak_bytes
    tensor_by_tensor = predicted(32, recipe_for("adamw", 1, 1))
    assert tensor_by_tensor.peak_bytes < plain.peak_bytes
    assert right("fit-update-binds") == {"nothing"}


# From a target to a plan ------------------------------------------------------------------------------------------


def test_n_is_what_plan_finds() -> None:
    asked = question("fit-n")
    for drawn in draws(asked):
        target, most = int(drawn["target"]), int(drawn["most"])
        n = int(asked.answer.value(drawn))
        assert planned(target, most).accumulation_steps == n
        assert balanced(target, n)[0] <= most < balanced(target, n - 1)[0]


def test_the_weight_is_plan_s_own_and_gives_the_full_gradient() -> None:
    asked = question("fit-weight")
    for drawn in draws(asked):
        target, n = int(drawn["target"]), int(drawn["n"])
        sizes = balanced(target, n)
        assert max(sizes) - min(sizes) == 1
        weights = [asked.answer.value(drawn), asked.mistakes[1].formula.value(drawn)]
        found = planned(target, sizes[0])
        assert found.micro_batch_sizes == sizes and set(found.weights) == set(weights)
        by_size = dict(zip((sizes[0], sizes[-1]), weights, strict=True))
        assert (window_gradient(sizes, [by_size[size] for size in sizes]) - full_gradient(target)).abs().max() <= EQUAL
        unweighted = window_gradient(sizes, [1 / n] * n)
        assert (unweighted - full_gradient(target)).abs().max() > 1e4 * EQUAL
    assert planned(40, 14).weights == (14 / 40, 13 / 40, 13 / 40)


@cache
def exact() -> Task:
    return digits("mlp", dtype=torch.float64)


def examples(count: int) -> tuple[Tensor, ...]:
    return tuple(tensor[:count] for tensor in exact().train)


def flat(model: nn.Module) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def full_gradient(count: int) -> Tensor:
    model = exact().build_model()
    exact().loss_fn(model, examples(count)).backward()
    return flat(model)


def window_gradient(sizes: tuple[int, ...], weights: list[float]) -> Tensor:
    model = exact().build_model()
    cut = zip(*(tensor.split(sizes) for tensor in examples(sum(sizes))), strict=True)
    for part, weight in zip(cut, weights, strict=True):
        (exact().loss_fn(model, part) * weight).backward()
    return flat(model)


def listing_gradient(listing: str, sizes: list[int]) -> Tensor:
    scope: dict[str, Any] = {}
    exec(listing, scope)
    model = exact().build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scope["one_window"](model, optimizer, examples(sum(sizes)), sizes, exact().loss_fn)
    return flat(model)


def test_the_listing_is_right_for_equal_sizes_alone_until_its_line_is_repaired() -> None:
    spot = question("fit-spot-weight")
    ragged, equal, full = [14, 13, 13], [10, 10, 10, 10], full_gradient(40)
    assert (listing_gradient(spot.code, equal) - full).abs().max() <= EQUAL
    off = (listing_gradient(spot.code, ragged) - full).norm() / full.norm()
    assert 1e-6 < off < 0.2  # "a little"
    (line,) = spot.line
    lines = spot.listing()
    assert "/ len(sizes)" in lines[line - 1] and "size / sum(sizes)" in spot.feedback.correct.en
    lines[line - 1] = lines[line - 1].replace("/ len(sizes)", "* (size / sum(sizes))")
    for sizes in (ragged, equal):
        assert (listing_gradient("\n".join(lines), sizes) - full).abs().max() <= EQUAL


# What other tuners do ---------------------------------------------------------------------------------------------


def test_the_batch_that_is_left_is_what_the_rule_leaves() -> None:
    asked = question("fit-shrinking")
    for drawn in draws(asked):
        reached = asked.mistakes[1].formula.value(drawn)
        found = accelerate(int(drawn["start"]), lambda size, n, most=reached: size <= most)
        assert (found.failed, found.trials) == (2, 3)
        assert asked.answer.value(drawn) == drawn["n"] * found.batch_reached


def test_what_halving_costs() -> None:
    halved = composer(40, lambda size, n: size <= 14)
    assert (halved.micro_batch_size, halved.batch_reached, halved.failed) == (10, 40, 2)
    assert planned(40, 14).micro_batch_sizes == (14, 13, 13)
    assert halved.batch_reached // halved.micro_batch_size == 3 + 1
    assert right("fit-halving") == {"another"}
    assert all(figure in question("fit-halving").prompt.en for figure in ("40", "up to 14", "at 10", "14, 13 and 13"))


# What no figure shows ---------------------------------------------------------------------------------------------


def test_no_wrong_option_hears_that_it_is_right() -> None:
    wrong = [
        option
        for bank in all_banks().values()
        for asked in bank.questions
        for option in getattr(asked, "options", ())
        if not option.correct and getattr(option, "feedback", None) is not None
    ]
    assert len(wrong) > 40
    for option in wrong:
        for said in (option.feedback.en, option.feedback.nl):
            assert not re.match(r"(Yes|It does|That is (so|right|true)|Ja|Dat klopt|Klopt)\b", said), said


def test_a_lesson_calls_things_by_the_glossary_s_names() -> None:
    for asked in all_banks()["10_fit_a_budget"].questions:
        for where, text in texts(asked):
            assert not re.search(r"versnipper|[Hh]aar aandeel", text.nl), (asked.id, where)
