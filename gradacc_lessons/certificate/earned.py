"""Which lessons a certificate needs, and which of them this learner has passed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradacc_lessons.course import course_folder
from gradacc_lessons.progress import LessonResult, Progress
from gradacc_lessons.text import Text, joined

CORE = ("00", "01", "02", "03", "04", "05", "07")
"""Numbers of the core lessons."""


@dataclass(frozen=True)
class Standing:
    """How somebody stands in a lesson that a certificate needs."""

    lesson: str
    """Its name; only its number if the installed course does not have it."""
    share: float
    """Of its quiz's points, in the best take."""
    passed: bool
    """Whether that is enough."""
    words: Text
    """The same in words."""


def needed(*, full: bool, bank_folder: Path | None = None) -> dict[str, str | None]:
    """The lessons that the certificate needs, by number: the core lessons or all that are installed.

    None for one that the installed course does not have.
    """
    folder = bank_folder or course_folder("quizzes")
    installed = {bank.stem[:2]: bank.stem for bank in sorted(folder.glob("[0-9][0-9]_*.yaml"))}
    return {number: installed.get(number) for number in (installed if full else CORE)}


def standings(progress: Progress, *, full: bool, bank_folder: Path | None = None) -> tuple[Standing, ...]:
    """For each lesson that the certificate needs, in order, how the learner stands in it."""
    results = {result.lesson: result for result in progress.results()}
    lessons = needed(full=full, bank_folder=bank_folder)
    return tuple(_standing(number, lesson, results) for number, lesson in lessons.items())


def _standing(number: str, lesson: str | None, results: dict[str, LessonResult]) -> Standing:
    if lesson is None:
        return Standing(
            number, 0.0, False, Text("not in this copy of the course", "zit niet in deze versie van de cursus")
        )
    result = results.get(lesson)
    if result is None:
        return Standing(lesson, 0.0, False, Text("not begun", "niet begonnen"))
    words = result.state
    if not result.passed and result.answered == result.questions:
        words = joined([words, Text("begin another take", "begin een nieuwe poging")], "; ")
    return Standing(lesson, result.best, result.passed, words)


def still_missing(lessons: Sequence[Standing], *, full: bool) -> Text:
    """What is missing, lesson by lesson."""
    missing = [each for each in lessons if not each.passed]
    width = max(len(each.lesson) for each in missing)
    kind_en, kind_nl = ("full", "volledige") if full else ("core", "basis")
    lines_en = [f"  {each.lesson:<{width}}  {each.words.en}" for each in missing]
    lines_nl = [f"  {each.lesson:<{width}}  {each.words.nl}" for each in missing]
    dutch = f"het {kind_nl} certificaat" if full else f"het {kind_nl}certificaat"
    return Text(
        f"Not yet: for the {kind_en} certificate {len(missing)} of {len(lessons)} lessons are missing.\n"
        + "\n".join(lines_en),
        f"Nog niet: voor {dutch} ontbreken {len(missing)} van de {len(lessons)} lessen.\n" + "\n".join(lines_nl),
    )
