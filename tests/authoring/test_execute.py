"""A notebook runs in a fresh kernel, away from the author's files, and is written only if it ran to its end."""

import pytest
from authoring.small_lesson import code, small_lesson

from gradacc_lessons.authoring.execute import execute, execute_and_clean
from gradacc_lessons.authoring.files import read_notebook, text_of


def written(tmp_path, *cells):
    notebook = small_lesson()
    notebook.cells += cells
    file = tmp_path / "lesson.ipynb"
    file.write_text(text_of(notebook), encoding="utf-8")
    return file


def printed(notebook, number):
    return notebook.cells[number].outputs[0].text


def test_outputs_are_real_and_the_file_is_clean(lesson):
    notebook = read_notebook(lesson())
    assert printed(notebook, 2) == "gradacc_lessons 0.1.0 is ready\n"
    assert printed(notebook, 4) == "2\n"
    assert "<table" in notebook.cells[5].outputs[0].data["text/html"]
    assert "execution" not in notebook.cells[4].metadata


def test_executing_again_gives_the_same_bytes(lesson, good_text):
    file = lesson()
    execute_and_clean(file)
    assert file.read_text(encoding="utf-8") == good_text


def test_progress_and_working_folder_are_not_the_authors(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "mine"))
    notebook = small_lesson()
    notebook.cells = [
        code(
            "where",
            "import os\nprint(os.environ['GRADACC_HOME'])\n"
            f"print(os.environ['GRADACC_HOME'] == {str(tmp_path / 'mine')!r}, os.listdir('.'))",
        )
    ]
    execute(notebook, "lesson.ipynb")
    assert printed(notebook, 0) == "GRADACC_HOME\nFalse []\n"  # what is stored names no folder of this machine


def test_a_failing_cell_is_named_and_the_file_left_alone(tmp_path):
    file = written(tmp_path, code("oops", "x = 1\nx / 0"))
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"^lesson\.ipynb: cell 'oops' \(x = 1\) raised ZeroDivisionError"):
        execute_and_clean(file)
    assert file.read_bytes() == before


def test_a_kernel_that_dies_is_said(tmp_path):
    file = written(tmp_path, code("gone", "import os\nos._exit(1)"))
    with pytest.raises(ValueError, match=r"^lesson\.ipynb: the kernel died"):
        execute_and_clean(file)


def test_a_cell_that_takes_too_long_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("gradacc_lessons.authoring.execute.CELL_LIMIT_S", 1)
    notebook = small_lesson()  # without its table: on a busy machine importing pandas takes a second too
    notebook.cells = [*notebook.cells[:-1], code("slow", "import time\ntime.sleep(60)")]
    file = tmp_path / "lesson.ipynb"
    file.write_text(text_of(notebook), encoding="utf-8")
    with pytest.raises(ValueError, match=r"^lesson\.ipynb: cell 'slow' .* ran longer than 1 s"):
        execute_and_clean(file)
