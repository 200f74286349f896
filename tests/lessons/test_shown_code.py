"""What a notebook shows as the course's own code is the code that the package runs."""

import ast
import inspect
from itertools import cycle, islice
from typing import Any

import pytest
import torch
from lessons.notebook_cells import cells

from gradacc_lessons import Recipe, accumulate
from gradacc_lessons.accumulation import split, windows
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.tasks import digits

ROUNDING = 1e-10  # float64 rounds at 1e-16; some fifty updates magnify it, and stay far below this


def bare(source: str) -> str:
    """A function's code without docstring, annotations and comments."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    if ast.get_docstring(function) is not None:
        del function.body[0]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return ast.unparse(function)


def run(sources: list[str]) -> dict[str, Any]:
    """What is there after these cells, with their task in float64, where equality can be claimed."""
    found: dict[str, Any] = {}
    text = "\n".join(sources)
    for single, double in (
        ("digits()", "digits(dtype=torch.float64)"),
        ('digits("mlp")', 'digits("mlp", dtype=torch.float64)'),
    ):
        text = text.replace(single, double)
    exec(compile(text, "cells", "exec"), found)
    assert next(found["task"].build_model().parameters()).dtype is torch.float64
    return found


def test_lesson_01_shows_accumulate_as_it_is() -> None:
    assert bare(cells("01_accumulate")["accumulate-source"]) == bare(inspect.getsource(accumulate))


def test_the_loop_of_lesson_00_trains_as_the_package_does() -> None:
    shown = run([cells("00_start_here")[name] for name in ("loop", "loop-run")])
    task = digits(dtype=torch.float64)
    model = task.build_model()
    optimizer = make_optimizer(model, Recipe(8, 4, optimizer="adam", learning_rate=0.01))
    for window in windows(split(task.train, 8), 4):
        accumulate(model, window, task.loss_sum, task.count)
        optimizer.step()
        optimizer.zero_grad()
    assert shown["updates"] == 48
    assert float((parameters(shown["model"]) - parameters(model)).abs().max()) <= ROUNDING


def test_the_repaired_loop_of_lesson_02_trains_as_the_package_does() -> None:
    source = cells("02_scale_the_loss")
    shown = run([source[name] for name in ("data", "train", "repaired")])
    task, n, updates = digits(dtype=torch.float64), 16, 8
    model, losses = task.build_model(), []
    optimizer = make_optimizer(model, Recipe(32, n, learning_rate=0.5))
    stream = islice(cycle(split(task.train, 32)), updates * n)
    for window in windows(list(stream), n):
        losses.append(task.loss_fn(model, window[-1]).item())
        accumulate(model, window, task.loss_sum, task.count)
        optimizer.step()
        optimizer.zero_grad()
    assert list(shown["repaired"](n, updates)) == pytest.approx(losses, abs=ROUNDING)
    assert list(shown["losses_of"](n, updates)) != pytest.approx(losses, abs=0.01)  # the one that is to be repaired
