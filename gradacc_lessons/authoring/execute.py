"""Run a notebook from a fresh kernel, away from the author's own files."""

import os
import re
import tempfile
import time
from pathlib import Path

from gradacc_lessons.authoring.clean import clean, source_digest
from gradacc_lessons.authoring.files import (
    Notebook,
    published_repository,
    read_notebook,
    repository_root,
    text_of,
)

CELL_LIMIT_S = 600
"""A cell that takes longer is stuck: a whole lesson should take about 20 seconds."""

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def execute_and_clean(file: Path) -> float:
    """Run the notebook in `file` and write it back with its new outputs, clean; returns the seconds it took.

    ValueError names the cell that failed, and leaves the file as it was.
    """
    notebook = read_notebook(file)
    repository = published_repository(repository_root())
    clean(notebook, file.name, repository)
    start = time.monotonic()
    execute(notebook, file.name)
    seconds = time.monotonic() - start
    clean(notebook, file.name, repository)
    notebook["metadata"]["gradacc"] = {"executed": source_digest(notebook)}
    file.write_text(text_of(notebook), encoding="utf-8")
    return seconds


def execute(notebook: Notebook, name: str) -> None:
    """Run all cells of `notebook` in place, in a fresh kernel with an empty working folder and no progress.

    ValueError if a cell fails or takes too long: one sentence that names the file, the cell and the error.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    with tempfile.TemporaryDirectory(prefix="gradacc-notebook-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        client = NotebookClient(
            notebook,  # type: ignore[arg-type]  # read_notebook gives the class it wants
            timeout=CELL_LIMIT_S,
            kernel_name="python3",
            record_timing=False,
            store_widget_state=False,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": str(work)}},
        )
        try:
            client.execute(env={**os.environ, "GRADACC_HOME": str(Path(folder, "home"))})
        except CellExecutionError as error:
            raise ValueError(f"{name}: {_failed_cell(notebook)} raised {error.ename}: {error.evalue}") from error
        except CellTimeoutError as error:
            raise ValueError(f"{name}: {_failed_cell(notebook)} ran longer than {CELL_LIMIT_S} s") from error
        except DeadKernelError as error:
            raise ValueError(f"{name}: the kernel died") from error
        _hide(str(Path(folder, "home")), notebook)


def _hide(home: str, notebook: Notebook) -> None:
    """What cells say of the folder that keeps progress: by the name that sets it, not as it was on this machine."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output["output_type"] == "stream":
                output["text"] = output["text"].replace(home, "GRADACC_HOME")


def _failed_cell(notebook: Notebook) -> str:
    """The last cell that the kernel took up, by its id and first line."""
    begun = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and cell.get("execution_count")]
    cell = begun[-1] if begun else notebook["cells"][0]
    return f"cell {cell['id']!r} ({_ANSI.sub('', cell['source']).splitlines()[0]})"
