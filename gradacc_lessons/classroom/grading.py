"""Grading one file of a class: who it is of, and what its answers are worth. Nothing that it claims is believed."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from gradacc_lessons import __version__
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.code_check import CodeCheck
from gradacc_lessons.classroom.inbox import read_file, shown
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.results import AnswerResult, CodeRun, FileResult, LessonResult, Remark
from gradacc_lessons.classroom.submission import Submission, read_submission
from gradacc_lessons.quiz.questions import Bank
from gradacc_lessons.quiz.regrade import Regraded, Results, regrade
from gradacc_lessons.text import Text, counted

WITHOUT_SANDBOX: dict[CodeRun, Text] = {
    "unsafe": Text("Its code was run without a sandbox.", "De code is zonder sandbox uitgevoerd."),
    "refused": Text(
        "Its code was not run, and counts for nothing: there is no sandbox here.",
        "De code is niet uitgevoerd en telt niet mee: er is hier geen sandbox.",
    ),
}


@dataclass(frozen=True)
class Graded:
    """One file, graded by itself; whether others are like it is looked at when all are."""

    result: FileResult
    """What it is worth."""
    seen: str
    """SHA-256 of the file's bytes; empty if it could not be read."""
    work: str = ""
    """Digest of its answers and their times; empty if it was refused, or has none."""
    checksum: str = ""
    """The submission's own."""
    fits: int = 0
    """Questions with numbers of the learner's own that were answered right."""


class Grader:
    """Grades files of one class, one after another."""

    def __init__(self, of_class: ClassFolder, folder: Path, kind: CodeRun) -> None:
        self._class, self._folder, self._kind = of_class, folder, kind
        self._bank = cache(of_class.bank)

    def grade(self, name: str) -> Graded:
        """Grade one file, by its path below the folder. Never raises because of what is in it."""
        seen, refused = "", FileResult(shown(name), "refused")
        try:
            raw = read_file(self._folder, name)
            seen = hashlib.sha256(raw).hexdigest()
            submission = read_submission(raw)
            refused = replace(refused, written=submission.written)
            learner = self._learner(submission)
            return self._graded(shown(name), submission, learner, seen)
        except ClassError as error:
            return Graded(replace(refused, reason=Remark(error.id, error.text)), seen)

    def _learner(self, submission: Submission) -> str:
        """Whose it is, by the roster; ClassError if it is nobody's here, or its proof is not the learner's."""
        if submission.class_id != self._class.id:
            raise ClassError("wrong_class", "It is of another class.", "Het is van een andere klas.")
        learner = self._class.by_handle.get(submission.handle)
        if learner is None:
            raise ClassError(
                "unknown_learner",
                "It was made with a class code that nobody in the roster has.",
                "Het is gemaakt met een klascode die niemand in de klas heeft.",
            )
        if not submission.proven(self._class.codes[learner]):
            raise ClassError(
                "proof",
                "It names a learner of this class, but was not made with that learner's class code: the answers or the "
                "name were changed.",
                "Er staat een leerling van deze klas in, maar het is niet met diens klascode gemaakt: de antwoorden "
                "of de naam zijn veranderd.",
            )
        return learner

    def _graded(self, name: str, submission: Submission, learner: str, seen: str) -> Graded:
        code, notes, lessons, fits = CodeCheck(self._kind), _about_version(submission), [], 0
        for lesson, answers in submission.lessons.items():
            if lesson not in self._class.bank_files:
                notes.append(
                    Remark(
                        "unknown_lesson", Text(f"There is no quiz {lesson} here.", f"Er is hier geen quiz {lesson}.")
                    )
                )
                continue
            bank, digest = self._bank(lesson)
            results = regrade(bank, answers, self._class.codes[learner].text, code)
            notes += _about_answers(results)
            lessons.append(_lesson(bank, digest, results))
            fits += sum(each.kind == "number" and each.fraction == 1.0 for each in lessons[-1].answers)
        notes += _about_code(code)
        ran: CodeRun = self._kind if code.asked else "none"
        result = FileResult(name, "graded", None, learner, submission.written, ran, tuple(notes), tuple(lessons))
        return Graded(result, seen, submission.work, submission.checksum, fits)


def _lesson(bank: Bank, digest: str, results: Results) -> LessonResult:
    best = results.best
    take, points, of = (best.number, best.points, best.of) if best else (1, 0.0, sum(q.points for q in bank.counted))
    answers = [_answer(bank, each, said=each.take == take) for each in _kept(bank, results)]
    return LessonResult(bank.lesson, digest, take, points, of, results.share, results.passed, tuple(answers))


def _kept(bank: Bank, results: Results) -> list[Regraded]:
    """An answer for each question and take that may count; of tries at code the best, and of equals the earliest.

    Code that was not run does not count; that it was handed in is shown all the same.
    """
    kept: dict[tuple[int, str], Regraded] = {}
    for each in results.answers:
        if each.counts or bank.question(each.question).kind == "code":
            before = kept.setdefault((each.take, each.question), each)
            if each.grade.fraction > before.grade.fraction:
                kept[each.take, each.question] = each
    return list(kept.values())


def _answer(bank: Bank, answer: Regraded, *, said: bool) -> AnswerResult:
    question, grade = bank.question(answer.question), answer.grade
    value: Any = answer.value
    if question.kind == "code":
        value = hashlib.sha256(str(value).encode("utf-8", "replace")).hexdigest()
    return AnswerResult(
        question.id, question.kind, answer.take, value, grade.fraction, question.points, grade.mistake,
        grade.feedback if said else None,
    )  # fmt: skip


def _about_version(submission: Submission) -> list[Remark]:
    theirs = submission.versions.get("gradacc_lessons", "?")
    if theirs == __version__:
        return []
    return [
        Remark(
            "other_version",
            Text(
                f"It was written with version {theirs} of the course; graded with {__version__}.",
                f"Het is geschreven met versie {theirs} van de cursus; nagekeken met {__version__}.",
            ),
        )
    ]


def _about_answers(results: Results) -> list[Remark]:
    if not results.refused:
        return []
    count = len(results.refused)
    return [
        Remark(
            "unknown_answers",
            Text(
                f"Left out of {results.lesson}: {counted(count, 'answer')}, to a question that is not in the bank.",
                f"Weggelaten bij {results.lesson}: {count} {'antwoord' if count == 1 else 'antwoorden'} op een vraag "
                "die niet in de bank staat.",
            ),
        )
    ]


def _about_code(code: CodeCheck) -> list[Remark]:
    said = WITHOUT_SANDBOX.get(code.kind) if code.asked else None
    return [Remark(f"code_{code.kind}", said)] if said else []
