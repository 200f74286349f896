"""What a learner hands in: one file of plain JSON with answers, sources and versions. Nothing computed is in it.

{"format": "gradacc-submission", "version": 1,
 "class": "k7m2qd",                     the class, as in its codes
 "learner": "0f3a…",                    the learner, as only the class can read it (ClassCode.handle)
 "written": "2026-09-01T10:00:00Z",
 "versions": {"gradacc_lessons": "0.1.0", "python": "3.11.7", "torch": "2.13.0"},
 "lessons": [{"lesson": "01_accumulate", "answers": [
    {"question": "who-divides", "take": 1, "value": "option-id", "at": "2026-09-01T09:58:12Z"}]}],
 "checksum": "…",                       SHA-256 of the canonical JSON of all above
 "proof": "…"}                          HMAC of the checksum with the class code: who wrote it had the code
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.canonical import JsonError, digest, read
from gradacc_lessons.classroom.codes import CLASS_ID, ClassCode
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.progress_records import MOST_TAKES
from gradacc_lessons.quiz.exercise import KEPT_SOURCE
from gradacc_lessons.text import Text

FORMAT, VERSION = "gradacc-submission", 1
MOST_BYTES = 2_000_000
"""A file that is larger is not read: all exercises of the course with their sources are a tenth of it."""
MOST_LESSONS, MOST_ANSWERS = 100, 5_000
MOST_PICKED, LONGEST_PICK = 50, 200
"""Of an answer that is a list: how many it may hold, and how long each may be."""
COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"(\xb5/\xfd", b"Rar!")
"""How files begin that hold more than they are large."""
_LESSON, _QUESTION = re.compile(r"[0-9]{2}_[a-z0-9_]{1,60}"), re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_HANDLE, _DIGEST = re.compile(r"[0-9a-f]{16}"), re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)", re.ASCII)
_KEYS = ("format", "version", "class", "learner", "written", "versions", "lessons", "checksum", "proof")

WHY = {
    "compressed": Text(
        "It is a compressed file, and was not unpacked. A submission is plain JSON, as `gradacc submit` writes it.",
        "Het is een ingepakt bestand, en het is niet uitgepakt. Een inzending is gewone JSON, zoals `gradacc submit` "
        "die schrijft.",
    ),
    "too_large": Text(
        f"It is larger than {MOST_BYTES // 1_000_000} MB, and was not read.",
        f"Het is groter dan {MOST_BYTES // 1_000_000} MB en is niet gelezen.",
    ),
    "not_submission": Text(
        "It is no submission. `gradacc submit` writes one.",
        "Het is geen inzending. `gradacc submit` schrijft er een.",
    ),
    "version": Text(
        "It was written by another version of the course. Install the teacher's version and write it again.",
        "Het is door een andere versie van de cursus geschreven. Installeer de versie van de docent en schrijf het "
        "opnieuw.",
    ),
    "checksum": Text(
        "It was changed or damaged after it was written: its checksum is another.",
        "Het is na het schrijven veranderd of beschadigd: de controlesom klopt niet.",
    ),
}
"""Why a file is refused, by the word for it."""


@dataclass(frozen=True)
class Submission:
    """A submission that was read: of the right shape and undamaged. Whose it is, its proof has yet to show."""

    class_id: str
    """The class it says it is of."""
    handle: str
    """The learner it says it is of."""
    written: str
    """When, as the learner's machine says."""
    versions: Mapping[str, str]
    """Of what it was written with."""
    lessons: Mapping[str, list[dict[str, Any]]]
    """The answers to each lesson's questions, in the order in which they were given."""
    checksum: str
    """Of everything above."""
    proof: str
    """Made with the class code."""

    def proven(self, code: ClassCode) -> bool:
        """Whether who wrote it had this code."""
        return self.class_id == code.class_id and self.handle == code.handle and self.proof == code.proof(self.checksum)

    @property
    def work(self) -> str:
        """A digest of the answers and when they were given: no two learners' are the same. Empty without an answer."""
        return digest(dict(self.lessons)) if any(self.lessons.values()) else ""


def sealed(code: ClassCode, written: str, versions: Mapping[str, str], lessons: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a submission; `lessons` holds the answers by lesson."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "class": code.class_id,
        "learner": code.handle,
        "written": written,
        "versions": dict(versions),
        "lessons": [{"lesson": lesson, "answers": answers} for lesson, answers in lessons.items()],
    }
    checksum = digest(content)
    return {**content, "checksum": checksum, "proof": code.proof(checksum)}


def read_submission(raw: bytes) -> Submission:
    """A submission from the bytes of a file; ClassError, with a word for each reason, if it is not exactly one."""
    if raw.startswith(COMPRESSED):
        raise _refused("compressed")
    if len(raw) > MOST_BYTES:
        raise too_large()
    try:
        value = read(raw, MOST_BYTES)
    except JsonError as error:
        raise ClassError("not_json", f"It cannot be read: {error}.", f"Het is niet te lezen: {error}.") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise _refused("not_submission")
    if value.get("version") != VERSION:
        raise _refused("version")
    if wrong := _wrong_field(value):
        raise ClassError(
            "shape",
            f"It is not as `gradacc submit` writes it: {wrong} is missing, too long, or of another kind.",
            f"Het is niet zoals `gradacc submit` het schrijft: {wrong} ontbreekt, is te lang of is van een andere "
            "soort.",
        )
    content = {key: part for key, part in value.items() if key not in ("checksum", "proof")}
    if digest(content) != value["checksum"]:
        raise _refused("checksum")
    lessons = {each["lesson"]: each["answers"] for each in value["lessons"]}
    return Submission(
        value["class"], value["learner"], value["written"], value["versions"], lessons, value["checksum"],
        value["proof"],
    )  # fmt: skip


def too_large() -> ClassError:
    """For a file that is not even read."""
    return _refused("too_large")


def _refused(why: str) -> ClassError:
    return ClassError(why, WHY[why].en, WHY[why].nl)


def _wrong_field(value: dict[str, Any]) -> str | None:
    """The first field that is not as it should be."""
    patterns = {"class": CLASS_ID, "learner": _HANDLE, "written": _TIME, "checksum": _DIGEST, "proof": _DIGEST}
    for key in _KEYS:
        if key not in value:
            return key
    if set(value) != set(_KEYS):
        return "a field that is not known"
    for key, pattern in patterns.items():
        if not _matches(value[key], pattern):
            return key
    versions, lessons = value["versions"], value["lessons"]
    texts = [*versions.items()] if isinstance(versions, dict) and len(versions) <= MOST_PICKED else [(None, None)]
    if not all(isinstance(text, str) and len(text) <= LONGEST_PICK for pair in texts for text in pair):
        return "versions"
    return _wrong_lesson(lessons) if isinstance(lessons, list) and len(lessons) <= MOST_LESSONS else "lessons"


def _wrong_lesson(lessons: list[Any]) -> str | None:
    seen, answers = set(), 0
    for lesson in lessons:
        if not isinstance(lesson, dict) or set(lesson) != {"lesson", "answers"}:
            return "lessons"
        name, given = lesson["lesson"], lesson["answers"]
        if not _matches(name, _LESSON) or name in seen or not isinstance(given, list):
            return "lessons"
        seen.add(name)
        answers += len(given)
        if answers > MOST_ANSWERS or not all(map(_is_answer, given)):
            return "answers"
    return None


def _is_answer(answer: Any) -> bool:
    if not isinstance(answer, dict) or set(answer) != {"question", "take", "value", "at"}:
        return False
    take, value = answer["take"], answer["value"]
    named = _matches(answer["question"], _QUESTION) and _matches(answer["at"], _TIME)
    return named and type(take) is int and 1 <= take <= MOST_TAKES and _is_value(value)


def _is_value(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= MOST_PICKED and all(isinstance(each, str) and len(each) <= LONGEST_PICK for each in value)
    if isinstance(value, str):
        return len(value) <= KEPT_SOURCE
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(value: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
