"""Lesson 05's stored table: how it is made, what is in it, and that it says what the page says."""

import json
import os
from pathlib import Path
from typing import get_args

import pytest

from benchmarks import norms as benchmark
from gradacc_lessons.lessons import norm_table
from gradacc_lessons.lessons.norm_table import (
    CUTS,
    FILE,
    MADE_WITH,
    SEEDS,
    Cell,
    Spread,
    accuracy_table,
    decision_table,
    gap_table,
    points,
    stored,
    summary,
)
from gradacc_lessons.lessons.norms import Order
from gradacc_lessons.tasks.digits import NORM_NAMES, DigitsModel, DigitsNorm

BOTH_MODELS, BOTH_ORDERS = get_args(DigitsModel), get_args(Order)
ONE_IMAGE = 1 / 261
"""The accuracy that one test image makes."""


def test_every_cell_is_there_with_every_seed_and_the_refused_ones_are_empty() -> None:
    for model in BOTH_MODELS:
        for norm in get_args(DigitsNorm):
            for order in BOTH_ORDERS:
                cells = summary(model, norm, order)
                refused = model == "mlp" and norm == "batch"
                assert list(cells) == [b for b in CUTS if not (refused and b == 1)]
                assert {len(cell.values) for cell in cells.values()} == {len(SEEDS)}
                assert all(0 <= value <= 1 for cell in cells.values() for value in cell.values)


def test_it_says_on_what_it_was_made_and_how() -> None:
    assert {"Processor", "System", "PyTorch"} <= stored()["machine"].keys()
    assert stored()["made_with"] == MADE_WITH
    assert stored()["minutes"] > 0 and stored()["seeds"] == len(SEEDS)


@pytest.mark.parametrize(("model", "norm", "b"), [("mlp", "batch", 2), ("mlp", "layer", 8), ("cnn", "batch", 64)])
def test_a_run_made_now_is_among_the_stored_ones(model: DigitsModel, norm: DigitsNorm, b: int) -> None:
    """Not to the digit: float32 rounds differently on another machine."""
    result = Cell(model, norm, "shuffled", b).run(3)
    assert result is not None
    values = summary(model, norm, "shuffled")[b].values
    assert min(values) - 0.03 <= result[0] <= max(values) + 0.03


def test_a_norm_within_one_image_keeps_its_accuracy_in_every_cut_and_order() -> None:
    for model in BOTH_MODELS:
        for norm in ("group", "layer", "frozen batch", "none"):
            means = [cell.mean for order in BOTH_ORDERS for cell in summary(model, norm, order).values()]  # type: ignore[arg-type]
            assert max(means) - min(means) < 0.02


def test_accuracy_shows_batchnorm_in_the_mlp_and_not_in_the_cnn() -> None:
    for order in BOTH_ORDERS:
        means = [cell.mean for cell in summary("cnn", "batch", order).values()]
        assert max(means) - min(means) < 0.02
    shuffled, ordered = (summary("mlp", "batch", order) for order in BOTH_ORDERS)
    assert shuffled[64].mean == pytest.approx(
        ordered[64].mean, abs=2 * ONE_IMAGE
    )  # the same micro-batch, laid out anew
    assert shuffled[64].mean - shuffled[8].mean < 0.02
    assert shuffled[64].mean - shuffled[2].mean > 0.02
    assert ordered[64].mean - ordered[8].mean > 0.02
    assert ordered[64].mean - ordered[2].mean > 0.2


def test_the_two_modes_differ_with_batchnorm_and_small_micro_batches_alone() -> None:
    for norm in ("batch", "frozen batch", "group"):
        used, trained = summary("mlp", norm, "shuffled"), summary("mlp", norm, "shuffled", "as_trained")  # type: ignore[arg-type]
        assert abs(used[64].mean - trained[64].mean) < 0.02
        assert (used[2].mean - trained[2].mean > 0.1) == (norm == "batch")


def test_a_cell_that_torch_refuses_has_no_accuracy() -> None:
    assert Cell("mlp", "batch", "sorted", 1).run(0) is None


def test_a_table_made_with_other_settings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = json.loads(FILE.read_text("utf-8"))
    old["made_with"]["epochs"] += 1
    (tmp_path / FILE.name).write_text(json.dumps(old), "utf-8")
    monkeypatch.setattr(norm_table, "FILE", tmp_path / FILE.name)
    norm_table.stored.cache_clear()
    with pytest.raises(ValueError, match="made with other settings: run `make norms`"):
        norm_table.stored()
    monkeypatch.undo()
    norm_table.stored.cache_clear()


def test_tables_have_a_row_per_norm_and_say_what_was_refused() -> None:
    table = accuracy_table("mlp")
    assert list(table.columns) == ["norm", "updates", "64 x 1", "8 x 8", "2 x 32", "1 x 64"]
    assert list(table["norm"].unique()) == list(NORM_NAMES.values())
    assert set(table.loc[table["norm"] == "BatchNorm", "1 x 64"]) == {"refused"}
    assert table.loc[2:, "1 x 64"].str.fullmatch(r"\d+\.\d ± \d+\.\d %").all()
    gaps = gap_table("mlp", ("batch", "group"))
    assert len(gaps) == 2 * 3 + 2 * 4


def test_what_to_choose_is_measured() -> None:
    table = decision_table("mlp").set_index("norm")
    errors = table["gradient error at 2 x 32"]
    assert errors["BatchNorm"].endswith(" %") and int(errors["BatchNorm"][:-2]) > 100
    assert set(errors.drop("BatchNorm")) == {"less than 1e-12"}
    assert [points(Spread((share,)), Spread((0.5,))) for share in (0.466, 0.50004, 0.62)] == [
        "-3.4 points",
        "0.0 points",
        "+12.0 points",
    ]


def test_a_reader_who_subtracts_finds_the_differences_that_are_told() -> None:
    chosen = decision_table("mlp").set_index("norm")
    gaps = gap_table("mlp", tuple(NORM_NAMES)).set_index(["norm", "updates", "b x N"])
    accuracies = accuracy_table("mlp").set_index(["norm", "updates"])

    def number(text: str) -> float:
        return float(text.split()[0])

    for norm in NORM_NAMES.values():
        for order in BOTH_ORDERS:
            cells = accuracies.loc[(norm, order)]
            difference = round(number(cells["2 x 32"]) - number(cells["64 x 1"]), 1)
            assert number(chosen.loc[norm, f"accuracy, {order}"]) == difference
        modes = gaps.loc[(norm, "shuffled", "2 x 32")]
        difference = round(number(modes["evaluation mode"]) - number(modes["as trained"]), 1)
        assert number(chosen.loc[norm, "evaluation - as trained, shuffled"]) == difference


def test_the_target_writes_a_table_that_the_lesson_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell("mlp", "batch", "shuffled", b) for b in (64, 1)]
    results = [[cell.run(0)] for cell in cells]
    content = {"machine": {"Processor": "one"}, "minutes": 0.1, "seeds": 1, "made_with": MADE_WITH}
    file = tmp_path / FILE.name
    described = [benchmark.described(*each) for each in zip(cells, results, strict=True)]
    file.write_text(benchmark.as_json(content, described), "utf-8")
    monkeypatch.setattr(norm_table, "FILE", file)
    norm_table.stored.cache_clear()
    found = norm_table.summary("mlp", "batch", "shuffled")
    monkeypatch.undo()
    norm_table.stored.cache_clear()
    assert results[0][0] is not None and results[1] == [None]
    assert list(found) == [64]
    assert found[64].values == (round(results[0][0][0], benchmark.DIGITS_KEPT),)


def test_the_target_does_not_store_fewer_seeds_for_the_lesson(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmark.main(["--seeds", "2", "--file", os.path.relpath(FILE)])
    assert f"needs {len(SEEDS)} seeds" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        benchmark.main(["--seeds", "0", "--file", "elsewhere.json"])
    assert "--seeds must be at least 1" in capsys.readouterr().err
