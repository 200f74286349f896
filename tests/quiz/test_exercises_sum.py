"""Lesson 06's exercises: judged by gradients and values, whatever the code looks like."""

import re
from typing import Any

import pytest
import torch

from gradacc_lessons.quiz import judge_sum
from gradacc_lessons.quiz.exercise import NOT_ATTEMPTED, build
from gradacc_lessons.quiz.exercises_dice import DICE_PER_CLASS
from gradacc_lessons.quiz.exercises_sum import EMBED_IN_TWO_PASSES
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_sum import (
    found_and_masks,
    own_loss,
    pair_loss,
    second_pass,
    small_batches,
    small_encoder,
)
from gradacc_lessons.text import LANGUAGES

BOTH = [EMBED_IN_TWO_PASSES, DICE_PER_CLASS]
FIRST_PASS = EMBED_IN_TWO_PASSES.starter[: EMBED_IN_TWO_PASSES.starter.index("    # now")]
DICE = "import torch\n\n\ndef dice_per_class(found, masks):\n"


def two_passes(body: str, first: str = FIRST_PASS) -> Any:
    return EMBED_IN_TWO_PASSES.check(build(first + body, "embed_in_two_passes"))


def dice(body: str) -> Any:
    return DICE_PER_CLASS.check(build(DICE + body, "dice_per_class"))


# The oracle


@pytest.mark.parametrize("sizes", [(6,), (3, 3, 3), (2, 4, 3), (1, 1, 5)])
@pytest.mark.parametrize("seed", range(5))
def test_the_solution_gives_the_gradient_of_the_full_batch(seed: int, sizes: tuple[int, ...]) -> None:
    model, full = small_encoder(seed), small_encoder(seed)
    build(EMBED_IN_TWO_PASSES.solution, "embed_in_two_passes")(model, small_batches(seed, *sizes), pair_loss, own_loss)
    examples = torch.cat(small_batches(seed, *sizes))
    (pair_loss(full(examples)) + own_loss(full(examples), examples)).backward()
    for got, wanted in zip(model.parameters(), full.parameters(), strict=True):
        assert got.grad is not None and wanted.grad is not None
        assert torch.allclose(got.grad, wanted.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("areas", [(12, 5), (2, 40, 9, 24, 30, 1), (0, 12, 7, 0)])
def test_the_solution_is_the_mean_of_classes_and_examples_and_adds_up(areas: tuple[int, ...]) -> None:
    found, masks = found_and_masks(3, *areas)
    assert masks.sum(dim=(2, 3)).flatten().int().tolist() == list(areas)
    loss = build(DICE_PER_CLASS.solution, "dice_per_class")
    singles = [float(loss(found[k : k + 1], masks[k : k + 1])) for k in range(len(masks))]
    assert float(loss(found, masks)) == pytest.approx(sum(singles) / len(masks), rel=1e-12)
    classes = [(f[None, None], m[None, None]) for f, m in zip(found.flatten(0, 1), masks.flatten(0, 1), strict=True)]
    each = [float(loss(*one)) for one in classes]
    assert float(loss(found, masks)) == pytest.approx(sum(each) / len(each), rel=1e-12)
    assert all(value == pytest.approx(0, abs=1e-12) for value, area in zip(each, areas, strict=True) if not area)


@pytest.mark.parametrize("each", BOTH, ids=lambda each: each.key)
def test_every_mistake_shows_in_numbers_of_its_own(each: Any) -> None:
    """No two sources that are told different things do the same."""
    judge = each.judge
    assert isinstance(judge, TrialCheck)
    right = judge.results(each.solution, each.function)
    seen = {wrong.fault: judge.results(wrong.source, each.function) for wrong in each.wrong}
    for fault, numbers in seen.items():
        assert not judge._equal(numbers, right), fault
        for other, others in seen.items():
            assert fault == other or not judge._equal(numbers, others), (fault, other)


def test_other_sources_with_the_same_mistake_hear_the_same() -> None:
    for each in BOTH:
        assert isinstance(each.judge, TrialCheck)
        for fault, sources in each.judge.same.items():
            for source in sources:
                assert each.check(build(source, each.function)).mistake == fault


# embed_in_two_passes


@pytest.mark.parametrize(
    "body",
    [
        "    rows = kept.grad.split([len(batch) for batch in micro_batches])\n"
        "    for batch, asked in zip(micro_batches, rows):\n        z = model(batch)\n"
        "        ((z * asked).sum() + len(batch) / len(kept) * own_loss(z, batch)).backward()\n",
        "    at = 0\n    for batch in micro_batches:\n        z = model(batch)\n"
        "        own = own_loss(z, batch) * len(batch) / len(kept)\n"
        "        torch.autograd.backward([z, own], [kept.grad[at : at + len(z)], None])\n        at += len(z)\n",
        "    at = 0\n    for batch in micro_batches:\n        model(batch).backward(kept.grad[at : at + len(batch)])\n"
        "        (own_loss(model(batch), batch) * len(batch) / len(kept)).backward()\n        at += len(batch)\n",
        "    start = 0\n    for batch in micro_batches:\n        for row in batch:\n            z = model(row[None])\n"
        "            own = own_loss(z, row[None]) / len(kept)\n"
        "            ((z * kept.grad[start]).sum() + own).backward()\n            start += 1\n",
    ],
)
def test_ways_to_write_the_second_pass(body: str) -> None:
    assert two_passes(body).correct


def test_graphs_are_counted_by_the_backwards_that_free_them() -> None:
    _, *right = second_pass(build(EMBED_IN_TWO_PASSES.solution, "embed_in_two_passes"))(2, 3, 3, 3)
    for wrong in EMBED_IN_TWO_PASSES.wrong:
        many, *along = second_pass(build(wrong.source, wrong.source and "embed_in_two_passes"))(2, 3, 3, 3)
        assert bool(many) == (wrong.fault in ("whole_batch_alive", "counted_twice")), wrong.fault
        assert (along == pytest.approx(right)) == (
            wrong.fault in ("whole_batch_alive", "sizes_taken_as_equal", "own_mean_of_means")
        )


def test_graphs_that_are_all_made_before_the_first_backward_are_found() -> None:
    body = (
        "    again = [model(batch) for batch in micro_batches]\n    start = 0\n"
        "    for z, batch in zip(again, micro_batches):\n"
        "        own = own_loss(z, batch) * len(batch) / len(kept)\n"
        "        ((z * kept.grad[start : start + len(z)]).sum() + own).backward()\n        start += len(z)\n"
    )
    assert two_passes(body).mistake == "whole_batch_alive"


def test_a_graph_that_is_dropped_is_not_alive() -> None:
    body = (
        "    start = 0\n    for batch in micro_batches:\n        size = len(model(batch))\n"
        "        z = model(batch)\n        own = own_loss(z, batch) * size / len(kept)\n"
        "        ((z * kept.grad[start : start + size]).sum() + own).backward()\n        start += size\n"
    )
    assert two_passes(body).correct
    kept_by_a_sum = (
        "    start, total = 0, 0\n    for batch in micro_batches:\n        z = model(batch)\n"
        "        total = total + (z * kept.grad[start : start + len(z)]).sum()\n"
        "        total = total + own_loss(z, batch) * len(z) / len(kept)\n        start += len(z)\n"
        "    total.backward()\n"
    )
    assert two_passes(kept_by_a_sum).mistake == "whole_batch_alive"


def test_what_was_in_grad_before_stays() -> None:
    body = (
        "    for parameter in model.parameters():\n        parameter.grad = None\n    start = 0\n"
        "    for batch in micro_batches:\n        z = model(batch)\n"
        "        own = own_loss(z, batch) * len(batch) / len(kept)\n"
        "        ((z * kept.grad[start : start + len(batch)]).sum() + own).backward()\n        start += len(batch)\n"
    )
    assert two_passes(body).mistake == "zeroed_first"


def test_an_unforeseen_mistake_says_how_many_checks_hold() -> None:
    grade = two_passes(
        "    start = 0\n    for batch in micro_batches:\n"
        "        model(batch).backward(-kept.grad[start : start + len(batch)])\n        start += len(batch)\n"
    )
    assert grade.mistake is None and not grade.correct and grade.counted
    assert grade.feedback.en.startswith("0 of 3 visible checks hold. The first that does not: a single micro-batch.")
    assert "één enkele micro-batch" in grade.feedback.nl


# dice_per_class


@pytest.mark.parametrize(
    "body",
    [
        "    f, m = found.flatten(2), masks.flatten(2)\n"
        "    return (1 - (2 * (f * m).sum(2) + 1e-6) / (f.sum(2) + m.sum(2) + 1e-6)).mean()\n",
        "    pairs = [pair for fs, ms in zip(found, masks) for pair in zip(fs, ms)]\n"
        "    losses = [1 - (2 * (f * m).sum() + 1e-6) / ((f + m).sum() + 1e-6) for f, m in pairs]\n"
        "    return sum(losses) / len(losses)\n",
        "    from torch import einsum\n    both = einsum('bchw,bchw->bc', found, masks)\n"
        "    return 1 - ((2 * both + 1e-6) / ((found + masks).sum((2, 3)) + 1e-6)).mean()\n",
        "    both = (found * masks).sum((2, 3))\n"
        "    areas = found.sum((2, 3)) + masks.sum((2, 3))\n"
        "    return (1 - (2 * both + 1e-6) / (areas + 1e-6)).mean(1).mean(0, keepdim=True)\n",
    ],
)
def test_ways_to_write_a_dice_that_adds_up(body: str) -> None:
    assert dice(body).correct


@pytest.mark.parametrize(
    ("body", "mistake"),
    [
        ("    return None\n", None),
        ("    return 0.5\n", None),
        ("    return found.mean()\n", None),
        ("    return (found - masks).square().mean()\n", None),
        ("    return found[0, 0, 99, 0]\n", "crashed"),
        ("    return float(((found * masks).sum() / 0))\n", None),
    ],
)
def test_what_is_no_dice_at_all(body: str, mistake: str | None) -> None:
    grade = dice(body)
    assert not grade.correct and grade.counted
    assert mistake is None or grade.mistake == mistake


# Both


@pytest.mark.parametrize("each", BOTH, ids=lambda each: each.key)
def test_no_message_holds_code_of_the_solution(each: Any) -> None:
    lines = {line.strip() for line in each.solution.splitlines()} - {line.strip() for line in each.starter.splitlines()}
    code = ("backward(rows)", "start +", "start :", "dim=(", "(areas", ".mean()", "/ len", "* len")
    for wrong in each.wrong:
        for language in LANGUAGES:
            said = wrong.message.to(language)
            assert not any(line and line in said for line in lines), said
            assert not any(piece in said for piece in code), said


@pytest.mark.parametrize("each", BOTH, ids=lambda each: each.key)
def test_the_checks_say_nothing_of_the_values_that_are_expected(each: Any) -> None:
    for group in each.judge.groups:
        assert not re.search(r"\d", group.name.en + group.name.nl)


def test_one_that_never_returns_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_sum, "SECONDS", 1.0)
    assert two_passes("    while True:\n        pass\n").mistake == "timed_out"


def test_an_error_names_its_line_and_an_edit_that_is_unfinished_costs_nothing() -> None:
    grade = two_passes("    model(micro_batches[0]).backward(kept.grad)\n" * 2)
    assert grade.mistake == "crashed" and "RuntimeError" in grade.feedback.en
    assert re.search(r"\(line \d+\)", grade.feedback.en)
    unfinished = two_passes("    start = 0\n    raise NotImplementedError\n")
    assert not unfinished.counted and unfinished.feedback == NOT_ATTEMPTED
