"""The doctor: all is well here, and each thing that breaks is a FAIL with a fix, never a crash."""

import sys
import types

import pytest
from nbformat import v4

from gradacc_lessons import __version__, doctor
from gradacc_lessons.authoring.cells import setup_cell
from gradacc_lessons.authoring.execute import execute
from gradacc_lessons.detective import client


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "home"))


def failed(result):
    return {check.name: check for check in result.checks if not check.ok}


def test_this_machine_is_ready_and_looking_changes_nothing(tmp_path):
    result = doctor.checkup()
    assert failed(result) == {}
    assert result.ok and result.message.startswith("Everything")
    assert list(tmp_path.iterdir()) == []


def broken_module(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)


def too_old_python(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1, "final", 0))


def another_version(monkeypatch):
    monkeypatch.setattr(doctor, "_told_version", "9.9.9")


def missing_package(monkeypatch):
    monkeypatch.setattr(doctor, "requires", lambda name: ["surely-not-installed>=1.0"])


def no_torch(monkeypatch):
    broken_module(monkeypatch, "torch")


def a_driver_that_does_not_fit(monkeypatch):
    monkeypatch.setattr(doctor, "best_device", lambda: "cuda:99")


def no_widgets(monkeypatch):
    broken_module(monkeypatch, "ipywidgets")


def no_jupyterlab(monkeypatch):
    real = doctor._version_of
    monkeypatch.setattr(doctor, "_version_of", lambda name: None if name == "jupyterlab" else real(name))
    monkeypatch.setattr(doctor, "missing_packages", lambda: [])


def no_matplotlib(monkeypatch):
    broken_module(monkeypatch, "matplotlib.figure")


def no_data(monkeypatch):
    broken_module(monkeypatch, "sklearn.datasets")


def no_course_files(monkeypatch):
    def gone(name):
        raise FileNotFoundError(f"this copy has no {name!r} folder")

    monkeypatch.setattr(doctor, "course_folder", gone)


def progress_that_cannot_be_written(monkeypatch):
    monkeypatch.setenv("GRADACC_HOME", "/dev/null/home")


def a_full_disk(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: types.SimpleNamespace(free=0))


def no_process_of_its_own(monkeypatch):
    command = [sys.executable, "-c", "raise SystemExit('no room for a process')"]
    monkeypatch.setattr(client, "WORKER", client.Worker(command))


BREAKS = {
    too_old_python: ("Python", "3.9.1"),
    another_version: ("course and notebook", "9.9.9"),
    missing_package: ("packages", "surely-not-installed>=1.0"),
    no_torch: ("PyTorch", "torch"),
    a_driver_that_does_not_fit: ("device", ""),
    no_widgets: ("sliders", "ipywidgets"),
    no_jupyterlab: ("notebooks", "JupyterLab is missing"),
    no_matplotlib: ("pictures", "matplotlib"),
    no_data: ("data", "sklearn"),
    no_course_files: ("lessons and quizzes", "no 'notebooks' folder"),
    progress_that_cannot_be_written: ("progress file", "GRADACC_HOME/progress.sqlite cannot be written"),
    a_full_disk: ("progress file", "no room left"),
    no_process_of_its_own: ("checking your code", "no room for a process"),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("spoil", BREAKS, ids=[spoil.__name__ for spoil in BREAKS])
def test_what_breaks_is_a_fail_with_a_fix_and_the_rows_after_it_are_still_looked_at(monkeypatch, spoil):
    name, words = BREAKS[spoil]
    everything = [check.name for check in doctor.checkup().checks]
    spoil(monkeypatch)
    result = doctor.checkup()
    assert [check.name for check in result.checks] == everything
    assert name in failed(result)
    check = failed(result)[name]
    assert words in check.found and check.fix
    assert not result.ok and "FAIL" in result.message


def test_table_text_and_frame_say_the_same_and_escape_what_they_show():
    result = doctor.Checkup((doctor.Check("<b>", False, "<script>", "a & b"), doctor.Check("fine", True, "1")))
    page = result._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "a &amp; b" in page
    assert str(result).splitlines()[:2] == ["FAIL  <b>   <script>", "            -> a & b"]
    assert result.message in page and str(result).endswith(result.message)
    assert result.message == "1 of 2 lines say FAIL: start with the first; what to do stands beside or below it."
    assert result.frame().values.tolist() == [["<b>", "FAIL", "<script>", "a & b"], ["fine", "OK", "1", ""]]


def test_ready_says_one_line_or_that_notebook_and_package_differ(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "_told_version", None)
    doctor.ready(__version__)
    doctor.ready("9.9.9")
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"gradacc_lessons {__version__} is ready"
    assert "this notebook was made for version 9.9.9" in second
    assert "course and notebook" in failed(doctor.checkup())


@pytest.fixture
def colab(monkeypatch):
    """Colab is recognised by its module; what pip would be asked to do is recorded."""
    asked = []
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    monkeypatch.setattr(doctor, "requires", lambda name: [
        "torch>=2.6", "jupyterlab>=99", "surely-not-installed>=1.0", 'nor-this>=1; extra == "dev"',
    ])  # fmt: skip
    monkeypatch.setattr(doctor.subprocess, "run", lambda command, check: asked.append(command))
    monkeypatch.setattr(doctor, "_told_version", None)
    return asked


def test_on_colab_only_what_is_missing_is_installed_and_jupyterlab_never(colab, capsys, monkeypatch):
    real = doctor._version_of
    monkeypatch.setattr(doctor, "_version_of", lambda name: None if name == "jupyterlab" else real(name))
    doctor.ready(__version__)
    assert [command[3:] for command in colab] == [["install", "--quiet", "surely-not-installed>=1.0"]]
    assert "Installing what is missing here: surely-not-installed>=1.0" in capsys.readouterr().out


def notebook_without_the_course(setup):
    hide = "import importlib.util, sys\nreal = importlib.util.find_spec\nimportlib.util.find_spec = lambda name: None"
    return v4.new_notebook(cells=[v4.new_code_cell(hide), v4.new_code_cell(setup)])


def test_the_set_up_cell_of_an_unpublished_course_says_what_to_do():
    notebook = notebook_without_the_course(setup_cell(__version__, None))
    with pytest.raises(ValueError, match="SystemExit: The course is not installed here and its address is not set"):
        execute(notebook, "lesson.ipynb")


def test_the_set_up_cell_of_a_published_course_runs_where_the_course_is_installed():
    notebook = v4.new_notebook(cells=[v4.new_code_cell(setup_cell(__version__, "owner/name")) for _ in range(2)])
    execute(notebook, "lesson.ipynb")
    assert [cell.outputs[0].text for cell in notebook.cells] == [f"gradacc_lessons {__version__} is ready\n"] * 2


def test_the_set_up_cell_of_a_published_course_asks_pip_for_the_course_alone():
    spy = "get_ipython().register_magic_function(lambda line: print(line), 'line', 'pip')"
    notebook = notebook_without_the_course(setup_cell(__version__, "owner/name"))
    notebook.cells.insert(0, v4.new_code_cell(spy))
    execute(notebook, "lesson.ipynb")
    asked = notebook.cells[2].outputs[0].text.splitlines()[0]
    assert asked == 'install --quiet --no-deps "git+https://github.com/owner/name"'


THREADS = "import torch\nprint(torch.get_num_threads())"


@pytest.mark.few(1)
@pytest.mark.parametrize(("chosen", "threads"), [(None, 1), ("2", 2)], ids=["nobody_chose", "the_learner_chose"])
def test_after_the_set_up_cell_a_lesson_computes_on_one_thread_unless_the_learner_chose(monkeypatch, chosen, threads):
    monkeypatch.delenv("OMP_NUM_THREADS")
    if chosen:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    notebook = v4.new_notebook(cells=[v4.new_code_cell(setup_cell(__version__, None)), v4.new_code_cell(THREADS)])
    execute(notebook, "lesson.ipynb")
    assert notebook.cells[1].outputs[0].text == f"{threads}\n"
