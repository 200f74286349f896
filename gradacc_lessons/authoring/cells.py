"""The two cells that every lesson has in common, written in one place: the badges and the set-up.

A notebook finds them by their cell ids, so that cleaning and publishing can rewrite them.
"""

import re
from urllib.parse import quote

from gradacc_lessons import __version__

BADGE_ID = "badge"
SETUP_ID = "setup"

_OWNER_AND_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}")

_UNPUBLISHED_BADGE = (
    "*Runs on your own computer: `make lab`. Buttons for Colab and Binder stand here once the course is published.*"
)

_HEAD = """\
# @title Run this cell first. Running it again does no harm.
import importlib.util

if importlib.util.find_spec("gradacc_lessons") is None:
"""

_UNPUBLISHED_INSTALL = """\
    raise SystemExit(
        "The course is not installed here and its address is not set: start it with `make lab` on your own "
        "computer, or run `gradacc publish --repository OWNER/NAME` before opening it in Colab."
    )
"""

_PUBLISHED_INSTALL = """\
    %pip install --quiet --no-deps "git+https://github.com/{repository}"
"""

_TAIL = """\

from gradacc_lessons.doctor import ready

ready(notebook_version="{version}")"""


def checked_repository(repository: str) -> str:
    """`repository` itself if it reads OWNER/NAME as GitHub allows it; else a ValueError in one sentence."""
    name = repository.rpartition("/")[2]
    if not _OWNER_AND_NAME.fullmatch(repository) or name in {".", ".."} or name.endswith(".git"):
        raise ValueError(
            f"the repository must be written as OWNER/NAME, as in the address of its GitHub page; it is {repository!r}"
        )
    return repository


def badge_cell(notebook: str, repository: str | None) -> str:
    """The Markdown of the badge cell of the file `notebook`; without a repository, a sentence instead of links."""
    if repository is None:
        return _UNPUBLISHED_BADGE
    file = f"notebooks/{notebook}"
    return (
        "[![Open this lesson in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"(https://colab.research.google.com/github/{repository}/blob/main/{quote(file)})\n"
        "[![Open this lesson in Binder](https://mybinder.org/badge_logo.svg)]"
        f"(https://mybinder.org/v2/gh/{repository}/main?labpath={quote(file, safe='')})"
    )


def setup_cell(version: str, repository: str | None) -> str:
    """The Python of the set-up cell of a notebook that belongs to the course's `version`."""
    install = _UNPUBLISHED_INSTALL if repository is None else _PUBLISHED_INSTALL
    return _HEAD + install.format(repository=repository) + _TAIL.format(version=version)


def template() -> str:
    """Both cells, as an author pastes them into a new notebook, with the ids and metadata they need."""
    slides = '"slideshow": {"slide_type": "skip"}'
    folded = f'{{"cellView": "form", "jupyter": {{"source_hidden": true}}, {slides}}}'  # on Colab and in JupyterLab
    return (
        f"# Markdown cell, id {BADGE_ID!r}, metadata {{{slides}}}:\n\n{badge_cell('NN_lesson.ipynb', None)}\n\n"
        f"# Code cell, id {SETUP_ID!r}, metadata {folded}:\n\n{setup_cell(__version__, None)}"
    )
