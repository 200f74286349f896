"""Lesson 09 as a page: what it says of exhibits is theirs, and its own code does what it says."""

import re
from typing import Any

import nbformat
import pytest
from lessons.notebook_cells import cells

from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons.museum_hall import STEPS, explore_hall
from gradacc_lessons.lessons.museum_tour import explore_exhibit
from gradacc_lessons.museum.collection import exhibit, exhibits

LESSON = "09_bug_museum"
PAGE = cells(LESSON)


def run(*names: str, **given: Any) -> dict[str, Any]:
    """What is there after these cells."""
    found = dict(given)
    for name in names:
        exec(compile(PAGE[name], name, "exec"), found)
    return found


def test_the_sections_are_those_of_the_course() -> None:
    headings = [line[3:] for source in PAGE.values() for line in source.splitlines() if line.startswith("## ")]
    assert headings == [
        *("A loss that grows with N", "All of them at once", "Find the bug", "Which instrument finds it"),
        *("A timeline of one", "Report it well", "An exhibit of your own", "Write it", "Quiz", "Summary"),
    ]


def test_every_exhibit_that_the_page_names_is_in_the_museum() -> None:
    named = set(re.findall(r"\"([a-z0-9-]+-\d+)\"|`([a-z0-9-]+-\d+)`", "\n".join(PAGE.values())))
    assert len(named) >= 8 and {one or other for one, other in named} <= set(exhibits())


def test_the_texts_of_exhibits_are_not_written_into_the_page() -> None:
    prose = "\n".join(cells(LESSON, ("markdown",)).values())
    for one in exhibits().values():
        assert one.symptom.en not in prose and one.explanation.en not in prose and one.thread not in prose


def test_the_reported_losses_are_the_exhibits() -> None:
    reported = run("reported")["reported"]
    symptom = exhibit("llamafactory-7443").symptom.en
    assert (
        ", ".join(str(loss) for loss in list(reported.values())[:3]) in symptom and f"and {reported[32]} for" in symptom
    )
    assert "N = 2, 4, 16 and 32" in symptom and list(reported) == [2, 4, 16, 32]
    assert round(reported[16] / 16, 2) == round(reported[32] / 32, 2)  # "the same to two decimals"


def test_no_cell_before_the_prediction_shows_what_is_left_at_n_1() -> None:
    notebook = nbformat.read(course_folder("notebooks") / f"{LESSON}.ipynb", as_version=4)
    before = notebook.cells[: [cell.id for cell in notebook.cells].index("predict-ask")]
    shown = "".join(cell.source for cell in before)
    assert "all_at" not in shown and "N = 1:" not in shown and "show at N = 1" not in shown


def test_the_prediction_is_about_what_the_explorer_shows_first() -> None:
    assert explore_hall().values == {"accumulation_steps": 1} and 1 in STEPS
    assert "all_at(1)" in PAGE["measure"]
    assert explore_exhibit().values == {"name": "nanogpt-168", "micro_batch_size": 8, "accumulation_steps": 4}


def test_the_report_s_script_measures_n_whatever_the_cut() -> None:
    first_norm = run("report-code")["first_norm"]
    whole = first_norm(b=32, n=1)
    for b, n in ((16, 2), (8, 4), (1, 32)):
        assert first_norm(b=b, n=n) / whole == pytest.approx(n, rel=1e-12)


def test_an_exhibit_of_ones_own_is_found_and_its_fix_is_clean() -> None:
    page = run("own-loops", "own-fixed", "own-class", __name__="__main__")
    mine = page["OneTooMany"]()
    assert mine.measure("bug") == 5 and mine.measure("fixed") == 4
    found = {kind: mine.findings(mine.inspect(kind)) for kind in ("bug", "fixed")}
    assert found == {"bug": (mine.finding,), "fixed": ()}


def test_the_fields_that_the_page_lists_are_those_of_an_exhibit() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE["own-file"]))
    assert {"title", "symptom", "number_name", "fix", "explanation"} <= named
    for field in named - {"diagnose", "examine", "trace"}:
        assert hasattr(exhibit("nanogpt-168"), field), field
