"""Lesson 02 as a page: what it waits for is what the package runs."""

from lessons.notebook_cells import cells

from gradacc_lessons.lessons.hidden_by_adam import SEEDS, SETTINGS


def test_the_table_of_optimizers_waits_for_all_its_runs() -> None:
    assert f'progress(over_seeds("none"), {SEEDS} * len(SETTINGS)' in cells("02_scale_the_loss")["seeds-run"]
    assert len(SETTINGS) == 7
