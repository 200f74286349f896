"""docs/teaching.md: every command in it runs, in its order, and what it says of lessons and questions is so."""

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from classroom.class_room import need_sandbox, rows_of
from classroom.test_certify import CORE_LESSONS, graded
from click.testing import CliRunner

from gradacc_lessons.certificate.keys import key_in
from gradacc_lessons.classroom import sandbox
from gradacc_lessons.classroom.class_folder import new_class
from gradacc_lessons.classroom.items import COMMON, FEWEST
from gradacc_lessons.classroom.results import RESULTS_NAME
from gradacc_lessons.classroom.simulated import right_answer
from gradacc_lessons.cli import main
from gradacc_lessons.course import course_folder
from gradacc_lessons.progress import PASS_MARK, Progress
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.questions import CodeQuestion
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.user_file import load

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")


GRADING, CERTIFYING = "How to grade", "Certificates that you sign"
TRYING = "Try it on a class that does not exist"
EXPORTING = "Questions in Moodle or Canvas"


def section(title: str) -> str:
    return re.split(r"^## ", GUIDE.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]


def commands(title: str) -> list[str]:
    """What is typed in a section."""
    return [command for command, _ in sessions(title)]


def sessions(title: str) -> list[tuple[str, str]]:
    """Each command that a section shows, and what it prints there."""
    blocks = re.findall(r"^```console\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)
    return [each for block in blocks for each in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to type in, and a learner's home."""
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def typed(line: str) -> str:
    """What a command says; it must end well."""
    program, *arguments = shlex.split(line)
    assert program == "gradacc"
    run = CliRunner().invoke(main, arguments)
    assert run.exit_code == 0, (line, run.output, run.exception)
    return run.output


def test_every_section_with_commands_is_tried_here() -> None:
    titles = re.findall(r"^## (.+)$", GUIDE, re.MULTILINE)
    assert [title for title in titles if commands(title)] == [GRADING, CERTIFYING, TRYING, EXPORTING]


@pytest.mark.parametrize("with_code", [False, pytest.param(True, marks=pytest.mark.long)], ids=["quiz", "and code"])
def test_grading_goes_as_the_guide_says(place: Path, with_code: bool) -> None:
    """From the roster to the items, with a learner who joins, answers and hands in on the way."""
    (place / "roster.csv").write_text("id,name,email\ns1,Ada,ada@example.org\ns2,Zoë,\n", encoding="utf-8")
    (place / "handed-in").mkdir()
    for line in commands(GRADING):
        if line.startswith("gradacc class join"):
            codes = rows_of(place / "autumn" / "codes.csv")
            line = line.replace("CODE", codes[0]["class code"])
        if line.startswith("gradacc submit"):
            answer_a_little(place.parent / "home", with_code)
        typed(line)
        if line.startswith("gradacc submit"):
            (place / "my-work.json").rename(place / "handed-in" / "my-work.json")
    results = place / "autumn" / "results"
    for name in ("canvas.csv", "moodle.csv", "items.html", "reports/index.html"):
        assert (results / name).exists(), name
    # The function is worth a quarter of the points, and without a sandbox it counts for nothing.
    grade = "100.00" if with_code and sandbox.missing() is None else "75.00"
    assert [row["00_start_here"] for row in rows_of(results / "moodle.csv")] == [grade, "-"]


def test_certificates_are_issued_trusted_and_revoked_with_the_words_that_the_guide_shows(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradacc_lessons.classroom.certify.FORMATS", ("svg", "jwt", "json"))  # a PNG takes a second
    (place / "roster.csv").write_text("id,name\ns1,Ada Lovelace\ns2,Zoë\ns3,\n", encoding="utf-8")
    made = new_class(place / "autumn", place / "roster.csv")
    (made.results).mkdir()
    found = [graded("s1", CORE_LESSONS, 1.0), graded("s2", CORE_LESSONS[:1])]
    (made.results / RESULTS_NAME).write_bytes(b"".join(each.line() for each in found))
    stem, did = f"{made.stem(made.learners['s1'])}-core", key_in(made.folder / "teacher.pem").did
    for command, shown in sessions(CERTIFYING):
        line = re.sub(r"s1-\w{8}-core", stem, command.replace("did:key:z6Mk…", did))
        run = CliRunner().invoke(main, shlex.split(line)[1:])
        said = re.sub(r"^Issuing.*\n", "", run.output.replace(did, "did:key:z6Mk…"))
        assert normal(said) == normal(shown) and normal(shown), command
        if " certify " in command:  # the learner hands one on
            shutil.copy(made.results / "certificates" / f"{stem}.svg", place)


def normal(said: str) -> str:
    """What is printed, but for the day and the id, which no two certificates share."""
    return re.sub(r"\d{4}-\d\d-\d\d", "DAY", re.sub(r"nih:sha-256;[0-9a-f]{8}\S*", "ID", said))


def test_without_the_sandbox_nobody_earns_a_certificate() -> None:
    worth = []
    for file in course_folder("quizzes").glob("*.yaml"):
        points = [(question.points, question.kind == "code") for question in load_bank(file).counted]
        worth.append(sum(each for each, code in points if code) / sum(each for each, _ in points))
    assert f"are {100 * min(worth):.0f} to {100 * max(worth):.0f} %" in section(CERTIFYING)
    assert max(worth) > 1 - PASS_MARK


def solution(place: Path, question: CodeQuestion) -> Callable[..., Any]:
    """The function that an exercise asks for, from a file as a learner has it."""
    asked = exercise(question.exercise)
    (place / "mine.py").write_text(asked.solution, encoding="utf-8")
    return load(f"mine.py:{asked.function}")[1]


@pytest.mark.long
@pytest.mark.timeout(600)  # seven quizzes with their functions, each run twice
def test_who_passes_the_core_lessons_from_joining_on_gets_a_certificate(place: Path) -> None:
    need_sandbox()
    (place / "roster.csv").write_text("id,name\ns1,Ada Lovelace\n", encoding="utf-8")
    (place / "handed-in").mkdir()
    made = new_class(place / "autumn", place / "roster.csv")
    typed(f"gradacc class join {made.codes['s1'].text}")
    for lesson in CORE_LESSONS:
        quiz = Quiz(lesson)
        for question in quiz.counted:
            value = (
                solution(place, question)
                if isinstance(question, CodeQuestion)
                else right_answer(question, quiz.variables(question.id))
            )
            assert quiz.answer(question.id, value).correct, question.id
    typed("gradacc submit --to handed-in/one.json")
    typed("gradacc class grade handed-in --class autumn")
    assert typed(commands(CERTIFYING)[0]).count("1 issued") == 1
    (picture,) = (made.results / "certificates").glob("*.png")
    said = typed(f"gradacc verify {picture} --issuer {key_in(made.folder / 'teacher.pem').did}")
    assert "Ada Lovelace" in said and said.count("100 %") == len(CORE_LESSONS)


def test_the_class_that_does_not_exist_is_made_and_looked_at(place: Path) -> None:
    said = [typed(line) for line in commands(TRYING)]
    assert "Found exactly what was planted." in said[0]
    assert len(list((place / "try-out" / "results" / "reports").glob("*.html"))) == 24 + 1


def test_banks_are_exported_as_the_guide_says(place: Path) -> None:
    said = [typed(line) for line in commands(EXPORTING)]
    assert all("acc-write-loop" in each for each in said)  # what is left out is named
    assert len(list((place / "banks").iterdir())) == 4


def answer_a_little(home: Path, with_code: bool) -> None:
    """The learner takes the quiz of lesson 00, right in everything, and writes its function or does not."""
    quiz = Quiz("00", progress=Progress(home / "progress.sqlite"))
    for question in quiz.counted:
        if isinstance(question, CodeQuestion):
            assert not with_code or quiz.answer(question.id, updates_per_epoch).correct
        else:
            assert quiz.answer(question.id, right_answer(question, quiz.variables(question.id))).correct


def updates_per_epoch(examples: int, micro_batch_size: int, accumulation_steps: int) -> int:
    """What the exercise of lesson 00 asks for."""
    micro_batches = -(-examples // micro_batch_size)
    return -(-micro_batches // accumulation_steps)


def test_the_times_are_those_in_the_heads_of_the_lessons() -> None:
    told = dict(re.findall(r"^\| (\d\d) \| (\d+) \|$", section("Timing per lesson"), re.MULTILINE))
    found = {}
    for file in sorted(course_folder("notebooks").glob("[0-9][0-9]_*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        (found[file.name[:2]],) = re.findall(r"\*\*Time:\*\* (\d+) minutes", text)
    assert told == found


def test_the_class_takes_ninety_minutes() -> None:
    minutes = re.findall(r"^\| (\d+) \| ", section("A class of 90 minutes"), re.MULTILINE)
    assert sum(map(int, minutes)) == 90


def test_every_misconception_is_asked_for_by_a_question_with_a_wrong_answer() -> None:
    known = {
        question.id: question.kind
        for file in course_folder("quizzes").glob("*.yaml")
        for question in load_bank(file).counted
    }
    rows = [line.split("|")[1:-1] for line in section("What classes get wrong, and why").splitlines() if "`" in line]
    rows = [row for row in rows if len(row) == 4]
    named = [re.findall(r"`([a-z-]+)`", row[2]) for row in rows]
    assert len(rows) >= 12 and all(named)
    for name in (name for names in named for name in names):
        assert known.get(name) not in (None, "code"), name


def test_the_thresholds_are_the_ones_that_are_used() -> None:
    numbers = {1: "one", 2: "two", 3: "three", 4: "four"}
    assert f"at least {COMMON:.0%}".replace("%", " %") in GUIDE
    assert f"at least {numbers[FEWEST]} learners" in GUIDE


SHOWN = re.compile(r"^  (\d\d_\w+) +([a-z-]+) +([\w-]+) +(\d+)% +(\d+)%$", re.MULTILINE)


def test_the_picture_is_there_and_its_text_says_what_is_shown() -> None:
    ((alt, file),) = re.findall(r"!\[(.+)\]\((.+?)\)", GUIDE)
    assert (ROOT / "docs" / file).read_bytes().startswith(b"\x89PNG")
    shown = [row for row in SHOWN.findall(section(TRYING)) if row[0] == "01_accumulate"]
    assert len(shown) == 3 and all(f"{question} {held} %" in alt for _, question, _, held, _ in shown)


@pytest.mark.long
@pytest.mark.timeout(900)  # half a minute of one quiet core
def test_what_the_guide_shows_of_three_hundred_learners_comes_out(tmp_path: Path) -> None:
    from gradacc_lessons.classroom.demonstration import demonstrate

    said = demonstrate(tmp_path / "try", 300)
    assert said.exact
    came = {row[:4]: int(row[4]) for row in SHOWN.findall(said.text().en)}
    for *what, share in SHOWN.findall(section(TRYING)):
        assert abs(came[tuple(what)] - int(share)) <= 2  # who slips follows from codes, which are drawn


def test_the_table_of_contents_has_every_section() -> None:
    told = re.findall(r"^- \[(.+?)\]\(#", GUIDE, re.MULTILINE)
    assert told == re.findall(r"^## (.+)$", GUIDE, re.MULTILINE)
