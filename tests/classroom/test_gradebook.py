"""Grades as Canvas and Moodle import them: no grade is not a 0, and no name is a formula."""

import csv
import errno
import io
import os
from pathlib import Path

import pytest
from classroom.class_room import LESSON
from classroom.graded import refused, result
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.gradebook import CANVAS, gradebook, write_gradebooks
from gradacc_lessons.classroom.roster import Learner
from gradacc_lessons.classroom.tables import harmless

LEARNERS = [
    Learner("s1", "Ada", "ada@example.org"),
    Learner("s2", "=1+1"),
    Learner("-7", "Zoë van Dijk"),
    Learner("s4"),
]
RESULTS = [
    result("s1", share=0.85),
    result("s2", share=1 / 3, lesson="01_accumulate"),
    refused("-7", "damaged"),
    result("somebody else", share=1.0),
]


def read(content: bytes) -> list[list[str]]:
    assert content.startswith(b"\xef\xbb\xbf")  # by which Excel knows UTF-8
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_canvas_finds_its_columns_the_points_and_a_row_for_everybody() -> None:
    heading, most, *rows = read(gradebook(LEARNERS, RESULTS).canvas())
    assert heading == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "01_accumulate", LESSON]
    assert "Points Possible" in most[0] and most[5:] == ["100", "100"]
    assert rows == [
        ["Ada", "", "s1", "s1", "", "", "85.00"],
        ["'=1+1", "", "s2", "s2", "", "33.33", ""],
        ["Zoë van Dijk", "", "-7", "-7", "", "", ""],
        ["s4", "", "s4", "s4", "", "", ""],
    ]


def test_canvas_takes_the_heading_for_one() -> None:
    """The conditions of Canvas's own importer: row_has_student_headers? and update_column_count."""
    row = read(gradebook(LEARNERS, RESULTS).canvas())[0]
    assert len(row) > 3 and "Student" in row[0] and "ID" in row[1]
    assert row[2] == "SIS User ID" and row[3] == "SIS Login ID" and "Section" in row[len(CANVAS) - 1]
    reserved = ("Current Score", "Final Score", "Final Grade", "Override", "Current Points", "Final Points")
    assert not any(word in name for name in row[len(CANVAS) :] for word in reserved)


def test_moodle_gets_a_dash_where_there_is_no_grade() -> None:
    """Moodle reads an empty cell of a new grade item as 0."""
    heading, *rows = read(gradebook(LEARNERS, RESULTS).moodle())
    assert heading == ["ID number", "Full name", "Email address", "01_accumulate", LESSON]
    assert [row[3:] for row in rows] == [["-", "85.00"], ["33.33", "-"], ["-", "-"], ["-", "-"]]
    assert rows[0][:3] == ["s1", "Ada", "ada@example.org"]


def test_a_class_without_results_has_a_gradebook_without_grades() -> None:
    heading, most, *rows = read(gradebook(LEARNERS, []).canvas())
    assert heading == list(CANVAS) and len(rows) == len(LEARNERS) and len(most) == len(CANVAS)


def test_both_files_are_written_beside_each_other(autumn: ClassFolder, tmp_path) -> None:
    files = write_gradebooks(autumn, RESULTS, tmp_path / "new")
    assert [file.name for file in files] == ["canvas.csv", "moodle.csv"]
    assert [row[0] for row in read(files[1].read_bytes())[1:]] == list(autumn.learners)


DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")


@given(st.text(max_size=20), st.text(min_size=1, max_size=20), st.floats(0, 1))
def test_whatever_somebody_is_called_the_table_keeps_its_shape_and_runs_nothing(
    name: str, learner: str, share: float
) -> None:
    book = gradebook([Learner(learner, name)], [result(learner, share=share)])
    for content in (book.canvas(), book.moodle()):
        rows = read(content)
        assert len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows for cell in row):
            number = cell in ("", "-") or cell.removeprefix("-").replace(".", "", 1).isdigit()
            assert number or not cell.lstrip(" \u00a0\ufeff").startswith(DANGEROUS)
        assert harmless(learner) in rows[-1]
        assert f"{share * 100:.2f}" in rows[-1]


@pytest.mark.parametrize("cell", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", " =1", "\t=1", "-1\n=2", "-2-3", "--1", "-.5e1"])
def test_what_a_spreadsheet_would_run_is_text(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "-", "-0.25", "-12", "85.00", "Ada", "s-1", "a=b"])
def test_numbers_and_words_stay_as_they_are(cell: str) -> None:
    assert harmless(cell) == cell


def test_a_full_disk_leaves_the_gradebook_of_before(
    autumn: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (canvas, _) = write_gradebooks(autumn, [result("s1", share=0.85)], tmp_path)
    before = canvas.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"canvas\.csv"):
        write_gradebooks(autumn, [result("s1", share=0.10)], tmp_path)
    assert canvas.read_bytes() == before and len(list(tmp_path.iterdir())) == 2
