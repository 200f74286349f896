"""Where an author's files are, and how a notebook is read from and written to disk."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gradacc_lessons.course import course_folder

GITHUB = "https://github.com/"

Notebook = dict[str, Any]
"""A notebook as its JSON says it; nbformat's own NotebookNode is one too."""


def lessons(chosen: Sequence[Path] = ()) -> list[Path]:
    """The chosen notebooks, or all of the course's, in order."""
    return list(chosen) or sorted(course_folder("notebooks").glob("*.ipynb"))


def repository_root() -> Path:
    """The checkout that this package runs from; FileNotFoundError if it was installed from a wheel."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").is_file():
        raise FileNotFoundError("this works in the course's repository only; this copy was installed without it")
    return root


def published_repository(root: Path) -> str | None:
    """OWNER/NAME as `gradacc publish` wrote it into pyproject.toml; None before."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address: str = project.get("urls", {}).get("Repository", "")
    return address.removeprefix(GITHUB) if address.startswith(GITHUB) else None


def read_notebook(file: Path) -> Notebook:
    """The notebook in `file`, its cell sources as single strings.

    ValueError, with the file's name, if it is no notebook of format 4.
    """
    from nbformat import v4

    try:
        notebook: Notebook = v4.reads_json(file.read_text(encoding="utf-8"))  # type: ignore[no-untyped-call]
        if notebook["nbformat"] != v4.nbformat:
            raise ValueError(f"it has format {notebook['nbformat']}")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{file.name} is no notebook of format 4: {error}") from error
    return notebook


def text_of(notebook: Notebook) -> str:
    """The notebook as it is written to disk; ValueError if it does not follow the notebook format."""
    import nbformat

    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise ValueError(f"the notebook breaks the notebook format: {error.message}") from error
    written: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    return written.rstrip("\n") + "\n"
