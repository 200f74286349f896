"""Lesson 07's exercises: other ways to be right, several mistakes at once, and what a real tape would say."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons import trace
from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises_once import ONCE_PER_WINDOW, READ_TIMELINE
from gradacc_lessons.quiz.try_once import EVENTS, TIMELINES, whole_loop

HEAD = ONCE_PER_WINDOW.solution.splitlines(keepends=True)
IMPORT, SIGNATURE = HEAD[0], HEAD[3]
BY_COUNTING = """
    for index, batch in enumerate(micro_batches):
        first = index - index % accumulation_steps
        length = min(accumulation_steps, len(micro_batches) - first)
        (loss_fn(model, batch) / length).backward()
        if (index + 1) % accumulation_steps == 0 or index + 1 == len(micro_batches):
            clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            ema.update()
            optimizer.zero_grad()
            scheduler.step()
"""
RESCALED = """
    waiting = 0
    for index, batch in enumerate(micro_batches):
        loss_fn(model, batch).backward()
        waiting += 1
        if waiting == accumulation_steps or index + 1 == len(micro_batches):
            for parameter in model.parameters():
                parameter.grad /= waiting
            clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            ema.update()
            waiting = 0
"""


@pytest.mark.parametrize("body", [BY_COUNTING, RESCALED], ids=["counting", "rescaled"])
def test_other_ways_are_right_too(body: str) -> None:
    assert ONCE_PER_WINDOW.check(build(IMPORT + SIGNATURE + body, "train_epoch")).correct


UPDATE = "            optimizer.step()\n"
REPAIRS = (
    ("never_zero_grad", {"        optimizer.zero_grad()\n": ""}),
    ("clip_every_micro_batch", {UPDATE: UPDATE + "            optimizer.zero_grad()\n"}),
    (
        "scheduler_every_micro_batch",
        {
            "        clip_grad_norm_(model.parameters(), max_norm)\n": "",
            UPDATE: "            clip_grad_norm_(model.parameters(), max_norm)\n" + UPDATE,
        },
    ),
    ("ema_every_micro_batch", {"        scheduler.step()\n": "", UPDATE: UPDATE + "            scheduler.step()\n"}),
    ("tail_leaks", {"        ema.update()\n": "", UPDATE: UPDATE + "            ema.update()\n"}),
)
"""From the loop that is handed out, repair by repair, and what is told after each."""


def test_who_makes_several_mistakes_is_told_of_one_after_the_other() -> None:
    source = ONCE_PER_WINDOW.starter
    for mistake, lines in REPAIRS:
        for old, new in lines.items():
            assert old in source
            source = source.replace(old, new, 1)
        grade = ONCE_PER_WINDOW.check(build(source, "train_epoch"))
        assert grade.mistake == mistake and not grade.correct


def test_an_error_in_the_loop_is_told_with_its_line() -> None:
    grade = ONCE_PER_WINDOW.check(build(IMPORT + SIGNATURE + "    1 / 0\n", "train_epoch"))
    assert grade.mistake == "crashed" and "ZeroDivisionError" in grade.feedback.en


def test_trying_a_loop_out_leaves_this_process_random_numbers_alone() -> None:
    torch.manual_seed(3)
    wanted = torch.rand(2)
    torch.manual_seed(3)
    whole_loop(build(ONCE_PER_WINDOW.solution, "train_epoch"))(0)
    assert torch.equal(torch.rand(2), wanted)


# Reading a timeline -----------------------------------------------------------------------------------------------

applied = build(READ_TIMELINE.solution, "applied")


@given(st.text("fbcUsz", max_size=30))
def test_the_solution_is_what_a_real_gradient_does(letters: str) -> None:
    """The events are carried out on a parameter whose every gradient is 1."""
    weight = torch.nn.Parameter(torch.zeros(()))
    held = []
    for letter in letters:
        if letter == "b":
            (weight * 1.0).backward()
        elif letter == "U":
            held.append(0 if weight.grad is None else int(weight.grad))
        elif letter == "z":
            weight.grad = None
    assert applied([EVENTS[letter] for letter in letters]) == held


def test_the_words_are_those_of_the_tape() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    with trace(model, optimizer, schedule) as tape:
        for _ in range(2):
            model(torch.ones(4, 2)).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        with torch.no_grad():
            model(torch.ones(4, 2))
    kinds = [event.kind for event in tape.events]
    assert set(kinds) == set(EVENTS.values())
    assert applied(kinds) == [2]


def test_an_answer_may_be_a_tuple_or_hold_whole_floats() -> None:
    for returned in ("tuple(found)", "[float(each) for each in found]"):
        source = READ_TIMELINE.solution.replace("return found", f"return {returned}")
        assert READ_TIMELINE.check(build(source, "applied")).correct


@pytest.mark.parametrize("returned", ["events", "[[1]]", "{}", "(each for each in events)", "'44'", "[10**400]"])
def test_what_is_no_list_of_numbers_is_told_in_a_sentence(returned: str) -> None:
    grade = READ_TIMELINE.check(build(f"def applied(events):\n    return {returned}\n", "applied"))
    assert grade.mistake == "one_number"


@pytest.mark.parametrize("number", ["float('inf')", "float('nan')"])
def test_numbers_that_are_not_finite_are_nobodys_mistake(number: str) -> None:
    grade = READ_TIMELINE.check(build(f"def applied(events):\n    return [{number}] * 2\n", "applied"))
    assert grade.mistake is None and not grade.correct


def test_an_answer_that_nobody_foresaw_is_told_where() -> None:
    grade = READ_TIMELINE.check(build("def applied(events):\n    return [4, 4]\n", "applied"))
    assert grade.mistake is None and "0 of 4" in grade.feedback.en and len(TIMELINES) == 8
