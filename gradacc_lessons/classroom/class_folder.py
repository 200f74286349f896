"""The folder of a class: who is in it, its two keys, banks of its own, and what grading finds.

NAME/class.json     what the class is called, and its id in codes
     roster.csv     who is in it, as the teacher gave it; learners may be added later
     class.key      what the class codes follow from (0600)
     teacher.pem    what certificates of this class are signed with (0600)
     bank/          banks that take the place of the course's, by lesson
     codes.csv      each learner's class code (0600)
     results/       results.jsonl, and what is built from it
"""

import hashlib
import re
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gradacc_lessons.canonical import JsonError, canonical, read
from gradacc_lessons.certificate.problem import need_extra
from gradacc_lessons.classroom.codes import CLASS_ID, ClassCode, code_for, new_class_id
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.roster import Learner, read_roster, roster_in
from gradacc_lessons.classroom.tables import as_csv, bytes_of_table
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.questions import Bank
from gradacc_lessons.whole_file import open_to_others, write_whole

FORMAT, VERSION = "gradacc-class", 1
KEY_BYTES = 32


@dataclass(frozen=True)
class ClassFolder:
    """A class that was opened."""

    folder: Path
    """Where it is."""
    id: str
    """Its id in codes."""
    name: str
    """What the teacher calls it."""

    @property
    def results(self) -> Path:
        """Where grading writes."""
        return self.folder / "results"

    @cached_property
    def learners(self) -> Mapping[str, Learner]:
        """The roster, by id."""
        return {each.id: each for each in read_roster(self.folder / "roster.csv")}

    @cached_property
    def key(self) -> bytes:
        """The class key; ClassError if others may read it, or it is damaged."""
        file = self.folder / "class.key"
        if open_to_others(file):
            raise ClassError(
                "key",
                f"{file} may be read by others: with it anybody can compute every learner's numbers. Run `chmod 600 "
                f"{file}` if you know that nobody has read it.",
                f"{file} kan door anderen gelezen worden: daarmee kan iedereen de getallen van elke leerling "
                f"uitrekenen. Voer `chmod 600 {file}` uit als je weet dat niemand het gelezen heeft.",
            )
        with suppress(ValueError):
            key = bytes.fromhex(file.read_text(encoding="ascii").strip())
            if len(key) == KEY_BYTES:
                return key
        raise ClassError("key", f"{file} is damaged: it holds no key", f"{file} is beschadigd: er staat geen sleutel")

    @cached_property
    def codes(self) -> Mapping[str, ClassCode]:
        """Each learner's code, by the id in the roster."""
        return {learner: code_for(self.key, self.id, learner) for learner in self.learners}

    @cached_property
    def by_handle(self) -> Mapping[str, str]:
        """Ids in the roster, by how submissions name them."""
        return {code.handle: learner for learner, code in self.codes.items()}

    @cached_property
    def bank_files(self) -> Mapping[str, Path]:
        """The banks by lesson: the course's, and in their place the class's own."""
        folders = (course_folder("quizzes"), self.folder / "bank")
        return {file.stem: file for folder in folders for file in sorted(folder.glob("[0-9][0-9]_*.yaml"))}

    def bank(self, lesson: str) -> tuple[Bank, str]:
        """The bank of a lesson and the digest of its file."""
        file = self.bank_files[lesson]
        return load_bank(file), hashlib.sha256(file.read_bytes()).hexdigest()

    def stem(self, learner: Learner) -> str:
        """What files about a learner are called: the id as far as file names can be, and the handle of submissions.

        Nothing in it can lead to another folder; the handle tells those apart whose ids would read alike.
        """
        kept = re.sub(r"[^A-Za-z0-9_-]+", "_", learner.id)[:40].strip("_-")
        return f"{kept or 'learner'}-{self.codes[learner.id].handle[:8]}"

    def write_codes(self) -> Path:
        """Write everybody's code to codes.csv, for the roster as it is now."""
        rows = [[each.id, each.name, each.email, self.codes[each.id].text] for each in self.learners.values()]
        file = self.folder / "codes.csv"
        write_whole(file, as_csv(("id", "name", "email", "class code"), rows), private=True)
        return file


def new_class(folder: Path, roster: Path, bank: Path | None = None) -> ClassFolder:
    """Make a class in a new folder. ClassError, BankError or OSError leave no folder behind."""
    need_extra()
    people = bytes_of_table(roster)  # read once: it may be a pipe
    if not roster_in(people, roster):
        raise ClassError("roster", f"{roster} names no learner", f"in {roster} staat geen leerling")
    banks = sorted(bank.glob("[0-9][0-9]_*.yaml")) if bank else []
    if bank and not banks:
        raise ClassError("bank", f"there is no bank NN_lesson.yaml in {bank}", f"in {bank} staat geen NN_les.yaml")
    for file in banks:
        load_bank(file)
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise ClassError(
            "exists",
            f"{folder} is there already, and a class is never written over; choose another name",
            f"{folder} bestaat al, en over een klas wordt nooit heen geschreven; kies een andere naam",
        ) from None
    try:
        return _furnish(folder, people, banks)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _furnish(folder: Path, roster: bytes, banks: list[Path]) -> ClassFolder:
    from gradacc_lessons.certificate.keys import own_key

    made = ClassFolder(folder, new_class_id(), folder.name)
    about = {"format": FORMAT, "version": VERSION, "id": made.id, "name": made.name}
    write_whole(folder / "class.json", canonical(about) + b"\n")
    write_whole(folder / "roster.csv", roster, private=True)
    write_whole(folder / "class.key", secrets.token_hex(KEY_BYTES).encode() + b"\n", private=True)
    own_key(folder / "teacher.pem")
    (folder / "bank").mkdir()
    for file in banks:
        shutil.copyfile(file, folder / "bank" / file.name)
    made.write_codes()
    return made


def open_class(folder: Path) -> ClassFolder:
    """The class in this folder; ClassError if there is none."""
    try:
        about = read((folder / "class.json").read_bytes())
        if not isinstance(about, dict) or (about.get("format"), about.get("version")) != (FORMAT, VERSION):
            raise ValueError("it is of another version of the course")
        if not CLASS_ID.fullmatch(str(about.get("id"))):
            raise ValueError("it holds no id of a class")
        return ClassFolder(folder, about["id"], str(about.get("name", "")))
    except FileNotFoundError:
        raise ClassError(
            "no_class",
            f"{folder} is not the folder of a class. Make one with `gradacc class new NAME --roster roster.csv`, or "
            "name it with --class.",
            f"{folder} is niet de map van een klas. Maak er een met `gradacc class new NAAM --roster roster.csv`, of "
            "noem de map met --class.",
        ) from None
    except (JsonError, ValueError) as error:
        file = folder / "class.json"
        raise ClassError("no_class", f"{file} cannot be used: {error}", f"{file} is onbruikbaar: {error}") from None
