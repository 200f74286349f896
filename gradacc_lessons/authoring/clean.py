"""Take out of a notebook what does not belong into the repository, and keep what a reader on GitHub needs.

Kept: text, tables and static pictures. Taken out: the state and the views of widgets (a view without its state
shows nothing; the static twin beside it does), execution times, editors' metadata, whatever differs at each run.
"""

import hashlib
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from gradacc_lessons import __version__
from gradacc_lessons.authoring.cells import BADGE_ID, SETUP_ID, badge_cell, setup_cell
from gradacc_lessons.authoring.files import Notebook, published_repository, read_notebook, repository_root, text_of

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# Without it JupyterLab can ask to "Select Kernel"; without Python's exact version it does not differ per author.
_LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
_KEPT_CELL_METADATA = {"cellView", "jupyter", "slideshow", "tags"}
_MINOR_WITH_IDS = 5
_MEMORY_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def clean_file(file: Path) -> list[str]:
    """Clean the notebook in `file` and write it back if that changes it; returns what was changed, in words."""
    notebook = read_notebook(file)
    reasons = clean(notebook, file.name, published_repository(repository_root()))
    text = text_of(notebook)
    if text != file.read_text(encoding="utf-8"):
        file.write_text(text, encoding="utf-8")
        return reasons or ["its layout as JSON"]
    return []


def clean(notebook: Notebook, name: str, repository: str | None) -> list[str]:
    """Clean `notebook`, the file called `name`, in place; returns what was changed, one entry per kind."""
    steps: list[tuple[str, Callable[[], None]]] = [
        ("cells without an id of their own", lambda: _give_ids(notebook)),
        ("widget state", lambda: _drop_widget_state(notebook)),
        ("metadata of an editor or a kernel", lambda: _normalise_metadata(notebook)),
        ("execution times or an editor's metadata on cells", lambda: _normalise_cell_metadata(notebook)),
        ("widget views, which show nothing without a kernel", lambda: _drop_widget_views(notebook)),
        ("outputs that differ at each run", lambda: _settle_outputs(notebook)),
        ("a set-up or badge cell that is not the course's", lambda: _write_fixed_cells(notebook, name, repository)),
    ]
    reasons = []
    for reason, step in steps:
        before = deepcopy(notebook)
        step()
        if notebook != before:
            reasons.append(reason)
    return reasons


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """The cells with code in them, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and cell["source"].strip()]


def source_digest(notebook: Notebook) -> str:
    """A short digest of what the cells compute; the set-up cell, which publishing rewrites, does not count."""
    sources = [cell["source"] for cell in code_cells(notebook) if cell.get("id") != SETUP_ID]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]


def _give_ids(notebook: Notebook) -> None:
    seen: set[str] = set()
    for number, cell in enumerate(notebook["cells"], start=1):
        cell_id = cell.get("id")
        if not cell_id or cell_id in seen:
            cell_id = next(new for n in range(number, 10**6) if (new := f"cell-{n:03d}") not in seen)
            cell["id"] = cell_id
        seen.add(cell_id)
    notebook["nbformat_minor"] = max(notebook["nbformat_minor"], _MINOR_WITH_IDS)


def _drop_widget_state(notebook: Notebook) -> None:
    notebook["metadata"].pop("widgets", None)


def _normalise_metadata(notebook: Notebook) -> None:
    ours = notebook["metadata"].get("gradacc", {})
    notebook["metadata"] = type(notebook["metadata"])(
        colab={"toc_visible": True}, gradacc=ours, kernelspec=dict(_KERNEL), language_info=deepcopy(_LANGUAGE)
    )


def _normalise_cell_metadata(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        for key in set(cell["metadata"]) - _KEPT_CELL_METADATA:
            del cell["metadata"][key]


def _drop_widget_views(notebook: Notebook) -> None:
    for cell in code_cells(notebook):
        cell["outputs"] = [output for output in cell["outputs"] if WIDGET_VIEW not in output.get("data", {})]


def _settle_outputs(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        if not cell["source"].strip():
            cell["outputs"], cell["execution_count"] = [], None
        cell["outputs"] = _merged_streams(cell["outputs"])
        for output in cell["outputs"]:
            output.pop("transient", None)
            if "metadata" in output:
                output["metadata"].clear()
            data = output.get("data", {})
            if "text/plain" in data:
                data["text/plain"] = _MEMORY_ADDRESS.sub("", data["text/plain"])


def _merged_streams(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of one stream made one, and of a line that was overwritten (a progress bar) only its last state."""
    merged: list[dict[str, Any]] = []
    for output in outputs:
        last = merged[-1] if merged else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            merged.append(output)
    for output in merged:
        if output["output_type"] == "stream":
            lines = output["text"].replace("\r\n", "\n").split("\n")
            output["text"] = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return [output for output in merged if output.get("text") != ""]


def _write_fixed_cells(notebook: Notebook, name: str, repository: str | None) -> None:
    for cell in notebook["cells"]:
        if cell["id"] == SETUP_ID and cell["cell_type"] == "code":
            cell["source"] = setup_cell(__version__, repository)
        if cell["id"] == BADGE_ID and cell["cell_type"] == "markdown":
            cell["source"] = badge_cell(name, repository)
