"""Lesson 08 as a page: its code does what the package does, and its numbers are those of the explorers."""

from copy import deepcopy
from typing import Any

import nbformat
import pytest
import torch
from lessons.notebook_cells import cells

from gradacc_lessons.accumulation import split
from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons.bf16_sum import explore_sum
from gradacc_lessons.lessons.scaler_window import explore_scaler
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises_precision import REPAIR_FP16
from gradacc_lessons.reference import buffers
from gradacc_lessons.reference.fp16_window import fp16_window
from gradacc_lessons.tasks import digits

LESSON = "08_mixed_precision"
PAGE = cells(LESSON)


def run(*names: str, **given: Any) -> dict[str, Any]:
    """What is there after these cells."""
    found = {"torch": torch} | given
    for name in names:
        exec(compile(PAGE[name], name, "exec"), found)
    return found


def test_the_sections_are_those_of_the_course() -> None:
    headings = [line[3:] for source in PAGE.values() for line in source.splitlines() if line.startswith("## ")]
    assert headings == [
        *("A sum that stops", "How far is it off?", "On a real model", "Sums that hold"),
        *("Small numbers vanish in float16", "Once per window", "One overflow skips the window"),
        *("Write it", "Quiz", "Summary"),
    ]


def test_the_prediction_is_about_what_the_explorer_shows_first() -> None:
    assert explore_sum().values == {
        "accumulation_steps": 512,
        "buffer": "bfloat16",
        "pieces": "equal",
        "micro_batch_size": 8,
    }
    assert '"bfloat16", "equal", micro_batch_size=1, accumulation_steps=512' in PAGE["measure"]
    assert "512 equal pieces" in PAGE["far"]


def test_no_cell_before_the_prediction_shows_what_is_asked_for() -> None:
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("predict-ask")]
    shown = str([cell.get("outputs", []) for cell in before]) + "".join(cell.source for cell in before)
    assert "31" not in shown and "third" not in shown


def test_the_explorer_of_windows_begins_with_the_run_that_the_table_shows() -> None:
    values = explore_scaler().values
    assert values == {"micro_batch_size": 8, "accumulation_steps": 4, "broken": 10, "loop": "right"}
    assert "micro_batch_size=8, accumulation_steps=4, broken=10" in PAGE["loops"]


def test_the_pages_kahan_is_the_references() -> None:
    """Instruction by instruction; the reference has a docstring too."""
    here, there = (each.__code__ for each in (run("kahan")["kahan_add"], buffers.kahan_add))
    assert here.co_code == there.co_code and here.co_varnames == there.co_varnames and here.co_names == there.co_names


def test_the_pages_window_makes_the_references_update() -> None:
    full = digits("mlp")
    page = run("fp16-window", full=full)["fp16_window"]
    models = [full.build_model() for _ in range(2)]
    window = split(tuple(tensor[:30] for tensor in full.train), 8)  # the last is smaller
    broken = [(images * 1e6, labels) for images, labels in window[:1]] + window[1:]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    scalers = [torch.amp.GradScaler("cpu") for _ in models]
    for each in (window, broken, window):
        page(models[0], optimizers[0], scalers[0], each, 0.3)
        fp16_window(models[1], optimizers[1], scalers[1], each, full.loss_sum, full.count, 0.3)
        assert torch.equal(*map(parameters, models)) and scalers[0].get_scale() == scalers[1].get_scale()
    assert scalers[0].get_scale() == 2.0**15


def test_the_schedules_lines_ask_the_scaler_whether_there_was_an_update() -> None:
    (lines,) = [part for part in PAGE["loops-read"].split("```") if "scheduler.step" in part]
    model, moved = torch.nn.Linear(1, 1), []
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda updates: float(moved.append(updates) or 1))  # type: ignore[func-returns-value]
    begun = len(moved)
    for value in (1.0, float("inf"), 1.0):
        scaler.scale(model(torch.full((1, 1), value)).sum()).backward()
        exec(lines, {"scaler": scaler, "optimizer": optimizer, "scheduler": scheduler})
        optimizer.zero_grad()
    assert len(moved) - begun == 2


def test_the_loop_to_repair_stops_with_the_error_that_the_page_shows() -> None:
    full = digits("mlp")
    model = full.build_model()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    starter = build(REPAIR_FP16.starter, "train_epoch")
    with pytest.raises(RuntimeError, match="has already been called"):
        starter(model, optimizer, scaler, split(full.train, 8)[:8], full.loss_fn, 4, 1.0)


def test_the_ways_that_are_compared_have_the_same_weights_and_images_to_the_bit() -> None:
    found = run("model-setup")
    for one, other in zip(found["model"].parameters(), found["reference"].parameters(), strict=True):
        assert torch.equal(one.double(), other)
    assert torch.equal(found["low"].train[0].double(), found["exact"].train[0])
    assert torch.equal(deepcopy(found["model"]).float()[1].weight.double(), found["reference"][1].weight)
