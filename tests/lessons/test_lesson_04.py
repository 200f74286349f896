"""Lesson 04 as a page: its code does what the package does, and its numbers are those of the explorers."""

from itertools import pairwise
from typing import Any

import nbformat
import pytest
import torch
from lessons.notebook_cells import cells

from gradacc_lessons.accumulation import accumulate, split, windows
from gradacc_lessons.course import course_folder
from gradacc_lessons.detective.faults import TAUGHT_SOURCE
from gradacc_lessons.lessons.tails import LOOPS, applied_gradients, explore_tails, loop_of, unit_trace
from gradacc_lessons.lessons.token_weights import WARM_UP, explore_weights
from gradacc_lessons.lessons.training import collect, parameters
from gradacc_lessons.quiz.exercise import build, same_code
from gradacc_lessons.quiz.exercises_uneven import FIX_TAIL

LESSON = "04_uneven_windows"
PAGE = cells(LESSON)


def run(*names: str, **given: Any) -> dict[str, Any]:
    """What is there after these cells."""
    found = dict(given)
    for name in names:
        exec(compile(PAGE[name], name, "exec"), found)
    return found


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return run("model", "mean-of-means", "by-tokens", "stream", torch=torch)


def test_the_sections_are_those_of_the_course() -> None:
    headings = [line[3:] for source in PAGE.values() for line in source.splitlines() if line.startswith("## ")]
    assert headings == [
        *("Three numbers that should agree", "Mean of means", "Weigh by what counts", "A batch of 10, cut 4, 4, 2"),
        *("The short last window", "A micro-batch without labels", "Write it", "Quiz", "Summary"),
    ]


def test_the_prediction_is_about_what_the_explorer_shows_first() -> None:
    values = explore_weights().values
    assert values == {"micro_batch_size": 1, "accumulation_steps": 8, "weighting": "means", "updates": WARM_UP}
    assert f"after({WARM_UP})" in PAGE["model"] and f'"means", updates={WARM_UP}' in PAGE["measure"]
    assert "Recipe(micro_batch_size=1, accumulation_steps=8)" in PAGE["measure"]


def test_no_cell_before_the_prediction_shows_what_is_asked_for() -> None:
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("predict-ask")]
    shown = str([cell.get("outputs", []) for cell in before]) + "".join(cell.source for cell in before)
    assert "77" not in shown and "%" not in shown


def test_the_three_numbers_differ_and_the_first_is_the_mean_over_all_tokens(page: dict[str, Any]) -> None:
    whole = float(page["task"].loss_fn(page["model"], page["eight"]).detach())
    losses = [page["mean_of_means"](page["model"], page["split"](page["eight"], b)) for b in (8, 2, 1)]
    assert losses[0] == pytest.approx(whole, rel=1e-12)
    assert min(abs(a - b) for a, b in pairwise(losses)) > 0.05
    for b in (8, 3, 2, 1):
        assert page["mean_of_tokens"](page["model"], page["split"](page["eight"], b)) == pytest.approx(whole, rel=1e-12)


def test_the_streams_updates_are_those_of_accumulate_short_window_included(page: dict[str, Any]) -> None:
    task, most = page["task"], 0.2
    streamed, counted = (page["after"](0) for _ in range(2))
    rates = [torch.optim.SGD(model.parameters(), lr=0.5) for model in (streamed, counted)]
    stream = iter(split(page["eight"], 1))
    for window in windows(split(page["eight"], 1), 3):
        page["update_from"](stream, streamed, rates[0], 3, most)
        accumulate(counted, window, task.loss_sum, task.count)
        torch.nn.utils.clip_grad_norm_(counted.parameters(), most)
        rates[1].step()
        rates[1].zero_grad()
    assert next(stream, None) is None
    assert float((parameters(streamed) - parameters(counted)).abs().max()) <= 1e-12


def test_the_trace_of_the_page_is_the_explorers() -> None:
    trace = run("trace", torch=torch)["trace"]
    for _, tail in LOOPS:
        for m, n in ((10, 4), (7, 3), (2, 4)):
            wanted = applied_gradients(collect(unit_trace(tail, m, n, 2)))
            assert trace(loop_of(tail), m, n) == pytest.approx(wanted, abs=0.001)
    assert explore_tails().values == {"micro_batches": 10, "accumulation_steps": 4, "epochs": 2, "tail": "tail_leaks"}


def test_the_loop_to_repair_is_the_one_of_lesson_01() -> None:
    source = PAGE["taught-loop"].split("\n\n\n")[0] + "\n"
    assert source == FIX_TAIL.starter
    taught = build(TAUGHT_SOURCE.replace(" i,", " index,").replace("(i +", "(index +"), "train_epoch")
    assert same_code(build(source, "train_epoch"), taught)


def test_without_the_first_zero_grad_the_tail_of_that_loop_leaks() -> None:
    """The page says so."""
    trace = run("trace", torch=torch)["trace"]
    lines = FIX_TAIL.starter.splitlines(keepends=True)
    assert "zero_grad" in lines[1]
    assert trace(build("".join(lines[:1] + lines[2:]), "train_epoch")) == [1, 1, 1.5, 1]
    assert trace(build(FIX_TAIL.starter, "train_epoch")) == [1, 1, 1, 1]
