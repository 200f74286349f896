"""The pages that are written for a class, in a browser: axe-core finds nothing, and no network is asked."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext

from gradacc_lessons.classroom.class_folder import open_class
from gradacc_lessons.classroom.demonstration import demonstrate
from gradacc_lessons.classroom.items_page import write_items
from gradacc_lessons.classroom.report import Reporter
from gradacc_lessons.classroom.results import read_results


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a small class."""
    folder = tmp_path_factory.mktemp("reports")
    shown = demonstrate(folder / "class", 12, ("02_scale_the_loss",))
    of_class = open_class(shown.folder)
    Reporter(of_class, "nl", solutions=True).write(read_results(of_class.results / "results.jsonl"), folder / "pages")
    write_items(of_class, shown.found, folder / "pages", "nl")
    return folder / "pages"


@pytest.mark.parametrize("which", ["items.html", "index.html", "learner-*.html"])
@pytest.mark.parametrize("width", [1000, 360])
def test_the_page_is_accessible_and_fits(written: Path, context: BrowserContext, which: str, width: int) -> None:
    page, asked = context.new_page(), []
    page.set_viewport_size({"width": width, "height": 800})
    page.on("request", lambda request: asked.append(request.url))
    page.goto(next(iter(sorted(written.glob(which)))).as_uri())
    violations = Axe().run(page).response["violations"]
    assert violations == [], [(each["id"], each["nodes"][0]["html"][:200]) for each in violations]
    assert all(url.startswith(("file:", "data:")) for url in asked)
    if width == 1000:
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()
