"""Reading a bank of questions. A mistake in it is one line, `file:line: field: what is wrong`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gradacc_lessons.quiz.formula import Formula
from gradacc_lessons.quiz.questions import Bank, NumberQuestion, SpotQuestion
from gradacc_lessons.quiz.yaml_lines import Document, Path_, YamlError, load

LONGEST_TEXT = 300
"""Characters of a file's own that a message quotes at most."""


class BankError(ValueError):
    """A bank cannot be used. Its text is the first problem; `problems` holds them all, one line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems[0])
        self.problems = tuple(problems)


def load_bank(path: Path | str) -> Bank:
    """Read and validate one bank; BankError says `file:line: field: what is wrong`."""
    return read_bank(path)[0]


def read_bank(path: Path | str) -> tuple[Bank, Document]:
    """A bank together with the lines where its values stand; BankError as for load_bank."""
    path = Path(path)
    try:
        document = load(path)
    except YamlError as error:
        raise BankError([f"{path}:{error.line}: file: {error}"]) from None
    except OSError as error:
        raise BankError([f"{path}:1: file: it cannot be read: {error.strerror}"]) from None
    try:
        bank = Bank.model_validate(document.data)
    except ValidationError as error:
        raise BankError([_line(path, document, each) for each in error.errors()]) from None
    if problems := [where(path, document, at, what) for at, what in _contradictions(bank, path)]:
        raise BankError(problems)
    return bank, document


def where(path: Path, document: Document, at: Path_, what: str) -> str:
    """`file:line: field: what is wrong`; the line is that of the innermost value that stands in the file."""
    known: Path_ = at
    while known not in document.lines:
        known = known[:-1]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).lstrip(".")
    field, what = (_short(" ".join(text.split())) for text in (field, what))
    return f"{path}:{document.lines[known]}: {field or 'file'}: {what}"


def _short(text: str) -> str:
    """Readable, whatever stands in the file."""
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


_PLAIN_WORDS = {
    "missing": "it is missing",
    "string_type": "it must be text (put a number in quotes)",
    "int_type": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "tuple_type": "it must be a list",
    "dict_type": "it must be a mapping",
    "model_type": "it must be a mapping of fields",
    "model_attributes_type": "it must be a mapping of fields",
    "too_short": "it must not be empty",
    "union_tag_not_found": "the kind of question is missing",
}


def _line(path: Path, document: Document, error: Any) -> str:
    at, kind = _real_path(document.data, error["loc"]), error["type"]
    if kind == "extra_forbidden":
        what = "there is no such field here"
    elif kind == "union_tag_invalid":
        context = error["ctx"]
        what, at = f"{context['tag']!r} is not one of {context['expected_tags']}", (*at, "kind")
    elif kind == "too_short" and error["ctx"]["min_length"] > 1:
        what = f"it must hold at least {error['ctx']['min_length']}"
    elif kind == "string_pattern_mismatch":
        what = "it is empty" if not str(error["input"]).strip() else f"{error['input']!r} is not a proper name"
    else:
        what = _PLAIN_WORDS.get(kind, error["msg"].removeprefix("Value error, "))
    return where(path, document, at, what)


def _real_path(data: Any, location: Sequence[str | int]) -> Path_:
    """Pydantic's location without the steps that are not in the file (the kind inside a union, "[key]")."""
    path: list[str | int] = []
    for index, part in enumerate(location):
        inside = isinstance(data, dict) and part in data
        inside = inside or (isinstance(data, list) and isinstance(part, int) and part < len(data))
        if inside:
            data = data[part]
        if inside or (index == len(location) - 1 and part != "[key]"):
            path.append(part)
    return tuple(path)


def _contradictions(bank: Bank, path: Path) -> Iterator[tuple[Path_, str]]:
    """What is well formed field by field and still cannot be."""
    if path.stem != bank.lesson:
        yield ("lesson",), f"it is {bank.lesson!r}, but the file is called {path.stem}.yaml"
    seen: set[str] = set()
    for index, question in enumerate(bank.questions):
        at: Path_ = ("questions", index)
        if question.id in seen:
            yield (*at, "id"), f"{question.id!r} is the id of an earlier question"
        seen.add(question.id)
        if question.objective not in bank.objectives:
            yield (*at, "objective"), f"{question.objective!r} is not one of {', '.join(bank.objectives)}"
        if isinstance(question, NumberQuestion):
            yield from _unknown_names(question, at)
        if isinstance(question, SpotQuestion):
            yield from _lines_beyond(question, at)


def _unknown_names(question: NumberQuestion, at: Path_) -> Iterator[tuple[Path_, str]]:
    formulas: list[tuple[Path_, Formula]] = [((*at, "answer"), question.answer)]
    for index, mistake in enumerate(question.mistakes):
        formulas.append(((*at, "mistakes", index, "formula"), mistake.formula))
    for place, each in formulas:
        for name in sorted(each.names - set(question.variables)):
            yield place, f"there is no variable {name!r}"


def _lines_beyond(question: SpotQuestion, at: Path_) -> Iterator[tuple[Path_, str]]:
    last = len(question.listing())
    for field, numbers in (("line", question.line), ("lines", question.lines)):
        for number in numbers:
            if not 1 <= number <= last:
                yield (*at, field), f"there is no line {number}; the listing has {last} lines"
    for number in sorted(set(question.line) & set(question.lines)):
        yield (*at, "lines"), f"line {number} is the faulty one; its words belong in feedback.correct"


def find_bank(folder: Path, lesson: str) -> Path:
    """The bank of a lesson, by its name ("01_accumulate") or number ("01"); ValueError lists those there are."""
    banks = sorted(folder.glob("[0-9][0-9]_*.yaml"))
    wanted = str(lesson)
    # As text: int() refuses some digits, and numbers of thousands of them.
    number = wanted.lstrip("0").zfill(2)
    for bank in banks:
        if wanted == bank.stem or (wanted and number == bank.stem[:2]):
            return bank
    known = ", ".join(bank.stem for bank in banks) or f"none in {folder}"
    raise ValueError(f"there is no quiz for lesson {lesson!r}; the quizzes there are: {known}")
