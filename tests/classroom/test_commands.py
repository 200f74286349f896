"""The teacher's commands answer in the language that was chosen, and a refusal too."""

from pathlib import Path

import pytest
from classroom.class_room import handed_in
from click.testing import CliRunner, Result

from gradacc_lessons.classroom import grade_folder
from gradacc_lessons.classroom.class_folder import open_class
from gradacc_lessons.cli import main
from gradacc_lessons.progress import learner_progress


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to type in, of somebody who chose Dutch."""
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    learner_progress().set("language", "nl")
    (tmp_path / "roster.csv").write_text("id,name\ns1,Ada\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    return tmp_path


def run(line: str) -> Result:
    return CliRunner().invoke(main, line.split(), catch_exceptions=False)


@pytest.mark.parametrize(
    ("line", "dutch", "english"),
    [
        ("class new herfst --roster roster.csv", "heeft 1 leerling.", "has 1 learner."),
        ("class codes --class klas", "Codes in klas/codes.csv: 1.", "has 1 code."),
        ("class grade empty --class klas", "Er was geen bestand.", "There was no file."),
    ],
)
def test_what_is_said_is_in_the_chosen_language_or_the_one_that_is_asked_for(
    work: Path, line: str, dutch: str, english: str
) -> None:
    run("class new klas --roster roster.csv")
    said = run(line)
    assert said.exit_code == 0 and dutch in said.output and english not in said.output
    asked = run(line.replace("herfst", "autumn") + " --language en")
    assert asked.exit_code == 0 and english in asked.output and dutch not in asked.output


@pytest.mark.parametrize(
    ("line", "dutch"),
    [
        ("class new klas --roster roster.csv", "klas bestaat al"),
        ("class demo klas", "klas bestaat al"),
        ("class codes --class empty", "empty is niet de map van een klas"),
        ("class grade empty --class empty", "empty is niet de map van een klas"),
        ("class report --class klas", "kijk eerst na"),
        ("class items --class klas", "kijk eerst na"),
        ("class certify --class klas --as School", "kijk eerst na"),
    ],
)
def test_a_refusal_is_in_the_chosen_language(work: Path, line: str, dutch: str) -> None:
    run("class new klas --roster roster.csv")
    refused = run(line)
    assert refused.exit_code == 1 and dutch in refused.output


def test_files_with_code_that_was_not_run_are_counted(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grade_folder.sandbox, "missing", lambda: "no bubblewrap")
    run("class new klas --roster roster.csv")
    answers = {"00_start_here": [("start-write-updates", 1, "def updates_per_epoch(): pass")]}
    (work / "empty" / "one.json").write_bytes(handed_in(open_class(Path("klas")).codes["s1"], answers))
    graded = run("class grade empty --class klas")
    assert "1 nagekeken\nCode is niet uitgevoerd en telt voor niets: no bubblewrap." in graded.output
    reported = run("class report --class klas")
    assert "niet is uitgevoerd: 1." in reported.output and "met 1 ernaast" in reported.output
