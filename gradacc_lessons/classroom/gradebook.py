"""The gradebook of a class, as Canvas and as Moodle import it: a percentage for each lesson.

Both systems take 100 as the most points of something new, so that a bank may change its points without spoiling a
column. A learner without a graded file, or without answers to a lesson, gets no grade, which is not a 0.

* Canvas (`Grades > Import`) wants the columns Student, ID, SIS User ID, SIS Login ID, Section in this order, and a
  row "Points Possible". It looks a learner up by ID, and if that is empty by SIS User ID, then by SIS Login ID: the
  roster's id stands in both. Source: lib/gradebook_importer.rb in the repository instructure/canvas-lms.
* Moodle (`Grades > Import > CSV file`) asks which column says who it is ("ID number" or "Email address") and which
  grades to take. For a grade item that the import makes, it reads an empty cell as 0 and only "-" as no grade, so "-"
  is what stands there. Source: grade/import/csv/classes/load_data.php in the repository moodle/moodle.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.results import FileResult
from gradacc_lessons.classroom.roster import Learner
from gradacc_lessons.classroom.tables import NOTHING, as_csv
from gradacc_lessons.whole_file import write_whole

MOST = 100
"""Points of each lesson in a gradebook."""
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("ID number", "Full name", "Email address")

Shares = Mapping[str, Mapping[str, float]]
"""By learner, then by lesson: the share of the points, 0 to 1."""


@dataclass(frozen=True)
class Gradebook:
    """The grades of a class."""

    learners: Sequence[Learner]
    """The roster."""
    lessons: Sequence[str]
    """Every lesson that somebody handed in, in order."""
    shares: Shares
    """What was earned."""

    def canvas(self) -> bytes:
        """The CSV for Canvas."""
        most = ["    Points Possible", "", "", "", "", *[str(MOST)] * len(self.lessons)]
        rows = [
            [learner.name or learner.id, "", learner.id, learner.id, "", *self._grades(learner, none="")]
            for learner in self.learners
        ]
        return as_csv([*CANVAS, *self.lessons], [most, *rows])

    def moodle(self) -> bytes:
        """The CSV for Moodle."""
        rows = [
            [learner.id, learner.name, learner.email, *self._grades(learner, none=NOTHING)] for learner in self.learners
        ]
        return as_csv([*MOODLE, *self.lessons], rows)

    def _grades(self, learner: Learner, none: str) -> list[str]:
        shares = self.shares.get(learner.id, {})
        return [f"{shares[lesson] * MOST:.2f}" if lesson in shares else none for lesson in self.lessons]


def gradebook(learners: Iterable[Learner], results: Iterable[FileResult]) -> Gradebook:
    """The grades that grading found; `results` may come one at a time."""
    shares: dict[str, dict[str, float]] = {}
    for result in results:
        if result.status == "graded" and result.learner is not None:
            shares[result.learner] = {each.lesson: each.share for each in result.lessons}
    lessons = sorted({lesson for of_learner in shares.values() for lesson in of_learner})
    return Gradebook(list(learners), lessons, shares)


def write_gradebooks(of_class: ClassFolder, results: Iterable[FileResult], folder: Path) -> list[Path]:
    """Write canvas.csv and moodle.csv into `folder`."""
    book = gradebook(of_class.learners.values(), results)
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / "canvas.csv": book.canvas(), folder / "moodle.csv": book.moodle()}
    for file, content in files.items():
        write_whole(file, content)
    return list(files)
