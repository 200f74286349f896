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

    def text(self) -> str:
        """Planted beside found, and what to try next."""
        found = self._shares()
        lines = [f"{self.learners} learners. Misconceptions: planted, and found by item analysis."]
        for each in self.planted:
            share = found.pop((each.lesson, each.question, each.mistake), None)
            seen = "not found" if share is None else f"{share:.0%}"
            held = len(each.holders) / self.learners
            lines.append(f"  {each.lesson:<20} {each.question:<26} {each.mistake:<20} {held:>4.0%}  {seen:>9}")
        lines += [f"  found, but not planted: {', '.join(key)} ({share:.0%})" for key, share in found.items()]
        lines.append("Found exactly what was planted." if self.exact else "What was found is not what was planted.")
        lines += [
            "Try next:",
            f"  gradacc class items --class {self.folder}",
            f"  gradacc class report --class {self.folder}",
            f"  gradacc class grade {self.folder / HANDED_IN} --class {self.folder}",
        ]
        return "\n".join(lines)


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
