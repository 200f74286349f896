"""Write the address of a published copy of the course into the files that show it, and nowhere else."""

import re
import tomllib
from pathlib import Path

from gradacc_lessons.authoring.cells import badge_cell, checked_repository
from gradacc_lessons.authoring.clean import clean
from gradacc_lessons.authoring.files import GITHUB, read_notebook, repository_root, text_of
from gradacc_lessons.lab import FIRST_LESSON

README_BEGIN = "<!-- written by gradacc publish: begin -->"
README_END = "<!-- written by gradacc publish: end -->"

_URLS = re.compile(r"^\[project\.urls\]\n(?:(?!\[).*\n?)*", re.MULTILINE)
_NEXT_TABLE = re.compile(r"^\[(?!project\])", re.MULTILINE)


def publish(repository: str, *, dry_run: bool = False, root: Path | None = None) -> list[str]:
    """Point pyproject.toml, README.md and every notebook under `root` to `repository`, written OWNER/NAME.

    Returns the files that change (with `dry_run`: would change), relative to `root`, which is the checkout of the
    package that runs. A second call changes nothing. ValueError if the name cannot be a repository's; then, and
    if any file cannot be read, nothing is written.
    """
    checked_repository(repository)
    root = root or repository_root()
    new = {root / "pyproject.toml": _with_address((root / "pyproject.toml").read_text(encoding="utf-8"), repository)}
    readme = root / "README.md"
    if readme.exists():
        new[readme] = _with_links(readme.read_text(encoding="utf-8"), repository)
    for file in sorted((root / "notebooks").glob("*.ipynb")):
        notebook = read_notebook(file)
        clean(notebook, file.name, repository)
        new[file] = text_of(notebook)
    changed = [file for file, text in new.items() if file.read_text(encoding="utf-8") != text]
    for file in changed if not dry_run else []:
        file.write_text(new[file], encoding="utf-8")
    return [str(file.relative_to(root)) for file in changed]


def _with_address(pyproject: str, repository: str) -> str:
    """pyproject.toml's text with the repository's address in its table of URLs; comments and order stay."""
    line = f'Repository = "{GITHUB}{repository}"\n'
    table = _URLS.search(pyproject)
    if table is None:
        start = pyproject.index("[project]")
        place = _NEXT_TABLE.search(pyproject, start + 1)
        position = place.start() if place else len(pyproject)
        text = f"{pyproject[:position]}[project.urls]\n{line}\n{pyproject[position:]}"
    else:
        lines = [row for row in table[0].splitlines(keepends=True) if not row.startswith("Repository")]
        text = pyproject[: table.start()] + "".join([lines[0], line, *lines[1:]]) + pyproject[table.end() :]
    if tomllib.loads(text)["project"]["urls"]["Repository"] != f"{GITHUB}{repository}":
        raise ValueError("pyproject.toml could not be changed: write Repository into [project.urls] by hand")
    return text


def _with_links(readme: str, repository: str) -> str:
    """README.md's text with the badges of the first lesson between its two markers; unchanged without them."""
    before, begin, rest = readme.partition(README_BEGIN)
    _, end, after = rest.partition(README_END)
    if not end:
        return readme
    return f"{before}{begin}\n{badge_cell(FIRST_LESSON, repository)}\n{end}{after}"
