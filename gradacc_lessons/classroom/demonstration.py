"""A simulated class, graded and looked at: what was planted, and what item analysis finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradacc_lessons.classroom.grade_folder import grade_folder
from gradacc_lessons.classroom.items import ItemAnalysis, analyse, first_answers
from gradacc_lessons.classroom.results import read_results
from gradacc_lessons.classroom.simulated import CLASS_LESSONS, HANDED_IN, Misconception, simulate
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import find_bank
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.text import Text, joined

HEAD = Text(
    "{learners} learners. Misconceptions: planted, and found by item analysis.",
    "{learners} leerlingen. Misvattingen: gezaaid, en gevonden door de itemanalyse.",
)
NOT_FOUND = Text("not found", "niet gevonden")
NOT_PLANTED = Text("  found, but not planted: {what} ({share})", "  gevonden, maar niet gezaaid: {what} ({share})")
EXACT = Text("Found exactly what was planted.", "Precies gevonden wat er gezaaid was.")
NOT_EXACT = Text("What was found is not what was planted.", "Wat gevonden is, is niet wat er gezaaid was.")
TRY = Text("Try next:", "Probeer nu:")


@dataclass(frozen=True)
class Demonstration:
    """A simulated class that was graded."""

    folder: Path
    """The class."""
    learners: int
    """How many there are."""
    planted: tuple[Misconception, ...]
    """What they get wrong."""
    found: ItemAnalysis
    """What their first answers say."""

    @property
    def exact(self) -> bool:
        """Whether the misconceptions that were found are those that were planted, and no others."""
        return {(each.lesson, each.question, each.mistake) for each in self.planted} == set(self._shares())

    def _shares(self) -> dict[tuple[str, str, str], float]:
        """What was found: by lesson, question and mistake, the share of the class that showed it."""
        found = self.found.misconceptions()
        columns = (found[name].tolist() for name in ("lesson", "question", "mistake", "share"))
        return {(lesson, question, mistake): share for lesson, question, mistake, share in zip(*columns, strict=True)}

    def text(self) -> Text:
        """Planted beside found, and what to try next."""
        found = self._shares()
        lines = [fill(HEAD, {"learners": self.learners})]
        for each in self.planted:
            share = found.pop((each.lesson, each.question, each.mistake), None)
            seen = NOT_FOUND if share is None else Text(*[f"{share:.0%}"] * 2)
            held = len(each.holders) / self.learners
            row = f"  {each.lesson:<20} {each.question:<26} {each.mistake:<20} {held:>4.0%}  "
            lines.append(Text(f"{row}{seen.en:>9}", f"{row}{seen.nl:>13}"))
        for key, share in found.items():
            lines.append(fill(NOT_PLANTED, {"what": ", ".join(key), "share": f"{share:.0%}"}))
        next_ones = (
            f"  gradacc class items --class {self.folder}",
            f"  gradacc class report --class {self.folder}",
            f"  gradacc class grade {self.folder / HANDED_IN} --class {self.folder}",
        )
        return joined(
            [*lines, EXACT if self.exact else NOT_EXACT, TRY, *(Text(each, each) for each in next_ones)], "\n"
        )


def demonstrate(
    folder: Path,
    learners: int,
    lessons: Sequence[str] = CLASS_LESSONS,
    *,
    seed: int = 0,
    tell: Callable[[int, int], object] = lambda done, total: None,
) -> Demonstration:
    """Make a class in a new folder, let it answer, grade it and analyse it. `tell` hears how far it has come."""
    made = simulate(folder, learners, lessons, seed=seed, tell=lambda done, _: tell(done, 2 * learners))
    graded = grade_folder(made.of_class, made.handed_in, tell=lambda done, _: tell(learners + done, 2 * learners))
    found = analyse(first_answers(read_results(graded.file)))
    return Demonstration(folder, learners, made.planted, found)


def lesson_names(lessons: Sequence[str]) -> Sequence[str]:
    """The lessons by their full names, those of a class of 90 minutes without one; ValueError lists those known."""
    folder = course_folder("quizzes")
    return [find_bank(folder, lesson).stem for lesson in lessons] or CLASS_LESSONS
