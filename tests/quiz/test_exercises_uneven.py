"""Lesson 04's exercises: other ways to be right, and that what they say of themselves is so."""

import pytest

from gradacc_lessons.detective.faults import TAUGHT_SOURCE, compiled
from gradacc_lessons.quiz.exercise import build, same_code
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.exercises_uneven import FIX_TAIL, TOKEN_WEIGHTS

REST = """
def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    rest = len(micro_batches) % accumulation_steps
    for index, batch in enumerate(micro_batches):
        in_tail = index >= len(micro_batches) - rest
        loss = loss_fn(model, batch) / (rest if in_tail else accumulation_steps)
        loss.backward()
        if (index + 1) % accumulation_steps == 0 or index + 1 == len(micro_batches):
            optimizer.step()
            optimizer.zero_grad()
"""
RESCALED = """
def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    waiting = 0
    for index, batch in enumerate(micro_batches):
        loss_fn(model, batch).backward()
        waiting += 1
        if waiting == accumulation_steps or index + 1 == len(micro_batches):
            for parameter in model.parameters():
                parameter.grad /= waiting
            optimizer.step()
            optimizer.zero_grad()
            waiting = 0
"""
STREAM = """
def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, count):
    optimizer.zero_grad()
    items = 0
    for index, batch in enumerate(micro_batches):
        (loss_fn(model, batch) * count(batch)).backward()
        items += count(batch)
        if (index + 1) % accumulation_steps == 0 or index + 1 == len(micro_batches):
            for parameter in model.parameters():
                parameter.grad /= items
            optimizer.step()
            optimizer.zero_grad()
            items = 0
"""


@pytest.mark.parametrize(
    ("key", "source"), [("fix_tail", REST), ("fix_tail", RESCALED), ("token_weights", STREAM)], ids=str
)
def test_other_ways_are_right_too(key: str, source: str) -> None:
    assert exercise(key).check(build(source, "train_epoch")).correct


def test_the_loop_to_repair_is_the_one_that_the_earlier_lessons_teach() -> None:
    taught = compiled(TAUGHT_SOURCE.replace("for i,", "for index,").replace("(i + 1)", "(index + 1)"))
    assert same_code(build(FIX_TAIL.starter, "train_epoch"), taught)


@pytest.mark.parametrize("each", [FIX_TAIL, TOKEN_WEIGHTS], ids=lambda each: each.key)
def test_every_mistake_leaves_the_loop_running(each) -> None:  # type: ignore[no-untyped-def]
    """What is wrong is a weight or an update, never an error: that is why such loops live long."""
    for wrong in each.wrong:
        assert each.check(build(wrong.source, "train_epoch")).mistake != "crashed"


@pytest.mark.parametrize(
    ("loss", "mistake", "words"),
    [
        ("loss_fn(model, batch) / count(batch)", "divided_by_micro_batch_size", "what is in its own micro-batch"),
        ("loss_fn(model, batch) / len(batch[0])", "divided_by_micro_batch_size", "what is in its own micro-batch"),
        ("loss_fn(model, batch) / count(batch) / len(window)", "divided_by_examples_again", "tokens or examples"),
    ],
)
def test_what_is_said_of_a_divisor_is_true_of_tokens(loss: str, mistake: str, words: str) -> None:
    """Nobody who divides by tokens is told that they count micro-batches, or sent on to a mean of means."""
    right = "loss_fn(model, batch) * count(batch) / items"
    assert right in TOKEN_WEIGHTS.solution
    grade = TOKEN_WEIGHTS.check(build(TOKEN_WEIGHTS.solution.replace(right, loss), "train_epoch"))
    assert grade.mistake == mistake and words in grade.feedback.en
    assert "number of micro-batches" not in grade.feedback.en and "aantal micro-batches" not in grade.feedback.nl
