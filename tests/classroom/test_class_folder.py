"""Making and opening a class: the roster as teachers have it, keys that only their owner may read."""

import csv
import io
import os
import re
import stat
import threading
from pathlib import Path

import pytest
from classroom.class_room import BANKS

from gradacc_lessons.certificate.keys import own_key
from gradacc_lessons.classroom.class_folder import ClassFolder, new_class, open_class
from gradacc_lessons.classroom.codes import read_code
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.roster import read_roster
from gradacc_lessons.classroom.tables import as_csv, harmless
from gradacc_lessons.quiz.bank import BankError


def _roster(tmp_path: Path, content: str | bytes) -> Path:
    file = tmp_path / "roster.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_everything_is_there_and_secrets_are_the_owners(autumn: ClassFolder) -> None:
    for name in ("class.key", "teacher.pem", "codes.csv", "roster.csv"):
        assert stat.S_IMODE((autumn.folder / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE(autumn.folder.stat().st_mode) == 0o700
    assert own_key(autumn.folder / "teacher.pem").did.startswith("did:key:")
    assert open_class(autumn.folder) == autumn
    assert list(autumn.learners) == ["s1", "s2", "s3", "s4"] and autumn.learners["s3"].name == "Zoë van Dijk"


def test_codes_csv_gives_each_learner_a_code_and_a_spreadsheet_nothing_to_run(autumn: ClassFolder) -> None:
    raw = (autumn.folder / "codes.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"))))
    assert [row["id"] for row in rows] == list(autumn.learners)
    assert [read_code(row["class code"]) for row in rows] == list(autumn.codes.values())
    assert rows[1]["name"] == "'=1+1"


def test_a_learner_who_comes_later_has_a_code_and_nobody_elses_changes(tmp_path: Path) -> None:
    made = new_class(tmp_path / "class", _roster(tmp_path, "id\na\nb\n"))
    (made.folder / "roster.csv").write_text("id\nb\nc\na\n", encoding="utf-8")
    again = open_class(made.folder)
    again.write_codes()
    assert {again.codes[each] for each in "ab"} == {made.codes[each] for each in "ab"} and "c" in again.codes


def test_two_classes_have_nothing_in_common(tmp_path: Path) -> None:
    roster = _roster(tmp_path, "id\na\n")
    one, other = (new_class(tmp_path / name, roster) for name in ("one", "other"))
    assert one.key != other.key and one.id != other.id and one.codes["a"] != other.codes["a"]


@pytest.mark.parametrize(
    "content",
    [
        "id,name\ns1,Zoë\n",
        "\ufeffid;name\r\ns1;Zoë\r\n",
        "Student ID\tNaam\ns1\tZoë\n",
        '"SIS User ID","Student"\n"s1","Zoë"\n\n',
        "name;studentnummer\nZoë; s1 \n".encode("cp1252"),
        "id\tname\r\ns1\tZoë\r\n".encode("utf-16"),  # as Excel's "Unicode text"
    ],
)
def test_rosters_as_schools_write_them(tmp_path: Path, content: str | bytes) -> None:
    (learner,) = read_roster(_roster(tmp_path, content))
    assert (learner.id, learner.name) == ("s1", "Zoë")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "needs a column id"),
        ("name\nAda\n", "its first line has: name"),
        ("id,name\ns1,Ada\ns1,Bob\n", "line 3: the id s1 stands there twice"),
        ("id,name\n,Ada\n", "line 2: the id is empty"),
        ("id,name\n\ns1,Ada,more,still more\n\n,Bob\n", "line 5: the id is empty"),
        ("id,name\ns1," + "x" * 201 + "\n", "line 2: the name is longer"),
        ("id,name\ns1,a\x07b\n", "control characters"),
        ("id\n", "names no learner"),
        ('id,remark\ns1,"late\ns2,\n', "is no CSV"),  # a quote that is never closed: s2 would be gone
    ],
)
def test_a_roster_that_cannot_be_used_leaves_no_class(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(ClassError, match=says) as refused:
        new_class(tmp_path / "class", _roster(tmp_path, content))
    assert refused.value.text.nl != refused.value.text.en and not (tmp_path / "class").exists()


def test_an_id_holds_nothing_that_cannot_be_seen_and_a_name_may(tmp_path: Path) -> None:
    for sign in ("\u200b", "\u202e", "\ufeff", "\u00ad"):
        with pytest.raises(ClassError, match=r"line 3: the id .* invisible"):
            read_roster(_roster(tmp_path, f"id,name\ns1,Ada\ns1{sign},Eve\n"))
    (learner,) = read_roster(_roster(tmp_path, "id,name\ns1,\u0645\u062d\u200c\u0631\u0636\n"))
    assert "\u200c" in learner.name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_roster_out_of_a_pipe_is_read_once_and_one_without_end_not_to_the_end(tmp_path: Path) -> None:
    pipe = tmp_path / "roster"
    os.mkfifo(pipe)
    feeding = threading.Thread(target=pipe.write_bytes, args=(b"id\na\n",))
    feeding.start()
    assert list(new_class(tmp_path / "class", pipe).learners) == ["a"]
    feeding.join()
    with pytest.raises(ClassError, match="too large"):
        new_class(tmp_path / "other", Path("/dev/zero"))


def test_no_id_leads_elsewhere_or_is_taken_for_an_option(tmp_path: Path) -> None:
    ids = ["../../etc/passwd", "-rf", "--", "CON", "a/b", ".", "é", "x" * 200]
    made = new_class(tmp_path / "class", _roster(tmp_path, "id\n" + "".join(f"{each}\n" for each in ids)))
    stems = [made.stem(learner) for learner in made.learners.values()]
    assert len(set(stems)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}-[0-9a-f]{8}", stem) for stem in stems), stems


def test_a_class_is_never_written_over(autumn: ClassFolder, tmp_path: Path) -> None:
    before = autumn.key
    with pytest.raises(ClassError, match="is there already"):
        new_class(autumn.folder, _roster(tmp_path, "id\na\n"))
    assert open_class(autumn.folder).key == before


def test_a_bank_of_ones_own_takes_the_place_of_the_courses(autumn: ClassFolder, tmp_path: Path) -> None:
    assert autumn.bank("90_small")[0].lesson == "90_small" and "01_accumulate" in autumn.bank_files
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "01_accumulate.yaml").write_bytes(
        (BANKS / "90_small.yaml").read_bytes().replace(b"lesson: 90_small", b"lesson: 01_accumulate")
    )
    made = new_class(tmp_path / "class", _roster(tmp_path, "id\na\n"), tmp_path / "bank")
    assert {question.id for question in made.bank("01_accumulate")[0].questions} >= {"small-choice"}
    assert made.bank("01_accumulate")[1] != autumn.bank("01_accumulate")[1]


def test_a_bank_with_a_mistake_leaves_no_class(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    with pytest.raises(ClassError, match="there is no bank"):
        new_class(tmp_path / "class", _roster(tmp_path, "id\na\n"), tmp_path / "bank")
    (tmp_path / "bank" / "01_accumulate.yaml").write_text("lesson: 02_other\n", encoding="utf-8")
    with pytest.raises(BankError, match=r"01_accumulate\.yaml:"):
        new_class(tmp_path / "class", _roster(tmp_path, "id\na\n"), tmp_path / "bank")
    assert not (tmp_path / "class").exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
def test_a_key_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    made = new_class(tmp_path / "class", _roster(tmp_path, "id\na\n"))
    (made.folder / "class.key").chmod(0o644)
    with pytest.raises(ClassError, match="chmod 600"):
        _ = open_class(made.folder).key


def test_a_damaged_class_is_said(tmp_path: Path) -> None:
    with pytest.raises(ClassError, match="gradacc class new"):
        open_class(tmp_path)
    made = new_class(tmp_path / "class", _roster(tmp_path, "id\na\n"))
    (made.folder / "class.key").write_text("abc", encoding="ascii")
    with pytest.raises(ClassError, match="damaged"):
        _ = open_class(made.folder).key
    good = (made.folder / "class.json").read_bytes()
    no_id = good.replace(made.id.encode(), b"5")
    for content in (b"", b"{}", b'{"format":"gradacc-class","version":9,"id":"aaaaaa","name":"x"}', b"[]", no_id):
        (made.folder / "class.json").write_bytes(content)
        with pytest.raises(ClassError, match=r"cannot be used: it (is|holds) (of|no|not)") as refused:
            open_class(made.folder)
        assert "Error" not in str(refused.value)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1+1", "@x", "\t=1", " =1", "\u00a0=1", "\n=1"])
def test_no_cell_is_a_formula(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"
    (_, row) = csv.reader(io.StringIO(as_csv(["a"], [[cell]]).decode("utf-8-sig"), newline=""))
    assert row == [f"'{cell}"]


def test_other_cells_are_left_alone() -> None:
    for cell in ("Ada", "", "3.5", "-1", "-", "Zoë = Ada", "O'Neill"):
        assert harmless(cell) == cell
