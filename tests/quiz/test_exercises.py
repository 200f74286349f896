"""Exercises: the solution passes, the starter costs nothing, and every wrong answer is told its own mistake."""

import re
import threading
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from gradacc_lessons.detective import client
from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.quiz.exercise import (
    NOT_ATTEMPTED,
    LoopCheck,
    ValueCheck,
    as_given,
    build,
    same_code,
    source_of,
)
from gradacc_lessons.quiz.exercises import EXERCISES, UPDATES_PER_EPOCH, Exercise, exercise
from gradacc_lessons.text import LANGUAGES

ALL = list(EXERCISES.values())
WRONG = [(each, wrong) for each in ALL for wrong in each.wrong]


def key(value: Any) -> str:
    return value.key if isinstance(value, Exercise) else getattr(value, "fault", str(value))


@pytest.fixture(scope="module")
def shell() -> InteractiveShell:
    """What runs the cells of a notebook."""
    return InteractiveShell(config=Config(HistoryManager={"enabled": False}))


@pytest.mark.parametrize("each", ALL, ids=key)
def test_the_solution_passes(each: Exercise) -> None:
    result = each.check(build(each.solution, each.function))
    assert result.correct and result.fraction == 1.0 and result.counted
    for language in LANGUAGES:
        assert result.feedback.to(language)


@pytest.mark.parametrize("each", ALL, ids=key)
def test_the_starter_is_not_an_attempt(each: Exercise) -> None:
    result = each.check(build(each.starter, each.function))
    assert not result.counted and result.feedback == NOT_ATTEMPTED


@pytest.mark.parametrize("each", ALL, ids=key)
def test_the_starter_is_not_an_attempt_in_a_notebook_either(each: Exercise, shell: InteractiveShell) -> None:
    """There it comes with a first line and blank ones, and each statement is compiled for itself."""
    shell.run_cell(f"# your turn\n\n{each.starter}", store_history=False).raise_error()
    result = each.check(shell.user_ns[each.function])
    assert not result.counted and result.feedback == NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("starter", "changed"),
    [
        ("import math\n\n\ndef f(x):\n    return math.sqrt(x)\n", "math.floor"),
        ("import math\n\n\ndef f(xs):\n    return [math.sqrt(x) for x in xs]\n", "math.floor"),
        ("import math as m\n\n\ndef f(x):\n    return (lambda y: m.sqrt(y))(x)\n", "m.floor"),
    ],
    ids=["call_in_a_module", "in_a_comprehension", "in_a_lambda"],
)
def test_code_is_the_same_however_it_was_compiled_until_it_is_changed(
    starter: str, changed: str, shell: InteractiveShell
) -> None:
    unlike = starter.replace(changed.replace("floor", "sqrt"), changed)
    assert unlike != starter
    for source, same in ((starter, True), (unlike, False)):
        shell.run_cell(f"\n\n{source}", store_history=False).raise_error()
        for function in (shell.user_ns["f"], build(f"# a file\n{source}", "f")):
            assert any(same_code(function, given) for given in as_given(starter, "f")) is same


def test_another_constant_is_another_code() -> None:
    one, other = (build(f"def f(x):\n    return x * {number}\n", "f") for number in ("1", "1.0"))
    assert same_code(one, one) and not same_code(one, other)


@pytest.mark.few(60)
@pytest.mark.parametrize(("each", "wrong"), WRONG, ids=key)
def test_each_wrong_answer_gets_its_own_message_in_both_languages(each: Exercise, wrong: Any) -> None:
    result = each.check(build(wrong.source, each.function))
    assert result.counted and not result.correct and result.fraction == 0.0
    assert result.mistake == wrong.fault
    for language in LANGUAGES:
        own = wrong.message.to(language) if wrong.message else FAULTS[wrong.fault].message.to(language)
        assert own in result.feedback.to(language)


@pytest.mark.parametrize("each", ALL, ids=key)
def test_messages_tell_wrong_answers_apart(each: Exercise) -> None:
    assert len({wrong.fault for wrong in each.wrong}) == len(each.wrong) >= 4
    assert len({build(wrong.source, each.function).__code__.co_code for wrong in each.wrong}) > 1
    if isinstance(each.judge, LoopCheck):
        assert {wrong.fault for wrong in each.wrong} <= set(FAULTS)
    else:
        assert len({wrong.message.en for wrong in each.wrong if wrong.message}) == len(each.wrong)


@pytest.mark.parametrize("each", ALL, ids=key)
def test_hints_do_not_hold_the_solution(each: Exercise) -> None:
    lines = [line.strip() for line in each.solution.splitlines() if len(line.strip()) > 25 and "def " not in line]
    for hint in each.hints:
        for line in lines:
            assert line not in hint.en and line not in hint.nl


def test_a_loop_is_run_once_for_what_is_said_in_both_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    really_ask = client.ask

    def ask(request: bytes, time_limit: float) -> client.Answer:
        asked.append(request)
        return really_ask(request, time_limit)

    monkeypatch.setattr(client, "ask", ask)
    loop = exercise("train_epoch_windows")
    result = loop.check(build(loop.wrong[0].source, loop.function))
    assert len(asked) == 1 and result.feedback.en != result.feedback.nl


# Functions of numbers


def updates(body: str) -> Any:
    source = f"def updates_per_epoch(examples, micro_batch_size, accumulation_steps):\n    {body}\n"
    return UPDATES_PER_EPOCH.check(build(source, "updates_per_epoch"))


def test_ways_to_be_right() -> None:
    for body in (
        "return -(-(-(-examples // micro_batch_size)) // accumulation_steps)",
        "return -(-examples // (micro_batch_size * accumulation_steps))",
        "import numpy; return numpy.ceil(examples / (micro_batch_size * accumulation_steps))",
        "import torch; return torch.tensor(examples / micro_batch_size / accumulation_steps).ceil()",
        "return sum(1 for _ in range(0, examples, micro_batch_size * accumulation_steps))",
    ):
        assert updates(body).correct, body


def test_an_unforeseen_mistake_says_where_and_not_what_is_expected() -> None:
    solution = build(UPDATES_PER_EPOCH.solution, "updates_per_epoch")
    judge = UPDATES_PER_EPOCH.judge
    assert isinstance(judge, ValueCheck)
    for body in (
        "return 7",
        "return examples % 5",
        "return (examples + 90) // (micro_batch_size * accumulation_steps)",
    ):
        result = updates(body)
        assert result.counted and not result.correct and result.mistake is None
        call = re.search(r"updates_per_epoch\(([\d, ]+)\)", result.feedback.en)
        assert call is not None and "of 3 visible checks hold" in result.feedback.en
        arguments = tuple(map(int, call.group(1).split(", ")))
        for language in LANGUAGES:
            text = result.feedback.to(language)
            assert str(solution(*arguments)) not in re.findall(r"\d+", text)
    counted = [
        updates("return 7").feedback.en[0],
        updates("return round(examples / micro_batch_size / accumulation_steps)"),
    ]
    assert counted[0] == "0" and counted[1].mistake == "rounds_to_nearest"


def test_the_expected_values_cannot_be_mistaken_for_arguments() -> None:
    judge, solution = UPDATES_PER_EPOCH.judge, build(UPDATES_PER_EPOCH.solution, "updates_per_epoch")
    assert isinstance(judge, ValueCheck)
    for group in judge.groups:
        for call in group.calls:
            assert solution(*call) not in call and solution(*call) > len(judge.groups)


@pytest.mark.parametrize(
    ("body", "said", "mistake"),
    [
        ("pass", "did not return a number", None),
        ("return str(examples)", "did not return a number", None),
        ("return True", "did not return a number", None),
        ("return examples / 0", "ZeroDivisionError", "crashed"),
        ("return exampels", "NameError", "crashed"),
        ("import os; os._exit(0)", "ended its process", "crashed"),
        ("raise SystemExit", "SystemExit", "crashed"),
        ("return float('nan')", "returned nan", None),
        ("raise ValueError('<b>a & b</b>')", "<b>a & b</b>", "crashed"),
    ],
)
def test_functions_that_do_not_return_a_number(body: str, said: str, mistake: str | None) -> None:
    result = updates(body)
    assert said in result.feedback.en and result.mistake == mistake and result.counted and not result.correct


def test_a_function_that_never_returns_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradacc_lessons.quiz.call_in_child.TIME_LIMIT", 0.5)
    result = updates("while True: pass")
    assert (result.mistake, result.counted) == ("timed_out", True) and "in time" in result.feedback.en
    assert updates("return -(-examples // (micro_batch_size * accumulation_steps))").correct  # and the next is served


def test_not_implemented_after_an_edit_is_still_no_attempt() -> None:
    assert not updates("x = 1; raise NotImplementedError").counted


def test_the_wrong_signature_is_a_sentence() -> None:
    result = UPDATES_PER_EPOCH.check(lambda examples: examples)
    assert "TypeError" in result.feedback.en and result.mistake == "crashed"


def test_what_cannot_travel_is_a_sentence() -> None:
    lock = threading.Lock()
    result = UPDATES_PER_EPOCH.check(lambda examples, size, steps: lock)
    assert not result.correct and "Error" in result.feedback.en


@pytest.mark.parametrize("value", [None, 48, "updates_per_epoch", []])
def test_what_is_no_function_costs_nothing(value: Any) -> None:
    result = UPDATES_PER_EPOCH.check(value)
    assert not result.counted and "without parentheses" in result.feedback.en


# The rest


def test_an_unknown_exercise_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="updates_per_epoch, train_epoch_windows, repair_scale"):
        exercise("other")


def test_the_same_code_is_recognised_whatever_its_name_and_place() -> None:
    source = "def f(a):\n    return a + 1\n"
    assert same_code(build(source, "f"), build("\n\n# moved\n" + source, "f"))
    assert not same_code(build(source, "f"), build(source.replace("1", "2"), "f"))
    assert not same_code(build(source, "f"), build(source.replace("+", "-"), "f"))
    assert not same_code(len, build(source, "f")) and not same_code(None, build(source, "f"))


def test_the_source_is_kept_where_python_knows_it() -> None:
    assert "\ndef key" in source_of(key)
    assert source_of(build("def f(): pass", "f")) == source_of(5) == ""
