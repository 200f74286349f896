"""The sandbox runs every exercise as it runs outside, says what is missing where there is none, and blames nobody."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from classroom.class_room import LESSON, handed_in, need_sandbox

from gradacc_lessons.classroom import code_check, sandbox
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.code_check import MOST_RUNS, MOST_TIMEOUTS, CodeCheck
from gradacc_lessons.classroom.grading import Grader
from gradacc_lessons.classroom.results import FileResult
from gradacc_lessons.detective import client, refused_calls
from gradacc_lessons.quiz import call_in_child
from gradacc_lessons.quiz.exercises import EXERCISES
from gradacc_lessons.quiz.grade import no_answer
from gradacc_lessons.text import Text

SLOW = {"choose_for_budget", "choose_with_checkpointing", "plan_your_own"}
"""They run and measure models."""
KEYS = [pytest.param(key, marks=[pytest.mark.long] if key in SLOW else []) for key in EXERCISES]


@pytest.mark.parametrize("key", KEYS)
def test_each_solution_passes_inside_and_the_first_mistake_gets_its_name(key: str, sandboxed: None) -> None:
    exercise, check = EXERCISES[key], CodeCheck("sandbox")
    grade = check(key, exercise.solution)
    assert grade.fraction == 1.0, grade.feedback.en
    wrong = exercise.wrong[0]
    grade = check(key, wrong.source)
    assert (grade.fraction, grade.mistake) == (0.0, wrong.fault), grade.feedback.en


@pytest.mark.long
@pytest.mark.parametrize("key", EXERCISES)
def test_so_does_every_other_mistake(key: str, sandboxed: None) -> None:
    check = CodeCheck("sandbox")
    for wrong in EXERCISES[key].wrong[1:]:
        assert check(key, wrong.source).mistake == wrong.fault, wrong.source


def test_the_starter_is_no_attempt_or_wrong(sandboxed: None) -> None:
    for key in ("updates_per_epoch", "train_epoch_windows", "repair_scale"):
        grade = CodeCheck("sandbox")(key, EXERCISES[key].starter)
        assert grade.fraction == 0.0 and grade.counted == (key == "repair_scale")


def test_a_source_without_the_function(sandboxed: None) -> None:
    for key in ("updates_per_epoch", "train_epoch_windows"):
        grade = CodeCheck("sandbox")(key, "x = 1\n")
        assert grade.fraction == 0.0 and "the source defines no function" in grade.feedback.en


def test_an_indented_source_and_the_usual_imports(graded_code: Callable[..., FileResult]) -> None:
    source = EXERCISES["updates_per_epoch"].solution.replace("import math\n", "")
    indented = "".join(f"    {line}" for line in source.strip().splitlines(keepends=True))
    (lesson,) = graded_code(LESSON, ("small-code", 1, indented)).lessons
    assert lesson.answers[0].fraction == 1.0


def test_after_some_time_outs_the_rest_is_not_run(sandboxed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_in_child, "TIME_LIMIT", 0.5)
    check = CodeCheck("sandbox")
    for number in range(MOST_TIMEOUTS):
        assert check("updates_per_epoch", f"while {number + 1}: pass\n").mistake == "timed_out"
    assert check("updates_per_epoch", EXERCISES["updates_per_epoch"].solution).mistake == "too_much"


def test_who_takes_all_the_time_there_is_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_check, "_checked", lambda key, source: no_answer(Text("", "")))
    clock = iter(range(0, 10**6, 100))
    monkeypatch.setattr(code_check.time, "monotonic", lambda: float(next(clock)))
    check = CodeCheck("sandbox")
    ran = [check("updates_per_epoch", f"# {number}").mistake is None for number in range(5)]
    assert ran == [True, True, True, False, False], "100 seconds each, and there are 300"


def test_each_source_is_run_once(autumn: ClassFolder, sandboxed: None, tmp_path: Path) -> None:
    assert MOST_RUNS < 199
    given = [("small-code", take, EXERCISES["updates_per_epoch"].solution) for take in range(1, 200)]
    (tmp_path / "a.json").write_bytes(handed_in(autumn.codes["s1"], {LESSON: given}))
    (lesson,) = Grader(autumn, tmp_path, "sandbox").grade("a.json").result.lessons
    assert len(lesson.answers) == 199 and {answer.fraction for answer in lesson.answers} == {1.0}


def test_what_ends_the_worker_is_the_codes_doing_if_the_sandbox_works(
    sandboxed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = client.Worker.ask, []

    def dies_first(self: client.Worker, request: bytes, time_limit: float) -> client.Answer:
        asked.append(request)
        if len(asked) == 1:
            raise client.WorkerError("gone")
        return real(self, request, time_limit)

    monkeypatch.setattr(client.Worker, "ask", dies_first)
    grade = CodeCheck("sandbox")("train_epoch_windows", EXERCISES["train_epoch_windows"].solution)
    assert grade.fraction == 0.0 and len(asked) == 2


def test_a_sandbox_that_stops_working_is_nobodys_mistake(sandboxed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(self: client.Worker, request: bytes, time_limit: float) -> client.Answer:
        raise client.WorkerError("gone")

    monkeypatch.setattr(client.Worker, "ask", gone)
    for key in ("train_epoch_windows", "updates_per_epoch"):
        with pytest.raises(sandbox.SandboxError, match="does not work any more"):
            CodeCheck("sandbox")(key, EXERCISES[key].solution)


@pytest.fixture
def anew() -> object:
    """The way to start a sandbox is looked for again, in the test and after it."""
    sandbox.command.cache_clear()
    yield
    sandbox.command.cache_clear()


def test_without_bubblewrap_it_says_what_to_install(anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "sudo apt-get install bubblewrap" in str(sandbox.missing())


def test_one_that_does_not_start_is_none(anew: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    said = str(sandbox.missing())
    assert "No permissions to create new namespace" in said
    assert all(folder in said for folder in (sys.base_prefix, sys.prefix)), "one of them may be what nobody may read"


def test_root_of_a_container_is_not_called_root_in_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    need_sandbox()
    if os.geteuid() != 0:
        pytest.skip("this is another user, who is not asked to be root")
    monkeypatch.setattr(sandbox, "_is_root_of_the_machine", lambda: False)
    sandbox._probe(sandbox._ways()[-1])  # SandboxError if a check cannot be locked in


def test_nobody_leaves_anything_where_answers_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    need_sandbox()
    monkeypatch.setattr(sandbox, "_is_root_of_the_machine", lambda: False)
    hidden = [folder for name in sandbox.HIDDEN_FOLDERS if (folder := sandbox._package() / name).is_dir()]
    assert hidden and all(any(folder.iterdir()) for folder in hidden)
    look = f"import os\nfor folder in {[*map(str, hidden)]}:\n    print(os.listdir(folder)); open(folder + '/x', 'w')"
    way = sandbox._ways()[-1]  # in which the user inside is the one who made these folders
    ended = subprocess.run([*way, *sandbox.PYTHON, "-c", look], capture_output=True, text=True, check=False)
    assert ended.stdout == "[]\n" and "Read-only file system" in ended.stderr, ended.stderr


@pytest.mark.parametrize("name", ["<a/../../etc/passwd", "<a/../../etc/passwd>", "/etc/passwd", "a.py", 7, ["<"]])
def test_no_file_of_this_machine_is_quoted(name: object) -> None:
    assert sandbox._without_files({"file": name, "line": 1}) == {"file": None, "line": None}
    assert sandbox._without_files({"file": "<train_epoch>", "line": 1})["line"] == 1


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_under_ci_a_missing_sandbox_is_a_failure(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda: "none here")
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="none here"):
        need_sandbox()


def test_it_never_runs_as_root_and_sees_no_more_than_it_should() -> None:
    need_sandbox()
    inside = [*sandbox.command()[: sandbox.command().index("-m")], "-c"]
    look = "import os; print(os.getuid(), sorted(os.listdir('/')), os.listdir('/scratch'), len(os.environ))"
    said = subprocess.run([*inside, look], capture_output=True, text=True, check=True).stdout
    user, _, rest = said.partition(" ")
    assert user != "0" and "'home'" not in rest and "'var'" not in rest
    reach = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    assert subprocess.run([*inside, reach], capture_output=True, check=False).returncode != 0


def test_the_filter_of_calls_is_known_for_this_machine() -> None:
    need_sandbox()
    assert refused_calls.known_here()
