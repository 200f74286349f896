"""`gradacc progress export` and `import`: files, pipes, and one sentence for what goes wrong."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gradacc_lessons.cli import main
from gradacc_lessons.progress import learner_progress
from gradacc_lessons.progress_versions import VERSIONS, fresh

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


@pytest.mark.parametrize("way", ["bom", "utf-16", "file", "file in use"])
def test_an_editor_a_shell_or_the_progress_file_itself_will_do(tmp_path: Path, machine, way: str) -> None:  # type: ignore[no-untyped-def]
    """PowerShell's > writes UTF-16, Notepad a mark before UTF-8; what was set aside is a progress file."""
    screen, file = run("export").output, tmp_path / "old" / "progress.sqlite"
    if way in ("bom", "utf-16"):
        file = tmp_path / "from windows.txt"
        file.write_bytes(screen.encode("utf-8-sig" if way == "bom" else way))
    holder = sqlite3.connect(file) if way == "file in use" else None
    if holder is not None:  # what was written last is in the journal beside it
        holder.execute("SELECT * FROM answers").fetchall()
        learner_progress().add_answer(LESSON, "b", 1, "late", 1.0, 1.0)
    machine("new")
    done = run("import", str(file))
    new = 1 if holder is None else 2
    assert done.exit_code == 0 and f"New answers: {new};" in done.output
    if holder is not None:
        holder.close()


def test_a_progress_file_of_a_newer_version_is_refused_and_of_an_older_one_is_not(tmp_path: Path, machine) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "old" / "progress.sqlite"
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"PRAGMA user_version = {len(VERSIONS) + 1}")
    machine("new")
    assert "or of a newer version of the course" in run("import", str(file)).output
    with closing(fresh(1)) as older, closing(sqlite3.connect(tmp_path / "older.sqlite")) as db:
        older.execute("INSERT INTO settings VALUES ('language', 'nl')")
        older.execute("INSERT INTO takes VALUES (?, 1, 2, 2, '2026-01-01T00:00:00+00:00')", (LESSON,))
        older.backup(db)
    assert run("import", str(tmp_path / "older.sqlite")).exit_code == 0
    assert learner_progress().language == "nl" and learner_progress().take(LESSON) == 1


def test_a_disk_that_refuses_leaves_no_half_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    done = run("export", str(tmp_path / "mine.txt"))
    assert done.exit_code == 1 and done.output == f"Error: {tmp_path / 'mine.txt'}: No space left on device\n"
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == []


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
