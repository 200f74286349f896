"""Lesson 09's exercises: other ways to be right, and what a test of loops is told about what slips through."""

from typing import Any

import pytest

from gradacc_lessons import diagnose
from gradacc_lessons.detective.faults import FAULTS, compiled
from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises_museum import TWO_BUGS, WRITE_THE_TEST
from gradacc_lessons.quiz.judge_museum import BUGS, RIGHT, SOURCES, Verdicts, verdicts
from gradacc_lessons.text import LANGUAGES

HEAD = "import torch\n\n\ndef holds(train_epoch):\n"
APPLIED = WRITE_THE_TEST.solution[len(HEAD) : WRITE_THE_TEST.solution.index("    return")]


def holds(body: str) -> Any:
    return WRITE_THE_TEST.check(build(HEAD + body, "holds"))


def test_the_loop_to_repair_has_both_bugs_and_no_other() -> None:
    assert set(diagnose(build(TWO_BUGS.starter, "train_epoch"), "tail").faults) == {
        *("zero_grad_every_micro_batch", "tail_underscaled")
    }


@pytest.mark.parametrize(
    "body",
    [
        "    for start in range(0, len(micro_batches), accumulation_steps):\n"
        "        window = micro_batches[start : start + accumulation_steps]\n        optimizer.zero_grad()\n"
        "        for batch in window:\n            (loss_fn(model, batch) / len(window)).backward()\n"
        "        optimizer.step()\n",
        "    for index, batch in enumerate(micro_batches):\n        if index % accumulation_steps == 0:\n"
        "            optimizer.zero_grad()\n"
        "        rest = len(micro_batches) % accumulation_steps\n"
        "        in_tail = index >= len(micro_batches) - rest\n"
        "        loss = loss_fn(model, batch) / (rest if in_tail else accumulation_steps)\n        loss.backward()\n"
        "        last = index + 1 == len(micro_batches)\n"
        "        if (index + 1) % accumulation_steps == 0 or last:\n            optimizer.step()\n",
    ],
)
def test_other_repairs_are_right_too(body: str) -> None:
    head = TWO_BUGS.starter.splitlines(keepends=True)[0]
    assert TWO_BUGS.check(build(head + body, "train_epoch")).correct


# The test that learners write


@pytest.mark.parametrize("source", RIGHT)
def test_the_loops_to_accept_are_right_in_every_scope(source: str) -> None:
    assert diagnose(compiled(source), "items").correct


def test_the_loops_to_refuse_are_the_catalogues_and_no_two_are_alike() -> None:
    assert all(FAULTS[bug].scope in ("windows", "tail") for bug in BUGS)
    assert (*RIGHT, *(FAULTS[bug].source for bug in BUGS)) == SOURCES
    assert len(set(SOURCES)) == len(SOURCES)


@pytest.mark.parametrize(
    "body",
    [
        APPLIED + "    assert len(applied) == 6\n    assert max(abs(g - 1) for g in applied) < 1e-4\n    return True\n",
        APPLIED + "    return torch.allclose(torch.tensor(applied), torch.ones(6)) if len(applied) == 6 else False\n",
        APPLIED + "    return len(applied) == 6 and torch.tensor([abs(g - 1) < 1e-4 for g in applied]).all()\n",
        APPLIED
        + "    import numpy as np\n    return np.allclose(applied, 1) if len(applied) == 6 else np.bool_(False)\n",
    ],
)
def test_ways_to_be_right(body: str) -> None:
    grade = holds(body)
    assert grade.correct, grade.feedback.en
    assert f"all {len(RIGHT)} right loops" in grade.feedback.en and f"all {len(BUGS)} " in grade.feedback.en


@pytest.mark.parametrize(
    ("body", "mistake"),
    [
        ("    return True\n", "accepts_all"),
        (
            APPLIED.replace("ones, lambda", "ones[:4], lambda").replace(", 4)", ", 1)") + "    return True\n",
            "accepts_all",
        ),
        ("    return False\n", "refuses_all"),
        ("    assert False\n", "refuses_all"),
        ("    return None\n", "no_verdict"),
        ("    return 'right'\n", "no_verdict"),
        (APPLIED + "    return sum(applied) if len(applied) == 6 else False\n", "no_verdict"),
        (APPLIED + "    return len(applied) in (6, 7)\n", "counts_only"),
        (APPLIED.replace("* 10", "* 8") + "    return all(abs(g - 1) < 1e-4 for g in applied)\n", "only_full_windows"),
    ],
)
def test_other_sources_with_the_same_mistake_hear_the_same(body: str, mistake: str) -> None:
    grade = holds(body)
    assert grade.mistake == mistake and grade.counted and not grade.correct


def test_what_slips_through_is_named_in_both_languages() -> None:
    grade = holds(APPLIED + "    return all(abs(g - 1) < 1e-4 for g in applied)\n")  # looks at sizes, counts nothing
    assert not grade.correct and grade.mistake is None
    for language in LANGUAGES:
        said = grade.feedback.to(language)
        assert FAULTS["tail_dropped"].title.to(language) in said
        assert FAULTS["missing_scale"].title.to(language) not in said


@pytest.mark.parametrize(
    ("body", "mistake", "words"),
    [
        ("    return 1 / 0\n", "crashed", "ZeroDivisionError"),
        ("    raise NotImplementedError('later')\n", None, "still as it was given"),
    ],
)
def test_what_does_not_run(body: str, mistake: str | None, words: str) -> None:
    grade = holds(body)
    assert grade.mistake == mistake and words in grade.feedback.en and grade.counted == (mistake is not None)


def test_verdicts_are_read_from_values_in_the_order_of_the_loops() -> None:
    fine = [1.0] * len(RIGHT) + [0.0] * len(BUGS)
    assert verdicts(fine) == Verdicts(0, 0, ()) and verdicts(fine).mistake is None
    assert verdicts([0.0, *fine[1:]]).mistake == "refuses_right"
    assert verdicts([2.0, *fine[1:]]).mistake == "no_verdict" and verdicts([None, *fine[1:]]).mistake == "no_verdict"
    assert (
        verdicts([*fine[:-1], 1.0]).missed == (BUGS[-1],) and verdicts([*fine[:-1], 1.0]).mistake == "size_of_the_last"
    )


def test_no_message_holds_code_of_the_solution() -> None:
    for wrong in WRITE_THE_TEST.wrong:
        assert wrong.message is not None
        for language in LANGUAGES:
            said = wrong.message.to(language)
            assert "hook" not in said and "abs(" not in said and "1e-" not in said
