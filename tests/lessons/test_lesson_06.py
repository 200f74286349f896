"""Lesson 06 as a page: what it shows is what the package runs, and no cell gives the prediction away."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from click.testing import CliRunner
from lessons.notebook_cells import cells

from gradacc_lessons.accumulation import split
from gradacc_lessons.cli import main
from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons import overlap, pairs
from gradacc_lessons.lessons.contrastive import PAIRS, PREDICTED_STEPS, error_against_steps, explore_pairs
from gradacc_lessons.lessons.loss_cases import CASES
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.reference.grad_cache import grad_cache
from gradacc_lessons.tasks import digits

LESSON = "06_not_a_sum"
ROUNDING = 1e-12


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """What the functions of the page are once their cells have run."""
    names: dict[str, Any] = {}
    for cell in ("data", "loss", "grad-cache-code", "dice"):
        exec(cells(LESSON)[cell], names)
    return names


@pytest.mark.parametrize("seed", range(5))
def test_the_loss_of_the_page_is_that_of_the_package(shown: dict[str, Any], seed: int) -> None:
    batch = pairs.pairs_of(12, seed)
    model = digits("mlp", dtype=torch.float64).build_model(seed)
    for one, other in zip(shown["embed"](model, batch), pairs.embed(model, batch), strict=True):
        assert torch.equal(one, other)
    with torch.no_grad():
        embeddings = pairs.embed(model, batch)
        assert shown["info_nce"](*embeddings) == pytest.approx(float(pairs.info_nce(*embeddings)), rel=ROUNDING)
    assert f"/ {pairs.TEMPERATURE}" in cells(LESSON)["loss"]


@pytest.mark.parametrize("b", [32, 8, 5, 1])
def test_grad_cache_of_the_page_is_that_of_the_package(shown: dict[str, Any], b: int) -> None:
    window = split(pairs.pairs_of(32), b)
    got = []
    for function in (shown["grad_cache"], grad_cache):
        model = pairs.trained_encoder()
        function(model, window, pairs.embed, pairs.info_nce)
        got.append(gradient(model))
    assert float((got[0] - got[1]).norm() / got[1].norm()) < ROUNDING


@pytest.mark.parametrize("name", ["batch_dice", "sample_dice"])
def test_both_dice_of_the_page_are_those_of_the_package(shown: dict[str, Any], name: str) -> None:
    model, batch = overlap.trained_segmenter(), overlap.masks_of(9)
    with torch.no_grad():
        assert shown[name](model, batch) == pytest.approx(float(getattr(overlap, name)(model, batch)), rel=ROUNDING)
    assert f"{overlap.EPS:g}".replace("e-06", "e-6") in cells(LESSON)["dice"]


def test_the_page_speaks_of_the_pairs_and_updates_that_there_are() -> None:
    page = cells(LESSON)
    assert f"pairs_of({PAIRS})" in page["data"] and f"for {pairs.TRAINED_UPDATES} updates" in page["data"]
    values = explore_pairs().values
    assert values["micro_batch_size"] * values["accumulation_steps"] == PAIRS
    assert values["accumulation_steps"] == PREDICTED_STEPS
    assert f"split(pairs, {PAIRS // PREDICTED_STEPS})" in page["gradients"]


def test_no_cell_before_the_prediction_shows_the_error_that_is_asked_for() -> None:
    first = next(iter(error_against_steps(8, 4, "plain")))
    asked = f"{100 * first['plain_error']:.0f}"
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("predict-ask")]
    assert asked not in str([cell.get("outputs", []) for cell in before])


def test_every_loss_and_model_of_the_chooser_stands_in_the_table_of_verdicts() -> None:
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    (table,) = [cell for cell in notebook.cells if cell.id == "all-table"]
    html = str(table.outputs)
    for case in CASES.values():
        assert f"<td>{case.label}</td>" in html


def test_what_the_page_hands_to_examine_can_be_asked_for_in_a_terminal(tmp_path: Path) -> None:
    page, file = cells(LESSON), tmp_path / "my_model.py"
    data = "import torch\n\nfrom gradacc_lessons.lessons.overlap import masks_of\n\nmasked = masks_of(32)\n"
    parts = page["own-cell"][: page["own-cell"].index("\n\n\nprint(")]
    file.write_text(f"{data}{page['own-model']}\n\n\n{parts}\n", encoding="utf-8")
    command = next(line for line in page["own-yours"].splitlines() if line.startswith("gradacc examine "))
    asked = command.replace("my_model.py", str(file)).split()[1:]
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 0, result.output
    assert "It adds up" in result.output
