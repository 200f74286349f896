"""Grading one file: from its answers and the learner's own numbers, whatever the file is and claims."""

import errno
import io
import os
import subprocess
from pathlib import Path

import pytest
from classroom.class_room import LESSON, handed_in, right_number

from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.codes import code_for
from gradacc_lessons.classroom.grading import Grader
from gradacc_lessons.classroom.inbox import files
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.results import FileResult, read_results, result_from

SOURCE = "def updates_per_epoch(examples, micro_batch_size, accumulation_steps):\n    return 1\n"


def _graded(of_class: ClassFolder, folder: Path, raw: bytes, name: str = "one.json") -> FileResult:
    (folder / name).write_bytes(raw)
    return Grader(of_class, folder, "refused").grade(name).result


def test_answers_are_graded_with_the_learners_own_numbers(autumn: ClassFolder, tmp_path: Path) -> None:
    right = right_number(autumn, "s1")
    given = [("small-choice", 1, "mean"), ("small-number", 1, right), ("small-multiple", 1, ["step", "forward"])]
    result = _graded(autumn, tmp_path, handed_in(autumn.codes["s1"], {LESSON: given}))
    assert (result.status, result.learner, result.code, result.notes) == ("graded", "s1", "none", ())
    (lesson,) = result.lessons
    found = {answer.question: answer for answer in lesson.answers}
    assert (found["small-choice"].fraction, found["small-choice"].mistake) == (0.0, "mean")
    assert (found["small-number"].fraction, found["small-number"].mistake) == (1.0, None)
    assert found["small-multiple"].fraction == 0.0 and found["small-multiple"].mistake == "forward"
    bank, digest = autumn.bank(LESSON)
    assert lesson.of == sum(question.points for question in bank.counted) and lesson.bank == digest
    assert lesson.points == bank.question("small-number").points  # type: ignore[union-attr]
    assert found["small-choice"].said is not None and "you do" in found["small-choice"].said.en


def test_the_best_take_counts_and_the_first_answer_in_it(autumn: ClassFolder, tmp_path: Path) -> None:
    given = [
        ("small-choice", 1, "mean"),
        ("small-choice", 1, "sums"),  # too late: feedback had been given
        ("small-choice", 2, "sums"),
        ("small-choice", 3, "replaces"),
    ]
    (lesson,) = _graded(autumn, tmp_path, handed_in(autumn.codes["s1"], {LESSON: given})).lessons
    assert lesson.take == 2 and lesson.counting()["small-choice"].fraction == 1.0
    assert [answer.mistake for answer in lesson.answers if answer.take == 1] == ["mean"]
    assert [answer.said is not None for answer in lesson.answers] == [False, True, False]


def test_a_classmates_right_numbers_are_wrong(autumn: ClassFolder, tmp_path: Path) -> None:
    take = next(
        take for take in range(1, 20) if right_number(autumn, "s1", take=take) != right_number(autumn, "s3", take=take)
    )
    given = [("small-number", take, right_number(autumn, "s1", take=take))]
    (lesson,) = _graded(autumn, tmp_path, handed_in(autumn.codes["s3"], {LESSON: given})).lessons
    assert lesson.points == 0.0


def test_code_without_a_sandbox_is_not_run_and_said_to_be(autumn: ClassFolder, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    source = f"open({str(mark)!r}, 'w')\n{SOURCE}"
    result = _graded(autumn, tmp_path, handed_in(autumn.codes["s1"], {LESSON: [("small-code", 1, source)]}))
    assert not mark.exists() and result.code == "refused"
    assert [note.id for note in result.notes] == ["code_refused"]
    (answer,) = result.lessons[0].answers
    assert answer.fraction == 0.0 and answer.said is not None and "no sandbox" in answer.said.en
    assert len(answer.value) == 64, "the source itself is not copied into the results"


def test_what_the_bank_does_not_have_is_left_out_and_said(autumn: ClassFolder, tmp_path: Path) -> None:
    given = {LESSON: [("small-choice", 1, "sums"), ("other", 1, 1)], "77_nothing": [("x", 1, 1)]}
    result = _graded(autumn, tmp_path, handed_in(autumn.codes["s1"], given))
    assert [note.id for note in result.notes] == ["unknown_answers", "unknown_lesson"]
    assert [lesson.lesson for lesson in result.lessons] == [LESSON] and result.lessons[0].points > 0


def test_predictions_and_what_is_no_answer_count_for_nothing(autumn: ClassFolder, tmp_path: Path) -> None:
    given = [("small-predict", 1, 3), ("small-choice", 1, ["sums"]), ("small-number", 1, "many"), ("small-spot", 1, 99)]
    (lesson,) = _graded(autumn, tmp_path, handed_in(autumn.codes["s1"], {LESSON: given})).lessons
    assert lesson.answers == () and lesson.points == 0.0 and lesson.of > 0


def test_whose_it_is_must_be_proven(autumn: ClassFolder, tmp_path: Path) -> None:
    given = {LESSON: [("small-choice", 1, "sums")]}
    other_class = code_for(autumn.key, "zzzzzz", "s1")
    stranger = code_for(autumn.key, autumn.id, "nobody")
    for raw, reason in (
        (handed_in(other_class, given), "wrong_class"),
        (handed_in(stranger, given), "unknown_learner"),
        (handed_in(autumn.codes["s1"], given, proof="0" * 64), "proof"),
        (handed_in(autumn.codes["s1"], given, proof=autumn.codes["s3"].proof("x")), "proof"),
        (b"junk", "not_json"),
    ):
        result = _graded(autumn, tmp_path, raw)
        assert (result.status, result.lessons, result.learner) == ("refused", (), None)
        assert result.reason is not None and result.reason.id == reason


def test_links_pipes_and_folders_are_not_opened(autumn: ClassFolder, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    (inbox / "deep" / "er").mkdir(parents=True)
    whole = handed_in(autumn.codes["s1"], {LESSON: [("small-choice", 1, "sums")]})
    (tmp_path / "outside.json").write_bytes(whole)
    (inbox / "link.json").symlink_to(tmp_path / "outside.json")
    (inbox / "folder").symlink_to(tmp_path)
    (inbox / "key.json").symlink_to(autumn.folder / "class.key")
    os.mkfifo(inbox / "pipe.json")
    (inbox / "deep" / "er" / "ok.json").write_bytes(whole)
    (inbox / ".DS_Store").write_bytes(b"x")
    names = files(inbox)
    assert names == ["deep/er/ok.json", "folder", "key.json", "link.json", "pipe.json"]
    results = [Grader(autumn, inbox, "refused").grade(name).result for name in names]
    assert [result.status for result in results] == ["graded"] + ["refused"] * 4
    assert all(result.reason and result.reason.id == "not_plain" for result in results[1:])


def test_folders_nested_beyond_all_bounds_are_one_file_that_cannot_be_read(autumn: ClassFolder, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    (inbox / "good.json").write_bytes(handed_in(autumn.codes["s1"], {LESSON: [("small-choice", 1, "sums")]}))
    at = os.open(inbox, os.O_RDONLY)
    for _ in range(2200):  # deeper than Python's stack, and a longer path than the system takes
        os.mkdir("n", dir_fd=at)
        inner = os.open("n", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    try:
        names = files(inbox)
        results = [Grader(autumn, inbox, "refused").grade(name).result for name in names]
    finally:
        subprocess.run(["rm", "-rf", str(inbox)], check=True)
    assert [result.status for result in results] == ["graded", "refused"]
    assert results[1].reason is not None and results[1].reason.id == "unreadable"


def test_a_file_that_stops_in_the_middle_costs_nobody_else_anything(
    autumn: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a.json").write_bytes(b"{}")
    monkeypatch.setattr(os, "fdopen", lambda descriptor, mode: os.close(descriptor) or Broken())
    monkeypatch.setattr(os, "fstat", lambda descriptor: os.stat(tmp_path / "a.json"))
    result = Grader(autumn, tmp_path, "refused").grade("a.json").result
    assert result.reason is not None and result.reason.id == "unreadable"


def test_thousands_of_tries_leave_a_result_that_can_be_read(autumn: ClassFolder, tmp_path: Path) -> None:
    tries = [("small-code", 1, f"# {number}") for number in range(5000)]
    result = _graded(autumn, tmp_path, handed_in(autumn.codes["s1"], {LESSON: tries}))
    assert len(result.lessons[0].answers) == 1
    (tmp_path / "results.jsonl").write_bytes(result.line())
    assert list(read_results(tmp_path / "results.jsonl")) == [result]


@pytest.mark.parametrize("name", ["=cmd|'calc'!A0.json", "..json", "a\nb.json", "-rf.json", "é" * 60, b"\xff\xfe.json"])
def test_a_files_name_is_only_a_name(autumn: ClassFolder, tmp_path: Path, name: str | bytes) -> None:
    name = os.fsdecode(name)
    result = _graded(autumn, tmp_path, handed_in(autumn.codes["s1"], {LESSON: [("small-choice", 1, "sums")]}), name)
    assert result.status == "graded" and result_from_line(result.line()) == result


def result_from_line(line: bytes) -> FileResult:
    import json

    return result_from(json.loads(line))


def test_a_line_that_is_no_result_is_named(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    good = FileResult("a.json", "graded", learner="s1").line()
    other_kinds = [
        (b'"graded"', b'"great"'),
        (b'"s1"', b'["s1"]'),
        (b'"a.json"', b"7"),
        (b'"lessons":[]', b'"lessons":[{}]'),
    ]
    for bad in (b"{}\n", b"[]\n", b"null\n", b"junk\n", *(good.replace(*change) for change in other_kinds)):
        file.write_bytes(good + bad)
        with pytest.raises(ValueError, match=r"results\.jsonl:2: this line is no result"):
            list(read_results(file))


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ClassError, match="there is no folder"):
        files(tmp_path / "nothing")
