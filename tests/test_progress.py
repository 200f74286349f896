"""Progress is kept: by several processes at once, through kills, full disks, damage and other versions."""

import ctypes
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradacc_lessons.cli import main
from gradacc_lessons.progress import (
    PASS_MARK,
    Prediction,
    Progress,
    chosen_language,
    learner_progress,
    passes,
    progress_file,
    shown,
    summary,
)
from gradacc_lessons.progress_records import LessonResult, percent
from gradacc_lessons.progress_versions import VERSIONS
from gradacc_lessons.text import LANGUAGES

LESSON = "01_accumulate"
ASKED = dict.fromkeys("abcd", 1.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "progress.sqlite"


def add(progress: Progress, question: str, fraction: float = 1.0, *, take: int = 1, retry: bool = False) -> bool:
    progress.begin_take(LESSON, take, ASKED)
    return progress.add_answer(LESSON, question, take, question, fraction, 1.0, retry=retry)


def questions(progress: Progress) -> list[str]:
    return [answer.question for answer in progress.answers(LESSON)]


def quick_check(file: Path) -> str:
    db = sqlite3.connect(file)
    try:
        return str(db.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        db.close()


# What is kept


def test_an_answer_comes_back_as_it_was_given(file: Path) -> None:
    progress = Progress(file)
    assert progress.answers(LESSON) == [] and progress.take(LESSON) == 0 and not progress.notices
    progress.begin_take(LESSON, 1, {"one": 2.0, "two": 1.0, "three": 1.0})
    for value in ("sums", ["a", "é"], 1.5, 3, None):
        progress.add_answer(LESSON, "one", 1, value, 0.25, 2.0)
    kept = Progress(file).answers(LESSON)
    assert [answer.value for answer in kept] == ["sums", ["a", "é"], 1.5, 3, None]
    assert {(answer.take, answer.fraction, answer.points) for answer in kept} == {(1, 0.25, 2.0)}
    assert [answer.first for answer in kept] == [answer.counts for answer in kept] == [True, *[False] * 4]
    assert progress.answers("02_scale_the_loss") == []


def test_only_the_first_answer_of_a_take_counts_unless_tries_are_allowed(file: Path) -> None:
    progress = Progress(file)
    assert [add(progress, "one", 0.0), add(progress, "one"), add(progress, "one", take=2)] == [True, False, True]
    assert [add(progress, "two", 0.0, retry=True), add(progress, "two", retry=True)] == [True, True]


def test_settings_language_and_seed_are_kept(file: Path) -> None:
    progress = Progress(file)
    assert progress.language == "en"
    progress.set("language", "nl")
    seed = progress.seed()
    again = Progress(file)
    assert (again.language, again.seed()) == ("nl", seed)
    assert len(seed) == 32 and Progress(file.with_name("other.sqlite")).seed() != seed
    progress.set("language", "fr")
    assert progress.language == "en"  # not one of ours


def test_a_class_gives_its_numbers_to_the_takes_that_begin_after_joining(file: Path) -> None:
    progress = Progress(file)
    add(progress, "a")
    own = progress.seed()
    assert progress.class_code is None
    for code in ("", " \n"):
        with pytest.raises(ValueError, match="class code is empty"):
            progress.join(code)
    progress.join(" the-code\n")
    progress.begin_take(LESSON, 1, ASKED)  # begun already
    again = Progress(file)
    assert (again.class_code, again.seed(), again.seed(LESSON, 1)) == ("the-code", "the-code", own)
    assert again.seed(LESSON, 2) == again.seed("02_scale_the_loss", 1) == "the-code"
    add(progress, "a", take=2)
    progress.join("another")
    assert [Progress(file).seed(LESSON, take) for take in (1, 2, 3)] == [own, "the-code", "another"]
    assert [take.seed for take in progress.takes(LESSON)] == [own, "the-code"]


def test_who_joins_before_anything_else_has_the_classs_numbers_from_the_first_take(file: Path) -> None:
    progress = Progress(file)
    progress.join("the-code")
    add(progress, "a")
    assert progress.seed(LESSON, 1) == progress.takes(LESSON)[0].seed == "the-code"


@pytest.mark.parametrize("version", range(1, len(VERSIONS)))
def test_takes_of_before_seeds_were_kept_in_them_go_on_with_the_learners_own(file: Path, version: int) -> None:
    old_file(file, version)
    choose_seed(file)
    progress = Progress(file)
    progress.join("the-code")
    assert (progress.seed(LESSON, 1), progress.seed(LESSON, 2)) == ("old-seed", "the-code")
    assert [take.seed for take in progress.takes(LESSON)] == ["old-seed"]


def test_a_prediction_is_kept_with_what_was_measured(file: Path) -> None:
    progress = Progress(file)
    assert progress.prediction(LESSON, "p") is None
    progress.add_prediction(LESSON, "p", Prediction(47.0))
    assert progress.prediction(LESSON, "p") == Prediction(47.0, None, None)
    progress.add_prediction(LESSON, "p", Prediction(47.0, 48.0, 0.0))
    assert Progress(file).prediction(LESSON, "p") == Prediction(47.0, 48.0, 0.0)


def test_the_best_take_is_the_one_that_is_shown(file: Path) -> None:
    progress = Progress(file)
    for question, fraction in (("a", 1.0), ("b", 0.5), ("b", 1.0)):
        add(progress, question, fraction)
    (only,) = progress.results()
    assert (only.best, only.answered, only.questions, only.takes, only.passed) == (1.5 / 4, 2, 4, 1, False)
    for question in "abcd":
        add(progress, question, 0.8, take=2)
    progress.begin_take(LESSON, 3, ASKED)
    (best,) = progress.results()
    assert (best.takes, best.answered, best.passed) == (3, 4, True)
    assert best.best == pytest.approx(PASS_MARK)


def test_of_an_exercise_the_best_try_counts(file: Path) -> None:
    progress = Progress(file)
    for fraction in (0.0, 1.0, 0.0):
        add(progress, "a", fraction, retry=True)
    assert progress.results()[0].best == 1 / 4


def test_a_quiz_that_changes_takes_nothing_away_and_its_new_questions_count_from_the_next_take(file: Path) -> None:
    progress = Progress(file)
    for question in "abc":
        add(progress, question)
    changed = {"a": 1.0, "b": 5.0, "new": 4.0}  # "c" and "d" are gone, "b" weighs more
    progress.begin_take(LESSON, 1, changed)
    progress.add_answer(LESSON, "new", 1, "x", 0.0, 4.0)
    (take,) = progress.takes(LESSON)
    assert (take.points, take.of, dict(take.asked), set(take.best)) == (3.0, 4.0, ASKED, set("abc"))
    progress.begin_take(LESSON, 2, changed)
    progress.add_answer(LESSON, "new", 2, "x", 0.5, 4.0)
    assert [(take.points, take.of) for take in progress.takes(LESSON)] == [(3.0, 4.0), (2.0, 10.0)]
    assert progress.results()[0].best == 3 / 4


def test_a_take_in_which_nothing_counts_has_no_share_and_does_not_pass(file: Path) -> None:
    progress = Progress(file)
    progress.begin_take(LESSON, 1, {})
    (result,) = progress.results()
    assert (result.best, result.passed, result.questions) == (0.0, False, 0)


def test_the_pass_mark_is_reached_by_its_share_and_not_by_less() -> None:
    assert passes(PASS_MARK) and passes(sum([0.1] * 8)) and sum([0.1] * 8) < 0.8
    assert not passes(PASS_MARK - 1e-6) and not passes(0.0)


def test_the_overview_speaks_both_languages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "overview"))
    assert progress_file() == tmp_path / "overview" / "progress.sqlite"
    assert "not begun" in summary("en") and "nog aan geen quiz begonnen" in summary("nl")
    add(learner_progress(), "a")
    assert learner_progress() is learner_progress()
    assert f"{LESSON:<24}1 of 4 points so far, 3 of 4 questions still open, take 1, last on" in summary()
    assert f"{LESSON:<24}tot nu toe 1 van 4 punten, nog 3 van 4 vragen open, poging 1, het laatst op" in summary("nl")
    assert "%" not in summary()
    assert "Kept in GRADACC_HOME/progress.sqlite" in summary()
    for question in "bc":
        add(learner_progress(), question, fraction=0.5)
    add(learner_progress(), "d")
    assert f"{LESSON:<24}75%, below the 80% that passes, take 1, last on" in summary()
    assert f"{LESSON:<24}75%, onder de 80% die nodig is, poging 1, het laatst op" in summary("nl")
    learner_progress().set("language", "nl")
    assert summary() == summary("nl") != summary("en")
    assert CliRunner().invoke(main, ["progress"]).output == summary("nl") + "\n"


def test_a_share_is_rounded_down_and_points_to_two_decimals(file: Path) -> None:
    almost = LessonResult(LESSON, 1, 4, 4, 3.1966667, 4.0, 0.79916, False, "2026-11-30")
    assert almost.state.en == "79%, below the 80% that passes"
    so_far = replace(almost, answered=3).state
    assert so_far.en.startswith("3.2 of 4 points") and so_far.nl.startswith("tot nu toe 3,2 van 4 punten")
    assert [percent(share) for share in (0.29, 0.8 - 1e-12, 1.0, 0.0)] == [29, 80, 100, 0]


def test_the_chosen_language_is_read_without_leaving_a_trace(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADACC_HOME", str(file.parent))
    assert chosen_language() == "en" and not file.parent.exists()
    old_file(file, 1)
    for damage, language in ((choose_dutch, "nl"), (damage_tables, "en"), (damage_all, "en")):
        damage(file)
        was = {path.name: path.read_bytes() for path in file.parent.iterdir()}
        assert chosen_language() == language
        assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == was
    file.unlink()
    Progress(file).set("language", "nl")
    holder = sqlite3.connect(file)  # what was written last is in the journal beside the file, and another one reads
    holder.execute("SELECT * FROM settings").fetchall()
    Progress(file).set("seed", "abc")
    assert file.with_name(file.name + "-wal").stat().st_size and chosen_language() == "nl"
    holder.close()


def test_a_home_folder_of_nobody_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADACC_HOME", "~nobody-here/x")
    with pytest.raises(ValueError, match="~nobody-here/x cannot be found, as there is no home folder ~nobody-here"):
        progress_file()
    assert shown(Path("/data/progress.sqlite")) == "/data/progress.sqlite"


@pytest.mark.parametrize("home", ["GRADACC_HOME", "HOME"])
def test_a_folder_and_what_is_in_it_are_shown_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.delenv("GRADACC_HOME", raising=False)
    monkeypatch.setenv(home, str(tmp_path / "somebody"))
    name = "~" if home == "HOME" else home
    assert shown(tmp_path / "somebody") == name
    assert shown(tmp_path / "somebody" / "a" / "b.sqlite") == f"{name}/a/b.sqlite"
    assert shown(tmp_path) == str(tmp_path)


# Several at once

WRITER = """
import sys
from pathlib import Path
from gradacc_lessons.progress import Progress
progress = Progress(Path(sys.argv[1]))
for n in range(int(sys.argv[3])):
    first = progress.add_answer("01_accumulate", f"shared-{n}", 1, sys.argv[2], 1.0, 1.0)
    print(f"{sys.argv[2]} {n} {first}", flush=True)
"""


def writer(file: Path, name: str, answers: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(file), name, str(answers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("each", [40, pytest.param(250, marks=pytest.mark.long)])
def test_two_processes_lose_nothing_and_agree_on_who_was_first(file: Path, each: int) -> None:
    both = [writer(file, name, each) for name in ("left", "right")]  # the file does not exist yet, for either
    said = [process.communicate(timeout=200)[0].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0] and [len(lines) for lines in said] == [each, each]
    kept = Progress(file).answers(LESSON)
    assert len(kept) == 2 * each
    for n in range(each):
        firsts = [answer.value for answer in kept if answer.question == f"shared-{n}" and answer.first]
        acknowledged = [line.split()[0] for lines in said for line in lines if line.endswith(f" {n} True")]
        assert firsts == acknowledged and len(firsts) == 1


def test_threads_share_one_object(file: Path) -> None:
    progress = Progress(file)
    threads = [threading.Thread(target=lambda k=k: [add(progress, f"{k}-{n}") for n in range(10)]) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(questions(progress)) == sorted(f"{k}-{n}" for k in range(4) for n in range(10))


def kill_writers(file: Path, kills: int) -> tuple[int, int]:
    """Kill a writer `kills` times in the middle; (answers it acknowledged, those of them that are lost)."""
    chance, acknowledged = random.Random(0), 0
    lost = 0
    for round_ in range(kills):
        process = writer(file, f"round-{round_}", 100_000)
        assert process.stdout is not None
        lines = [process.stdout.readline()]  # it has begun
        killer = threading.Timer(chance.uniform(0.0, 0.15), process.kill)
        killer.start()
        lines += process.stdout.readlines()
        assert process.wait() == -signal.SIGKILL
        done = [line for line in lines if line.endswith("\n")]
        values = [answer.value for answer in Progress(file).answers(LESSON)]
        lost += max(0, len(done) - values.count(f"round-{round_}"))
        acknowledged += len(done)
    return acknowledged, lost


def test_a_killed_writer_loses_nothing_that_was_acknowledged(file: Path) -> None:
    acknowledged, lost = kill_writers(file, kills=4)
    assert acknowledged > 4 and lost == 0
    assert quick_check(file) == "ok" and not Progress(file).notices


@pytest.mark.long
def test_a_hundred_kills_lose_nothing(file: Path) -> None:
    acknowledged, lost = kill_writers(file, kills=100)
    assert acknowledged > 100 and lost == 0
    assert quick_check(file) == "ok" and not Progress(file).notices


# Other versions and damage


def old_file(file: Path, version: int) -> None:
    """A file as an earlier version of the course left it, with one answer."""
    file.parent.mkdir(parents=True)
    db = sqlite3.connect(file)
    for step in VERSIONS[:version]:
        db.executescript(step)
    row = "(?, 1, 4.0, 4, '2026-01-01T00:00:00+00:00')"
    db.execute(f"INSERT INTO takes (lesson, take, points, questions, at) VALUES {row}", (LESSON,))
    db.execute(
        "INSERT INTO answers (lesson, question, take, first, counts, value, fraction, points, at)"
        " VALUES (?, 'old', 1, 1, 1, '\"sums\"', 1.0, 1.0, '2026-01-01T00:00:00+00:00')",
        (LESSON,),
    )
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()


def aside(file: Path, why: str) -> list[Path]:
    return sorted(path for path in file.parent.glob(f"progress.{why}-*.sqlite"))


def said(progress: Progress) -> str:
    assert all(notice.to(language) for notice in progress.notices for language in LANGUAGES)
    return " ".join(notice.en for notice in progress.notices)


@pytest.mark.parametrize("version", range(1, len(VERSIONS)))
def test_an_older_file_is_brought_up_to_date_and_a_copy_is_kept(file: Path, version: int) -> None:
    old_file(file, version)
    progress = Progress(file)
    assert questions(progress) == ["old"] and progress.results()[0].best == 1 / 4
    (copy,) = aside(file, f"version-{version}")
    assert str(copy) in said(progress) and "older version" in said(progress)
    db = sqlite3.connect(copy)
    assert db.execute("PRAGMA user_version").fetchone()[0] == version
    assert db.execute("SELECT question FROM answers").fetchall() == [("old",)]
    db.close()
    progress.add_prediction(LESSON, "p", Prediction(1.0))
    assert Progress(file).prediction(LESSON, "p") == Prediction(1.0) and not Progress(file).notices
    asked = {"old": 1.0, "b": 1.0, "c": 2.0}
    progress.begin_take(LESSON, 1, asked)  # another quiz: what the take asked is not known
    assert "b" not in progress.takes(LESSON)[0].asked
    progress.begin_take(LESSON, 1, asked | {"c": 1.0, "d": 1.0})
    progress.add_answer(LESSON, "b", 1, "x", 1.0, 1.0)
    assert progress.results()[0].best == 2 / 4 and progress.takes(LESSON)[0].of == 4


def test_a_newer_file_is_kept_aside(file: Path) -> None:
    add(Progress(file), "new")
    db = sqlite3.connect(file)
    db.execute(f"PRAGMA user_version = {len(VERSIONS) + 1}")
    db.close()
    progress = Progress(file)
    (kept,) = aside(file, "newer")
    assert "newer version" in said(progress) and str(kept) in said(progress)
    assert "`gradacc progress import` takes that file over" in said(progress)
    assert questions(progress) == [] and add(progress, "fresh")
    db = sqlite3.connect(kept)
    assert db.execute("SELECT question FROM answers").fetchall() == [("new",)]
    db.close()


def damage_all(file: Path) -> None:
    file.write_bytes(b"this is no database at all" * 400)


def damage_inside(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    file.write_bytes(raw)


def damage_tables(file: Path) -> None:
    db = sqlite3.connect(file)
    db.execute("DROP TABLE answers")
    db.close()


def changed(*statements: str):  # type: ignore[no-untyped-def]
    """A damage that SQL does."""

    def change(file: Path) -> None:
        db = sqlite3.connect(file)
        db.execute("PRAGMA journal_mode = DELETE")
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()

    return change


choose_seed = changed("INSERT INTO settings VALUES ('seed', 'old-seed')")
choose_dutch = changed("INSERT INTO settings VALUES ('language', 'nl')")
DAMAGES = {
    "all": damage_all,
    "inside": damage_inside,
    "no_table": damage_tables,
    "no_column": changed("ALTER TABLE answers DROP COLUMN fraction"),
    "no_column_of_a_later_version": changed("ALTER TABLE takes DROP COLUMN asked"),
    "another_name": changed("ALTER TABLE predictions RENAME COLUMN measured TO found"),
    "one_column_more": changed("ALTER TABLE settings ADD COLUMN more TEXT"),
    "no_key": changed("DROP TABLE settings", "CREATE TABLE settings (name TEXT, value TEXT NOT NULL)"),
    "a_view": changed("ALTER TABLE takes RENAME TO others", "CREATE VIEW takes AS SELECT * FROM others"),
    "no_version": changed("PRAGMA user_version = 0"),
    "a_version_below_the_first": changed("PRAGMA user_version = -1"),
    "a_version_it_is_not": changed("DROP TABLE predictions", f"PRAGMA user_version = {len(VERSIONS) - 1}"),
}


PREDICTED = "INSERT INTO predictions (lesson, question, value, measured, fraction, at)"
CONTENTS = {
    "no_mapping": "UPDATE takes SET asked = '[1,2]'",
    "no_json": "UPDATE takes SET asked = 'nope'",
    "text_for_points": """UPDATE takes SET asked = '{"a": "x"}'""",
    "no_such_take": "UPDATE takes SET take = -5",
    "too_many_takes": "UPDATE takes SET take = 9223372036854775807",
    "number_for_a_seed": "UPDATE takes SET seed = x'01'",
    "blob_for_a_day": "UPDATE takes SET at = x'00'",
    "text_for_a_fraction": "UPDATE answers SET fraction = 'abc'",
    "more_than_all": "UPDATE answers SET fraction = 7",
    "endless_points": "UPDATE answers SET points = 9e999",
    "answer_no_json": "UPDATE answers SET value = '{bad'",
    "endless_brackets": f"UPDATE answers SET value = '{'[' * 100_000}'",
    "prediction_a_list": f"{PREDICTED} VALUES ('a', 'b', '[1]', NULL, NULL, '')",
    "prediction_nothing": f"{PREDICTED} VALUES ('a', 'b', 'null', NULL, NULL, '')",
    "measured_a_mapping": f"{PREDICTED} VALUES ('a', 'b', '1', '{{}}', NULL, '')",
    "not_a_number": f"{PREDICTED} VALUES ('a', 'b', 'NaN', NULL, NULL, '')",
    "setting_a_blob": "INSERT INTO settings VALUES ('language', x'00')",
}


@pytest.mark.parametrize("statement", CONTENTS.values(), ids=CONTENTS)
def test_contents_that_nobody_wrote_are_damage_and_one_sentence(
    file: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(Progress(file), "before")
    open_already = Progress(file)
    changed(statement)(file)
    monkeypatch.setenv("GRADACC_HOME", str(file.parent))
    assert chosen_language() == "en"
    shown_by_command = CliRunner().invoke(main, ["progress"], catch_exceptions=False)
    assert shown_by_command.exit_code == 0 and shown_by_command.output.count("is damaged. It was kept as") == 1
    assert len(aside(file, "damaged")) == 1
    assert add(open_already, "after") and questions(Progress(file)) == ["after"]


def test_contents_that_turn_bad_in_mid_session_are_damage_too(file: Path) -> None:
    progress = Progress(file)
    add(progress, "before")
    changed(CONTENTS["answer_no_json"])(file)
    assert questions(progress) == [] and "is damaged" in said(progress) and len(aside(file, "damaged")) == 1
    assert add(progress, "after") and questions(progress) == ["after"]


def test_contents_of_an_older_file_are_looked_at_too(file: Path) -> None:
    old_file(file, 1)
    changed("UPDATE answers SET fraction = 'abc'")(file)
    assert "is damaged" in said(Progress(file)) and len(aside(file, "damaged")) == 1


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_kept_aside(file: Path, damage) -> None:  # type: ignore[no-untyped-def]
    add(Progress(file), "before")
    damage(file)
    was = file.read_bytes()
    progress = Progress(file)
    (kept,) = aside(file, "damaged")
    assert kept.read_bytes() == was
    assert "is damaged" in said(progress) and str(kept) in said(progress)
    assert add(progress, "after") and questions(Progress(file)) == ["after"]


def test_what_is_said_holds_no_name_of_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADACC_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "somebody"))
    file = tmp_path / "somebody" / "data" / "progress.sqlite"
    file.parent.mkdir(parents=True)
    damage_all(file)
    damaged = Progress(file)
    assert "kept as ~/data/progress.damaged-" in said(damaged) and "somebody" not in said(damaged)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody" / "share"))
    where = shown(progress_file())
    assert where.startswith("~/") and summary().endswith(f"Kept in {where}") and "somebody" not in summary()
    assert CliRunner().invoke(main, ["progress"]).output == summary() + "\n"
    file.parent.joinpath("blocked").write_text("")
    refused = Progress(file.parent / "blocked" / "progress.sqlite")
    assert "cannot be saved in ~/data/blocked" in said(refused) and "somebody" not in said(refused)


def test_another_programs_file_is_kept_aside(file: Path) -> None:
    file.parent.mkdir(parents=True)
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE settings (colour TEXT)")
    db.close()
    was = file.read_bytes()
    progress = Progress(file)
    assert "is damaged" in said(progress) and [path.read_bytes() for path in aside(file, "damaged")] == [was]
    assert add(progress, "after") and questions(Progress(file)) == ["after"] and progress.saves


def test_an_empty_file_is_a_new_one(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.touch()
    progress = Progress(file)
    assert add(progress, "one") and questions(Progress(file)) == ["one"] and not progress.notices


LOCKS = {
    "text": b"this is no database at all" * 400,
    "short": b"x",
    "header": b"SQLite format 3\0" + b"\xff" * 600,
    "noise": random.Random(0).randbytes(5000),
}


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
@pytest.mark.parametrize("there", [False, True], ids=["no_file_yet", "a_file"])
def test_whatever_is_in_the_lock_progress_is_saved(file: Path, lock: bytes, there: bool) -> None:
    file.parent.mkdir(parents=True)
    if there:
        add(Progress(file), "before")
    file.with_name("lock.sqlite").write_bytes(lock)
    progress = Progress(file)
    assert add(progress, "after") and progress.saves and not progress.notices
    assert questions(Progress(file)) == (["before"] if there else []) + ["after"]


def test_processes_that_find_a_lock_of_noise_still_wait_for_each_other(file: Path) -> None:
    file.parent.mkdir(parents=True)
    damage_all(file)
    file.with_name("lock.sqlite").write_bytes(LOCKS["noise"])
    all_of_them = [writer(file, f"w{n}", 5) for n in range(3)]
    for process in all_of_them:
        process.communicate(timeout=100)
    assert [process.returncode for process in all_of_them] == [0, 0, 0]
    assert len(aside(file, "damaged")) == 1 and len(Progress(file).answers(LESSON)) == 15


MET = ["all", "inside", "no_table", "no_column", "no_column_of_a_later_version", "a_view"]


@pytest.mark.parametrize("damage", [DAMAGES[name] for name in MET], ids=MET)
def test_damage_that_an_answer_meets_is_noticed_in_mid_session(file: Path, damage) -> None:  # type: ignore[no-untyped-def]
    progress = Progress(file)
    add(progress, "before")
    damage(file)
    assert add(progress, "after") and questions(progress) == ["after"]
    assert "is damaged" in said(progress) and len(aside(file, "damaged")) == 1


def test_many_processes_set_one_damaged_file_aside_once(file: Path) -> None:
    add(Progress(file), "before")
    damage_all(file)
    all_of_them = [writer(file, f"w{n}", 5) for n in range(3)]
    for process in all_of_them:
        process.communicate(timeout=100)
    assert [process.returncode for process in all_of_them] == [0, 0, 0]
    assert len(aside(file, "damaged")) == 1 and len(Progress(file).answers(LESSON)) == 15


def test_a_folder_that_is_removed_comes_back(file: Path) -> None:
    progress = Progress(file)
    add(progress, "before")
    shutil.rmtree(file.parent)
    assert add(progress, "after") and questions(Progress(file)) == ["after"]


def test_two_files_set_aside_in_one_second_keep_apart(file: Path) -> None:
    for name in ("one", "two"):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(name.encode() * 4096)
        Progress(file)
    assert {path.read_bytes()[:3] for path in aside(file, "damaged")} == {b"one", b"two"}


# A disk that refuses


def test_no_folder_to_write_in_grades_in_memory_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    progress = Progress(tmp_path / "file" / "below" / "progress.sqlite")
    assert add(progress, "one") and not add(progress, "one")
    assert questions(progress) == ["one", "one"]
    progress.set("language", "nl")
    assert progress.language == "nl" and progress.seed() == progress.seed()
    assert len(progress.notices) == 1 and "cannot be saved" in said(progress) and not progress.saves
    assert "GRADACC_HOME" in progress.notices[0].nl


def test_where_nothing_can_be_kept_the_overview_does_not_say_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "file"))
    for language, kept, cannot in (
        ("en", "Kept in", "cannot be saved in GRADACC_HOME ("),
        ("nl", "Bewaard in", "kunnen niet worden opgeslagen in GRADACC_HOME ("),
    ):
        assert cannot in summary(language) and kept not in summary(language)


FULL_DISK = """
import resource, sys
from pathlib import Path
from gradacc_lessons.progress import Progress
progress = Progress(Path(sys.argv[1]))
def add(name): return progress.add_answer("01_accumulate", name, 1, "x" * 3000, 1.0, 1.0)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
assert add("before") and not progress.notices
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))          # no byte more, in any file
assert add("during") and not add("during")
assert [a.question for a in progress.answers("01_accumulate")] == ["old", "before", "during", "during"]
assert len(progress.notices) == 1 and "cannot be saved" in progress.notices[0].en, progress.notices
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))       # room again
assert add("after") and not progress.notices, progress.notices
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on file sizes to stand for a full disk")
def test_a_full_disk_loses_nothing_older_and_what_came_meanwhile_is_saved_later(file: Path) -> None:
    add(Progress(file), "old")
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(file)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    kept = Progress(file).answers(LESSON)
    assert [(answer.question, answer.first) for answer in kept] == [
        ("old", True), ("before", True), ("during", True), ("during", False), ("after", True),
    ]  # fmt: skip


def give_up_powers() -> None:
    """Root may write anywhere: on Linux, let this process be held to the modes of files like everybody else."""
    if os.geteuid() == 0:
        header, none = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *[0] * 6)  # capabilities, version 3
        assert ctypes.CDLL(None, use_errno=True).capset(header, none) == 0, os.strerror(ctypes.get_errno())


def in_read_only_folder(file: Path) -> None:
    progress = Progress(file)
    assert questions(progress) == ["old"], progress.notices
    assert progress.add_answer(LESSON, "new", 1, "x", 1.0, 1.0)
    assert questions(progress) == ["old", "new"]
    assert len(progress.notices) == 1 and "cannot be saved" in said(progress), progress.notices


@pytest.mark.skipif(not hasattr(os, "fork"), reason="folders are not made read-only that way on Windows")
def test_a_read_only_folder_can_still_be_read(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    add(Progress(file), "old")
    file.chmod(0o444)
    file.parent.chmod(0o555)
    child = os.fork()
    if child == 0:
        try:
            give_up_powers()
            in_read_only_folder(file)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    file.parent.chmod(0o755)
    assert status == 0, capfd.readouterr().err
    assert questions(Progress(file)) == ["old"]


def test_a_writer_that_stops_in_mid_write_holds_nobody_for_long(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradacc_lessons.progress_store.BUSY_SECONDS", 0.2)
    progress = Progress(file)
    add(progress, "before")
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert add(progress, "meanwhile") and "locked" in said(progress)  # comes back while the other still holds on
    holder.execute("ROLLBACK")
    holder.close()
    assert add(progress, "after") and not progress.notices
    assert questions(Progress(file)) == ["before", "meanwhile", "after"]
