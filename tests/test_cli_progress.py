"""`gradacc progress export` and `import`: files, pipes, and one sentence for what goes wrong."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradacc_lessons.cli import main
from gradacc_lessons.progress import learner_progress

LESSON = "01_accumulate"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Sit down at the machine with that name."""

    def sit_down(name: str) -> None:
        monkeypatch.setenv("GRADACC_HOME", str(tmp_path / name))

    sit_down("old")
    learner_progress().begin_take(LESSON, 1, {"a": 1.0, "b": 1.0})
    learner_progress().add_answer(LESSON, "a", 1, "é", 1.0, 1.0)
    return sit_down


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(main, ["progress", *arguments], input=typed, catch_exceptions=False)


def test_what_is_exported_to_a_file_or_the_screen_is_imported_from_either(tmp_path: Path, machine) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "my progress.txt"
    screen = run("export").output
    assert run("export", str(file)).exit_code == 0 and file.read_text() == screen
    for name, arguments, typed in (("one", [str(file)], ""), ("two", [], screen)):
        machine(name)
        done = run("import", *arguments, typed=typed)
        assert done.exit_code == 0 and "Taken over. New answers: 1;" in done.output
        assert "1 of 2 points so far" in done.output and run("export").output == screen
        assert "Er staat niets in dat hier nieuw is." in run("import", str(file), "--language", "nl").output


def test_an_export_goes_over_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    done = run("export", str(tmp_path / "thesis.txt"))
    assert done.exit_code == 1 and "File exists" in done.output and (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("typed", "says"),
    [("", "no exported progress"), ("hello", "no exported progress"), ("gradacc-progress-1.ab.cd", "incomplete")],
)
def test_what_is_no_export_is_refused_in_the_learners_language(typed: str, says: str) -> None:
    before = run("export").output
    done = run("import", typed=typed)
    assert done.exit_code == 1 and says in done.output and "Traceback" not in done.output
    learner_progress().set("language", "nl")
    assert "Dit is geen" in run("import", typed="x").output
    learner_progress().set("language", "en")
    assert run("import", typed=before).exit_code == 0


def test_a_file_that_is_not_there_or_not_text_is_a_sentence(tmp_path: Path) -> None:
    assert "No such file" in run("import", str(tmp_path / "none.txt")).output
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 100)
    done = run("import", str(tmp_path / "noise"))
    assert done.exit_code == 1 and "no exported progress" in done.output
