"""What was missed comes back: a day later, and after each right answer later still, with other numbers each time."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from gradacc_lessons.progress import Answer, Review
from gradacc_lessons.quiz import draw, words
from gradacc_lessons.quiz.feedback import Result
from gradacc_lessons.quiz.grade import Grade, as_json, fill
from gradacc_lessons.quiz.questions import CodeQuestion, Question
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.text import Text, joined

DAYS = (1, 3, 7, 21)
"""Days until a missed question comes back: the next number after each right answer, the first one after a wrong one."""


@dataclass(frozen=True)
class Due:
    """When a question comes back."""

    on: date
    """The day, where the learner is."""
    reviewed: int
    """How often it has come back before."""


def schedule(answers: Iterable[Answer], reviews: Iterable[Review]) -> dict[str, Due]:
    """When each missed question comes back; those that were never missed, or have come back often enough, are left out.

    A wrong answer that counts in a take, or when the question came back, begins anew. A right one moves it on if it was
    due by then: what was read a minute ago is remembered by everybody.
    """
    history = [(each.at, each.question, each.fraction) for each in answers if each.counts]
    reviewed: dict[str, int] = {}
    for each in reviews:
        history.append((each.at, each.question, each.fraction))
        reviewed[each.question] = max(each.round, reviewed.get(each.question, 0))
    stages: dict[str, tuple[int, date]] = {}
    for at, question, fraction in sorted(history):
        day = datetime.fromisoformat(at).astimezone().date()
        if fraction < 1:
            stages[question] = 0, day
        elif question in stages and day >= _due(*stages[question]):
            stage = stages.pop(question)[0] + 1
            if stage < len(DAYS):
                stages[question] = stage, day
    return {question: Due(_due(*at), reviewed.get(question, 0)) for question, at in stages.items()}


def _due(stage: int, since: date) -> date:
    return since + timedelta(days=DAYS[stage])


class Reviewing(Quiz):
    """The questions of a quiz that are due today. Answers to them change no take and no result.

    An exercise stays open in its quiz until it is right, and does not come back.
    """

    may_retake = False

    def __init__(self, quiz: Quiz, today: date) -> None:
        super().__init__(quiz.lesson, quiz.own_language, bank_folder=quiz.bank_folder, progress=quiz.progress)
        found = schedule(self.progress.answers(self.lesson), self.progress.reviews(self.lesson))
        questions = {question.id: question for question in self.bank.counted}
        back = {each: due for each, due in found.items() if not isinstance(questions.get(each), CodeQuestion | None)}
        self._due = {each: due for each, due in back.items() if due.on <= today}
        self._questions = tuple(question for each, question in questions.items() if each in self._due)
        self._later = min((due.on for due in back.values() if due.on > today), default=None)

    @property
    def counted(self) -> tuple[Question, ...]:
        """The questions that are due."""
        return self._questions

    def given(self, question_id: str) -> Answer | None:
        """The answer that was given this time."""
        number = self._round(question_id)
        for each in self.progress.reviews(self.lesson):
            if (each.question, each.round) == (question_id, number):
                return Answer(question_id, number, True, True, each.value, each.fraction, 0.0, each.at)
        return None

    def result(self) -> Result:
        """What was reviewed, and when the next question comes back."""
        given = [self.given(question.id) for question in self.counted]
        right = sum(answer is not None and answer.fraction == 1 for answer in given)
        done = sum(answer is not None for answer in given)
        parts: list[Text] = []
        if given:
            counts = {"right": right, "done": done, "total": len(given)}
            parts.append(fill(words.REVIEWED, counts))
        else:
            parts.append(words.NOTHING_DUE)
        if self._later is not None:
            parts.append(fill(words.NEXT_DUE, {"day": self._later.isoformat()}))
        return Result(joined(parts), self.language, answered=done, questions=len(given))

    @property
    def drawn(self) -> tuple[int, str]:
        """What the numbers follow from, beside how often a question has come back."""
        return 0, self.progress.seed()

    def _key(self, question: Question) -> str:
        # Takes count from 1 up, so that no question comes back with the numbers that a take had.
        return draw.key(self.progress.seed(), -self._round(question.id), question.id)

    def _keep(self, question: Question, take: int, value: Any, result: Grade) -> Text | None:
        number, kept = self._round(question.id), as_json(question, value)
        first = self.progress.add_review(self.lesson, question.id, number, kept, result.fraction)
        return None if first else words.PRACTICE

    def _round(self, question_id: str) -> int:
        return self._due[question_id].reviewed + 1 if question_id in self._due else 0
