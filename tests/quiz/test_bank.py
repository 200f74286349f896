"""A bank that is not as it should be is one line, with file, line and field; nothing in it is ever executed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import BankError, find_bank, load_bank
from gradacc_lessons.quiz.questions import Bank, NumberQuestion
from gradacc_lessons.quiz.yaml_lines import MAX_BYTES, MAX_DEPTH

Edit = Callable[..., Path]


def problems(path: Path) -> list[str]:
    with pytest.raises(BankError) as error:
        load_bank(path)
    assert str(error.value) == error.value.problems[0]
    for problem in error.value.problems:
        assert re.fullmatch(rf"{re.escape(str(path))}:\d+: \S+: .+", problem), problem
    return list(error.value.problems)


def line_of(path: Path, text: str) -> int:
    """The 1-based line where `text` stands for the first time."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


@pytest.mark.parametrize(
    "long", ["k" * 100_000, "k" * 100_000 + ": 1", "id: " + "k" * 100_000], ids=["text", "key", "id"]
)
def test_whatever_stands_in_a_file_its_message_can_be_read(tmp_path: Path, long: str) -> None:
    bank = tmp_path / "90_small.yaml"
    bank.write_text(f"lesson: 90_small\n{long}\n", encoding="utf-8")
    for problem in problems(bank):
        assert len(problem) < len(str(bank)) + 700


def test_the_small_bank_is_read(small: Bank) -> None:
    assert [question.kind for question in small.questions] == [
        "choice", "multiple", "number", "spot", "predict", "predict", "code",
    ]  # fmt: skip
    number = small.question("small-number")
    assert isinstance(number, NumberQuestion)
    assert list(number.variables["n"].values()) == list(range(3, 13))
    assert (number.points, number.tolerance) == (1.0, 0.0)
    with pytest.raises(ValueError, match="small-choice, small-multiple"):
        small.question("nothing")


@pytest.mark.parametrize("lesson", [path.stem for path in sorted(course_folder("quizzes").glob("*.yaml"))])
def test_the_banks_of_the_course_are_read(lesson: str) -> None:
    assert load_bank(find_bank(course_folder("quizzes"), lesson)).lesson == lesson


# (what is replaced, by what, the field that is named, a part of what is said, where the line number points)
EDITS = {
    "language missing": ("nl: Backward telt op.}", "}", "objectives.adds.nl", "missing", "adds: {en"),
    "language empty": ('"{n} keer."', '""', "questions[2].hints[0].nl", "empty", '{en: "{n} times."'),
    "language unknown": (
        "{en: Count what one update sees., nl:",
        "{en: x, fr: x, nl:",
        "objectives.counts.fr",
        "no such",
        "counts: {en",
    ),
    "text is a number": (
        "nl: Het vervangt wat er stond.}",
        "nl: 12}",
        "questions[0].options[2].text.nl",
        "quotes",
        "It replaces",
    ),
    "text is a list": (
        'prompt: {en: "Which line is wrong?", nl: "Welke regel is fout?"}',
        "prompt: [a, b]",
        "questions[3].prompt",
        "mapping",
        "prompt: [a, b]",
    ),
    "kind unknown": ("kind: multiple", "kind: guess", "questions[1].kind", "'guess' is not one of", "kind: guess"),
    "kind missing": ("    kind: multiple\n", "", "questions[1]", "kind", "- id: small-multiple"),
    "field unknown": ("tolerance: 0.1", "tolerence: 0.1", "questions[4].tolerence", "no such field", "tolerence"),
    "field missing": ("    answer: b * n\n", "", "questions[2].answer", "missing", "- id: small-number"),
    "id twice": ("id: small-guess", "id: small-spot", "questions[5].id", "earlier question", "- id: small-spot"),
    "id strange": ("id: small-guess", 'id: "Small guess!"', "questions[5].id", "proper name", "Small guess!"),
    "bounds of a guess": (
        'prompt: {en: "Which is larger?"',
        'least: 1\n    prompt: {en: "Which is larger?"',
        "questions[5].predict",
        "are for a prediction that is a number",
        "- id: small-guess",
    ),
    "bounds the wrong way": (
        "most: 1000.5",
        "most: 1",
        "questions[4].predict",
        "least: 1 is not below",
        "- id: small-predict",
    ),
    "objective unknown": (
        "objective: adds\n    section: Once",
        "objective: ads\n    section: Once",
        "questions[1].objective",
        "'ads' is not one of adds, counts",
        "objective: ads",
    ),
    "no right option": (
        "        correct: true\n        text: {en: It adds",
        "        text: {en: It adds",
        "questions[0].options",
        "0 options are marked",
        "    options:",
    ),
    "two right options": (
        "      - id: mean\n        text",
        "      - id: mean\n        correct: true\n        text",
        "questions[0].options",
        "2 options are marked",
        "    options:",
    ),
    "option without feedback": (
        "        feedback: {en: Nobody divides <u>here</u>; you do., nl: Niemand deelt <u>hier</u>; dat doe jij.}\n",
        "",
        "questions[0].options[1].feedback",
        "missing",
        "- id: mean",
    ),
    "option twice": (
        "      - id: forward",
        "      - id: backward",
        "questions[1].options",
        "two options have the id 'backward'",
        None,
    ),
    "one guess only": (
        "      - {id: mean, text: {en: The mean, nl: Het gemiddelde}}\n",
        "",
        "questions[5].options",
        "two options",
        None,
    ),
    "formula broken": (
        "answer: b * n",
        "answer: b *",
        "questions[2].answer",
        "not an arithmetic expression",
        "answer: b *",
    ),
    "formula not arithmetic": (
        "answer: b * n",
        "answer: __import__('os').system('true')",
        "questions[2].answer",
        "not allowed here",
        "answer: __import__",
    ),
    "formula unknown name": (
        "formula: b + n",
        "formula: b + k",
        "questions[2].mistakes[0].formula",
        "no variable 'k'",
        "formula: b + k",
    ),
    "variable two ways": (
        "n: {from: 3, to: 12}",
        "n: {from: 3, to: 12, choices: [1, 2]}",
        "questions[2].variables.n",
        "either",
        "n: {from",
    ),
    "variable no way": ("n: {from: 3, to: 12}", "n: {}", "questions[2].variables.n", "either", "n: {}"),
    "variable half a way": ("n: {from: 3, to: 12}", "n: {from: 3}", "questions[2].variables.n", "either", "n: {from"),
    "variable of one value": (
        "n: {from: 3, to: 12}",
        "n: {from: 3, to: 3}",
        "questions[2].variables.n",
        "between 2 and",
        "n: {from",
    ),
    "variable too many values": (
        "n: {from: 3, to: 12}",
        "n: {from: 3, to: 999999999999}",
        "questions[2].variables.n",
        "between 2 and",
        "n: {from",
    ),
    "tolerance negative": ("tolerance: 0.1", "tolerance: -0.1", "questions[4].tolerance", "greater", "tolerance: -0.1"),
    "tolerance infinite": ("tolerance: 0.1", "tolerance: 1e999", "questions[4].tolerance", "", "tolerance: 1e999"),
    "tolerance is text": ("tolerance: 0.1", "tolerance: small", "questions[4].tolerance", "number", "tolerance: small"),
    "points zero": ("    points: 2\n", "    points: 0\n", "questions[1].points", "greater than 0", "points: 0"),
    "line beyond the listing": ("line: [2, 5]", "line: 7", "questions[3].line", "6 lines", "line: 7"),
    "line missing": ("line: [2, 5]", "line: []", "questions[3].line", "empty", "line: []"),
    "words for the faulty line": (
        "      3: {en: backward belongs there.",
        "      5: {en: backward belongs there.",
        "questions[3].lines",
        "faulty one",
        "lines:",
    ),
    "lesson is another": ("lesson: 90_small", "lesson: 91_other", "lesson", "90_small.yaml", "lesson: 91_other"),
    "no questions": (None, "questions: []\n", "questions", "empty", "questions: []"),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_is_wrong_is_said_in_one_line(edited: Edit, name: str) -> None:
    old, new, field, said, points_at = EDITS[name]
    if old is None:
        path = edited()
        path.write_text(path.read_text(encoding="utf-8").split("questions:")[0] + new, encoding="utf-8")
    else:
        path = edited((old, new))
    found = problems(path)
    mine = [problem for problem in found if f": {field}: " in problem]
    assert mine and said in mine[0], found
    if points_at is not None:
        number = int(mine[0].removeprefix(f"{path}:").split(":")[0])
        lines = path.read_text(encoding="utf-8").splitlines()
        assert points_at in lines[number - 1], (mine[0], lines[number - 1])


def test_several_problems_are_all_listed(edited: Edit) -> None:
    found = problems(
        edited(("nl: Backward telt op.}", "}"), ("kind: multiple", "kind: guess"), ("answer: b * n", "answer: b *"))
    )
    assert len(found) == 3


def bank_file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "90_small.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


HOSTILE = {
    "python tag": ("lesson: !!python/object/apply:os.system ['touch {marker}']\n", 1, "tags"),
    "python name": ("lesson: 90_small\ntitle: !!python/name:os.system\n", 2, "tags"),
    "harmless tag": ("lesson: !!str 90_small\n", 1, "tags"),
    "local tag": ("lesson: !mine 90_small\n", 1, "tags"),
    "tag inside": ("a:\n  - b:\n      - !!binary aGVsbG8=\n", 3, "tags"),
    "alias": ("a: &a [1, 2]\nb: *a\n", 2, "aliases"),
    "alias bomb": (
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{c}: &{c} [{', '.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
        2,
        "aliases",
    ),
    "merge bomb": ("a: &a {x: 1}\nb: {<<: *a}\n", 2, "aliases"),
    "self reference": ("a: &a [*a]\n", 1, "aliases"),
    "deep lists": ("[" * 2000, 1, f"deeper than {MAX_DEPTH}"),
    "deep mappings": ("".join("  " * n + "a:\n" for n in range(200)), MAX_DEPTH, f"deeper than {MAX_DEPTH}"),
    "too large": ("#" * (MAX_BYTES + 1), 1, "larger than"),
    "key twice": ("lesson: 90_small\nlesson: 91_other\n", 2, "twice"),
    "key is a list": ("? [a, b]\n: 1\n", 1, "key"),
    "two documents": ("a: 1\n---\nb: 2\n", 2, "not YAML"),
    "unfinished": ("a: [1, 2\nb: 3\n", 2, "not YAML"),
    "tab": ("a:\n\tb: 1\n", 2, "not YAML"),
    "control character": ("a: 1\nb: \x00\n", 2, "control character"),
    "no UTF-8": (b"a: 1\nb: \xff\xfe\n", 2, "UTF-8"),
    "empty": ("", 1, "empty"),
    "only a comment": ("# nothing\n", 1, "empty"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_one_line_and_execute_nothing(tmp_path: Path, name: str) -> None:
    text, line, said = HOSTILE[name]
    marker = tmp_path / "executed"
    if isinstance(text, str):
        text = text.replace("{marker}", str(marker))
    path = bank_file(tmp_path, text)
    (found,) = problems(path)
    assert found.startswith(f"{path}:{line}: file: ") and said in found
    assert not marker.exists()


@pytest.mark.parametrize("text", ["just text\n", "- a\n- b\n", "12\n", "null\n"])
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str) -> None:
    assert problems(bank_file(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (found,) = problems(tmp_path / "91_none.yaml")
    assert "cannot be read" in found


def test_words_that_yaml_reads_as_something_else_stay_text(edited: Edit) -> None:
    path = edited(
        ("en: Backward adds., nl: Backward telt op.", "en: No, nl: 2026-01-01"),
        ("en: The update, nl: De update", "en: yes, nl: 1:30"),
        ("en: zero_grad, nl: zero_grad", 'en: "0x10", nl: off'),
        ("tolerance: 0.1", "tolerance: 1e-3"),
    )
    bank = load_bank(path)
    assert (bank.objectives["adds"].en, bank.objectives["adds"].nl) == ("No", "2026-01-01")
    options = bank.question("small-multiple").options  # type: ignore[union-attr]
    assert [(option.text.en, option.text.nl) for option in options[:2]] == [("yes", "1:30"), ("0x10", "off")]
    assert bank.question("small-predict").tolerance == 0.001  # type: ignore[union-attr]


def test_a_lesson_is_found_by_name_and_by_number(tmp_path: Path) -> None:
    for name in ("00_start.yaml", "01_more.yaml", "notes.yaml"):
        (tmp_path / name).write_text("")
    assert (
        find_bank(tmp_path, "01_more")
        == find_bank(tmp_path, "01")
        == find_bank(tmp_path, "1")
        == find_bank(tmp_path, "0" * 5000 + "1")
        == tmp_path / "01_more.yaml"
    )
    # The last are digits to Python too: of a kind that int() refuses, of another script, and more than int() takes.
    for unknown in ("02", "more", "", "../01_more", "-1", "1.0", "²", "①", "٢", "9" * 5000):
        with pytest.raises(ValueError, match="the quizzes there are: 00_start, 01_more"):
            find_bank(tmp_path, unknown)
