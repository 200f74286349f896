"""Proves that banks can be used: what `gradacc quiz check` runs.

A bank that can be read at all (see bank) is then asked for what only shows across texts, seeds and files.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz import draw
from gradacc_lessons.quiz.bank import BankError, read_bank, where
from gradacc_lessons.quiz.exercises import EXERCISES
from gradacc_lessons.quiz.formula import FormulaError, Number
from gradacc_lessons.quiz.grade import agrees
from gradacc_lessons.quiz.number import written
from gradacc_lessons.quiz.questions import (
    NAME_IN_BRACES,
    Bank,
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    PredictQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.quiz.yaml_lines import Document, Path_
from gradacc_lessons.text import LANGUAGES, Language, Text, counted

SEEDS = 1_000
"""For how many learners the numbers of each question are tried."""
TELLING_LENGTH = 12
"""An option's text of at least so many characters gives it away when it stands in the prompt."""
LEAKING_SHARE = 0.5
"""An answer that stands in the fixed part of its prompt for more than this share of the learners is given away."""

Found = Iterator[tuple[Path_, str]]
Draw = dict[str, Number]


def check_banks(folder: Path | str) -> list[str]:
    """Every problem in every bank of `folder`, one line each; empty if all is well."""
    files = sorted(Path(folder).glob("*.yaml"))
    if not files:
        return [f"{folder}:1: file: there is no bank (*.yaml) in this folder"]
    problems: list[str] = []
    seen: dict[str, str] = {}
    for file in files:
        try:
            bank, document = read_bank(file)
        except BankError as error:
            problems += error.problems
            continue
        problems += [where(file, document, at, what) for at, what in _problems(bank)]
        problems += list(_known_elsewhere(file, bank, document, seen))
    return problems


def summary(folder: Path | str) -> str:
    """How much a folder of banks holds that have no problems."""
    banks = [read_bank(file)[0] for file in sorted(Path(folder).glob("*.yaml"))]
    questions = [question for bank in banks for question in bank.questions]
    kinds = sorted({question.kind for question in questions})
    counts = ", ".join(f"{sum(each.kind == kind for each in questions)} {kind}" for kind in kinds)
    return f"{counted(len(banks), 'bank')}, {counted(len(questions), 'question')} ({counts})"


def _known_elsewhere(file: Path, bank: Bank, document: Document, seen: dict[str, str]) -> Iterator[str]:
    for index, question in enumerate(bank.questions):
        if question.id in seen:
            what = f"{question.id!r} is a question of {seen[question.id]} too"
            yield where(file, document, ("questions", index, "id"), what)
        seen.setdefault(question.id, file.name)


def _problems(bank: Bank) -> Found:
    asked = {question.objective for question in bank.questions}
    for name in bank.objectives:
        if name not in asked:
            yield ("objectives", name), "no question asks for this aim"
    if not bank.counted:
        yield ("questions",), "each is a prediction, so nothing counts and nobody can pass: add one of another kind"
    headings = notebook_headings(bank.lesson)
    for index, question in enumerate(bank.questions):
        at: Path_ = ("questions", index)
        if headings is not None and question.section not in headings:
            yield (*at, "section"), f"{question.section!r} is no heading of {bank.lesson}.ipynb"
        if isinstance(question, CodeQuestion) and question.exercise not in EXERCISES:
            yield (*at, "exercise"), f"{question.exercise!r} is not one of {', '.join(EXERCISES)}"
        for check in _CHECKS:
            for deeper, what in check(question):
                yield (*at, *deeper), what


def notebook_headings(lesson: str) -> set[str] | None:
    """The headings of a lesson's notebook; None while there is no such notebook."""
    try:
        file = course_folder("notebooks") / f"{lesson}.ipynb"
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    except FileNotFoundError:
        return None
    lines = [line for cell in cells if cell["cell_type"] == "markdown" for line in "".join(cell["source"]).split("\n")]
    return {line.lstrip("#").strip() for line in lines if re.match(r"#{1,6} ", line)}


def texts(question: Question) -> Iterator[tuple[Path_, Text]]:
    """Every text of a question, with its place."""
    if question.prompt is not None:
        yield ("prompt",), question.prompt
    for index, hint in enumerate(question.hints):
        yield ("hints", index), hint
    if isinstance(question, ChoiceQuestion | MultipleQuestion):
        for index, option in enumerate(question.options):
            yield ("options", index, "text"), option.text
            yield ("options", index, "feedback"), option.feedback
    if isinstance(question, PredictQuestion):
        for index, guess in enumerate(question.options):
            yield ("options", index, "text"), guess.text
    if isinstance(question, OrderQuestion):
        for index, item in enumerate(question.items):
            yield ("items", index, "text"), item.text
            if item.feedback is not None:
                yield ("items", index, "feedback"), item.feedback
    if isinstance(question, NumberQuestion | OrderQuestion | SpotQuestion | PredictQuestion):
        yield ("feedback", "correct"), question.feedback.correct
        yield ("feedback", "wrong"), question.feedback.wrong
    if isinstance(question, NumberQuestion):
        for index, mistake in enumerate(question.mistakes):
            yield ("mistakes", index, "feedback"), mistake.feedback
    if isinstance(question, SpotQuestion):
        for line, text in question.lines.items():
            yield ("lines", line), text


def _placeholders(question: Question) -> Found:
    """The same names in both languages, and only names that will be filled in."""
    for place, text in texts(question):
        names = [set(NAME_IN_BRACES.findall(text.to(language))) for language in LANGUAGES]
        if names[0] != names[1]:
            yield place, f"{{{'}, {'.join(sorted(names[0] ^ names[1]))}}} stands in one language only"
        for name in sorted((names[0] | names[1]) - _fillable(question, place)):
            if isinstance(question, NumberQuestion | PredictQuestion):
                yield place, f"{{{name}}} is nothing that can be filled in here"


def _fillable(question: Question, place: Path_) -> set[str]:
    if isinstance(question, PredictQuestion):
        return {"predicted", "measured"} if place[0] == "feedback" else set()
    if not isinstance(question, NumberQuestion):
        return set()
    names = set(question.variables)
    if place[0] in ("feedback", "mistakes"):
        names.add("given")
    if place == ("feedback", "correct"):
        names.add("answer")
    return names


def draws(question: NumberQuestion) -> list[Draw]:
    """The different sets of numbers that SEEDS learners get."""
    found = [draw.variables(question.variables, draw.key(f"seed {n}", 1, question.id)) for n in range(SEEDS)]
    return list({tuple(sorted(each.items())): each for each in found}.values())


def _numbers(question: Question) -> Found:
    """Answers exist for every learner, and no recognised mistake is ever right."""
    if not isinstance(question, NumberQuestion):
        return
    sets = draws(question)
    try:
        for drawn in sets:
            question.answer.value(drawn)
    except FormulaError as error:
        yield ("answer",), f"for {_shown(drawn)}: {error}"
        return
    for index, mistake in enumerate(question.mistakes):
        place: Path_ = ("mistakes", index, "formula")
        if said := _never_said(question, index, sets):
            yield place, said
        for drawn in sets:
            try:
                right = agrees(question, mistake.formula.value(drawn), question.answer, drawn)
            except FormulaError as error:
                yield place, f"for {_shown(drawn)}: {error}"
                break
            if right:
                yield place, f"for {_shown(drawn)} this is the right answer"
                break


def _never_said(question: NumberQuestion, index: int, sets: Sequence[Draw]) -> str | None:
    """Whether an earlier mistake has this one's value for every learner, so that its words are never read."""
    formula = question.mistakes[index].formula
    for earlier in question.mistakes[:index]:
        try:
            if all(agrees(question, formula.value(drawn), earlier.formula, drawn) for drawn in sets):
                return f"its value is always that of the earlier mistake {earlier.formula.text!r}, whose words are said"
        except FormulaError:
            return None  # said elsewhere
    return None


def _leaks(question: Question) -> Found:
    """The answer does not stand in the prompt or a hint."""
    asked = [(place, text) for place, text in texts(question) if place[0] in ("prompt", "hints")]
    if isinstance(question, NumberQuestion):
        yield from _leaking_numbers(question, asked)
    if isinstance(question, ChoiceQuestion | MultipleQuestion):
        right = [option.text for option in question.options if option.correct]
        for place, text in asked:
            if any(_contains(text.to(to), each.to(to)) for each in right for to in LANGUAGES):
                yield place, "it holds the text of a right option"
    if isinstance(question, OrderQuestion):
        for place, text in asked:
            if any(_told_order(question, text, to) in question.orders for to in LANGUAGES):
                yield place, "it names all items in an accepted order"
    if isinstance(question, SpotQuestion):
        for place, text in asked:
            said = re.findall(r"(?:lines?|regels?)\s+(\d+)", f"{text.en} {text.nl}", re.IGNORECASE)
            if any(int(line) in question.line for line in said):
                yield place, "it names the faulty line"


def _told_order(question: OrderQuestion, text: Text, to: Language) -> tuple[str, ...]:
    """The items that a text names, in the order in which it does."""
    said = _squeezed(text.to(to))
    places = {item.id: said.find(_squeezed(item.text.to(to)).rstrip(".")) for item in question.items}
    return tuple(sorted((each for each in places if places[each] >= 0), key=places.__getitem__))


def _leaking_numbers(question: NumberQuestion, asked: Sequence[tuple[Path_, Text]]) -> Found:
    sets = draws(question)
    formula = _squeezed(question.answer.text)
    for place, text in asked:
        if len(formula) > 2 and any(formula in _squeezed(text.to(to)) for to in LANGUAGES):
            yield place, "it holds the formula of the answer"
        hits = sum(any(_says_answer(question, text, drawn, to) for to in LANGUAGES) for drawn in sets)
        if hits > LEAKING_SHARE * len(sets):
            yield place, f"it holds the answer (for {hits} of {len(sets)} sets of numbers)"


def _says_answer(question: NumberQuestion, text: Text, drawn: Draw, to: Language) -> bool:
    try:
        answer = written(question.answer.value(drawn), to)
    except FormulaError:
        return False  # said already
    fixed = NAME_IN_BRACES.sub(" ", text.to(to))  # the learner's own numbers are given, and may well be the answer
    return re.search(rf"(?<![\d.,]){re.escape(answer)}(?![\d]|[.,]\d)", fixed) is not None


def _contains(text: str, option: str) -> bool:
    wanted = _squeezed(option).rstrip(".")
    return len(wanted) >= TELLING_LENGTH and wanted in _squeezed(text)


def _squeezed(text: str) -> str:
    return re.sub(r"[\s`{}]", "", text).replace("\u00d7", "*").casefold()


def _shown(drawn: Draw) -> str:
    return ", ".join(f"{name} = {written(value, 'en')}" for name, value in drawn.items()) or "any learner"


_CHECKS: Iterable[Callable[[Question], Found]] = (_placeholders, _numbers, _leaks)
