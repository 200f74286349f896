"""JupyterLab on a copy of the lessons, and a real browser in front of it."""

from collections.abc import Iterator

import pytest
from browser.chromium import installed_browser
from browser.lab import Lab
from browser.server import Server
from playwright.sync_api import Browser, BrowserContext, sync_playwright

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser."""
    return installed_browser()


@pytest.fixture(scope="session")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One JupyterLab for all browser tests, on a copy of the lessons."""
    folder = tmp_path_factory.mktemp("jupyter")
    server = Server(folder / "notebooks", folder)
    yield server
    server.stop()


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    """Chromium, for this folder's tests: while Playwright runs, nothing else in this process can use asyncio."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One cache for all pages: each of them loads JupyterLab, and only the first one from the server."""
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    yield context
    context.close()


@pytest.fixture(scope="module")
def lab(context: BrowserContext, server: Server) -> Iterator[Lab]:
    """One page for a file of tests, which go through a lesson from top to bottom as a learner does."""
    page = context.new_page()
    lab = Lab(page, server)
    yield lab
    lab.shut_down()
    page.close()


@pytest.fixture(scope="module")
def lesson(lab: Lab, request: pytest.FixtureRequest) -> Lab:
    """The notebook that the file of tests names in LESSON, opened, with every cell run, or those in CELLS.

    nbval runs every cell of every lesson, and `make test-all` does so here; a file of tests needs those it speaks of.
    """
    lab.open(request.module.LESSON)
    if cells := getattr(request.module, "CELLS", ()):
        lab.run_cells(*cells)
        assert lab.errors() == []
        lab.wait_explorers(sum("explorer" in cell for cell in cells))
    else:
        lab.run_all()
    return lab
