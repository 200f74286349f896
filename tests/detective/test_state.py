"""Loops that keep something from one call to the next: each situation gets the loop as it was before it ever ran."""

import pytest
import torch
from detective.correct_loops import slices

from gradacc_lessons import diagnose
from gradacc_lessons.detective.files import FileFunction

seen_by_all = 0


def counts_in_a_global(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    global seen_by_all
    for batch in micro_batches:
        (loss_fn(model, batch) / accumulation_steps).backward()
        seen_by_all += 1
        if seen_by_all % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


class Counter:
    """Counts micro-batches over all epochs, as a trainer does."""

    def __init__(self):
        self.seen = 0

    def __call__(self, model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for batch in micro_batches:
            (loss_fn(model, batch) / accumulation_steps).backward()
            self.seen += 1
            if self.seen % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()


def counts_in_a_closure():
    seen = 0

    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        nonlocal seen
        for batch in micro_batches:
            (loss_fn(model, batch) / accumulation_steps).backward()
            seen += 1
            if seen % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    return loop


class KeepsItsBuffers:
    """Makes its buffers for the model of the first epoch, and uses them in the second."""

    def __init__(self):
        self.sums = None

    def __call__(self, model, optimizer, micro_batches, loss_fn, accumulation_steps):
        parameters = list(model.parameters())
        self.sums = self.sums or [torch.zeros_like(parameter) for parameter in parameters]
        for start in range(0, len(micro_batches), accumulation_steps):
            window = micro_batches[start : start + accumulation_steps]
            for batch in window:
                found = torch.autograd.grad(loss_fn(model, batch) * len(batch[0]), parameters)
                for total, gradient in zip(self.sums, found, strict=True):
                    total += gradient
            for parameter, total in zip(parameters, self.sums, strict=True):
                parameter.grad = total / sum(len(batch[0]) for batch in window)
            optimizer.step()
            for total in self.sums:
                total.zero_()


class SkipsTheSecondEpoch:
    """The state of the first epoch is there in the second."""

    def __init__(self):
        self.epochs = 0

    def __call__(self, *arguments):
        self.epochs += 1
        if self.epochs == 1:
            slices(*arguments)


@pytest.mark.parametrize(
    "loop", [counts_in_a_global, Counter(), counts_in_a_closure(), KeepsItsBuffers()], ids=lambda loop: str(loop)[:30]
)
def test_a_loop_may_keep_state(loop):
    found = diagnose(loop, "windows")
    assert found.correct, found.message


def test_buffers_kept_are_right_in_every_scope():
    assert diagnose(KeepsItsBuffers()).correct


def test_both_epochs_of_a_situation_are_of_one_loop():
    found = diagnose(SkipsTheSecondEpoch(), "windows")
    assert not found.correct
    assert "it makes 2 updates in two epochs where 4 belong" in found.message


FILE = """
import threading

print("the file runs")
{extra}
seen = 0


def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    global seen
    {use}
    for batch in micro_batches:
        (loss_fn(model, batch) / accumulation_steps).backward()
        seen += 1
        if seen % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("extra", "use", "runs"),
    [("", "", lambda times: times == 1), ("lock = threading.Lock()", "lock.locked()", lambda times: times > 1)],
    ids=["copied", "cannot be copied"],
)
def test_a_file_is_as_new_in_each_situation(tmp_path, extra, use, runs):
    """A file is run again only where its function cannot be copied: it may do a lot of work of its own."""
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(extra=extra, use=use))
    found = diagnose(FileFunction(path, "train_epoch"), "windows")
    assert found.correct, found.message
    assert runs(found.evidence["printed"].count("the file runs"))


def test_a_crash_in_a_later_situation_shows_its_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(extra="", use="assert accumulation_steps == 4"))
    found = diagnose(FileFunction(path, "train_epoch"), "windows")
    assert "AssertionError (line 11: assert accumulation_steps == 4)" in found.message
