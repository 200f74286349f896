"""What is kept about a learner, and what follows from it: which answers count, how a take stands, what passes.

Nothing here knows of files; `progress` keeps the records.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.text import Text

PASS_MARK = 0.8
"""The share of a lesson's points that passes it."""
MOST_TAKES = 10**9
"""Nobody takes a quiz so often."""
ROUNDING = 1e-9
"""Points are sums of floats: what lacks less than this share lacks nothing."""


def passes(share: float) -> bool:
    """Whether a share of the points, 0 to 1, reaches the pass mark."""
    return share >= PASS_MARK - ROUNDING


def percent(share: float) -> int:
    """A share of the points in whole percent, rounded down: 79.9 % does not read like the 80 that passes."""
    return min(100, int((share + ROUNDING) * 100))


@dataclass(frozen=True)
class Answer:
    """One answer as it was given."""

    question: str
    """Id of the question."""
    take: int
    """In which take of the lesson's quiz, from 1."""
    first: bool
    """Whether it was the first answer to the question in that take."""
    counts: bool
    """Whether it may go towards the result: the first, or one of several tries."""
    value: Any
    """The answer: what JSON can hold."""
    fraction: float
    """Share of the question's points that it is worth."""
    points: float
    """The question's points."""
    at: str
    """When: ISO 8601, UTC."""


@dataclass(frozen=True)
class Review:
    """One answer to a question that came back after it was missed."""

    question: str
    """Id of the question."""
    round: int
    """The how-manyeth time it came back, from 1."""
    value: Any
    """The answer: what JSON can hold."""
    fraction: float
    """How much of it was right, 0 to 1."""
    at: str
    """When: ISO 8601, UTC."""


@dataclass(frozen=True)
class Prediction:
    """What was predicted before a run, and what the run measured if it has been run."""

    value: Any
    """A number or an option's id."""
    measured: Any = None
    """The same, from the run; None before it."""
    fraction: float | None = None
    """1.0 if the prediction was right, 0.0 if not; None before the run."""


@dataclass(frozen=True)
class Take:
    """One take of a lesson's quiz, as far as it has come.

    It asks what the quiz asked when the take began: a quiz that changes later takes no points away, and its new
    questions count from the next take.
    """

    number: int
    """From 1."""
    asked: Mapping[str, float]
    """The points of each question that it asks."""
    best: Mapping[str, Answer]
    """The answer that counts to each of its questions that has one; of several tries, the best."""
    at: str
    """When it began, or when its last answer that counts was given."""
    seed: str = ""
    """What its numbers were drawn from."""

    @property
    def of(self) -> float:
        """The points there are."""
        return sum(self.asked.values())

    @property
    def points(self) -> float:
        """The points it has earned."""
        return sum(self.asked[question] * answer.fraction for question, answer in self.best.items())

    @property
    def share(self) -> float:
        """Their share, 0 to 1; 0 if nothing counts."""
        return self.points / self.of if self.of else 0.0


def take_from(
    number: int, asked: Mapping[str, float], answers: Iterable[Answer], began: str = "", seed: str = ""
) -> Take:
    """The take with that number, from a lesson's answers."""
    counting = best_answers(answers, number)
    best = {question: answer for question, answer in counting.items() if question in asked}
    return Take(number, asked, best, max([began, *(answer.at for answer in best.values())]), seed)


def by_take(answers: Iterable[Answer]) -> Mapping[int, list[Answer]]:
    """A lesson's answers, by the take that they were given in, in their order."""
    found = defaultdict[int, list[Answer]](list)
    for answer in answers:
        found[answer.take].append(answer)
    return found


def best_answers(answers: Iterable[Answer], take: int) -> dict[str, Answer]:
    """Of the answers that count in a take, the best to each question; of equals, the earliest."""
    best: dict[str, Answer] = {}
    for answer in answers:
        if answer.take == take and answer.counts:
            earlier = best.get(answer.question)
            if earlier is None or answer.fraction > earlier.fraction:
                best[answer.question] = answer
    return best


def best_take(takes: Sequence[Take]) -> Take:
    """The take that counts; of equals, the earliest. ValueError if there is none."""
    return max(takes, key=lambda take: take.share)


@dataclass(frozen=True)
class LessonResult:
    """How a learner stands in one lesson."""

    lesson: str
    """Name of the lesson."""
    takes: int
    """How often the quiz was begun."""
    answered: int
    """Questions answered in the best take."""
    questions: int
    """Questions that take had."""
    points: float
    """Points of the best take."""
    of: float
    """Points that take had."""
    best: float
    """Share of the points in the best take, 0 to 1."""
    passed: bool
    """Whether that reaches PASS_MARK."""
    last: str
    """Day of the last answer."""

    @property
    def state(self) -> Text:
        """The same in words. While questions are open a share of all points would read like a fail."""
        share, mark, still_open = f"{percent(self.best)}%", f"{PASS_MARK:.0%}", self.questions - self.answered
        if self.passed:
            return Text(f"{share}, passed", f"{share}, gehaald")
        if not still_open:
            return Text(f"{share}, below the {mark} that passes", f"{share}, onder de {mark} die nodig is")
        points, of = f"{round(self.points, 2):g}", f"{self.of:g}"
        dutch = f"{points} van {of}".replace(".", ",")
        return Text(
            f"{points} of {of} points so far, {still_open} of {self.questions} questions still open",
            f"tot nu toe {dutch} punten, nog {still_open} van {self.questions} vragen open",
        )


def result_of(lesson: str, takes: Sequence[Take]) -> LessonResult:
    """How a learner stands after these takes of a lesson's quiz; ValueError if there are none."""
    best, last = best_take(takes), max(take.at for take in takes)[:10]
    answered, asked = len(best.best), len(best.asked)
    return LessonResult(lesson, len(takes), answered, asked, best.points, best.of, best.share, passes(best.share), last)
