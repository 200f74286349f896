"""Certificates of a class: for what grading found, by the teacher's key, the same when run twice."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from certificate.made import key, made
from classroom.class_room import BANKS, rows_of
from classroom.graded import refused, result
from click.testing import CliRunner, Result

from gradacc_lessons.certificate.earned import CORE, needed
from gradacc_lessons.certificate.files import file_bytes
from gradacc_lessons.certificate.keys import key_in
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.verify import verify
from gradacc_lessons.classroom import certify as module
from gradacc_lessons.classroom.certify import LIST_NAME, Certifier, Outcome
from gradacc_lessons.classroom.class_folder import ClassFolder, new_class
from gradacc_lessons.classroom.results import RESULTS_NAME, FileResult, Remark
from gradacc_lessons.classroom.same_work import SAME_WORK
from gradacc_lessons.cli import main
from gradacc_lessons.text import Language, Text

AT = datetime(2026, 11, 30, 17, 4, 5, tzinfo=UTC)
ALL = [lesson for lesson in needed(full=True).values() if lesson]
CORE_LESSONS = [lesson for lesson in ALL if lesson[:2] in CORE]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pictures take seconds, and have a test of their own; nobody's keyring is looked at."""
    monkeypatch.setattr(module, "FORMATS", ("jwt", "json"))
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "home"))


def graded(learner: str, lessons: Iterable[str], share: float = 0.955, **changed: object) -> FileResult:
    """What grading says of somebody with this share in each lesson."""
    found = tuple(result(learner, share=share, lesson=lesson).lessons[0] for lesson in lessons)
    return replace(result(learner), lessons=found, **changed)  # type: ignore[arg-type]


def certified(
    of_class: ClassFolder,
    folder: Path,
    results: Iterable[FileResult],
    *,
    at: datetime = AT,
    name: str = "Class 5V",
    until: datetime | None = None,
    language: Language = "en",
) -> dict[str, Outcome]:
    found = Certifier(of_class, name, folder, language, until, at).certify(results)
    assert [each.learner.id for each in found] == list(of_class.learners)
    return {each.learner.id: each for each in found}


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_who_passed_gets_what_was_passed_and_nobody_else(autumn: ClassFolder, tmp_path: Path) -> None:
    almost = [*graded("s3", CORE_LESSONS[1:]).lessons, *graded("s3", CORE_LESSONS[:1], 0.799).lessons]
    found = certified(
        autumn,
        tmp_path / "c",
        [
            graded("s1", ALL),
            graded("s2", CORE_LESSONS),
            replace(graded("s3", []), lessons=tuple(almost)),
            graded("s4", ALL, status="superseded"),
            refused(None, "of nobody"),
        ],
    )
    assert [each.done for each in found.values()] == ["issued", "issued", "open", "open"]
    full, core = found["s1"].credential, found["s2"].credential
    assert full and core and (full.kind, core.kind) == ("full", "core")
    assert [lesson.name for lesson in full.lessons] == ALL and [lesson.name for lesson in core.lessons] == CORE_LESSONS
    assert {lesson.percent for lesson in core.lessons} == {95} and core.valid_from == AT
    assert (full.name, full.issuer_name, full.self_issued) == ("Ada", "Class 5V", False)
    assert full.issuer == core.issuer == key_in(autumn.folder / "teacher.pem").did
    # Rounded down: 79.9 % reads as what it is, and not as the 80 % that passes.
    assert found["s3"].remark.en == "Missing for the core certificate: 00_start_here 79%"
    assert found["s4"].remark.en == "No file was graded."
    assert sorted(all_bytes(tmp_path / "c")) == sorted(
        [f"{each.file}.{form}" for each in found.values() if each.credential for form in ("jwt", "json")] + [LIST_NAME]
    )


def test_verifying_says_teacher_words_and_without_the_key_what_it_cannot_know(
    autumn: ClassFolder, tmp_path: Path
) -> None:
    found = certified(autumn, tmp_path, [graded("s1", CORE_LESSONS)])["s1"]
    assert found.credential
    file = tmp_path / f"{found.file}.jwt"
    named = verify(file, issuers=[found.credential.issuer], at=AT)
    assert named.exit_code == 0 and "graded the answers again" in named.text.en
    assert "Self-study" not in named.text.en and "only its issuer's list can say" in named.text.en
    unknown = verify(file, at=AT)
    assert unknown.exit_code == 3 and "issuer unknown" in unknown.text.en


def test_a_second_run_changes_nothing_and_puts_back_what_is_gone(autumn: ClassFolder, tmp_path: Path) -> None:
    results = [graded("s1", ALL), graded("s2", CORE_LESSONS)]
    first = certified(autumn, tmp_path, results)
    before = all_bytes(tmp_path)
    (tmp_path / f"{first['s1'].file}.json").unlink()
    (tmp_path / f"{first['s2'].file}.jwt").unlink()  # what an interrupt leaves
    again = certified(autumn, tmp_path, results, at=AT + timedelta(days=40))
    assert [each.done for each in again.values()] == ["kept", "kept", "open", "open"]
    assert not any(each.look for each in again.values()) and all_bytes(tmp_path) == before


def test_what_was_issued_stays_when_something_else_would_be_said_now(autumn: ClassFolder, tmp_path: Path) -> None:
    certified(autumn, tmp_path, [graded("s1", CORE_LESSONS, 0.8), graded("s2", CORE_LESSONS)])
    before = all_bytes(tmp_path)
    better = certified(autumn, tmp_path, [graded("s1", CORE_LESSONS, 1.0), graded("s2", ALL)], at=AT + timedelta(1))
    assert better["s1"].done == "kept" and "issued on 2026-11-30, for Ada, by Class 5V" in better["s1"].remark.en
    assert better["s2"].done == "issued" and better["s2"].file.endswith("-full")
    kept = {name: raw for name, raw in before.items() if name != LIST_NAME}
    assert kept.items() <= all_bytes(tmp_path).items()


def test_a_certificate_that_is_not_earned_any_more_is_named(autumn: ClassFolder, tmp_path: Path) -> None:
    first = certified(autumn, tmp_path, [graded("s1", ALL), graded("s2", CORE_LESSONS)])
    now = certified(autumn, tmp_path, [graded("s1", CORE_LESSONS)], at=AT + timedelta(1))
    assert now["s1"].done == "issued" and first["s1"].file in now["s1"].remark.en  # the core one, beside the full one
    assert now["s2"].done == "open" and "stays valid unless you revoke it" in now["s2"].remark.en and now["s2"].look


def test_an_expired_one_is_issued_anew(autumn: ClassFolder, tmp_path: Path) -> None:
    until, results = AT + timedelta(days=30), [graded("s1", ALL)]
    first = certified(autumn, tmp_path, results, until=until)["s1"].credential
    for later, done in ((29, "kept"), (30, "issued")):
        at = AT + timedelta(days=later)
        found = certified(autumn, tmp_path, results, at=at, until=None if done == "issued" else until)["s1"]
        assert found.done == done and found.credential and (found.credential == first) is (done == "kept")
    assert verify(tmp_path / f"{found.file}.json", at=at).exit_code == 3
    with pytest.raises(CertificateError, match="would be expired"):
        certified(autumn, tmp_path / "other", results, until=AT)


@pytest.mark.parametrize("what", ["of another issuer", "no certificate", "a link"])
def test_somebody_elses_file_is_never_written_over(autumn: ClassFolder, tmp_path: Path, what: str) -> None:
    there = tmp_path / f"{autumn.stem(autumn.learners['s1'])}-full.jwt"
    if what == "a link":
        there.symlink_to(tmp_path / "nowhere")
    else:
        of_another = file_bytes(made("Ada", issuer_name="Class 5V"), key(), "jwt")
        there.write_bytes(of_another if what == "of another issuer" else b"my notes")
    before = None if what == "a link" else there.read_bytes()
    found = certified(autumn, tmp_path, [graded("s1", ALL), graded("s2", ALL)])
    assert found["s1"].done == "held" and there.name in found["s1"].remark.en
    assert found["s2"].done == "issued"
    assert not (tmp_path / "nowhere").exists() and (before is None or there.read_bytes() == before)
    assert not there.with_suffix(".json").exists()


@pytest.mark.parametrize(
    ("roster", "issuer", "says"),
    [
        ("id\ns1\n", "Class 5V", "the roster has no name"),
        ("id,name\ns1,---\n", "Class 5V", "needs the name"),
        ("id,name\ns1,Ada  L\n", "Ada L", "the issuer has the same name"),
    ],
)
def test_a_name_that_cannot_stand_there_is_said(tmp_path: Path, roster: str, issuer: str, says: str) -> None:
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
    made_now = new_class(tmp_path / "class", tmp_path / "roster.csv")
    found = certified(made_now, tmp_path / "c", [graded("s1", ALL)], name=issuer)["s1"]
    assert found.done == "held" and says in found.remark.en and found.remark.nl != found.remark.en
    assert list(all_bytes(tmp_path / "c")) == [LIST_NAME]


def test_work_that_may_be_somebody_elses_waits_for_the_teacher(autumn: ClassFolder, tmp_path: Path) -> None:
    note = Remark(SAME_WORK, Text("The same answers are in b.json.", "Dezelfde antwoorden staan in b.json."))
    found = certified(autumn, tmp_path, [graded("s1", ALL, notes=(note,))])["s1"]
    assert found.done == "held" and "b.json" in found.remark.en and list(all_bytes(tmp_path)) == [LIST_NAME]


def test_the_list_has_everybody_and_nothing_that_a_spreadsheet_runs(autumn: ClassFolder, tmp_path: Path) -> None:
    found = certified(autumn, tmp_path, [graded("s2", CORE_LESSONS)], language="nl")["s2"]
    rows = rows_of(tmp_path / LIST_NAME)
    assert next(iter(rows[0])) == "id" and [row["id"] for row in rows] == list(autumn.learners)
    assert rows[1]["naam"] == "'=1+1" and rows[1]["certificaat"] == "basis" and rows[1]["bestanden"] == found.file
    assert found.credential and rows[1]["certificaat-id"] == found.credential.id
    assert found.credential.language == "nl" and rows[1]["uitgegeven op"] == "2026-11-30"


def test_the_title_is_that_of_the_classs_own_bank(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    own = (BANKS / "90_small.yaml").read_bytes().replace(b"lesson: 90_small", b"lesson: 01_accumulate")
    (tmp_path / "bank" / "01_accumulate.yaml").write_bytes(own)
    (tmp_path / "roster.csv").write_text("id,name\ns1,Ada\n", encoding="utf-8")
    made_now = new_class(tmp_path / "class", tmp_path / "roster.csv", tmp_path / "bank")
    found = certified(made_now, tmp_path / "c", [graded("s1", CORE_LESSONS)])["s1"]
    assert found.credential and found.credential.lessons[1].title == made_now.bank("01_accumulate")[0].title.en


@pytest.fixture
def a_class(tmp_path: Path) -> Path:
    (tmp_path / "roster.csv").write_text("id,name\n../s1,Ada\ns2,\ns3,Zoë\n", encoding="utf-8")
    return new_class(tmp_path / "class", tmp_path / "roster.csv").folder


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def put_results(folder: Path, results: Sequence[FileResult]) -> None:
    (folder / "results").mkdir()
    (folder / "results" / RESULTS_NAME).write_bytes(b"".join(each.line() for each in results))


def test_the_command_issues_says_and_ends_with_1_if_one_could_not_be(a_class: Path) -> None:
    certify = ("class", "certify", "--class", str(a_class), "--as", "Klas 5V")
    assert "grade first" in run(*certify).output
    put_results(a_class, [graded("../s1", ALL), graded("s2", ALL, code="refused"), graded("s3", ALL[:2])])
    said = run(*certify, "--language", "nl", "--valid-until", "2099-01-01")
    assert said.exit_code == 1
    assert "1 uitgegeven, 0 al eerder uitgegeven, 1 niet gehaald, 1 gehaald maar niet uitgegeven." in said.output
    assert "  s2: Gehaald, maar niet uitgegeven:" in said.output and "niet is uitgevoerd: 1." in said.output
    did = run("certificate", "key", "--key", str(a_class / "teacher.pem")).output.strip()
    assert did in said.output and did.startswith("did:key:z6Mk")
    files = {file.suffix: file for file in (a_class / "results" / "certificates").iterdir()}
    assert set(files) == {".csv", ".jwt", ".json"} and files[".jwt"].name.startswith("s1-")
    assert run("verify", str(files[".jwt"]), "--issuer", did).exit_code == 0
    assert run("verify", str(files[".jwt"])).exit_code == 3


def test_nothing_to_hold_back_ends_well_and_a_nameless_issuer_does_not(a_class: Path) -> None:
    put_results(a_class, [graded("s3", CORE_LESSONS)])
    certify = ("class", "certify", "--class", str(a_class))
    assert run(*certify, "--as", " ").exit_code == 1
    assert run(*certify).exit_code == 2  # --as is asked for
    assert run(*certify, "--as", "Klas 5V").exit_code == 0
    (a_class / "teacher.pem").chmod(0o644)
    said = run(*certify, "--as", "Klas 5V")
    assert said.exit_code == 1 and "chmod 600" in said.output


@pytest.mark.long
def test_the_pictures_are_the_same_when_run_twice_and_are_verified(
    autumn: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FORMATS", ("svg", "png", "jwt", "json"))
    found = certified(autumn, tmp_path, [graded("s3", ALL)])["s3"]
    before = all_bytes(tmp_path)
    assert len(before) == 5 and found.credential
    for name in (f"{found.file}.svg", f"{found.file}.png"):
        assert verify(tmp_path / name, issuers=[found.credential.issuer], at=AT).exit_code == 0
        (tmp_path / name).unlink()
    certified(autumn, tmp_path, [graded("s3", ALL)], at=AT + timedelta(1))
    assert all_bytes(tmp_path) == before
