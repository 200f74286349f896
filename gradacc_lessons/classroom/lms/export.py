"""Writing banks for a learning management system, and saying what could not go along."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gradacc_lessons.classroom.class_folder import open_class
from gradacc_lessons.classroom.lms.items import INSTANCES, LeftOut, LmsItem, items, left_out
from gradacc_lessons.classroom.lms.moodle import moodle_xml
from gradacc_lessons.classroom.lms.qti import qti12
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import find_bank, load_bank
from gradacc_lessons.quiz.questions import Bank
from gradacc_lessons.text import Language, Text, joined
from gradacc_lessons.whole_file import write_whole

Format = Literal["moodle-xml", "qti12"]
ENDING: Mapping[Format, str] = {"moodle-xml": "xml", "qti12": "zip"}


@dataclass(frozen=True)
class Exported:
    """One lesson's bank, written out."""

    file: Path
    """Where."""
    questions: int
    """How many of the bank's questions are in it."""
    written: int
    """How many questions it holds: one for each set of numbers."""
    left_out: tuple[LeftOut, ...]
    """The bank's other questions."""

    def text(self) -> Text:
        """What is in it and what is not."""
        said = [
            Text(
                f"{self.file}: {self.questions} questions, written out as {self.written}.",
                f"{self.file}: {self.questions} vragen, uitgeschreven als {self.written}.",
            )
        ]
        said += [
            Text(f"Left out: {each.question}: {each.why.en}.", f"Weggelaten: {each.question}: {each.why.nl}.")
            for each in self.left_out
        ]
        return joined(said, "\n")


def bank_files(lessons: Sequence[str], folder_of_class: Path | None, folder: Path | None) -> list[Path]:
    """The banks of these lessons, all without one: a class's, those in `folder`, or the course's."""
    if folder_of_class and folder:
        raise ValueError("name a class or a folder with banks, not both")
    if folder_of_class:
        known = open_class(folder_of_class).bank_files
        return [known[_named(known, lesson)] for lesson in lessons] or list(known.values())
    folder = folder or course_folder("quizzes")
    return [find_bank(folder, lesson) for lesson in lessons] or sorted(folder.glob("[0-9][0-9]_*.yaml"))


def _named(known: Iterable[str], lesson: str) -> str:
    for name in known:
        if lesson == name or lesson.zfill(2) == name[:2]:
            return name
    raise ValueError(f"there is no quiz for lesson {lesson!r}; the quizzes there are: {', '.join(known)}")


def exported(bank: Bank, kind: Format, language: Language, asked: Sequence[LmsItem]) -> bytes:
    """The file to import for one bank, of which `asked` are the questions that a system can ask."""
    if kind == "moodle-xml":
        return moodle_xml(bank.lesson, asked, language)
    return qti12(bank.lesson, bank.title.to(language), asked, language)


def export_banks(
    files: Iterable[Path], kind: Format, language: Language, folder: Path, instances: int = INSTANCES
) -> list[Exported]:
    """Write a file for each bank into `folder`. BankError if a bank cannot be used, and then nothing is written."""
    banks = [load_bank(file) for file in files]
    folder.mkdir(parents=True, exist_ok=True)
    done = []
    for bank in banks:
        asked = items(bank, language, instances)
        file = folder / f"{bank.lesson}-{language}.{kind}.{ENDING[kind]}"
        write_whole(file, exported(bank, kind, language, asked))
        questions = len({item.question for item in asked})
        done.append(Exported(file, questions, len(asked), tuple(left_out(bank))))
    return done
