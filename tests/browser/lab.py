"""What a learner does in JupyterLab, as small verbs, and what they see, as small questions."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from axe_playwright_python.sync_playwright import Axe
from browser.server import Server
from playwright.sync_api import Error, Locator, Page, expect

LIMIT_S = 120.0
LESSON_LIMIT_S = 240.0  # a lesson takes about 20 s, and far longer on a machine that has other things to do
OUTPUT = ".jp-OutputArea-output"

_KERNEL_IDLE = "() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
# Per code cell with code in it: [execution count or null, whether it still runs, its error if it has one].
_CELLS = """() => jupyterapp.shell.currentWidget.content.widgets
    .filter(cell => cell.model.type === 'code' && cell.model.sharedModel.source.trim())
    .map(cell => {
        const error = cell.model.outputs.toJSON().find(output => output.output_type === 'error');
        const running = cell.node.querySelector('.jp-InputPrompt').textContent.includes('*');
        return [cell.model.executionCount, running, error ? `${error.ename}: ${error.evalue}` : null];
    })"""
_RUN_CELL = """async id => {
    const notebook = jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = notebook.widgets.findIndex(cell => cell.model.id === id);
    await jupyterapp.commands.execute('notebook:run-cell');
}"""

# As it was kept: without a kernel, and so without anything that differs from the file and would have to be saved.
_SHOW = """async path => {
    await jupyterapp.restored;
    await jupyterapp.commands.execute('application:close-all');
    const panel = await jupyterapp.commands.execute('docmanager:open', {path, kernelPreference: {shouldStart: false}});
    await panel.context.ready;
    await panel.revealed;
}"""

_SHOWN = """() => {
    const panel = jupyterapp.shell.currentWidget;
    return panel.isVisible && panel.node.querySelector('h1') !== null && panel.content.widgets.every(cell =>
        cell.model.type === 'markdown' ? cell.node.querySelector('.jp-MarkdownOutput')?.hasChildNodes() :
        cell.node.querySelectorAll('.jp-OutputArea-output').length === (cell.model.outputs?.length ?? 0));
}"""

Seen = TypeVar("Seen")


class Lab:
    """One page of the server's JupyterLab."""

    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        self.server = server
        page.set_default_timeout(LIMIT_S * 1000)
        expect.set_options(timeout=LIMIT_S * 1000)

    # What a learner does

    def open(self, notebook: str) -> None:
        """Open the notebook and wait until its kernel is ready."""
        self.page.goto(f"{self.server.url}/lab/tree/{notebook}?reset&token={self.server.token}")
        self.page.wait_for_selector(".jp-NotebookPanel")
        self.wait_idle()

    def start(self) -> None:
        """Load JupyterLab itself, with no notebook open."""
        self.page.goto(f"{self.server.url}/lab?reset&token={self.server.token}")
        self.page.wait_for_function("() => globalThis.jupyterapp !== undefined")

    def show(self, notebook: str) -> None:
        """Look at the notebook with all its outputs as they were kept: no kernel is started."""
        self.page.evaluate(_SHOW, notebook)
        self.until(lambda: self.page.evaluate(_SHOWN), f"every cell of {notebook} is shown")

    def run_all(self) -> None:
        """Run every cell and wait until each has ended; AssertionError names the error of one that failed."""
        self._command("notebook:run-all-cells")
        self.wait_done()

    def run_cells(self, *ids: str) -> None:
        """Run the cells with these ids, one after the other, and wait for each."""
        for cell_id in ids:
            self.page.evaluate(_RUN_CELL, cell_id)
        self.wait_idle()

    def wait_idle(self) -> None:
        """Wait until the kernel has nothing to do, accepting the dialogs that are in the way."""
        self.until(self._idle, "the kernel is idle")

    def wait_done(self) -> None:
        """Wait until each code cell has its number."""
        self.until(self._all_have_run, "every cell has run", LESSON_LIMIT_S)
        self.wait_idle()

    def wait_explorers(self, count: int) -> None:
        """Wait until so many explorers are there and each has come to the end of its run, or waits for a prediction."""
        states = self.outputs().locator('.gradacc-explorer [role="status"]')

        def settled() -> bool:
            words = states.all_inner_texts()
            return len(words) == count and all(text.startswith(("Done: ", "Predict first")) for text in words)

        self.until(settled, f"{count} explorers have run, or wait for a prediction")

    def restart_kernel(self) -> None:
        """A new kernel, which knows nothing; the outputs stay on the page."""
        self.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
        self.wait_idle()

    def shut_down(self) -> None:
        """End every kernel, so that nothing goes on computing beside the tests that follow."""
        self.page.evaluate("() => jupyterapp.serviceManager.sessions.shutdownAll()")

    def clear_outputs(self) -> None:
        """Take all outputs off the page."""
        self._command("editmenu:clear-all")
        expect(self.page.locator(OUTPUT)).to_have_count(0)

    def slider(self, label: str, nth: int = 0) -> "Slider":
        """The nth slider whose description is `label`."""
        named = self.page.locator("label", has_text=label)
        return Slider(self.page, self.page.locator(f"{OUTPUT} .widget-slider", has=named).nth(nth))

    def number_field(self, label: str, nth: int = 0) -> Locator:
        """The nth field for a number whose description is `label`."""
        return self.outputs().get_by_label(label, exact=True).nth(nth)

    def button(self, name: str, nth: int = 0) -> Locator:
        """The nth button in the outputs that is called `name`."""
        return self.outputs().get_by_role("button", name=name).nth(nth)

    # What a learner sees

    def outputs(self) -> Locator:
        """All outputs."""
        return self.page.locator(OUTPUT)

    def errors(self) -> list[str]:
        """The errors in which cells have ended."""
        return [error for _, _, error in self.page.evaluate(_CELLS) if error is not None]

    def text_in_outputs(self) -> str:
        """Everything that can be read in the outputs."""
        return "\n".join(self.outputs().all_inner_texts())

    def says(self, words: str) -> None:
        """Wait until `words` can be read in the outputs."""
        self.until(lambda: words in self.text_in_outputs(), f"the page says {words!r}")

    def picture(self, alt: str, nth: int = 0) -> Locator:
        """The nth picture whose text in its place (alt) contains `alt`."""
        return self.page.locator(f'{OUTPUT} img[alt*="{alt}"]').nth(nth)

    def drawn(self, alt: str, nth: int = 0) -> str:
        """That picture's content, to see whether it changes; the element itself is replaced at each redraw."""
        return self.picture(alt, nth).get_attribute("src") or ""

    def axe(self) -> list[dict[str, Any]]:
        """The accessibility violations in the outputs, as axe-core reports them."""
        found = Axe().run(self.page, context=".jp-OutputArea")
        violations: list[dict[str, Any]] = found.response["violations"]
        return violations

    def until(self, look: Callable[[], Seen], what: str, limit_s: float = LIMIT_S) -> Seen:
        """Look again and again until `look` gives something true; AssertionError says `what` never came."""
        deadline = time.monotonic() + limit_s
        while not (seen := look()):
            if time.monotonic() > deadline:
                raise AssertionError(f"after {limit_s:.0f} s it is still not so that {what}")
            self.page.wait_for_timeout(50)
        return seen

    def _command(self, name: str) -> None:
        """JupyterLab refuses a command while it settles down: try until it has taken it."""

        def taken() -> bool:
            try:
                self.page.evaluate("name => { jupyterapp.commands.execute(name); return true; }", name)
            except Error:
                return False
            return True

        self.until(taken, f"JupyterLab takes the command {name}")

    def _idle(self) -> bool:
        dialog = self.page.locator(".jp-Dialog .jp-mod-accept")
        if dialog.count():
            dialog.first.click()
        return bool(self.page.evaluate(_KERNEL_IDLE))

    def _all_have_run(self) -> bool:
        failed = self.errors()
        assert not failed, failed[0]
        return all(count is not None and not running for count, running, _ in self.page.evaluate(_CELLS))


class Slider:
    """A slider as a hand on keyboard or mouse meets it."""

    def __init__(self, page: Page, whole: Locator) -> None:
        self.page = page
        self.whole = whole
        self.handle = whole.get_by_role("slider")

    @property
    def value(self) -> float:
        """Where it stands."""
        return float(self.handle.get_attribute("aria-valuenow") or "nan")

    def press(self, key: str, times: int = 1) -> None:
        """Focus it and press an arrow key."""
        self.handle.focus()
        for _ in range(times):
            self.page.keyboard.press(key)

    def drag(self, fraction: float) -> None:
        """Drag its handle with the mouse to `fraction` of its length."""
        self.whole.scroll_into_view_if_needed()
        handle, rail = self.handle.bounding_box(), self.whole.locator(".noUi-base").bounding_box()
        assert handle is not None and rail is not None
        height = handle["y"] + handle["height"] / 2
        self.page.mouse.move(handle["x"] + handle["width"] / 2, height)
        self.page.mouse.down()
        self.page.mouse.move(rail["x"] + fraction * rail["width"], height, steps=5)
        self.page.mouse.up()
