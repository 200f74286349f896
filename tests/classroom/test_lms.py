"""What an LMS gets is what the bank says, read back by parsers that are not ours.

`moodle_xml_parser` reads Moodle's choices; it knows no numerical questions, so those are looked at as XML. `qti2latex`
reads QTI's choices, numbers and groups; it knows no feedback, so that is looked at as XML too. Neither system itself
has imported the files here.
"""

import html
import io
import re
import tempfile
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import moodle_xml_parser.parser as moodle_reader
import pytest
import qti2latex as qti_reader
from hypothesis import given, settings
from hypothesis import strategies as st

from gradacc_lessons.classroom.lms import export
from gradacc_lessons.classroom.lms.export import Format, export_banks
from gradacc_lessons.classroom.lms.items import INSTANCES, items, left_out
from gradacc_lessons.classroom.lms.markup import clean, plain
from gradacc_lessons.classroom.page import listing
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.feedback import html as as_html
from gradacc_lessons.quiz.grade import grade
from gradacc_lessons.quiz.questions import Bank, ChoiceQuestion, MultipleQuestion, NumberQuestion, SpotQuestion
from gradacc_lessons.text import Language

FILES = sorted(course_folder("quizzes").glob("[0-9][0-9]_*.yaml"))
NAMES = [file.stem for file in FILES]
QTI = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"
EACH_BANK = pytest.mark.parametrize("file", FILES, ids=NAMES)
BOTH = pytest.mark.parametrize("language", ["en", "nl"])


bank_of = cache(load_bank)


def exported(bank: Bank, kind: Format, language: Language) -> bytes:
    return export.exported(bank, kind, language, items(bank, language))


@dataclass(frozen=True)
class Read:
    """One question as a foreign parser sees it."""

    prompt: str
    points: float
    several: bool
    options: dict[str, tuple[bool, str]]
    """Text -> (right, feedback)."""


def by_moodle(content: bytes) -> dict[str, Read]:
    found = {}
    for each in moodle_reader.parse_bytes(content)["multichoice"]:
        options = {one.answer: (one.score_fraction > 0, one.feedback) for one in each.options}
        assert len(options) == len(each.options)
        found[each.name] = Read(each.text_pre_parse, each.default_grade, not each.single, options)
    return found


def items_of(folder: Path, content: bytes) -> list[ET.Element]:
    zipfile.ZipFile(io.BytesIO(content)).extractall(folder)
    roots = [ET.parse(file).getroot() for file in qti_reader.read_qti_dir(folder)]
    (root,) = (root for root in roots if qti_reader.child_anyns(root, "assessment") is not None)
    return qti_reader.findall_anyns(root, "item")


def by_qti(item: ET.Element) -> Read:
    said = {
        each.get("ident"): qti_reader.text_of(qti_reader.first(qti_reader.findall_anyns(each, "mattext")))
        for each in qti_reader.findall_anyns(item, "itemfeedback")
    }
    processing = qti_reader.first(qti_reader.findall_anyns(item, "resprocessing"))
    for condition in qti_reader.findall_anyns(processing, "respcondition"):
        # The reader takes what every condition looks at for right, also those that only show feedback.
        if not qti_reader.findall_anyns(condition, "setvar"):
            processing.remove(condition)
    meta, right = qti_reader.get_qti_metadata(item), qti_reader.get_correct_idents(item)
    options = {text: (ident in right, said[f"{ident}_fb"]) for ident, text in qti_reader.get_choices(item)}
    kind = qti_reader.guess_type(meta, item)
    stem = qti_reader.get_item_stem(item)
    return Read(stem, float(meta["points_possible"]), kind == "multiple_answers_question", options)


def expected(question: ChoiceQuestion | MultipleQuestion, language: str) -> Read:
    options = {
        as_html(one.text.to(language)): (one.correct, as_html(one.feedback.to(language))) for one in question.options
    }
    code = question.code if isinstance(question, ChoiceQuestion) else None
    prompt = as_html(question.prompt.to(language)) + (
        listing(code.rstrip().split("\n"), numbered=False) if code else ""
    )
    return Read(prompt, question.points, isinstance(question, MultipleQuestion), options)


def unescaped(read: Read) -> Read:
    """The Moodle parser undoes the escapes of HTML that stand inside the XML."""
    options = {html.unescape(text): (right, html.unescape(said)) for text, (right, said) in read.options.items()}
    return Read(html.unescape(read.prompt), read.points, read.several, options)


@EACH_BANK
@BOTH
def test_choices_come_back_from_moodle_xml(file: Path, language: str) -> None:
    bank = bank_of(file)
    found = by_moodle(exported(bank, "moodle-xml", language))
    for question in bank.questions:
        if isinstance(question, ChoiceQuestion | MultipleQuestion):
            assert found.pop(question.id) == unescaped(expected(question, language))
    assert set(found) == {question.id for question in bank.questions if question.kind in ("spot", "order")}
    for name, read in found.items():
        assert sum(right for right, _ in read.options.values()) == 1, name
        assert all(said for _, said in read.options.values()), name


@EACH_BANK
@BOTH
def test_choices_and_numbers_come_back_from_qti(file: Path, language: str, tmp_path: Path) -> None:
    bank = bank_of(file)
    found = {item.get("title"): item for item in items_of(tmp_path, exported(bank, "qti12", language))}
    assert set(found) == {item.id for item in items(bank, language)}
    for question in bank.questions:
        if isinstance(question, ChoiceQuestion | MultipleQuestion):
            assert by_qti(found[question.id]) == expected(question, language)
        elif isinstance(question, NumberQuestion):
            for item in (each for each in items(bank, language) if each.question == question.id):
                element = found[item.id]
                assert qti_reader.guess_type(qti_reader.get_qti_metadata(element), element) == "numerical_question"
                assert qti_reader.get_item_stem(element) == item.prompt
                (value,) = qti_reader.get_correct_idents(element)
                assert float(value) == float(item.right.value)


@EACH_BANK
def test_shares_of_moodle_are_those_of_this_course(file: Path) -> None:
    """A right pick earns its share, a wrong one costs as much, and Moodle knows each share to five decimals."""
    known = {round(100 / right, 5) for right in range(1, 11)}
    content = exported(bank_of(file), "moodle-xml", "en")
    for question in moodle_reader.parse_bytes(content)["multichoice"]:
        shares = [option.score_fraction for option in question.options]
        right, wrong = [each for each in shares if each > 0], [each for each in shares if each <= 0]
        assert set(right) <= known and len(set(right)) == 1
        assert set(wrong) == ({0.0} if question.single else {-right[0]})
        assert sum(right) == pytest.approx(100, abs=0.001)


@EACH_BANK
def test_numbers_of_moodle_are_what_this_course_grades_right_and_recognises(file: Path) -> None:
    """Every answer that Moodle is told of is put to the course's own grading."""
    bank = bank_of(file)
    root = ET.fromstring(exported(bank, "moodle-xml", "nl"))
    numerical = {each.findtext("name/text"): each for each in root.iter("question") if each.get("type") == "numerical"}
    for item in (each for each in items(bank, "nl") if each.right):
        question, answers = bank.question(item.question), numerical.pop(item.id).findall("answer")
        assert isinstance(question, NumberQuestion)
        assert [each.get("fraction") for each in answers] == ["100", *["0"] * (len(question.mistakes) + 1)]
        assert answers[-1].findtext("text") == "*"
        right, *wrong = [float(each.findtext("text") or "") for each in answers[:-1]]
        graded = grade(question, right, item.numbers)
        assert graded.correct and graded.feedback.nl == text_of(answers[0])
        for place, value in enumerate(wrong, start=1):
            graded = grade(question, value, item.numbers)
            first = int((graded.mistake or "").removeprefix("mistake-"))
            assert not graded.correct and first <= place  # of two with one value the first is meant, here and there
            if first == place:
                assert text_of(answers[place]) == graded.feedback.nl
        margin = float(answers[0].findtext("tolerance") or "")
        assert grade(question, right + margin * 0.999, item.numbers).correct
        assert not grade(question, right + margin * 1.01 + 1e-6 * abs(right), item.numbers).correct
    assert numerical == {}


@EACH_BANK
def test_the_numbers_of_a_question_differ_from_set_to_set(file: Path) -> None:
    bank = bank_of(file)
    for question in bank.questions:
        if isinstance(question, NumberQuestion):
            prompts = [item.prompt for item in items(bank, "en") if item.question == question.id]
            assert 2 <= len(prompts) == len(set(prompts)) <= INSTANCES, question.id


def text_of(answer: ET.Element) -> str:
    return html.unescape(re.sub("</?code>", "`", (answer.findtext("feedback/text") or "").replace("<br>", "\n")))


@EACH_BANK
def test_what_qti_says_to_a_wrong_number_holds_what_the_bank_says_to_each_mistake(file: Path, tmp_path: Path) -> None:
    bank = bank_of(file)
    found = {item.get("title"): item for item in items_of(tmp_path, exported(bank, "qti12", "nl"))}
    for item in items(bank, "nl"):
        if item.right:
            said = {
                each.get("ident"): "".join(each.itertext()).strip()
                for each in found[item.id].iter(f"{QTI}itemfeedback")
            }
            assert said["correct_fb"] == item.right.feedback
            assert all(each.feedback in said["general_incorrect_fb"] for each in (*item.mistakes,))
            assert item.otherwise in said["general_incorrect_fb"]


@EACH_BANK
def test_a_set_of_numbers_is_a_group_from_which_one_is_taken(file: Path, tmp_path: Path) -> None:
    bank = bank_of(file)
    (tmp_path / "export.zip").write_bytes(exported(bank, "qti12", "en"))
    name = f"gradacc_{bank.lesson}_en"
    with zipfile.ZipFile(tmp_path / "export.zip") as archive:
        root = ET.fromstring(archive.read(f"{name}/{name}.xml"))
        manifest = ET.fromstring(archive.read("imsmanifest.xml"))
        hrefs = {each.get("href") for each in manifest.iter() if each.get("href")}
        assert hrefs == set(archive.namelist()) - {"imsmanifest.xml"}
    groups = [each for each in root.iter(f"{QTI}section") if each.get("ident") != "root_section"]
    wanted = {question.id: question.points for question in bank.questions if isinstance(question, NumberQuestion)}
    for group in groups:
        count, points, members = qti_reader.get_group(group)
        assert count == 1 and len(members) > 1
        assert points == wanted[group.get("title")]
    identifiers = [each.get("ident") for each in root.iter(f"{QTI}item")]
    assert len(identifiers) == len(set(identifiers)) == len(items(bank, "en"))


@EACH_BANK
def test_every_question_goes_along_or_is_named(file: Path, tmp_path: Path) -> None:
    bank = bank_of(file)
    (done,) = export_banks([file], "moodle-xml", "en", tmp_path)
    gone = {each.question for each in done.left_out}
    assert {item.question for item in items(bank, "en")} | gone == {question.id for question in bank.questions}
    assert {bank.question(each).kind for each in gone} <= {"code", "predict"}
    assert all(each in done.text().en and each in done.text().nl for each in gone)


@EACH_BANK
def test_a_faulty_line_is_chosen_among_the_lines_and_has_its_own_words(file: Path) -> None:
    bank = bank_of(file)
    for question in bank.questions:
        if isinstance(question, SpotQuestion):
            (item,) = (each for each in items(bank, "en") if each.question == question.id)
            assert [pick.right for pick in item.picks].count(True) == 1 and not item.shuffle
            for pick in item.picks:
                line = int(pick.id.removeprefix("line-"))
                assert grade(question, line).correct == pick.right
                assert as_html(grade(question, line).feedback.en) == pick.feedback


def test_the_same_bank_gives_the_same_bytes_in_both_formats() -> None:
    bank = bank_of(FILES[1])
    for kind in ("moodle-xml", "qti12"):
        assert exported(bank, kind, "nl") == exported(bank, kind, "nl")
    # A zip tells the time of each file: two that are made within two seconds of each other would be alike anyway.
    with zipfile.ZipFile(io.BytesIO(exported(bank, "qti12", "nl"))) as archive:
        assert {each.date_time for each in archive.infolist()} == {(2020, 1, 1, 0, 0, 0)}


def awkward(text: str) -> Bank:
    both = {"en": text, "nl": text}
    option = {"text": both, "feedback": both}
    return Bank.model_validate(
        {
            "lesson": "01_awkward", "title": both, "objectives": {"any": both},
            "questions": [
                {
                    "id": "any", "kind": "choice", "objective": "any", "section": "Any", "prompt": both,
                    "options": [{"id": "one", "correct": True, **option}, {"id": "two", **option}],
                }
            ],
        }
    )  # fmt: skip


AWKWARD = [
    "Überträgt größer als 1 µs? naïef, één, ½ · ∂L/∂w ≤ √(Σ gᵢ²) → ∞",
    "a < b && c > d ]]> <script>alert(1)</script> \"quoted\" 'too'",
    "`x = {'a': 1}` and {b} {{c}} $d$ \\(e\\) \\[f\\] %(g)s 100 %",
    "$$\\sum_{i=1}^{N} g_i / N$$\nsecond line\ttab",
    "🙂 日本語 עברית \u0000 \u0008 \ufffe end",
]


@pytest.mark.parametrize("text", AWKWARD)
def test_formulas_umlauts_and_markup_survive(text: str, tmp_path: Path) -> None:
    survives_both(text, tmp_path)


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=60).filter(lambda text: text.strip()))
def test_any_text_survives(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        survives_both(text, Path(folder))


def survives_both(text: str, folder: Path) -> None:
    bank = awkward(text)
    wanted = clean(as_html(bank.questions[0].prompt.en))
    root = ET.fromstring(exported(bank, "moodle-xml", "en"))
    places = ("questiontext/text", "answer/text", "answer/feedback/text")
    same = [each.text or "" for place in places for each in root.findall(f"question/{place}")]
    # XML turns the ends of lines into \n, whichever they are.
    assert [lines(each) for each in same] == [lines(wanted)] * 5
    (item,) = items_of(folder, exported(bank, "qti12", "en"))
    found = [each.text or "" for each in item.iter(f"{QTI}mattext")]
    assert [lines(each) for each in found] == [lines(wanted)] * 5
    assert "<script" not in "".join(same) + "".join(found)


def lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def test_numbers_are_written_so_that_both_read_them() -> None:
    assert [plain(each) for each in (4, 4.0, 0.1, 1 / 3, 1e-9, -2.5)] == [
        "4", "4", "0.1", repr(1 / 3), "1e-09", "-2.5",
    ]  # fmt: skip


def test_left_out_names_code_and_predictions() -> None:
    bank = bank_of(FILES[1])
    kinds = {question.id: question.kind for question in bank.questions}
    assert {kinds[each.question] for each in left_out(bank)} == {"code", "predict"}
