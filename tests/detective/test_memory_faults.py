"""Whose doing it is that whole windows are alive at once, and what may be said of the gradient beside that."""

import pytest
import torch
from detective.correct_loops import slices

from gradacc_lessons import diagnose
from gradacc_lessons.accumulation import windows
from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.detective.rig import _Forward, together
from gradacc_lessons.detective.wording import SENTENCES
from gradacc_lessons.text import LANGUAGES

RIGHT = SENTENCES["right_gradient"]


def shares(window):
    examples = sum(len(batch[0]) for batch in window)
    return [(batch, len(batch[0]) / examples) for batch in window]


def retains_and_keeps(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    kept = []
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        for batch, share in shares(window):
            loss = loss_fn(model, batch) * share
            loss.backward(retain_graph=True)
            kept.append(loss)
        optimizer.step()


def total_with_its_graph(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        total = 0
        for batch, share in shares(window):
            loss = loss_fn(model, batch) * share
            loss.backward(retain_graph=True)
            total += loss
        optimizer.step()


def looks_with_graphs(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    print(float(sum(loss_fn(model, batch) for batch in micro_batches)))
    slices(model, optimizer, micro_batches, loss_fn, accumulation_steps)


def looks_at_the_window_with_graphs(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for window in windows(micro_batches, accumulation_steps):
        print(loss_fn(model, tuple(torch.cat(parts) for parts in zip(*window, strict=True))).item())
        slices(model, optimizer, window, loss_fn, accumulation_steps)


def keeps_the_outputs(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    kept = []
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        for batch, share in shares(window):
            kept.append(model(batch[0]))
            (loss_fn(model, batch) * share).backward()
        optimizer.step()


def a_list_first(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        for loss in [loss_fn(model, batch) * share for batch, share in shares(window)]:
            loss.backward()
        optimizer.step()


@pytest.mark.parametrize(
    ("loop", "fault"),
    [
        (retains_and_keeps, "graphs_kept_alive"),
        (total_with_its_graph, "graphs_kept_alive"),
        (looks_with_graphs, "graphs_kept_alive"),
        (looks_at_the_window_with_graphs, "graphs_kept_alive"),
        (keeps_the_outputs, "graphs_kept_alive"),
        (a_list_first, "sum_then_backward"),
    ],
)
def test_who_keeps_the_graphs(loop, fault):
    found = diagnose(loop)
    assert found.faults == (fault,)
    assert all(RIGHT.to(language) in found.to(language) for language in LANGUAGES)


def sums_the_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    sum(loss_fn(model, batch) / accumulation_steps for batch in micro_batches).backward()
    optimizer.step()


def glues_the_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    loss_fn(model, tuple(torch.cat(parts) for parts in zip(*micro_batches, strict=True))).backward()
    optimizer.step()


def forgets_to_divide(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        sum(loss_fn(model, batch) for batch in window).backward()
        optimizer.step()


@pytest.mark.parametrize("loop", [sums_the_epoch, glues_the_epoch, forgets_to_divide])
def test_a_wrong_gradient_is_not_called_right(loop):
    found = diagnose(loop, "windows")
    assert not found.correct
    assert set(found.faults) & {"sum_then_backward", "window_in_one_batch"}
    for language in LANGUAGES:
        assert RIGHT.to(language) not in found.to(language)
    gradient = [name for name in found.faults if FAULTS[name].lesson != "03_the_memory_wall"]
    assert gradient or ("The gradient is wrong too" in found.to("en") and "De gradient is ook fout" in found.to("nl"))


def test_no_text_of_the_memory_speaks_of_the_gradient():
    for fault in FAULTS.values():
        if fault.lesson == "03_the_memory_wall":
            assert "gradient" not in fault.message.en + fault.title.en + fault.message.nl + fault.title.nl


def test_forwards_wait_together_only_when_they_go_backward_later():
    def one(made, backward):
        return _Forward(3, made, backward)

    assert together([]) == together([one(0, None)] * 4) == 0
    assert together([one(0, 0), one(1, 1), one(2, 2)]) == 1
    assert together([one(0, 0), one(0, 1), one(0, 2)]) == 3
    assert together([one(0, None), one(0, 0), one(0, 1), one(2, 2)]) == 2
