"""A class that does not exist, whose misconceptions are known: to try grading, and to see that item analysis works.

Every learner has a progress file, joins the class with their own code, answers from their own numbers, and hands in
the file that `gradacc submit` writes. Learners know the answer, except where they hold a misconception, and except
for slips of the pen; the less able make more of both. Some come back and take each quiz again, right this time: a
gradebook sees that, an item analysis must not. Functions are not written: their questions stay open.
"""

import math
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradacc_lessons.classroom import handing_in
from gradacc_lessons.classroom.class_folder import ClassFolder, new_class
from gradacc_lessons.classroom.tables import as_csv
from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz import draw, ordering
from gradacc_lessons.quiz.formula import Number
from gradacc_lessons.quiz.grade import grade
from gradacc_lessons.quiz.questions import (
    Bank,
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    Question,
    SpotQuestion,
)

CLASS_LESSONS = ("00_start_here", "01_accumulate", "02_scale_the_loss", "05_batch_norm")
"""The lessons of a class of 90 minutes."""
SHARES = (0.45, 0.35, 0.25)
"""How much of the class holds each misconception that is planted in a lesson."""
SLIP = 0.04
"""How often, on average, an answer is wrong for no reason."""
LUCK = 0.7
"""How much chance has to say in who holds a misconception, beside ability."""
COME_BACK = 3
"""Each so-manyeth learner takes the quizzes a second time."""
ORDERS = 200
"""Shuffles among which wrong orders are looked for."""
HANDED_IN = "handed-in"
Tell = Callable[[int, int], object]
"""Hears how many learners are done, and how many there are."""


@dataclass(frozen=True)
class Misconception:
    """A mistake that a part of the class makes."""

    lesson: str
    """Name of the lesson."""
    question: str
    """Id of the question."""
    mistake: str
    """Which mistake: as grading names it."""
    holders: frozenset[str]
    """Who holds it: ids in the roster."""


@dataclass(frozen=True)
class SimulatedClass:
    """A class with everything that was handed in."""

    of_class: ClassFolder
    """The class."""
    handed_in: Path
    """The folder with the files of its learners."""
    planted: tuple[Misconception, ...]
    """What they get wrong."""


def simulate(
    folder: Path,
    learners: int,
    lessons: Sequence[str] = CLASS_LESSONS,
    *,
    seed: int = 0,
    tell: Tell = lambda done, total: None,
) -> SimulatedClass:
    """Make a class in a new folder and hand in a file for each of its learners. ValueError if there are too few."""
    if learners < 12:
        raise ValueError("a class in which misconceptions can be told from slips has 12 learners or more")
    of_class = _class(folder, learners)
    banks = {lesson: of_class.bank(lesson)[0] for lesson in lessons}
    lot = random.Random(seed)
    ability = {learner: lot.random() for learner in of_class.learners}
    planted = tuple(_plant(of_class, banks, ability, lot))
    handed_in = folder / HANDED_IN
    handed_in.mkdir()
    for done, learner in enumerate(of_class.learners, start=1):
        held = {(each.lesson, each.question): each.mistake for each in planted if learner in each.holders}
        person = _Simulated(of_class.codes[learner].text, held, 2 * SLIP * (1 - ability[learner]), lot)
        person.hand_in(banks, handed_in, takes=(1, 2) if done % COME_BACK == 0 else (1,))
        tell(done, learners)
    return SimulatedClass(of_class, handed_in, planted)


def _class(folder: Path, learners: int) -> ClassFolder:
    digits = len(str(learners))
    rows = [[f"learner-{number:0{digits}}", f"Learner {number:0{digits}}"] for number in range(1, learners + 1)]
    with tempfile.TemporaryDirectory() as place:
        roster = Path(place) / "roster.csv"
        roster.write_bytes(as_csv(("id", "name"), rows))
        return new_class(folder, roster)


def _plant(
    of_class: ClassFolder, banks: Mapping[str, Bank], ability: Mapping[str, float], lot: random.Random
) -> Iterator[Misconception]:
    """A few misconceptions for each lesson, each held by its share of the class, the less able before the others."""
    for lesson, bank in banks.items():
        questions = [question for question in bank.counted if not isinstance(question, CodeQuestion)]
        lot.shuffle(questions)
        possible = ((each, mistake) for each in questions for mistake in _shared(of_class, each)[:1])
        for share, (question, mistake) in zip(SHARES, possible, strict=False):
            ranked = sorted(ability, key=lambda learner: ability[learner] + LUCK * lot.random())
            yield Misconception(lesson, question.id, mistake, frozenset(ranked[: round(share * len(ranked))]))


def _shared(of_class: ClassFolder, question: Question) -> list[str]:
    """The mistakes that everybody can make: with some numbers, a wrong formula gives what another one gives."""
    drawn = dict.fromkeys(tuple(_numbers(question, code.text, 1).items()) for code in of_class.codes.values())
    found = [wrong_answers(question, dict(numbers)) for numbers in drawn]
    return [mistake for mistake in found[0] if mistake and all(mistake in each for each in found)]


@dataclass(frozen=True)
class _Simulated:
    """One learner, from joining the class to the file that is handed in."""

    code: str
    """The class code."""
    held: Mapping[tuple[str, str], str]
    """Misconceptions, by lesson and question."""
    slips: float
    """How often an answer is wrong for no reason."""
    lot: random.Random
    """What chance follows from."""

    def hand_in(self, banks: Mapping[str, Bank], folder: Path, takes: Sequence[int]) -> None:
        with tempfile.TemporaryDirectory(dir=_memory()) as place:
            progress = Progress(Path(place) / "progress.sqlite")
            handing_in.join(progress, self.code)
            for lesson, bank in banks.items():
                for take in takes:
                    self._take(progress, lesson, bank, take)
            hand_in = handing_in.gather(progress)
            handing_in.write(hand_in, folder / hand_in.file_name)

    def _take(self, progress: Progress, lesson: str, bank: Bank, take: int) -> None:
        progress.begin_take(lesson, take, {each.id: each.points for each in bank.counted})
        for question in bank.counted:
            if not isinstance(question, CodeQuestion):
                numbers = _numbers(question, self.code, take)
                value = self._answer(lesson, question, numbers, take)
                fraction = grade(question, value, numbers).fraction
                progress.add_answer(lesson, question.id, take, value, fraction, question.points)

    def _answer(self, lesson: str, question: Question, numbers: Mapping[str, Number], take: int) -> Any:
        mistake = self.held.get((lesson, question.id))
        if mistake is not None and take == 1:
            return wrong_answers(question, numbers)[mistake]
        if self.lot.random() < self.slips:
            return self.lot.choice(list(wrong_answers(question, numbers).values()))
        return right_answer(question, numbers)


def _memory() -> str | None:
    """Where files that are thrown away are quickest: Linux keeps this folder in memory."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _numbers(question: Question, code: str, take: int) -> dict[str, Number]:
    if isinstance(question, NumberQuestion):
        return draw.variables(question.variables, draw.key(code, take, question.id))
    return {}


def right_answer(question: Question, numbers: Mapping[str, Number]) -> Any:
    """An answer that is right in full; TypeError for a question that something else decides."""
    match question:
        case ChoiceQuestion():
            return next(option.id for option in question.options if option.correct)
        case MultipleQuestion():
            return sorted(option.id for option in question.options if option.correct)
        case NumberQuestion():
            return float(question.answer.value(numbers))
        case SpotQuestion():
            return float(question.line[0])
        case OrderQuestion():
            return list(question.orders[0])
        case _:
            raise TypeError(f"{question.id} is decided by running something")


def wrong_answers(question: Question, numbers: Mapping[str, Number]) -> dict[str, Any]:
    """Wrong answers, by the mistake that grading finds in them; "" for one that shows none."""
    found: dict[str, Any] = {}
    for value in _candidates(question, numbers):
        graded = grade(question, value, numbers)
        if graded.counted and not graded.correct:
            found.setdefault(graded.mistake or "", value)
    return found


def _candidates(question: Question, numbers: Mapping[str, Number]) -> Iterator[Any]:
    match question:
        case ChoiceQuestion():
            yield from (option.id for option in question.options)
        case MultipleQuestion():
            right = [option.id for option in question.options if option.correct]
            yield from (sorted([*right, option.id]) for option in question.options if not option.correct)
        case NumberQuestion():
            yield from (float(each.formula.value(numbers)) for each in question.mistakes)
            yield math.pi * 1000
        case SpotQuestion():
            yield from (float(line) for line in [*question.lines, *range(1, len(question.listing()) + 1)])
        case OrderQuestion():
            yield from (list(ordering.shuffled(question, str(number))) for number in range(ORDERS))
