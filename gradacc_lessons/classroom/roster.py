"""Who is in a class: a CSV with a column `id` and, if there are, `name` and `email`."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.tables import bytes_of_table, table_in
from gradacc_lessons.text import Text

LONGEST = 200
"""Characters of an id, name or address."""
NAMES = {
    "id": ("id", "learner", "student id", "student number", "studentnummer", "id number", "sis user id", "username"),
    "name": ("name", "naam", "student", "full name", "volledige naam"),
    "email": ("email", "e-mail", "email address", "e-mailadres"),
}
"""What the columns are called, in small letters; the first that is there is taken."""


@dataclass(frozen=True)
class Learner:
    """One line of the roster."""

    id: str
    """What the school knows the learner by; unique in the class."""
    name: str = ""
    """The learner's name."""
    email: str = ""
    """The learner's address."""


def read_roster(file: Path) -> list[Learner]:
    """The learners, in the file's order; ClassError names the line that is wrong."""
    return roster_in(bytes_of_table(file), file)


def roster_in(raw: bytes, file: Path) -> list[Learner]:
    """The same of bytes that were read from `file`."""
    there, rows = table_in(raw, file)
    columns = {field: _column(there, names) for field, names in NAMES.items()}
    if columns["id"] is None:
        found = ", ".join(there) or "nothing"
        raise ClassError(
            "roster",
            f"{file} needs a column id with what your school knows each learner by; its first line has: {found[:200]}",
            f"{file} heeft een kolom id nodig met het nummer van elke leerling; op de eerste regel staat: "
            f"{found[:200]}",
        )
    learners: dict[str, Learner] = {}
    for line, row in rows:
        cells = {field: row.get(column, "") if column else "" for field, column in columns.items()}
        if not any(cells.values()):
            continue
        if problem := _problem(cells, learners):
            raise ClassError("roster", f"{file}, line {line}: {problem.en}", f"{file}, regel {line}: {problem.nl}")
        learners[cells["id"]] = Learner(**cells)
    return list(learners.values())


def _column(there: Sequence[str], names: Sequence[str]) -> str | None:
    known = {column.lower(): column for column in there}
    return next((known[name] for name in names if name in known), None)


def _problem(cells: dict[str, str], learners: dict[str, Learner]) -> Text | None:
    if not cells["id"]:
        return Text("the id is empty", "de id is leeg")
    if cells["id"] in learners:
        return Text(f"the id {cells['id']} stands there twice", f"de id {cells['id']} staat er twee keer")
    for field, cell in cells.items():
        # In a name a joiner can be right; in an id nobody sees it, and it makes another learner.
        refused = ("Cc", "Cs", "Cn") if field == "name" else ("Cc", "Cf", "Cs", "Cn", "Co")
        if len(cell) > LONGEST or any(unicodedata.category(char) in refused for char in cell):
            return Text(
                f"the {field} is longer than {LONGEST} characters or holds control characters or invisible ones",
                f"{field} is langer dan {LONGEST} tekens of bevat stuurtekens of onzichtbare tekens",
            )
    return None
