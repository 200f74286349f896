"""Grading a folder: the same bytes each time, interrupted or not, and one bad file costs nobody else anything."""

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest
from classroom.class_room import LESSON, handed_in, need_sandbox, right_number

from gradacc_lessons.classroom import grade_folder as module
from gradacc_lessons.classroom import sandbox
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.grade_folder import grade_folder
from gradacc_lessons.classroom.grading import Graded, Grader
from gradacc_lessons.classroom.inbox import files
from gradacc_lessons.classroom.journal import NAME, Entry, Journal, line_of
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.results import FileResult, read_results
from gradacc_lessons.classroom.same_work import compared
from gradacc_lessons.quiz.exercises import EXERCISES

LATER = "2026-09-02T10:00:00.000+00:00"
CHOICE = ("small-choice", 1, "sums")


@pytest.fixture
def inbox(autumn: ClassFolder, tmp_path: Path) -> Path:
    """One file of each kind that is not just graded, and some that are."""
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    codes = autumn.codes
    ada = handed_in(codes["s1"], {LESSON: [CHOICE, ("small-number", 1, right_number(autumn, "s1"))]})
    (folder / "ada.json").write_bytes(ada)
    (folder / "bob.json").write_bytes(ada)
    (folder / "grace-1.json").write_bytes(handed_in(codes["s4"], {LESSON: [CHOICE]}))
    (folder / "grace-2.json").write_bytes(handed_in(codes["s4"], {LESSON: [CHOICE]}, written=LATER, moment=LATER))
    (folder / "sub" / "=1+1.json").write_bytes(handed_in(codes["s2"], {LESSON: [("small-choice", 1, "mean")]}))
    (folder / "junk.json").write_bytes(b"junk")
    return folder


def _by_file(file: Path) -> dict[str, FileResult]:
    return {result.file: result for result in read_results(file)}


def test_every_file_has_a_line_and_the_reason_is_its_own(autumn: ClassFolder, inbox: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    summary = grade_folder(autumn, inbox, to=tmp_path / "out", jobs=1, tell=lambda *at: told.append(at))
    found = _by_file(summary.file)
    assert list(found) == sorted(files(inbox)) and told[0] == (0, 6) and told[-1] == (6, 6)
    said = {name: (result.status, result.reason and result.reason.id) for name, result in found.items()}
    assert said == {
        "ada.json": ("graded", None),
        "bob.json": ("copied", "copied"),
        "grace-1.json": ("superseded", "superseded"),
        "grace-2.json": ("graded", None),
        "junk.json": ("refused", "not_json"),
        "sub/=1+1.json": ("graded", None),
    }
    assert found["bob.json"].lessons == () and "ada.json" in found["bob.json"].reason.text.en  # type: ignore[union-attr]
    assert dict(summary.counts) == {"graded": 3, "copied": 1, "superseded": 1, "refused": 1}
    assert not (tmp_path / "out" / NAME).exists()


def test_a_copy_under_ones_own_name_is_the_others_work(autumn: ClassFolder, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    take = next(k for k in range(1, 20) if right_number(autumn, "s1", take=k) != right_number(autumn, "s3", take=k))
    work = {LESSON: [("small-choice", take, "sums"), ("small-number", take, right_number(autumn, "s1", take=take))]}
    (folder / "a-copy.json").write_bytes(handed_in(autumn.codes["s3"], work, written=LATER))
    (folder / "own.json").write_bytes(handed_in(autumn.codes["s1"], work))
    found = _by_file(grade_folder(autumn, folder, to=tmp_path, jobs=1).file)
    assert found["own.json"].status == "graded" and found["own.json"].notes == ()
    assert found["a-copy.json"].status == "copied" and found["a-copy.json"].learner == "s3"


def test_where_nothing_shows_whose_work_it_is_the_teacher_decides(autumn: ClassFolder, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("s1", "s3"):
        (folder / f"{name}.json").write_bytes(handed_in(autumn.codes[name], {LESSON: [CHOICE]}))
    found = _by_file(grade_folder(autumn, folder, to=tmp_path, jobs=1).file)
    assert [result.status for result in found.values()] == ["graded", "graded"]
    assert [note.id for result in found.values() for note in result.notes] == ["same_work", "same_work"]


def test_twice_in_another_number_of_processes_it_is_the_same(autumn: ClassFolder, inbox: Path, tmp_path: Path) -> None:
    one = grade_folder(autumn, inbox, to=tmp_path / "one", jobs=1).file.read_bytes()
    other = grade_folder(autumn, inbox, to=tmp_path / "two", jobs=2).file.read_bytes()
    assert one == other == grade_folder(autumn, inbox, to=tmp_path / "one", jobs=2).file.read_bytes()


class _Stopped(Exception):
    pass


def test_interrupted_it_goes_on_and_ends_the_same(
    autumn: ClassFolder, inbox: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = grade_folder(autumn, inbox, to=tmp_path / "whole", jobs=1).file.read_bytes()
    monkeypatch.setattr(module, "PIECE", 1)

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise _Stopped

    with pytest.raises(_Stopped):
        grade_folder(autumn, inbox, to=tmp_path / "out", jobs=1, tell=stop)
    journal = tmp_path / "out" / NAME
    assert not (tmp_path / "out" / "results.jsonl").exists() and journal.read_bytes().count(b"\n") == 4
    journal.write_bytes(journal.read_bytes() + b'{"name": "half')  # as a kill leaves it
    (inbox / "ada.json").touch()  # the same bytes are the same file
    summary = grade_folder(autumn, inbox, to=tmp_path / "out", jobs=1)
    assert summary.resumed == 3 and summary.file.read_bytes() == whole


def test_what_changed_meanwhile_is_graded_anew(autumn: ClassFolder, inbox: Path, tmp_path: Path) -> None:
    kind = "sandbox" if sandbox.missing() is None else "refused"
    (tmp_path / "out").mkdir()
    journal = Journal(tmp_path / "out" / NAME, module._what(autumn, kind))
    for name in files(inbox):
        journal.add(name, line_of(name, Grader(autumn, inbox, kind).grade(name)))
    journal.close()
    (inbox / "junk.json").write_bytes(handed_in(autumn.codes["s3"], {LESSON: [CHOICE]}, moment=LATER))
    summary = grade_folder(autumn, inbox, to=tmp_path / "out", jobs=1)
    assert summary.resumed == 5 and _by_file(summary.file)["junk.json"].status == "graded"


def test_a_second_grading_into_the_same_folder_is_told_to_wait(
    autumn: ClassFolder, inbox: Path, tmp_path: Path
) -> None:
    whole = grade_folder(autumn, inbox, to=tmp_path / "out", jobs=1).file.read_bytes()
    refused = []

    def meanwhile(done: int, total: int) -> None:
        with pytest.raises(ClassError, match="another `gradacc class grade` writes to") as error:
            grade_folder(autumn, inbox, to=tmp_path / "out", jobs=1)
        refused.append(error.value.text.nl)

    assert grade_folder(autumn, inbox, to=tmp_path / "out", jobs=1, tell=meanwhile).file.read_bytes() == whole
    assert refused and "wacht tot die klaar is" in refused[0]


def test_a_journal_of_something_else_is_not_used(tmp_path: Path) -> None:
    line = line_of("a.json", _graded_as("a.json"))
    for what in ({"version": 1}, {"version": 2}):
        journal = Journal(tmp_path / NAME, what)
        assert not journal.entries
        journal.add("a.json", line)
        journal.close()
    assert "a.json" in Journal(tmp_path / NAME, {"version": 2}).entries
    (tmp_path / NAME).write_bytes(b"\x00\xff")
    assert not Journal(tmp_path / NAME, {"version": 2}).entries


def _graded_as(name: str) -> Graded:
    return Graded(FileResult(name, "graded", learner="s1", written=LATER), "0" * 64, "w", "c", 0)


def test_of_one_learners_files_only_the_last_counts_however_many() -> None:
    entries = {
        f"{name}.json": Entry(0, "", "graded", "s1", written, f"w{name}", f"c{name}", 0)
        for name, written in (("a", "2026-01-03"), ("b", "2026-01-05"), ("c", "2026-01-04"))
    }
    verdicts, notes = compared(entries)
    assert {name: status for name, (status, _) in verdicts.items()} == {"a.json": "superseded", "c.json": "superseded"}
    assert all("b.json" in remark.text.en for _, remark in verdicts.values()) and not notes
    assert all("2026-01-05" in remark.text.nl for _, remark in verdicts.values()), "a clock that was wrong can be seen"


def test_of_a_whole_class_with_the_same_work_a_note_names_a_few() -> None:
    entries = {f"{n:02}.json": Entry(0, "", "graded", f"s{n}", LATER, "the same", f"c{n}", 0) for n in range(20)}
    verdicts, notes = compared(entries)
    assert not verdicts and len(notes) == 20
    assert "00.json, 01.json, 03.json, 04.json, 05.json and 14 more" in notes["02.json"].text.en


def test_two_files_without_an_answer_are_not_the_same_work(autumn: ClassFolder, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("s1", "s3"):
        (folder / f"{name}.json").write_bytes(handed_in(autumn.codes[name], {LESSON: []}))
    found = _by_file(grade_folder(autumn, folder, to=tmp_path, jobs=1).file)
    assert [(result.status, result.notes) for result in found.values()] == [("graded", ())] * 2


def test_without_a_sandbox_code_is_refused_unless_unsafe(
    autumn: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> str:
        return "there is none in this test"

    monkeypatch.setattr(sandbox, "missing", missing)
    folder = tmp_path / "in"
    folder.mkdir()
    source = EXERCISES["updates_per_epoch"].solution
    (folder / "a.json").write_bytes(handed_in(autumn.codes["s1"], {LESSON: [("small-code", 1, source)]}))
    summary = grade_folder(autumn, folder, to=tmp_path / "out", jobs=1)
    (result,) = read_results(summary.file)
    assert (summary.code, result.code, result.lessons[0].points) == ("refused", "refused", 0.0)
    assert summary.why_no_sandbox == missing()
    summary = grade_folder(autumn, folder, to=tmp_path / "out", jobs=1, unsafe=True)
    (result,) = read_results(summary.file)
    assert (summary.code, result.code) == ("unsafe", "unsafe") and result.lessons[0].points > 0
    assert [note.id for note in result.notes] == ["code_unsafe"]


@pytest.mark.long
def test_killed_in_the_middle_nothing_is_left_running_and_it_goes_on(autumn: ClassFolder, tmp_path: Path) -> None:
    need_sandbox()
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(40):
        source = f"# {number}\n" + EXERCISES["updates_per_epoch"].solution
        given = {LESSON: [("small-code", 1, source), CHOICE]}
        moment = f"2026-09-01T10:00:{number:02d}.000+00:00"
        (folder / f"{number:02d}.json").write_bytes(
            handed_in(autumn.codes[f"s{number % 4 + 1}"], given, written=moment, moment=moment)
        )
    whole = grade_folder(autumn, folder, to=tmp_path / "whole").file.read_bytes()
    out = tmp_path / "out"
    grade = [sys.executable, "-m", "gradacc_lessons", "class", "grade", str(folder), "--class", str(autumn.folder)]
    with subprocess.Popen([*grade, "--to", str(out)], start_new_session=True) as process:
        while not (out / NAME).exists() or (out / NAME).read_bytes().count(b"\n") < 10:
            time.sleep(0.05)
        running = _below(process.pid)
        process.kill()
    assert running
    deadline = time.monotonic() + 20
    while (left := [pid for pid in running if _alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left
    subprocess.run([*grade, "--to", str(out)], check=True, timeout=120)
    assert (out / "results.jsonl").read_bytes() == whole


def _below(pid: int) -> set[int]:
    parents = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
def test_an_interrupt_from_the_keyboard_ends_in_order(autumn: ClassFolder, inbox: Path, tmp_path: Path) -> None:
    for number in range(400):
        (inbox / f"x{number}.json").write_bytes(b"junk")
    command = [sys.executable, "-m", "gradacc_lessons", "class", "grade", str(inbox), "--class", str(autumn.folder)]
    with subprocess.Popen([*command, "--to", str(tmp_path / "out")], stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "out" / NAME).exists() or (tmp_path / "out" / NAME).read_bytes().count(b"\n") < 5:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode != 0 and "Traceback" not in said
    assert json.loads((tmp_path / "out" / NAME).read_bytes().splitlines()[0])


@pytest.mark.long
def test_an_interrupt_does_not_wait_for_code_that_sleeps(autumn: ClassFolder, tmp_path: Path) -> None:
    need_sandbox()
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(16):
        tries = [("acc-write-loop", take, f"import time\ntime.sleep({8 + take / 100})\n") for take in range(1, 20)]
        moment = f"2026-09-01T10:00:{number:02d}.000+00:00"
        code = autumn.codes[f"s{number % 4 + 1}"]
        (folder / f"{number}.json").write_bytes(handed_in(code, {"01_accumulate": tries}, moment=moment))
    command = [sys.executable, "-m", "gradacc_lessons", "class", "grade", str(folder), "--class", str(autumn.folder)]
    with subprocess.Popen(
        [*command, "--to", str(tmp_path / "out"), "--jobs", "2"],
        start_new_session=True, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 60
        while len(running := _below(process.pid)) < 8 and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as the terminal does: to all of them
        began = time.monotonic()
        _, said = process.communicate(timeout=60)
    assert time.monotonic() - began < 6 and "Traceback" not in said
    while (left := [pid for pid in running if _alive(pid)]) and time.monotonic() - began < 6:
        time.sleep(0.1)
    assert not left


@pytest.mark.long
def test_a_process_that_is_killed_from_outside_is_a_sentence_and_it_goes_on(
    autumn: ClassFolder, inbox: Path, tmp_path: Path
) -> None:
    for number in range(60):
        (inbox / f"x{number}.json").write_bytes(b"junk")
    whole = grade_folder(autumn, inbox, to=tmp_path / "whole", jobs=1).file.read_bytes()

    def kill(done: int, total: int) -> None:
        if done:
            for process in active_children():
                process.kill()
                process.join()

    with pytest.raises(RuntimeError, match="ended from outside"):
        grade_folder(autumn, inbox, to=tmp_path / "out", jobs=2, tell=kill)
    summary = grade_folder(autumn, inbox, to=tmp_path / "out", jobs=2)
    assert summary.resumed > 0 and summary.file.read_bytes() == whole


def test_a_process_that_cannot_begin_says_why_in_a_sentence(
    autumn: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(kind: str) -> None:
        raise sandbox.SandboxError("the sandbox does not work here")

    monkeypatch.setattr(module, "_GRADER", "")
    monkeypatch.setattr(module.limits, "end_with", lambda parent: None)
    monkeypatch.setattr(module.sandbox, "use", broken)
    before = signal.getsignal(signal.SIGINT)
    try:
        module._begin(autumn.folder, tmp_path, "sandbox", os.getppid())
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(RuntimeError, match="does not work here"):
        module._grade(["a.json"])
