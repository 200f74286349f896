"""What is wrong with a lesson's notebook: stale, dirty, or against the conventions. One sentence per problem."""

import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

from gradacc_lessons.authoring.cells import BADGE_ID, SETUP_ID
from gradacc_lessons.authoring.clean import clean, code_cells, source_digest
from gradacc_lessons.authoring.files import Notebook, published_repository, read_notebook, repository_root

LARGEST_FILE_BYTES = 400_000
LONGEST_CELL_LINES = 14
FEWEST_CHECKED_CELLS = 2
CHECKED = "nbval-check-output"

_SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "notes", "-"}
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#{1,6})\s", re.MULTILINE)
_IMAGE = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(["'])\s*(?!\1)\S""", re.IGNORECASE)
_MARKDOWN_IMAGE_WITHOUT_ALT = re.compile(r"!\[\s*\]\(")


def check(file: Path) -> list[str]:
    """Every problem of the notebook in `file`, as `file name: sentence`; an empty list if it can be published."""
    notebook = read_notebook(file)
    problems = [
        *_dirt(notebook, file.name),
        *_staleness(notebook),
        *_headings(notebook),
        *_cells(notebook),
        *_pictures(notebook),
        *_fixed_cells(notebook),
    ]
    size = file.stat().st_size
    if size > LARGEST_FILE_BYTES:
        problems.append(f"it is {size:,} bytes large; the limit is {LARGEST_FILE_BYTES:,}")
    return [f"{file.name}: {problem}" for problem in problems]


def _dirt(notebook: Notebook, name: str) -> Iterator[str]:
    reasons = clean(deepcopy(notebook), name, published_repository(repository_root()))
    if reasons:
        yield f"it is not clean ({'; '.join(reasons)}): run `gradacc notebooks clean`"
    for cell in code_cells(notebook):
        for output in cell["outputs"]:
            if output["output_type"] == "error" and "raises-exception" not in cell["metadata"].get("tags", []):
                yield f"cell {cell.get('id')} ended in an error, {output['ename']}"
            if output["output_type"] == "stream" and output["name"] == "stderr":
                yield f"cell {cell.get('id')} wrote to stderr: {output['text'].strip().splitlines()[-1]}"


def _staleness(notebook: Notebook) -> Iterator[str]:
    executed = notebook["metadata"].get("gradacc", {}).get("executed")
    if executed is None:
        yield "it was never executed by `gradacc notebooks execute`"
    elif executed != source_digest(notebook):
        yield "it is stale: its code has changed since it was executed; run `gradacc notebooks execute`"
    elif [cell["execution_count"] for cell in code_cells(notebook)] != [
        number for number, _ in enumerate(code_cells(notebook), start=1)
    ]:
        yield "its cells were not executed once each, from top to bottom; run `gradacc notebooks execute`"


def _headings(notebook: Notebook) -> Iterator[str]:
    levels = [
        len(mark)
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
        for mark in _HEADING.findall(_FENCE.sub("", cell["source"]))
    ]
    if levels.count(1) != 1:
        yield f"it has {levels.count(1)} headings of level 1; it needs exactly one"
    for above, below in pairwise(levels):
        if below > above + 1:
            yield f"a heading of level {below} follows one of level {above}: levels must not be skipped"


def _cells(notebook: Notebook) -> Iterator[str]:
    for cell in notebook["cells"]:
        name = cell.get("id")
        if cell["metadata"].get("slideshow", {}).get("slide_type") not in _SLIDE_TYPES:
            yield f"cell {name} has no slide type (metadata slideshow.slide_type)"
        lines = len(cell["source"].splitlines())
        if cell["cell_type"] == "code" and lines > LONGEST_CELL_LINES:
            yield f"cell {name} has {lines} lines of code; the limit is {LONGEST_CELL_LINES}"
    checked = sum(CHECKED in cell["metadata"].get("tags", []) for cell in code_cells(notebook))
    if checked < FEWEST_CHECKED_CELLS:
        yield f"{checked} of its cells are tagged {CHECKED}; it needs at least {FEWEST_CHECKED_CELLS}"
    for cell in code_cells(notebook) if "executed" in notebook["metadata"].get("gradacc", {}) else []:
        if CHECKED in cell["metadata"].get("tags", []) and not cell["outputs"]:
            yield f"cell {cell.get('id')} is tagged {CHECKED} but has no output to check"


def _pictures(notebook: Notebook) -> Iterator[str]:
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            images = _IMAGE.findall(data.get("text/html", ""))
            if "image/png" in data or any(not _ALT.search(image) for image in images):
                yield f"cell {cell.get('id')} shows a picture without a text in its place (alt)"
        if cell["cell_type"] == "markdown" and _MARKDOWN_IMAGE_WITHOUT_ALT.search(cell["source"]):
            yield f"cell {cell.get('id')} shows a picture without a text in its place (alt)"


def _fixed_cells(notebook: Notebook) -> Iterator[str]:
    kinds = {cell.get("id"): cell["cell_type"] for cell in notebook["cells"]}
    for cell_id, kind in ((BADGE_ID, "markdown"), (SETUP_ID, "code")):
        if kinds.get(cell_id) != kind:
            yield f"it has no {kind} cell with the id {cell_id!r}; `gradacc notebooks template` prints it"
    if SETUP_ID in kinds and code_cells(notebook)[0].get("id") != SETUP_ID:
        yield "the set-up cell is not its first code cell"
