"""The learner's side: joining, taking the class's numbers, and writing the file, which the class grades as it was."""

import os
from pathlib import Path

import pytest
from classroom.class_room import BANKS, LESSON
from click.testing import CliRunner

from gradacc_lessons.classroom import handing_in
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.grading import Grader
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.results import read_results
from gradacc_lessons.classroom.submission import read_submission
from gradacc_lessons.cli import main
from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz.quiz import Quiz


def updates_per_epoch(examples: int, micro_batch_size: int, accumulation_steps: int) -> int:
    micro_batches = -(-examples // micro_batch_size)
    return -(-micro_batches // accumulation_steps)


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    return Progress(tmp_path / "home" / "progress.sqlite")


def _take(progress: Progress) -> Quiz:
    """Take the small quiz: one wrong, one right with the numbers shown, and a function."""
    quiz = Quiz(LESSON, "en", bank_folder=BANKS, progress=progress)
    drawn = quiz.variables("small-number")
    assert not quiz.answer("small-choice", "mean").correct
    assert quiz.answer("small-number", drawn["b"] * drawn["n"]).correct
    return quiz


def test_what_is_handed_in_is_graded_as_it_was_live(autumn: ClassFolder, progress: Progress, tmp_path: Path) -> None:
    handing_in.join(progress, autumn.codes["s1"].text.upper())
    live = _take(progress).result()
    hand_in = handing_in.gather(progress)
    file = handing_in.write(hand_in, tmp_path / "mine.json")
    graded = Grader(autumn, tmp_path, "refused").grade("mine.json").result
    assert (graded.status, graded.learner, graded.notes) == ("graded", "s1", ())
    (lesson,) = graded.lessons
    assert (lesson.points, lesson.of, lesson.take) == (live.points, live.of, live.take)
    assert read_submission(file.read_bytes()).proven(autumn.codes["s1"])
    for private in (autumn.codes["s1"].text, "Ada", "ada@example.org", str(tmp_path)):
        assert private not in file.read_text(encoding="utf-8")


def test_takes_of_before_joining_stay_out_and_that_is_said(autumn: ClassFolder, progress: Progress) -> None:
    quiz = _take(progress)
    handing_in.join(progress, autumn.codes["s1"].text)
    with pytest.raises(ClassError, match="nothing to hand in"):
        handing_in.gather(progress)
    quiz.retake()
    quiz.answer("small-choice", "sums")
    hand_in = handing_in.gather(progress)
    assert hand_in.left_out == 1 and [each["take"] for each in hand_in.lessons[LESSON]] == [2]
    assert "1 take that you began before" in hand_in.described().en


def test_without_a_class_there_is_nothing_to_hand_in(progress: Progress) -> None:
    _take(progress)
    with pytest.raises(ClassError, match="gradacc class join CODE") as refused:
        handing_in.gather(progress)
    assert "klas" in refused.value.text.nl


def test_of_several_tries_at_code_the_best_is_handed_in(autumn: ClassFolder, progress: Progress) -> None:
    handing_in.join(progress, autumn.codes["s1"].text)
    quiz = Quiz(LESSON, "en", bank_folder=BANKS, progress=progress)
    assert quiz.answer("small-code", updates_per_epoch).correct
    progress.add_answer(LESSON, "small-code", 1, "def updates_per_epoch(): ...", 0.0, 3.0, retry=True)
    (answer,) = handing_in.gather(progress).lessons[LESSON]
    assert "-(-examples // micro_batch_size)" in answer["value"]


def test_only_ones_own_earlier_file_is_written_over(autumn: ClassFolder, progress: Progress, tmp_path: Path) -> None:
    handing_in.join(progress, autumn.codes["s1"].text)
    _take(progress)
    file = handing_in.write(handing_in.gather(progress), tmp_path / "mine.json")
    assert handing_in.write(handing_in.gather(progress), file) == file
    (tmp_path / "diary.txt").write_text("dear diary", encoding="utf-8")
    with pytest.raises(ClassError, match="--to"):
        handing_in.write(handing_in.gather(progress), tmp_path / "diary.txt")
    assert (tmp_path / "diary.txt").read_text(encoding="utf-8") == "dear diary"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["diary.txt", "mine.json"]


def test_a_pipe_or_a_device_is_not_waited_for(autumn: ClassFolder, progress: Progress, tmp_path: Path) -> None:
    handing_in.join(progress, autumn.codes["s1"].text)
    _take(progress)
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ClassError, match="is something else"):
            handing_in.write(handing_in.gather(progress), file)


def _run(*arguments: str) -> tuple[int, str]:
    ended = CliRunner().invoke(main, list(arguments))
    return ended.exit_code, ended.output


@pytest.mark.parametrize("command", [("submit",), ("class", "join", "CODE")])
def test_a_home_that_cannot_be_is_a_sentence(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADACC_HOME", "~nobody-here/x")
    code, said = _run(*command)
    assert code == 1 and "there is no home folder ~nobody-here" in said


def test_from_roster_to_results_by_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "home"))
    (tmp_path / "roster.csv").write_text("id,name\ns1,Ada\n", encoding="utf-8")
    folder = tmp_path / "autumn"
    code, said = _run("class", "new", str(folder), "--roster", str(tmp_path / "roster.csv"), "--bank", str(BANKS))
    assert code == 0 and "1 learner." in said and "class.key" in said
    code, said = _run("class", "codes", "--class", str(folder), "--show")
    assert code == 0 and said.startswith("s1  ")
    class_code = said.split()[1]
    assert _run("submit")[1].startswith("Error: You are in no class yet.")
    assert _run("class", "join", class_code[:-1] + "!")[0] == 1
    code, said = _run("class", "join", class_code)
    assert code == 0 and "You are in class" in said
    _take(Progress(tmp_path / "home" / "progress.sqlite"))
    (tmp_path / "in").mkdir()
    code, said = _run("submit", "--to", str(tmp_path / "in" / "ada.json"))
    assert code == 0 and said.index("It holds 2 answers") < said.index("ada.json")
    code, said = _run("class", "grade", str(tmp_path / "in"), "--class", str(folder), "--jobs", "1")
    assert code == 0 and "1 graded" in said
    (result,) = read_results(folder / "results" / "results.jsonl")
    assert result.learner == "s1" and result.lessons[0].points > 0


def test_mistakes_with_commands_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("name\nAda\n", encoding="utf-8")
    for arguments in (
        ("class", "new", str(tmp_path / "x"), "--roster", str(tmp_path / "roster.csv")),
        ("class", "new", str(tmp_path), "--roster", str(tmp_path / "roster.csv")),
        ("class", "codes", "--class", str(tmp_path)),
        ("class", "grade", str(tmp_path), "--class", str(tmp_path)),
    ):
        code, said = _run(*arguments)
        assert code == 1 and said.startswith("Error: ") and said.count("\n") == 1, said
