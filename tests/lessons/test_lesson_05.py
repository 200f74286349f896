"""Lesson 05 as a page: what it shows is what the package runs, and no cell gives the prediction away."""

from typing import Any

import nbformat
import pytest
import torch
from lessons.notebook_cells import cells

from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons.norm_picture import PREDICTED_FOR, explore_norms
from gradacc_lessons.lessons.norms import EPOCHS_BEFORE_GRADIENTS, gradient_errors, recipe_for
from gradacc_lessons.lessons.running_statistics import explore_statistics
from gradacc_lessons.reference.momentum import corrected_momentum

LESSON = "05_batch_norm"


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """What the functions of the page are once their cells have run."""
    names: dict[str, Any] = {}
    for cell in ("surprise", "window-gradient", "compare"):
        exec(cells(LESSON)[cell], names)
    return names


def test_the_cells_and_the_explorer_measure_the_same_gradients(shown: dict[str, Any]) -> None:
    for norm in ("batch", "group"):
        drawn = {row["micro_batch_size"]: row for row in gradient_errors("mlp", norm, 3, recipe_for(2, 32), "shuffled")}  # type: ignore[arg-type]
        for b, cosine, error in shown["compare"]("mlp", norm, (32, 16, 2)):
            assert cosine == pytest.approx(drawn[b]["cosine"], abs=1e-12)
            assert error == pytest.approx(drawn[b]["error"], abs=1e-12)


def test_the_explorers_begin_where_the_page_is() -> None:
    first, second = explore_norms().values, explore_statistics().values
    assert (first["micro_batch_size"], first["accumulation_steps"]) == (PREDICTED_FOR, 64 // PREDICTED_FOR) == (2, 32)
    assert (first["model"], first["norm"], first["order"]) == ("mlp", "batch", "shuffled")
    assert (second["micro_batch_size"], second["accumulation_steps"], second["momentum"]) == (8, 8, 0.1)
    assert EPOCHS_BEFORE_GRADIENTS == 3  # "after three epochs"


def test_no_cell_before_the_exercise_shows_the_formula_that_is_asked_for() -> None:
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("momentum-exercise")]
    said = str([(cell.source, cell.get("outputs", [])) for cell in before]).replace(" ", "")
    assert "1-m" in said, "the derivation"
    assert not any(formula in said for formula in ("^(1/", "**(1/", "**1/"))
    assert f"becomes {corrected_momentum(0.1, 8):.4f}; what stays after 8 moves: 0.90" in str(notebook.cells)


def test_no_cell_before_the_prediction_shows_what_is_asked_for(shown: dict[str, Any]) -> None:
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("predict-ask")]
    ((_, cosine, _),) = shown["compare"]("mlp", "batch", (2,))
    printed = str([cell.get("outputs", []) for cell in before])
    assert f"cosine {cosine:.2f}" not in printed and "b = 2:" not in printed


def test_every_norm_but_batchnorm_leaves_the_image_alone(shown: dict[str, Any]) -> None:
    """More neighbours than the two that the page shows."""
    images = shown["images"]
    for norm in shown["NORM_NAMES"]:
        layers = shown["digits"](norm=norm, dtype=torch.float64).build_model()[:2]
        with torch.no_grad():
            first, *others = (layers(images[[0, other]])[0] for other in range(1, 20))
        moved = [float((each - first).norm() / first.norm()) for each in others]
        assert max(moved) < 1e-12 if norm != "batch" else min(moved) > 1e-3
