"""A quiz in the terminal, as somebody types it; what is kept is what a notebook keeps."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gradacc_lessons.cli import main
from gradacc_lessons.progress import Progress, learner_progress
from gradacc_lessons.quiz.exercises import UPDATES_PER_EPOCH
from gradacc_lessons.quiz.quiz import Quiz

BANKS = Path(__file__).parent / "banks"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def typed(*lines: str, lesson: str = "90", options: tuple[str, ...] = ()) -> Result:
    arguments = ["quiz", lesson, "--bank", str(BANKS), *options]
    return CliRunner().invoke(main, arguments, input="".join(f"{line}\n" for line in lines), catch_exceptions=False)


def quiz(lesson: str = "90") -> Quiz:
    return Quiz(lesson, bank_folder=BANKS, progress=learner_progress())


def number(question: str, option: str, lesson: str = "90") -> str:
    return str([each.id for each in quiz(lesson).options(question)].index(option) + 1)


def value(question: str, lesson: str = "90") -> Any:
    given = quiz(lesson).given(question)
    return None if given is None else given.value


def test_a_whole_quiz_is_taken_with_hints_skips_and_a_solution(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text(UPDATES_PER_EPOCH.solution, encoding="utf-8")
    drawn = quiz().variables("small-number")
    done = typed(
        "?", "?", number("small-choice", "mean"), "s",
        f"{number('small-multiple', 'zero')} , {number('small-multiple', 'step')}",
        "", "many", str(drawn["b"] * drawn["n"]),
        "n",
        "",
        options=("--code", str(code)),
    )  # fmt: skip
    assert done.exit_code == 0
    for said in (
        "Question 1 of 5", "Hint 1 of 2: Call it twice.", "Hint 2 of 2: Look at <.grad> in between.",
        "✗ Not right. Nobody divides <u>here</u>; you do.", "Solution: It adds the gradient to it.",
        "✓ Right. \n✓ One per window.", "Give an answer first.", "'many' is not a number",
        "How many examples? [examples]", "  5      if index % n < 1:", "raise NotImplementedError",
        "3 of 3 visible checks hold", "6 of 8 points so far; 1 of 5 questions still open.",
    ):  # fmt: skip
        assert said in done.output, said
    assert value("small-choice") == "mean" and value("small-multiple") == ["step", "zero"]
    assert value("small-spot") is None and "math.ceil" in value("small-code")
    rest = typed("5", "n")
    assert "Question 4 of 5" in rest.output and "Question 1 of 5" not in rest.output
    assert "7 of 8 points (87%); 80% passes." in rest.output and "Take it again" not in rest.output
    again = typed("y", "q")
    assert "Take it again, with other numbers? (y/n)" in again.output and "Question 1 of 5" in again.output
    assert quiz().take == 2 and typed("q").output.count("Question ") == 1
    typed("n", number("small-multiple", "zero"), "", "q", options=("--again",))  # nothing was answered in this take
    assert quiz().take == 2 and value("small-multiple") == ["zero"]
    typed("q", options=("--again",))
    assert quiz().take == 3


def test_when_all_is_answered_it_says_so_and_begins_anew_only_if_wanted() -> None:
    lines = ["n"] * 2
    assert "Question 2 of 2" in typed(*lines, lesson="91").output
    both = [" ".join(number("order-lines", each, "91") for each in ("one", "two", "three"))]
    window = " > ".join(
        number("order-window", each, "91") for each in ("forward", "backward", "clip", "update", "zero_grad")
    )
    assert "✓ Passed." in typed(window, *both, lesson="91").output
    assert value("order-window", "91") == ["forward", "backward", "clip", "update", "zero_grad"]
    assert quiz("91").take == 1 and "Question" not in typed("n", lesson="91").output and quiz("91").take == 1
    assert "Vraag 1 van 2" in typed("j", "q", lesson="91", options=("--language", "nl")).output
    assert quiz("91").take == 2 and learner_progress().language == "nl"


def test_what_is_no_choice_is_told_and_asked_again() -> None:
    done = typed("7", "x", "0", "-1", "1 2", number("small-choice", "sums"), "1 9", "13", "q")
    said = "The numbers here are 1 to 3.\nType the number of your choice."
    assert done.output.count(said) == 5 and done.output.count("The numbers here are 1 to") == 7
    assert "replaces," not in done.output, "ids stand nowhere on this screen, and the bank's order tells too much"
    assert value("small-choice") == "sums" and value("small-multiple") is None


def test_code_is_looked_for_in_the_file_again_and_again(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    skip = ["n"] * 4
    assert "there is no file" in typed(*skip, "", "n", options=("--code", str(code))).output
    for source, said in (
        ("def other(): pass\n", "has no function 'updates_per_epoch'"),
        ("def updates_per_epoch(:\n", "failed with SyntaxError"),
        (UPDATES_PER_EPOCH.starter, "still as it was given"),
        (UPDATES_PER_EPOCH.wrong[0].source, "full windows only"),
    ):
        code.write_text(source, encoding="utf-8")
        done = typed(*skip, "", "s", "n", options=("--code", str(code)))
        assert said in done.output and "One way to write it." in done.output and "Traceback" not in done.output
    assert "take the quiz with --code FILE" in typed(*skip, "", "n").output


def test_to_begin_anew_and_to_review_are_two_wishes() -> None:
    done = typed(options=("--again", "--review"))
    assert done.exit_code == 1 and "choose one of the two" in done.output and quiz().take == 1


def test_the_end_of_the_input_stops_and_keeps() -> None:
    done = typed(number("small-choice", "sums"))
    assert done.exit_code == 0 and "Stopped. What you answered is kept" in done.output
    assert value("small-choice") == "sums"


def test_ctrl_c_stops_in_a_sentence_and_loses_nothing(home: Path) -> None:
    first = number("small-choice", "sums")
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "gradacc_lessons", "quiz", "90", "--bank", str(BANKS)]
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, start_new_session=True)
    os.close(child)
    seen = b""

    def until(text: bytes) -> None:
        nonlocal seen
        begun = monotonic()
        while text not in seen:
            assert monotonic() - begun < 60, seen
            seen += os.read(parent, 4096)

    until(b"q stop):")
    os.write(parent, f"{first}\n".encode())
    until(b"Question 2 of 5")
    until(b"q stop): ")
    process.send_signal(signal.SIGINT)
    until(b"goes on from there.")
    assert process.wait(30) == 0 and b"Traceback" not in seen
    os.close(parent)
    kept = Progress(home / "progress.sqlite").answers("90_small")
    assert [answer.value for answer in kept] == ["sums"]


def test_unknown_lessons_and_commands_are_told() -> None:
    nothing = typed(lesson="77")
    assert nothing.exit_code == 1 and "no quiz for lesson '77'" in nothing.output
    helped = CliRunner().invoke(main, ["quiz", "--help"])
    assert "check" in helped.output and "LESSON" in helped.output
