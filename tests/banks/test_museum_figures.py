"""Lesson 09's questions are answered again: by real runs, by counting, and by the listings themselves."""

from typing import Any

import pytest
import torch
from banks.course_content import EQUAL, draws, full_gradients, mlp_task, question, unit_gradients
from torch import nn
from torch.nn.utils import clip_grad_norm_

from gradacc_lessons.accumulation import Batch, split, windows
from gradacc_lessons.detective.faults import fault_loop
from gradacc_lessons.lessons.museum_runs import all_at
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.museum.collection import exhibit
from gradacc_lessons.quiz.grade import grade_prediction


def right(question_id: str) -> set[str]:
    return {option.id for option in question(question_id).options if option.correct}


def test_the_prediction_is_graded_by_all_exhibits_at_n_1() -> None:
    asked = question("museum-predict-n1")
    shows = [row["shows"] for row in all_at(1)]
    measured = round(100 * sum(shows) / len(shows))
    assert grade_prediction(asked, float(measured), measured).correct
    assert grade_prediction(asked, 0.0, measured).correct  # "none" is as good an answer as "hardly any"
    for wrong in (30.0, 50.0, 80.0, 100.0):
        assert not grade_prediction(asked, wrong, measured).correct


def test_a_sum_of_n_means_starts_n_times_too_high() -> None:
    """At the initial weights the losses of micro-batches are about equal, so their sum tells N."""
    asked = question("museum-which-n")
    task = mlp_task()
    model, batch = task.build_model(), tuple(tensor[:64] for tensor in task.train)
    first = task.loss_fn(model, batch).item()
    for n in (8, 16, 32):
        logged = sum(task.loss_fn(model, part).item() for part in split(batch, 64 // n))
        assert asked.answer.value({"first": first, "logged": logged}) == pytest.approx(n, rel=1e-6)
    assert all(float(asked.answer.value(drawn)).is_integer() for drawn in draws(asked))


def test_the_norm_at_another_cut_is_that_of_a_loop_that_never_divides() -> None:
    asked = question("museum-other-cut")
    loop = fault_loop("missing_scale")
    for drawn in draws(asked):
        n1, n2 = int(drawn["n1"]), int(drawn["n2"])
        (first,), (second,) = (unit_gradients(loop, n, n, float(drawn["norm"]) / n1) for n in (n1, n2))
        assert first == pytest.approx(drawn["norm"]) and asked.answer.value(drawn) == pytest.approx(second)


def test_the_last_update_is_the_share_that_the_question_says() -> None:
    asked = question("museum-last-log")
    for drawn in draws(asked):
        left = asked.answer.value(drawn)
        assert float(left).is_integer()
        n = int(drawn["n"])
        used = unit_gradients(fault_loop("tail_underscaled"), 2 * n + int(left), n)
        assert used[:2] == pytest.approx([1, 1]) and used[2] == pytest.approx(1 / drawn["part"])


def test_the_warm_up_ends_in_the_window_that_the_answer_says() -> None:
    asked = question("museum-warm-up")
    for drawn in draws(asked):
        warm_up, n = int(drawn["warmup"]), int(drawn["n"])
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda moves, last=warm_up: min(1.0, moves / last))
        micro_batches = 0
        while scheduler.get_last_lr()[0] < 1.0:
            optimizer.step()
            scheduler.step()  # at every micro-batch
            micro_batches += 1
        assert asked.answer.value(drawn) == (micro_batches - 1) // n + 1
    assert "16,000 became 1,000" in asked.feedback.correct.en
    assert {"16,000", "1,000"} <= set(exhibit("lightning-1476").symptom.en.replace(".", "").split())


def test_a_side_loss_weighs_as_often_as_there_are_micro_batches() -> None:
    asked = question("museum-side-loss")
    for drawn in draws(asked):
        n, share = int(drawn["n"]), float(drawn["percent"]) / 100
        main, side = (nn.Parameter(torch.zeros((), dtype=torch.float64)) for _ in range(2))
        for _ in range(n):  # n micro-batches of 5 tokens each
            (main * 5 / (5 * n) + share * side).backward()
        assert main.grad is not None and side.grad is not None
        assert 100 * float(side.grad / main.grad) == pytest.approx(asked.answer.value(drawn))


def gradients_of(code: str, name: str, *arguments: Any, **names: Any) -> list[torch.Tensor]:
    """What the updates of a listing's function use."""
    model, used = arguments[0], list[torch.Tensor]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    optimizer.register_step_pre_hook(lambda *_: used.append(gradient(model).clone()))
    exec(code, names)
    names[name](*(optimizer if each is OPTIMIZER else each for each in arguments[1:]))
    return used


OPTIMIZER = object()


def test_the_tokens_of_a_whole_generation_make_each_update_as_much_too_short_as_there_are_windows() -> None:
    asked, task = question("museum-spot-generation"), mlp_task()
    names = {"count": task.count, "windows": windows, "loss_sum": task.loss_sum}
    (line,) = asked.line
    for parts in (1, 2, 4):
        generated = split(tuple(tensor[: 16 * parts] for tensor in task.train), 8)
        full = full_gradients(task, 16 * parts, 16)
        model = task.build_model()
        arguments = (model, generated, model, OPTIMIZER, 2)
        used = gradients_of(asked.code, "train_on", *arguments, **names)
        assert len(used) == parts
        for got, wanted in zip(used, full, strict=True):
            assert (got * parts - wanted).abs().max() <= EQUAL
        lines = asked.listing()
        lines[line - 1 : line + 1] = [lines[line], "        items = sum(count(batch) for batch in window)"]
        for got, wanted in zip(gradients_of("\n".join(lines), "train_on", *arguments, **names), full, strict=True):
            assert (got - wanted).abs().max() <= EQUAL


def test_after_a_nan_there_is_no_update_and_the_accepted_line_repairs_it() -> None:
    asked, task = question("museum-spot-nan"), mlp_task()
    bad: Batch = (torch.full((8, 64), torch.nan, dtype=torch.float64), torch.zeros(8, dtype=torch.long))
    batches = split(tuple(tensor[:96] for tensor in task.train), 8)
    batches[5] = bad  # in the second of four windows
    names = {"loss_fn": task.loss_fn, "clip_grad_norm_": clip_grad_norm_}
    (line,) = asked.line
    found = {}
    for repaired in (False, True):
        lines = asked.listing()
        if repaired:
            lines[line - 1] = lines[line - 1].removeprefix("    ")
        model = task.build_model()
        found[repaired] = gradients_of("\n".join(lines), "train", model, model, OPTIMIZER, batches, 3, **names)
    assert len(found[False]) == 1 and len(found[True]) == 3
    assert all(bool(used.isfinite().all()) for used in found[True])


def test_15_micro_batches_are_what_leaks_and_no_other_option() -> None:
    asked = question("museum-dip")
    assert "N = 8 and 23 micro-batches" in asked.prompt.en
    applied = {
        "leaks": two_epochs("tail_leaks", 23, 8),
        "dropped": two_epochs("tail_dropped", 23, 8),
        "shifted": two_epochs("window_off_by_one", 23, 8),
    }
    assert applied["leaks"] == pytest.approx([8, 8, 15, 8])
    assert applied["dropped"] == pytest.approx([8, 8, 8, 8])
    assert applied["shifted"][0] == pytest.approx(1)
    assert right("museum-dip") == {"leaks"}


def two_epochs(fault: str, micro_batches: int, n: int) -> list[float]:
    """How many micro-batches each update adds up, over two epochs."""
    loop = fault_loop(fault)

    def twice(model: Any, optimizer: Any, batches: Any, loss_fn: Any, accumulation_steps: int) -> None:
        for _ in range(2):
            loop(model, optimizer, batches, loss_fn, accumulation_steps)

    return unit_gradients(twice, micro_batches, n, size=float(n))


def test_an_evaluation_that_divides_by_n_gives_the_numbers_of_the_question() -> None:
    asked = question("museum-eval")
    assert "2.0 and an evaluation loss of 0.5" in asked.prompt.en and "is 0.25" in asked.prompt.en
    assert [2.0 / n for n in (4, 8)] == [0.5, 0.25] and right("museum-eval") == {"eval-divides"}


def test_the_instrument_of_the_question_is_that_of_the_museum() -> None:
    assert right("museum-instrument") == {exhibit("lightning-1476").instrument}
