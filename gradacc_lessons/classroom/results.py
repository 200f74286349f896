"""What grading says of each file that was handed in. Gradebook, reports, item analysis and exports stand on this.

`results.jsonl` has one line per file, sorted by the file's name; each line is the canonical JSON of one object, and
grading the same folder again gives the same bytes. `read_results` gives them back as `FileResult`, one at a time.

    {"format": "gradacc-result", "version": 1,
     "file": "team-a/ada.json",             path below the folder that was graded, with /
     "status": "graded",                    graded, refused (unreadable, or not of this class), superseded (the
                                            learner handed in a later file), copied (the work is somebody else's)
     "reason": null,                        {"id": "checksum", "en": "…", "nl": "…"} unless it was graded
     "learner": "s1234567",                 id in the roster; null where the file does not show whose it is
     "written": "2026-09-01T10:00:00Z",     when the learner's machine says it was written; null if unreadable
     "code": "sandbox",                     how code was run: sandbox, unsafe, refused (no sandbox), none (no code)
     "notes": [{"id": …, "en": …, "nl": …}],    what the teacher should know and what costs nothing
     "lessons": [
       {"lesson": "01_accumulate",
        "bank": "9f2c…",                    digest of the bank that it was graded with
        "take": 2,                          the take that counts: the best, of equals the earliest
        "points": 8.5, "of": 10.0, "share": 0.85, "passed": true,     of that take
        "answers": [                        one for each question and take, in the order in which they were given;
                                            of tries at code the best
          {"question": "who-divides", "kind": "choice", "take": 1,
           "value": "option-id",            the answer; of code the SHA-256 of its source
           "fraction": 0.0,                 share of the question's points, 0 to 1
           "points": 1.0,                   the question's points
           "mistake": "option-id",          misconception: option ids joined by commas, "mistake-1", "line-3", a fault
                                            of an exercise; null if right or unknown
           "said": {"en": …, "nl": …}}]}]}      feedback for the learner; null outside the take that counts

Only files with status "graded" carry lessons. A learner of the roster without a graded file has no line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from gradacc_lessons.canonical import JsonError, canonical, read
from gradacc_lessons.text import Text

FORMAT, VERSION = "gradacc-result", 1
RESULTS_NAME = "results.jsonl"
Status = Literal["graded", "refused", "superseded", "copied"]
CodeRun = Literal["sandbox", "unsafe", "refused", "none"]
LONGEST_LINE = 4_000_000
"""Bytes of one result; a submission is smaller."""
_MAYBE, _NUMBER = str | None, int | float
Made = TypeVar("Made")


@dataclass(frozen=True)
class Remark:
    """Something to say of a file, with a name that programs can look for."""

    id: str
    """A stable word: checksum, wrong_class, copied, code_refused, …"""
    text: Text
    """The sentence."""

    def as_json(self) -> dict[str, str]:
        """As it stands in a result."""
        return {"id": self.id, "en": self.text.en, "nl": self.text.nl}


@dataclass(frozen=True)
class AnswerResult:
    """One answer, graded again."""

    question: str
    """Id of the question."""
    kind: str
    """choice, multiple, number, order, spot or code."""
    take: int
    """In which take of the quiz, from 1."""
    value: Any
    """The answer; of code the SHA-256 of its source."""
    fraction: float
    """Share of the question's points, 0 to 1."""
    points: float
    """The question's points."""
    mistake: str | None
    """Which misconception it shows; None if it is right or unknown."""
    said: Text | None
    """Feedback for the learner; None for an answer in another take than the one that counts."""


@dataclass(frozen=True)
class LessonResult:
    """One lesson of one learner."""

    lesson: str
    """Name of the lesson."""
    bank: str
    """Digest of the bank that it was graded with."""
    take: int
    """The take that counts."""
    points: float
    """Points of that take."""
    of: float
    """Points there are."""
    share: float
    """Their share, 0 to 1."""
    passed: bool
    """Whether that reaches the pass mark."""
    answers: tuple[AnswerResult, ...]
    """One for each question of every take; of tries at code the best."""

    def counting(self) -> dict[str, AnswerResult]:
        """The answer to each question in the take that counts."""
        return {answer.question: answer for answer in self.answers if answer.take == self.take}


@dataclass(frozen=True)
class FileResult:
    """What grading says of one file."""

    file: str
    """Path below the folder that was graded, with /."""
    status: Status
    """graded, refused, superseded or copied."""
    reason: Remark | None = None
    """Why it was not graded."""
    learner: str | None = None
    """Id in the roster."""
    written: str | None = None
    """When the learner's machine says it was written."""
    code: CodeRun = "none"
    """How code was run."""
    notes: tuple[Remark, ...] = ()
    """What the teacher should know."""
    lessons: tuple[LessonResult, ...] = ()
    """What was graded, by lesson."""

    def without_answers(self) -> "FileResult":
        """The same for whoever goes by lessons alone: a class's answers are too many to keep."""
        return replace(self, lessons=tuple(replace(each, answers=()) for each in self.lessons))

    def line(self) -> bytes:
        """The result as one line of results.jsonl, line end included."""
        return canonical({"format": FORMAT, "version": VERSION, **_as_json(self)}) + b"\n"


def _as_json(result: FileResult) -> dict[str, Any]:
    return {
        "file": result.file,
        "status": result.status,
        "reason": result.reason and result.reason.as_json(),
        "learner": result.learner,
        "written": result.written,
        "code": result.code,
        "notes": [note.as_json() for note in result.notes],
        "lessons": [_lesson_as_json(lesson) for lesson in result.lessons],
    }


def _lesson_as_json(lesson: LessonResult) -> dict[str, Any]:
    answers = [{**vars(answer), "said": answer.said and vars(answer.said)} for answer in lesson.answers]
    return {**vars(lesson), "answers": answers}


def result_from(value: Mapping[str, Any]) -> FileResult:
    """A result from its JSON; KeyError, TypeError or ValueError if it is none."""
    if not isinstance(value, Mapping) or (value.get("format"), value.get("version")) != (FORMAT, VERSION):
        raise ValueError(f"it is not {FORMAT} version {VERSION}")
    status, code = value["status"], value["code"]
    if status not in get_args(Status) or code not in get_args(CodeRun):
        raise ValueError(f"{status!r} with code {code!r} is no result")
    result = FileResult(
        file=value["file"],
        status=status,
        reason=_remark(value["reason"]) if value["reason"] else None,
        learner=value["learner"],
        written=value["written"],
        code=code,
        notes=tuple(map(_remark, value["notes"])),
        lessons=tuple(map(_lesson, value["lessons"])),
    )
    return _of_kinds(result, file=str, learner=_MAYBE, written=_MAYBE)


def _of_kinds(made: Made, **kinds: Any) -> Made:
    """`made` itself; TypeError names a field that is of another kind."""
    for name, kind in kinds.items():
        if not isinstance(getattr(made, name), kind):
            raise TypeError(f"{name} is of another kind")
    return made


def _remark(value: Mapping[str, Any]) -> Remark:
    return _of_kinds(Remark(value["id"], _text(value)), id=str)


def _text(value: Mapping[str, Any]) -> Text:
    return _of_kinds(Text(value["en"], value["nl"]), en=str, nl=str)


def _lesson(value: Mapping[str, Any]) -> LessonResult:
    made = LessonResult(**{**value, "answers": tuple(map(_answer, value["answers"]))})
    return _of_kinds(
        made, lesson=str, bank=str, take=int, points=_NUMBER, of=_NUMBER, share=_NUMBER, passed=bool
    )  # fmt: skip


def _answer(value: Mapping[str, Any]) -> AnswerResult:
    made = AnswerResult(**{**value, "said": _text(value["said"]) if value["said"] else None})
    return _of_kinds(
        made, question=str, kind=str, take=int, fraction=_NUMBER, points=_NUMBER, mistake=_MAYBE
    )  # fmt: skip


def read_results(file: Path) -> Iterator[FileResult]:
    """Every result in a results.jsonl, one at a time; ValueError names the line that is none."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield result_from(read(line, LONGEST_LINE))
            except KeyError as error:
                raise ValueError(f"{file}:{number}: this line is no result of grading ({error} is missing)") from None
            except (JsonError, TypeError, ValueError) as error:
                raise ValueError(f"{file}:{number}: this line is no result of grading ({error})") from None
