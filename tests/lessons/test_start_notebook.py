"""What notebook 00 says about the course is so."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from platformdirs import macos, unix, windows

from gradacc_lessons import Quiz
from gradacc_lessons.course import course_folder
from gradacc_lessons.progress import FILE_NAME, Progress, learner_progress, progress_file, shown, summary

FILE = course_folder("notebooks") / "00_start_here.ipynb"


def cells(kind: str) -> dict[str, str]:
    notebook = json.loads(FILE.read_text(encoding="utf-8"))
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind}


def test_every_question_people_ask_is_answered_in_both_languages_and_linked() -> None:
    answers = {name: text for name, text in cells("markdown").items() if name.startswith("faq-")}
    assert len(answers) == 7
    for text in answers.values():
        title, english, dutch = text.split("\n\n")
        assert title.startswith("### ") and re.match(r"\*\*.+\?\*\* ", dutch)
        for answer in (english, re.sub(r"^\*\*.+?\*\* ", "", dutch)):
            assert re.search(r"\]\(0[12]_\w+\.ipynb\)", answer)
        assert re.findall(r"\]\((\S+)\)", english) == re.findall(r"\]\((\S+)\)", dutch)
        assert set(re.findall(r"lesson (\d\d)", english)) == set(re.findall(r"les (\d\d)", dutch))


@pytest.mark.parametrize(
    ("system", "place"),
    [
        (unix.Unix, "~/.local/share/gradacc-lessons"),
        (macos.MacOS, "~/Library/Application Support/gradacc-lessons"),
    ],
)
def test_the_folders_it_names_are_those_of_the_system(system: Any, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert system("gradacc-lessons", False).user_data_dir == os.path.expanduser(place)
    assert f"`{place}`" in cells("markdown")["progress-read"]


def test_the_folder_it_names_is_that_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "get_win_folder", lambda name: {"CSIDL_LOCAL_APPDATA": r"%LOCALAPPDATA%"}[name])
    place = windows.Windows("gradacc-lessons", False).user_data_dir.replace("/", "\\")
    assert f"`{place}`" in cells("markdown")["progress-read"]


def test_progress_moves_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "old"))
    Quiz("00_start_here").answer("start-out-of-memory", "b8-n4")
    there = summary()
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "new"))
    assert progress_file() == tmp_path / "new" / FILE_NAME
    assert "00_start_here" in summary() and summary() == there.replace(str(tmp_path / "old"), str(tmp_path / "new"))
    assert [answer.value for answer in learner_progress().answers("00_start_here")] == ["b8-n4"]


def test_where_the_file_is_can_be_shown_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path))
    assert shown(progress_file()) == f"GRADACC_HOME/{FILE_NAME}"
    monkeypatch.delenv("GRADACC_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert shown(progress_file()) == f"~/data/gradacc-lessons/{FILE_NAME}"
    assert shown(Path("/elsewhere/progress.sqlite")) == "/elsewhere/progress.sqlite"


def test_an_answer_is_there_for_a_kernel_that_starts_afterwards(tmp_path: Path) -> None:
    quiz = Quiz("00_start_here", progress=Progress(tmp_path / FILE_NAME))
    quiz.answer("start-out-of-memory", "b16-n4")
    given = Quiz("00_start_here", progress=Progress(tmp_path / FILE_NAME)).given("start-out-of-memory")
    assert given is not None and given.value == "b16-n4"


@pytest.mark.parametrize("file", sorted(course_folder("notebooks").glob("*.ipynb")), ids=lambda file: file.stem)
def test_no_stored_output_names_a_folder_of_its_authors_machine(file: Path) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    stored = json.dumps([cell.get("outputs", []) for cell in notebook["cells"]])
    for folder in (str(Path.home()) + "/", tempfile.gettempdir() + "/", str(course_folder("notebooks").parent) + "/"):
        assert folder not in stored
