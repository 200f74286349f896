"""Loops that once got a name, or a verdict, that was not theirs; each with what is true of it."""

import pytest
import torch
from detective.correct_loops import slices
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from gradacc_lessons import diagnose
from gradacc_lessons.accumulation import windows
from gradacc_lessons.detective.faults import FAULTS, compiled, fault_loop


def written(body: str):
    """A train_epoch with the short names of the listings below."""
    lines = body.strip("\n").split("\n")
    head = "def train_epoch(model, optimizer, micro_batches, loss_fn, N):"
    return compiled("\n".join([head, *(f"    {line}" for line in lines), ""]), f"<{hash(body)}>")


def usual(loss: str = "loss_fn(model, batch) / N", end: str = "(i + 1) % N == 0 or i + 1 == len(micro_batches)"):
    return f"""
for i, batch in enumerate(micro_batches):
    ({loss}).backward()
    if {end}:
        optimizer.step()
        optimizer.zero_grad()
"""


def by_window(loss: str):
    return f"""
for start in range(0, len(micro_batches), N):
    window = micro_batches[start : start + N]
    items = sum(len(batch[0]) for batch in window)
    optimizer.zero_grad()
    for batch in window:
        ({loss}).backward()
    optimizer.step()
"""


AGAIN = {"divided_by_examples_again"}
SUM = {"sum_never_divided"}
EPOCH = {"one_update_per_epoch"}
ZEROED = {"zero_grad_every_micro_batch"}
MEANS = {"mean_of_means"}
IGNORED = {"accumulation_steps_ignored"}
TAIL = {"tail_underscaled"}
ONE = {"backward_once_per_window"}
LENGTH = {"windows_one_too_long_or_short"}
TWICE = {"updated_twice"}
NAMED = {
    # body: what is named with full windows, with a short one too, and with uneven micro-batches too
    usual("loss_fn(model, batch) / (N * len(batch[0]))"): (AGAIN, AGAIN, AGAIN),
    usual("loss_fn(model, batch) / (N * len(micro_batches[0][0]))"): (AGAIN, AGAIN, AGAIN),
    by_window("loss_fn(model, batch) / items"): (AGAIN, AGAIN, AGAIN),
    by_window("loss_fn(model, batch) / len(batch[0]) / len(window)"): (AGAIN, AGAIN, AGAIN),
    usual("loss_fn(model, batch) / N / N"): (
        {"double_scale"},
        {"double_scale"} | TAIL,
        {"double_scale"} | TAIL | MEANS,
    ),
    usual("loss_fn(model, batch) / (i % N + 1) / N"): ({"running_scale"}, None, None),
    by_window("loss_fn(model, batch) * len(batch[0]) / sum(len(b[0]) for b in micro_batches)"): (
        {"divided_by_epoch_length"},
        {"divided_by_epoch_length"},
        {"divided_by_epoch_length"},
    ),
    usual(end="i + 1 == len(micro_batches)"): (EPOCH, EPOCH, EPOCH),
    usual("loss_fn(model, batch) / len(micro_batches)", "i + 1 == len(micro_batches)"): (EPOCH, EPOCH, EPOCH),
    usual("loss_fn(model, batch)", "batch is micro_batches[-1]"): (EPOCH, EPOCH, EPOCH),
    "N = 4" + usual(): (IGNORED, IGNORED, IGNORED | MEANS),
    "N = 4" + usual(end="(i + 1) % N == 0"): (IGNORED, IGNORED, IGNORED | MEANS),
    "N = 3" + by_window("loss_fn(model, batch) * len(batch[0]) / items"): (IGNORED, IGNORED, IGNORED),
    "N = 4" + usual("loss_fn(model, batch)"): ({"accumulation_steps_ignored", "missing_scale"},) * 3,
    usual("loss_fn(model, batch) * len(batch[0])"): (SUM, SUM, SUM),
    usual("loss_fn(model, batch) * len(batch[0]) / N"): (SUM, SUM, SUM),
    # Zeroed when the epoch begins and updated all the time: there are many updates, not one.
    """
optimizer.zero_grad()
for batch in micro_batches:
    loss_fn(model, batch).backward()
    optimizer.step()
""": ({"missing_scale", "never_zero_grad", "step_every_micro_batch"},) * 3,
    # Neither of these says which of the two numbers is wrong.
    usual("loss_fn(model, batch) / 4"): (set(), set(), set()),
    usual(end="(i + 1) % 2 == 0 or i + 1 == len(micro_batches)"): (set(), set(), set()),
    # Zeroed once per window, and in the middle of it.
    """
for i, batch in enumerate(micro_batches):
    if (i + 1) % N == 0:
        optimizer.zero_grad()
    (loss_fn(model, batch) / N).backward()
    if (i + 1) % N == 0 or i + 1 == len(micro_batches):
        optimizer.step()
""": (ZEROED, ZEROED | TAIL, ZEROED | TAIL | MEANS),
    # N backwards for each update, and yet no accumulation.
    """
for batch in micro_batches:
    optimizer.zero_grad()
    for _ in range(N):
        (loss_fn(model, batch) / N).backward()
    optimizer.step()
""": ({"no_accumulation"},) * 3,
    # True one micro-batch early: the last of a window goes backward after the update.
    """
for i, batch in enumerate(micro_batches, 1):
    (loss_fn(model, batch) / N).backward()
    if (i + 1) % N == 0:
        optimizer.step()
        optimizer.zero_grad()
""": ({"step_before_backward"}, {"step_before_backward"}, {"step_before_backward"} | MEANS),
    # Only one micro-batch of each window is used; what its loss is divided by does not matter then.
    """
for start in range(0, len(micro_batches), N):
    optimizer.zero_grad()
    loss_fn(model, micro_batches[start]).backward()
    optimizer.step()
""": (ONE, ONE, ONE),
    """
for i, batch in enumerate(micro_batches):
    if (i + 1) % N == 0:
        optimizer.zero_grad()
        (loss_fn(model, batch) / N).backward()
        optimizer.step()
""": (ONE, ONE | {"tail_dropped"}, ONE | {"tail_dropped"}),
    # The counter starts again with each window.
    "N = N + 1" + by_window("loss_fn(model, batch) * len(batch[0]) / items"): (LENGTH, LENGTH, LENGTH),
    """
seen = 0
for batch in micro_batches:
    (loss_fn(model, batch) / N).backward()
    seen += 1
    if seen == N - 1 or batch is micro_batches[-1]:
        optimizer.step()
        optimizer.zero_grad()
        seen = 0
""": (LENGTH, LENGTH, LENGTH | MEANS),
    by_window("loss_fn(model, batch) * len(batch[0]) / items") + "    optimizer.step()": (TWICE, TWICE, TWICE),
}


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("scope", "place"),
    [("windows", 0), pytest.param("tail", 1, marks=pytest.mark.long), pytest.param("items", 2, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("body", NAMED, ids=lambda body: body.strip().split("\n")[1].strip()[:60])
def test_each_gets_the_names_that_are_true_of_it(body, scope, place):
    wanted = NAMED[body][place]
    found = diagnose(written(body), scope)
    assert not found.correct
    if wanted is None:  # whatever else is said, not this
        assert "double_scale" not in found.faults
    else:
        assert set(found.faults) == wanted, found.message


def test_a_fixed_n_is_measured_where_another_was_asked_for():
    found = diagnose(written(usual("loss_fn(model, batch) / 4")), "windows")
    assert "Measured in SGD with momentum and N = 2" in found.to("en")
    assert "SGD met momentum en N = 2" in found.to("nl")


def test_texts_are_true_of_all_that_they_are_said_of():
    assert "before each micro-batch" not in FAULTS["zero_grad_every_micro_batch"].message.en
    assert "ordinary loop" not in FAULTS["no_accumulation"].message.en
    assert "number of micro-batches in the whole epoch" not in FAULTS["divided_by_epoch_length"].message.en


def clipping(clip):
    """A right loop that clips once per window as `clip` does."""

    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        class Clipped:
            def zero_grad(self):
                optimizer.zero_grad()

            def step(self):
                clip(list(model.parameters()))
                optimizer.step()

        slices(model, Clipped(), micro_batches, loss_fn, accumulation_steps)

    return loop


CLIPS = {
    "length": lambda parameters, bound: clip_grad_norm_(parameters, bound),
    "entries": lambda parameters, bound: clip_grad_value_(parameters, bound),
    "largest entry": lambda parameters, bound: clip_grad_norm_(parameters, bound, norm_type=float("inf")),
    "each parameter": lambda parameters, bound: [clip_grad_norm_([parameter], bound) for parameter in parameters],
}


@pytest.mark.parametrize("bound", [1.0, 0.01])
@pytest.mark.parametrize("kind", CLIPS)
def test_clipping_once_per_window_is_right_whatever_the_threshold(kind, bound):
    """Also one so low that it shows where gradients are small."""
    found = diagnose(clipping(lambda parameters: CLIPS[kind](parameters, bound)))
    assert found.correct, found.message


def nine_tenths_of_a_clipped_one(parameters):
    clip_grad_norm_(parameters, 0.01)
    for parameter in parameters:
        parameter.grad *= 1 + 0.1 * torch.sign(parameter.grad)


def test_what_only_looks_clipped_is_wrong():
    """A mean that is too short has the same length nowhere; a clipped one has."""
    assert not diagnose(clipping(nine_tenths_of_a_clipped_one), "windows").correct
    assert diagnose(fault_loop("double_scale"), "windows").faults == ("double_scale",)


def clips_low_and_takes_a_mean_of_means(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        for batch in window:
            (loss_fn(model, batch) / len(window)).backward()
        clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()


def test_a_mistake_beside_a_low_threshold_is_named():
    assert diagnose(clips_low_and_takes_a_mean_of_means, "tail").correct
    assert diagnose(clips_low_and_takes_a_mean_of_means).faults == ("mean_of_means",)
