"""Grading a submission anew, from the answers alone: no progress file, no widgets, and nothing computed is believed.

The rules are those of a live take: the first answer to a question in a take counts (of an exercise's tries, the best),
what cannot be read as an answer counts for nothing and costs nothing, hints cost nothing, and the best take counts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.progress_records import MOST_TAKES, Answer, Take, best_take, by_take, passes, take_from
from gradacc_lessons.quiz import draw
from gradacc_lessons.quiz.grade import Grade, grade, no_answer
from gradacc_lessons.quiz.questions import Bank, CodeQuestion, NumberQuestion, Question
from gradacc_lessons.text import Text

CheckCode = Callable[[str, str], Grade]
"""Grades the source of a function that an exercise asks for: (the exercise's key, the source) -> Grade."""

NOT_CHECKED = no_answer(Text("Code was not run here.", "Code is hier niet uitgevoerd."))


@dataclass(frozen=True)
class Regraded:
    """One answer of a submission."""

    question: str
    """Id of the question."""
    take: int
    """From 1."""
    value: Any
    """The answer as it was submitted; of an exercise, its source."""
    grade: Grade
    """What it is worth; `grade.counted` is False for what is no answer."""
    counts: bool
    """Whether it goes towards its take: the first answer, or an exercise's try."""


@dataclass(frozen=True)
class Results:
    """A submission to one lesson's quiz."""

    lesson: str
    """Name of the lesson."""
    answers: tuple[Regraded, ...]
    """Every answer to a question that counts, in the order of the submission."""
    takes: tuple[Take, ...]
    """Every take that has an answer, in order."""
    refused: tuple[str, ...]
    """What could not be graded at all, a sentence each: a record of another shape, a question that is not there."""

    @property
    def best(self) -> Take | None:
        """The take that counts; None if nothing was answered."""
        return best_take(self.takes) if self.takes else None

    @property
    def share(self) -> float:
        """Its share of the points, 0 to 1."""
        return self.best.share if self.best else 0.0

    @property
    def passed(self) -> bool:
        """Whether that reaches the pass mark."""
        return passes(self.share)


def regrade(
    bank: Bank, answers: Iterable[Mapping[str, Any]], seed: str, check_code: CheckCode | None = None
) -> Results:
    """Grade the records of a submission, in order: mappings with "question", "take" and "value" (what JSON can hold).

    `seed` is what the learner's numbers follow from, as in `Progress.seed()`. `check_code` runs each different source
    once; without it exercises are worth nothing. Each take asks what the bank asks now. Predictions are left out:
    what a learner's own machine measured proves nothing. Never raises for what stands in a record.
    """
    grader = _Grader(bank, seed, check_code)
    for place, record in enumerate(answers, start=1):
        grader.add(place, record)
    return Results(bank.lesson, tuple(grader.graded), tuple(grader.takes()), tuple(grader.refused))


class _Grader:
    """What one submission has come to so far."""

    def __init__(self, bank: Bank, seed: str, check_code: CheckCode | None) -> None:
        self.graded: list[Regraded] = []
        self.refused: list[str] = []
        self._seed, self._check_code = seed, check_code
        self._counted = {question.id: question for question in bank.counted}
        self._predictions = {question.id for question in bank.predictions}
        self._answered: set[tuple[int, str]] = set()
        self._checked: dict[tuple[str, str], Grade] = {}

    def add(self, place: int, record: Any) -> None:
        """Grade one record, the `place`-th."""
        if not isinstance(record, Mapping) or not isinstance(name := record.get("question"), str):
            self.refused.append(f"answer {place}: it names no question")
            return
        take, value = record.get("take"), record.get("value")
        if name in self._predictions:
            return
        if name not in self._counted:
            self.refused.append(f"answer {place}: there is no such question")
        elif not isinstance(take, int) or isinstance(take, bool) or not 1 <= take <= MOST_TAKES:
            self.refused.append(f"answer {place}: there is no such take")
        else:
            question = self._counted[name]
            result = self._grade(question, take, value)
            first = (take, name) not in self._answered
            if result.counted:
                self._answered.add((take, name))
            counts = result.counted and (first or isinstance(question, CodeQuestion))
            self.graded.append(Regraded(name, take, value, result, counts))

    def takes(self) -> Iterator[Take]:
        """Every take that has an answer, in order."""
        points = {name: question.points for name, question in self._counted.items()}
        kept = [
            Answer(each.question, each.take, True, True, each.value, each.grade.fraction, points[each.question], "")
            for each in self.graded
            if each.counts
        ]
        for number, answers in sorted(by_take(kept).items()):
            yield take_from(number, points, answers, seed=self._seed)

    def _grade(self, question: Question, take: int, value: Any) -> Grade:
        if isinstance(question, CodeQuestion):
            return self._check(question.exercise, value)
        numbers = {}
        if isinstance(question, NumberQuestion):
            numbers = draw.variables(question.variables, draw.key(self._seed, take, question.id))
        return grade(question, value, numbers)

    def _check(self, exercise: str, source: Any) -> Grade:
        if self._check_code is None or not isinstance(source, str):
            return NOT_CHECKED
        asked = (exercise, source)
        if asked not in self._checked:
            self._checked[asked] = self._check_code(*asked)
        return self._checked[asked]
