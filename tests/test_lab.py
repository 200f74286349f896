"""Opening the lessons: a copy never overwrites the learner's work, and JupyterLab is really there."""

import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.cli import main
from gradacc_lessons.course import course_folder
from gradacc_lessons.lab import copy_lessons, lessons_folder

CONTENT = st.dictionaries(st.sampled_from(["00_a.ipynb", "01_b.ipynb", "02_c.ipynb"]), st.binary(max_size=3))


def test_in_the_repository_the_lessons_are_opened_where_they_are():
    folder, sentence = lessons_folder(None)
    assert folder == course_folder("notebooks")
    assert str(folder) in sentence


@given(course=CONTENT, mine=CONTENT)
def test_a_copy_adds_what_is_missing_and_keeps_what_is_there(tmp_path_factory, course, mine):
    source, target = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("mine")
    for folder, files in ((source, course), (target, mine)):
        for name, content in files.items():
            (folder / name).write_bytes(content)
    copied = copy_lessons(source, target)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {**course, **mine}
    assert set(copied.new) == course.keys() - mine.keys()
    assert set(copied.kept) == {name for name in course.keys() & mine.keys() if course[name] != mine[name]}


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("afile/x", "{tmp}/afile/x: Not a directory"),
        ("{tmp}/odd", "{tmp}/odd/00_start_here.ipynb: Is a directory"),
        ("{tmp}/" + "x" * 300, ": File name too long"),
        ("~nobody-here/x", "~nobody-here/x cannot be found, as there is no home folder ~nobody-here"),
    ],
    ids=["below_a_file", "a_folder_in_the_way", "too_long", "home_of_nobody"],
)
def test_a_folder_that_cannot_be_is_a_sentence(tmp_path, monkeypatch, folder, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "afile").write_text("not a folder", encoding="utf-8")
    (tmp_path / "odd" / "00_start_here.ipynb").mkdir(parents=True)
    ended = CliRunner().invoke(main, ["lab", "--folder", folder.format(tmp=tmp_path)], catch_exceptions=False)
    assert ended.exit_code == 1
    assert ended.output.startswith("Error: ") and words.format(tmp=tmp_path) in ended.output
    assert len(ended.output.splitlines()) == 1


def page_at(address):
    """JupyterLab prints its address a moment before it listens there."""
    for _ in range(60):
        try:
            with urllib.request.urlopen(address, timeout=30) as page:
                return page.read()
        except urllib.error.URLError:
            time.sleep(0.5)
    raise AssertionError(f"nothing answers at {address}")


def test_the_command_says_an_address_that_answers_and_ends_when_told(tmp_path):
    mine = tmp_path / "my lessons"
    mine.mkdir()
    (mine / "01_accumulate.ipynb").write_text("my own work", encoding="utf-8")
    command = [sys.executable, "-m", "gradacc_lessons", "lab", "--folder", str(mine), "--no-browser", "--port=0"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(command, **streams, text=True) as process:
        try:
            assert "Your own versions of 01_accumulate.ipynb were left alone" in process.stdout.readline()
            address = next(line.strip() for line in process.stdout if line.strip().startswith("http://127.0.0.1:"))
            assert b"JupyterLab" in page_at(address)
        finally:
            process.terminate()
        assert process.wait(30) == 0
    assert (mine / "01_accumulate.ipynb").read_text(encoding="utf-8") == "my own work"
    assert {path.name for path in course_folder("notebooks").glob("*.ipynb")} <= {path.name for path in mine.iterdir()}
