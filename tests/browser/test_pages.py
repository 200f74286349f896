"""Every lesson as it is before anything is run: what a screen reader meets, and nothing in the way."""

import pytest
from browser.accessibility import check_accessibility
from browser.lab import OUTPUT

from gradacc_lessons.course import course_folder

LESSONS = sorted(path.name for path in course_folder("notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def pages(lab):
    lab.start()
    return lab


@pytest.mark.parametrize("name", LESSONS)
def test_the_page_that_was_kept_is_shown_and_accessible(pages, name):
    pages.show(name)
    assert pages.page.locator(f"{OUTPUT} img").count() > 0
    check_accessibility(pages)


def test_nothing_is_asked(pages):
    """Neither about news nor about a kernel; after all these pages JupyterLab has had the time to ask."""
    assert pages.page.locator(".jp-Dialog, .Toastify__toast").all_inner_texts() == []


@pytest.mark.long
@pytest.mark.parametrize("name", LESSONS)
def test_every_cell_runs_and_the_page_is_accessible(lab, name):
    """Quickly: nbval runs every cell, a lesson's own tests run its explorers here, and above are all its outputs."""
    lab.open(name)
    lab.run_all()
    check_accessibility(lab)
