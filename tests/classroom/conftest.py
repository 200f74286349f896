"""A class of four with the small bank, and a sandboxed worker that a module's tests share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from classroom.class_room import BANKS, Given, handed_in, need_sandbox

from gradacc_lessons.classroom import sandbox
from gradacc_lessons.classroom.class_folder import ClassFolder, new_class
from gradacc_lessons.classroom.grading import Grader
from gradacc_lessons.classroom.results import AnswerResult, FileResult
from gradacc_lessons.detective import client

ROSTER = "id,name,email\ns1,Ada,ada@example.org\ns2,=1+1,\ns3,Zoë van Dijk,\ns4,Grace,\n"


@pytest.fixture(scope="session")
def autumn(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    home = tmp_path_factory.mktemp("classes")
    (home / "roster.csv").write_text(ROSTER, encoding="utf-8")
    return new_class(home / "autumn", home / "roster.csv", BANKS)


@pytest.fixture(scope="module")
def sandboxed() -> Iterator[None]:
    need_sandbox()
    before = client.WORKER
    sandbox.use("sandbox")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADERS_SECRET", "s3cret")  # for the test that looks whether it can be seen
        client.WORKER.start()
        yield
    client.WORKER.close()
    client.use(before)


@pytest.fixture
def graded_code(autumn: ClassFolder, sandboxed: None, tmp_path: Path) -> Callable[..., FileResult]:
    """Grades a submission of s1 whose answers are given; returns what grading says of the file."""

    def grade(lesson: str, *given: Given) -> FileResult:
        (tmp_path / "one.json").write_bytes(handed_in(autumn.codes["s1"], {lesson: given}))
        return Grader(autumn, tmp_path, "sandbox").grade("one.json").result

    return grade


@pytest.fixture
def ran(graded_code: Callable[..., FileResult]) -> Callable[..., AnswerResult]:
    """Grades one source for an exercise in the course's banks."""

    def run(source: str, lesson: str = "01_accumulate", question: str = "acc-write-loop") -> AnswerResult:
        result = graded_code(lesson, (question, 1, source))
        assert result.status == "graded" and result.code == "sandbox"
        (answer,) = result.lessons[0].answers
        return answer

    return run
