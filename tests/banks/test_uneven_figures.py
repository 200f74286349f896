"""Lesson 04's questions are answered again: by gradients in float64, by traces of real loops, by counting."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from banks.course_content import EQUAL, check_rounded, draws, question
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from gradacc_lessons.accumulation import Batch, accumulate, split, windows
from gradacc_lessons.lessons.tails import applied_gradients, unit_trace
from gradacc_lessons.lessons.token_weights import compare, over_windows, random_tokens, small_chat
from gradacc_lessons.lessons.training import collect, gradient
from gradacc_lessons.quiz.grade import grade_prediction
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import Task
from gradacc_lessons.tasks.chat import IGNORED, count_tokens, token_loss_sum


def right(question_id: str) -> set[str]:
    return {option.id for option in question(question_id).options if option.correct}


def distance(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


def full_gradient(model: nn.Module, batch: Batch) -> Tensor:
    model.zero_grad()
    (token_loss_sum(model, batch) / count_tokens(batch)).backward()
    return gradient(model).clone()


# Mean of means ----------------------------------------------------------------------------------------------------


def test_the_prediction_is_graded_by_twenty_windows() -> None:
    asked = question("uneven-predict-error")
    assert "b = 1, N = 8" in asked.prompt.en and "twenty" in asked.prompt.en
    data = collect(over_windows(Recipe(1, 8), "means", 60))
    measured = round(100 * data["relative_error"].median())
    assert len(data) == 20
    assert grade_prediction(asked, float(measured), measured).correct
    for wrong in (0.0, 5.0, 10.0, 20.0, 30.0, 150.0):
        assert not grade_prediction(asked, wrong, measured).correct


def test_a_token_of_the_short_one_weighs_as_much_more_as_the_answer_says() -> None:
    asked = question("uneven-token-weight")
    for drawn in draws(asked):
        task = random_tokens((int(drawn["short"]), int(drawn["long"])))
        weights = compare(task.build_model(), split(task.train, 1), task, "means")["weights"]
        assert asked.answer.value(drawn) == pytest.approx(weights[0] / weights[1])
        assert asked.mistakes[2].formula.value(drawn) == pytest.approx(
            weights[0]
        )  # "compares it with the right weight"


def equal_on(task: Task, window: list[Batch]) -> bool:
    return bool(compare(task.build_model(1), window, task, "means")["relative_error"] < EQUAL)


def test_means_of_means_are_right_exactly_in_the_cases_that_are_right() -> None:
    chat, equal, packed = small_chat(), random_tokens((7,) * 6), random_tokens((30,) * 6)
    uneven = random_tokens((1, 3, 10, 50))
    assert int((packed.train[1] == IGNORED).sum()) == 0
    some = tuple(tensor[:8] for tensor in chat.train)
    shuffled = tuple(tensor[torch.randperm(8, generator=torch.Generator().manual_seed(0))] for tensor in some)
    measured = {
        "equal-counts": equal_on(equal, split(equal.train, 2)),
        "one": equal_on(uneven, split(uneven.train, 4)),
        "packed": equal_on(packed, split(packed.train, 3)),
        "same-b": equal_on(chat, split(some, 2)),
        "padded": equal_on(uneven, split(uneven.train, 1)),  # its tensors are all 50 long
        "shuffled": equal_on(chat, split(shuffled, 2)),
    }
    assert set(measured) == {option.id for option in question("uneven-when-equal").options}
    assert {name for name, equal in measured.items() if equal} == right("uneven-when-equal")


# Weigh by what counts ---------------------------------------------------------------------------------------------


def test_the_windows_loss_is_what_accumulate_returns() -> None:
    asked = question("uneven-window-loss")
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    nn.init.ones_(model.weight)
    for drawn in draws(asked):
        window = [
            (torch.full((int(drawn[count]), 1), drawn[loss], dtype=torch.float64),)
            for count, loss in (("few", "high"), ("many", "low"))
        ]
        mean = accumulate(model, window, lambda m, batch: m(batch[0]).sum(), lambda batch: len(batch[0]))
        assert asked.answer.value(drawn) == pytest.approx(mean)


def listing(code: str, **names: Any) -> Callable[..., None]:
    names = {"cross_entropy": functional.cross_entropy, "clip_grad_norm_": clip_grad_norm_, "islice": islice} | names
    exec(code, names)
    return names["train_window"]  # type: ignore[no-any-return]


class Still(torch.optim.SGD):
    """Keeps the gradient of its update."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), lr=0.0)
        self.model = model

    def step(self, closure: Any = None) -> None:
        self.used = gradient(self.model).clone()


def test_counting_padding_makes_the_gradient_too_short_and_the_accepted_line_repairs_it() -> None:
    asked, task = question("uneven-spot-padding"), random_tokens((1, 3, 10, 50))
    model = task.build_model()
    full, optimizer = full_gradient(model, task.train), Still(model)
    model.zero_grad()
    listing(asked.code)(model, optimizer, split(task.train, 1))
    share = count_tokens(task.train) / task.train[1].numel()
    assert distance(optimizer.used, full * share) < EQUAL and share < 0.5
    (line,) = asked.line
    lines = asked.listing()
    lines[line - 1] = "        items += int((labels != -100).sum())"
    listing("\n".join(lines))(model, optimizer, split(task.train, 1))
    assert distance(optimizer.used, full) < EQUAL


def test_clipping_the_sum_cuts_what_would_not_be_cut_and_the_other_order_is_right() -> None:
    asked, task = question("uneven-clip-sums"), small_chat()
    model, optimizer = task.build_model(), None
    batch = tuple(tensor[:8] for tensor in task.train)
    items, full = count_tokens(batch), full_gradient(model, batch)
    names = {"loss_sum": task.loss_sum, "count": task.count}
    code = asked.code.replace(
        "max_norm=1.0", f"max_norm={2 * float(full.norm())}"
    )  # as in the question: twice the norm
    lines = code.rstrip().split("\n")
    clip = next(line for line in lines if "clip_grad_norm_" in line)
    lines.remove(clip)
    lines.insert(next(k for k, line in enumerate(lines) if "optimizer.step" in line), clip)
    found = {}
    for name, source in (("asked", code), ("repaired", "\n".join(lines))):
        optimizer = Still(model)
        model.zero_grad()
        listing(source, **names)(model, optimizer, iter(split(batch, 2)), 4)
        found[name] = optimizer.used
    assert distance(found["repaired"], full) < EQUAL
    assert distance(found["asked"], full * 2 / items) < 1e-5  # torch adds 1e-6 to the norm that it divides by
    assert items > 400 and "500 tokens" in asked.prompt.en and right("uneven-clip-sums") == {"order"}


# A batch of 10, cut 4, 4, 2 ---------------------------------------------------------------------------------------


def test_an_image_of_the_last_micro_batch_weighs_what_the_answer_says() -> None:
    asked = question("uneven-ten")
    for drawn in draws(asked):
        images = 8 + int(drawn["rest"])
        model = nn.Linear(images, 1, bias=False, dtype=torch.float64)  # the gradient is each image's weight
        for (batch,) in split((torch.eye(images, dtype=torch.float64),), 4):
            (model(batch).mean() / 3).backward()
        assert asked.answer.value(drawn) == pytest.approx(float(model.weight.grad[0, -1]) * images)  # type: ignore[index]


# The short last window --------------------------------------------------------------------------------------------


def traced(tail: str, m: int, n: int) -> list[float]:
    return applied_gradients(collect(unit_trace(tail, m, n, 2)))


def test_the_last_update_and_the_first_after_a_leak_are_those_of_the_loops() -> None:
    last, leak = question("uneven-last-update"), question("uneven-leak")
    for drawn in draws(last):
        m, n = int(drawn["m"]), int(drawn["n"])
        assert last.answer.value(drawn) == pytest.approx(traced("tail_underscaled", m, n)[-1])
    for drawn in draws(leak):
        m, n = int(drawn["m"]), int(drawn["n"])
        assert leak.answer.value(drawn) == pytest.approx(traced("tail_leaks", m, n)[m // n])


def test_the_trace_in_the_question_is_that_of_the_right_option_and_of_no_other() -> None:
    asked = question("uneven-trace")
    m, n = 11, 4
    assert f"{m} micro-batches" in asked.prompt.en and f"N = {n}" in asked.prompt.en
    traces = {option.id: traced(option.id, m, n) for option in asked.options}
    assert {tail for tail, trace in traces.items() if trace == [1, 1, 3, 1, 1, 3]} == right("uneven-trace")
    assert traces["tail_leaks"][2] > 1 and len(traces["tail_leaks"]) == 4  # "the third update would be too large"
    assert traces["tail_underscaled"][2] == 3 / 4
    assert len(traces["tail_dropped"]) == 4


def test_the_updates_of_the_run_are_counted() -> None:
    asked = question("uneven-total-updates")
    for drawn in draws(asked):
        examples, epochs = int(drawn["examples"]), int(drawn["epochs"])
        counted = sum(len(list(windows(range(0, examples, 4), 8))) for _ in range(epochs))
        assert asked.answer.value(drawn) == counted == epochs * Recipe(4, 8).updates_per_epoch(examples)
        assert -(-examples // 4) % 8, "there must be a short window"


# A micro-batch without labels -------------------------------------------------------------------------------------


def masked_mean(code: str, logits: Tensor, labels: Tensor) -> Tensor:
    mask = (labels != IGNORED).flatten()
    losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten().clamp(min=0), reduction="none")
    names = {"losses": losses, "mask": mask}
    exec(code, names)
    return names["loss"]


def window_with_an_empty_one() -> Iterator[tuple[Task, nn.Module, list[Batch]]]:
    task = random_tokens((3, 10, 50))
    tokens, labels = task.train
    empty = (tokens[:1], torch.full_like(labels[:1], IGNORED))
    yield task, task.build_model(), [*split(task.train, 1), empty]


def test_one_masked_mean_over_nothing_ruins_every_weight_and_raises_nothing() -> None:
    ((_, model, window),) = window_with_an_empty_one()
    code = question("uneven-nan").code
    for tokens, labels in window:
        (masked_mean(code, model(tokens), labels) / len(window)).backward()
    assert bool(gradient(model).isnan().all())
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert all(bool(parameter.isnan().all()) for parameter in model.parameters())
    assert right("uneven-nan") == {"all"}


def test_a_sum_and_the_mean_of_cross_entropy_send_back_zeros() -> None:
    """What the feedback for "nothing" says; the mean's loss is NaN all the same."""
    logits = torch.randn(4, 7, requires_grad=True)
    for reduction in ("sum", "mean"):
        loss = functional.cross_entropy(logits, torch.full((4,), IGNORED), reduction=reduction)
        (sent,) = torch.autograd.grad(loss, logits)
        assert bool((sent == 0).all())
        assert bool(loss.isnan()) == (reduction == "mean")


def test_each_way_with_an_empty_micro_batch_is_right_exactly_if_the_option_says_so() -> None:
    asked = question("uneven-empty-repair")
    ((_, model, window),) = window_with_an_empty_one()
    some, items, n = window[:-1], sum(map(count_tokens, window)), len(window)
    full = full_gradient(model, tuple(torch.cat(tensors) for tensors in zip(*some, strict=True)))
    code = question("uneven-nan").code
    written = re.findall(r"`(.+?)`", "".join(option.text.en for option in asked.options))
    assert set(written) == {code.strip().removeprefix("loss = ")}

    def mean(batch: Batch) -> Tensor:
        return masked_mean(code, model(batch[0]), batch[1])

    ways: dict[str, Callable[[Batch], Tensor]] = {
        "sums": lambda batch: token_loss_sum(model, batch) / items,
        "skip": lambda batch: mean(batch) * (count_tokens(batch) / items) if count_tokens(batch) else torch.tensor(0.0),
        "times-zero": lambda batch: mean(batch) * (count_tokens(batch) / items),
        "zero-loss": lambda batch: mean(batch) / n if count_tokens(batch) else torch.tensor(0.0),
        "clip": lambda batch: mean(batch) / n,
    }
    assert set(ways) == {option.id for option in asked.options}
    for name, loss in ways.items():
        model.zero_grad()
        for batch in window:
            if (one := loss(batch)).requires_grad:
                one.backward()
        if name == "clip":
            clip_grad_norm_(model.parameters(), 1.0)
        found = gradient(model)
        assert (distance(found, full) < EQUAL) == (name in right("uneven-empty-repair")), name
        assert bool(found.isnan().any()) == (name in ("times-zero", "clip")), name
    assert np.isfinite(float(full.norm()))


@pytest.mark.parametrize("question_id", ["uneven-window-loss", "uneven-ten", "uneven-last-update", "uneven-leak"])
def test_a_rounded_value_is_the_value(question_id: str) -> None:
    asked = question(question_id)
    assert "Give two decimals." in asked.prompt.en and "Geef twee decimalen." in asked.prompt.nl
    check_rounded(asked, 2)
