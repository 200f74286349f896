"""Lesson 07 as a page: its code does what the package does, and what it says of its runs is so."""

from typing import Any

import pytest
import torch
from lessons.notebook_cells import cells

from gradacc_lessons import diagnose, trace
from gradacc_lessons.lessons.schedule_units import FIRST, UPDATES, WARM_UP, explore_units
from gradacc_lessons.lessons.timeline import RIGHT_SOURCE, explore_timeline
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises_once import READ_TIMELINE

LESSON = "07_once_per_window"
PAGE = cells(LESSON)
BASE = ("lost-loop", "lost-data", "lost-helpers")


def run(*names: str, **given: Any) -> dict[str, Any]:
    """What is there after these cells."""
    found = dict(given)
    for name in names:
        exec(compile(PAGE[name], name, "exec"), found)
    return found


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return run(*BASE)


def test_the_sections_are_those_of_the_course() -> None:
    headings = [line[3:] for source in PAGE.values() for line in source.splitlines() if line.startswith("## ")]
    assert headings == [
        *("Where did the other images go?", "A timeline", "Clip once, after the last backward", "Warm-up in updates"),
        *("An average of the weights", "Log and evaluate whole windows", "Save between windows", "Write it"),
        *("Quiz", "Summary"),
    ]


def test_the_prediction_is_about_what_the_explorer_shows_first() -> None:
    assert explore_units().values == {
        "micro_batch_size": FIRST.micro_batch_size,
        "accumulation_steps": FIRST.accumulation_steps,
        "warm_up": WARM_UP,
        "unit": "micro-batch",
    }
    measured = 'units.measure(micro_batch_size=4, accumulation_steps=8, warm_up=100, unit="micro-batch")'
    assert measured in PAGE["predict-measure"] and (FIRST.micro_batch_size, FIRST.accumulation_steps) == (4, 8)
    assert "warmup_updates=100" in PAGE["schedule-code"] and UPDATES == 240


def test_no_cell_before_the_prediction_shows_what_is_asked_for() -> None:
    ids = list(PAGE)
    before = "".join(PAGE[cell] for cell in ids[: ids.index("predict-ask")])
    assert "13" not in before and "update 30" not in before


def test_the_loop_on_the_page_is_the_explorers_right_one() -> None:
    """tests/lessons/test_timeline.py has it diagnosed."""
    assert PAGE["right-loop-code"] + "\n" == RIGHT_SOURCE


def test_the_first_loop_is_the_mistake_that_the_explorer_begins_with() -> None:
    loop = run("lost-loop")["zero_at_the_top"]
    assert diagnose(loop, scope="windows").faults == ("zero_grad_every_micro_batch",)
    assert explore_timeline().values["loop"] == "zero_grad_every_micro_batch"


@pytest.mark.parametrize("seed", range(5))
def test_what_is_thrown_away_can_be_anything(page: dict[str, Any], seed: int) -> None:
    """Seven of eight micro-batches replaced by noise: the same weights, bit for bit."""
    noise, ends = torch.Generator().manual_seed(seed), []
    some = page["micro_batches"][:64]
    replaced = [
        batch if (k + 1) % 8 == 0 else (torch.randn(batch[0].shape, generator=noise, dtype=torch.float64), batch[1])
        for k, batch in enumerate(some)
    ]
    for batches in (some, replaced):
        model = page["task"].build_model(seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        page["zero_at_the_top"](model, optimizer, batches, page["task"].loss_fn, 8)
        ends.append(parameters(model))
    assert torch.equal(*ends)


@pytest.mark.parametrize("seed", range(5))
def test_clipping_at_every_micro_batch_keeps_the_norm_and_turns_the_direction(page: dict[str, Any], seed: int) -> None:
    """And what comes first weighs least: over several models and windows, not only the page's."""
    task = page["task"]
    found = run(
        "right-loop-code",
        "clip-model",
        "clip-how",
        **(page | {"zero_after_the_update": None, "trained": _new(task, seed)}),
    )
    found["window"] = page["micro_batches"][8 * seed : 8 * seed + 8]
    exec("once, always = clipped(False), clipped(True)", found)
    once, always = found["once"], found["always"]
    assert float(once.norm()) == pytest.approx(0.1, rel=1e-4) and float(always.norm()) == pytest.approx(0.1, rel=1e-4)
    assert float(torch.cosine_similarity(once, always, dim=0)) < 0.99
    with trace(found["model"], accumulation_steps=8) as tape:
        exec("clipped(True)", found)
    factors = torch.tensor([event.factor for event in tape.events if event.kind == "clip"])
    assert len(factors) == 8
    weights = factors.flip(0).cumprod(0).flip(0)
    assert bool((weights.diff() >= 0).all()) and float(weights[0]) < float(weights[-1]) / 5


def _new(task: Any, seed: int) -> Any:
    return lambda *_, **__: (task.build_model(seed), None)


@pytest.mark.parametrize("seed", range(5))
def test_the_last_micro_batch_scatters_as_the_root_of_n_says(page: dict[str, Any], seed: int) -> None:
    model = page["task"].build_model(seed)
    names = run(
        "report-run",
        "report-check",
        **(page | {"trained": lambda *_, **__: (model, None), "zero_after_the_update": None}),
    )
    assert 2 < float(names["ratio"]) < 4
    last, mean = names["logged"][:, 1], names["logged"][:, 2]
    assert float((names["logged"][:, 0] * 8 - last).abs().max()) < 1e-6
    assert float(mean.mean()) == pytest.approx(page["task"].loss_fn(model, page["task"].train).item(), rel=1e-5)


def test_a_resumed_run_is_the_same_and_one_that_lost_half_a_window_is_not(page: dict[str, Any]) -> None:
    """The cells run as they stand; each says so itself."""
    names = run(
        *("schedule-code", "save-run", "save-updates", "save-file", "save-boundary", "save-refused"),
        *("save-half-run", "save-half-gradient", "save-half-end"),
        **_imports(page),
    )
    assert names["same"]
    ends, gradients = names["ends"], names["gradients"]
    assert torch.equal(ends[0], parameters(names["whole"]["model"])) and not torch.equal(ends[0], ends[1])
    assert 0.4 < float(gradients[1].norm() / gradients[0].norm()) < 0.9


def _imports(page: dict[str, Any]) -> dict[str, Any]:
    from gradacc_lessons import Recipe
    from gradacc_lessons.lessons.training import gradient

    return page | {"Recipe": Recipe, "gradient": gradient, "parameters": parameters}


def test_the_exercise_reads_the_tapes_own_events(page: dict[str, Any]) -> None:
    """The page says that it can be given those of a real loop."""
    applied, task = build(READ_TIMELINE.solution, "applied"), page["task"]
    model = task.build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with trace(model, optimizer, accumulation_steps=8) as tape:
        page["zero_at_the_top"](model, optimizer, page["micro_batches"][:32], task.loss_fn, 8)
    assert applied([event.kind for event in tape.events]) == [1] * 4
