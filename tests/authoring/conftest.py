"""A small notebook that is as it should be; the tests spoil it in one way each."""

from collections.abc import Callable
from pathlib import Path

import pytest
from authoring.small_lesson import small_lesson
from nbformat import NotebookNode, v4

from gradacc_lessons.authoring.execute import execute_and_clean
from gradacc_lessons.authoring.files import read_notebook, text_of


@pytest.fixture(scope="session")
def good_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The small lesson after `execute_and_clean`, as text."""
    file = tmp_path_factory.mktemp("good") / "good.ipynb"
    file.write_text(text_of(small_lesson()), encoding="utf-8")
    execute_and_clean(file)
    return file.read_text(encoding="utf-8")


Spoil = Callable[[NotebookNode], None]


@pytest.fixture
def lesson(good_text: str, tmp_path: Path) -> Callable[..., Path]:
    """`lesson(spoil)` writes the good notebook, changed by `spoil`, to a file and returns its path."""

    def write(spoil: Spoil | None = None) -> Path:
        file = tmp_path / "lesson.ipynb"
        file.write_text(good_text, encoding="utf-8")
        if spoil is not None:
            notebook = read_notebook(file)
            spoil(notebook)
            file.write_text(v4.writes_json(notebook), encoding="utf-8")
        return file

    return write
