"""Writing banks for a learning management system, and saying what could not go along."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gradacc_lessons.classroom.lms.items import INSTANCES, LeftOut, items, left_out
from gradacc_lessons.classroom.lms.moodle import moodle_xml
from gradacc_lessons.classroom.lms.qti import qti12
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.questions import Bank
from gradacc_lessons.text import Language, Text, joined

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


def exported(bank: Bank, kind: Format, language: Language, instances: int = INSTANCES) -> bytes:
    """The file to import for one bank."""
    asked = items(bank, language, instances)
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
        file.write_bytes(exported(bank, kind, language, instances))
        questions = len({item.question for item in asked})
        done.append(Exported(file, questions, len(asked), tuple(left_out(bank))))
    return done
