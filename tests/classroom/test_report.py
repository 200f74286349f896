"""A page for each learner: complete, escaped, in both languages, and no right answer that was not asked for."""

import errno
import os
import weakref
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from classroom.class_room import LESSON, handed_in, right_number
from classroom.graded import Page, refused, result, self_contained

from gradacc_lessons.classroom.class_folder import ClassFolder, new_class
from gradacc_lessons.classroom.grading import Grader
from gradacc_lessons.classroom.report import Reporter
from gradacc_lessons.classroom.results import FileResult, LessonResult, Remark
from gradacc_lessons.classroom.same_work import SAME_WORK
from gradacc_lessons.quiz.number import written
from gradacc_lessons.text import LANGUAGES, Language, Text

WRONG = [
    ("small-choice", 1, "mean"), ("small-multiple", 1, ["step", "forward"]), ("small-number", 1, 1234.5),
    ("small-spot", 1, 3),
]  # fmt: skip


@pytest.fixture
def graded(autumn: ClassFolder, tmp_path: Path):
    """What grading really says of answers that s1 hands in."""

    def grade(given) -> FileResult:
        (tmp_path / "one.json").write_bytes(handed_in(autumn.codes["s1"], {LESSON: given}))
        found = Grader(autumn, tmp_path, "refused").grade("one.json").result
        assert found.status == "graded"
        return found

    return grade


def page_of(autumn: ClassFolder, found: FileResult, language: Language = "en", *, solutions: bool = False) -> Page:
    reporter = Reporter(autumn, language, solutions)
    return self_contained(reporter.learner_page(autumn.learners["s1"], found))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_has_each_question_with_the_answer_and_what_was_said(autumn, graded, language) -> None:
    found = graded(WRONG)
    words = page_of(autumn, found, language).words()
    bank, _ = autumn.bank(LESSON)
    for question in bank.counted:
        assert question.section in words
    for answer in found.lessons[0].answers:
        assert answer.said is not None
        for line in answer.said.to(language).split("\n"):
            assert line.strip() in words
    assert written(1234.5, language) in words
    assert bank.question("small-choice").options[1].text.to(language) in words
    assert words.count({"en": "Question ", "nl": "Vraag "}[language]) >= len(bank.counted)


def right_answers(autumn: ClassFolder, language: Language) -> list[str]:
    """What must not stand on a page of somebody who did not know it."""
    bank, _ = autumn.bank(LESSON)
    options = [bank.question("small-choice").options[0], bank.question("small-multiple").options[1]]
    return [*(option.text.to(language) for option in options), *(option.feedback.to(language) for option in options)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_right_answers_are_shown_only_if_the_teacher_asks(autumn, graded, language) -> None:
    found = graded(WRONG)
    number = written(right_number(autumn, "s1"), language)
    without, with_them = (page_of(autumn, found, language, solutions=each) for each in (False, True))
    described = [data for tag, data in without.text if tag == "dd"]
    options = right_answers(autumn, language)
    assert not any(option in without.words() for option in options)
    assert not any(data.startswith(f"{number} ") for data in described)
    assert all(option in with_them.words() for option in options[:2])
    assert f"{number} {Text('examples', 'voorbeelden').to(language)} (b * n)" in with_them.words()
    assert "def updates_per_epoch" in with_them.words() and "def updates_per_epoch" not in without.words()


def test_no_bank_of_the_course_gives_a_right_answer_away(tmp_path: Path) -> None:
    """Everybody answers everything wrong, in every way: nowhere does the page show what would have been right."""
    from gradacc_lessons.classroom.simulated import wrong_answers
    from gradacc_lessons.quiz import draw
    from gradacc_lessons.quiz.questions import ChoiceQuestion, CodeQuestion, NumberQuestion

    (tmp_path / "roster.csv").write_text("id\nx\n", encoding="utf-8")
    made = new_class(tmp_path / "made", tmp_path / "roster.csv")
    code, answers, choices = made.codes["x"], {}, []
    for lesson in made.bank_files:
        answers[lesson] = []
        for question in made.bank(lesson)[0].counted:
            if isinstance(question, CodeQuestion):
                continue
            is_number = isinstance(question, NumberQuestion)
            numbers = draw.variables(question.variables, draw.key(code.text, 1, question.id)) if is_number else {}
            wrong = list(wrong_answers(question, numbers).values())
            answers[lesson].append((question.id, 1, wrong[0]))
            if isinstance(question, ChoiceQuestion):
                choices += [option for option in question.options if option.correct]
    (tmp_path / "x.json").write_bytes(handed_in(code, answers))
    found = Grader(made, tmp_path, "refused").grade("x.json").result
    content = Reporter(made, "en").learner_page(made.learners["x"], found)
    page = self_contained(content).words()
    assert len(choices) > 30 and all(lesson.points < lesson.of for lesson in found.lessons)
    shown = [
        option.id for option in choices if escape(option.feedback.en) in content.decode() or option.feedback.en in page
    ]
    assert shown == []


def test_markup_in_banks_names_answers_and_files_stays_text(autumn, graded) -> None:
    found = graded([("small-choice", 1, "replaces"), ("small-spot", 1, 5)])
    strange = FileResult(
        "<img src=x onerror=alert(1)>.json", "graded", None, "s1", found.written, "none",
        (Remark("other_version", Text("<b>old</b>", "<b>oud</b>")),), found.lessons,
    )  # fmt: skip
    page = page_of(autumn, strange)
    assert "<script>alert(1)</script>" in page.words() and "<b>old</b>" in page.words()
    assert "<img src=x onerror=alert(1)>.json" in page.words()
    assert page.all("img") == [] and page.all("b") == []


def test_what_is_for_the_teacher_is_on_the_index_only(autumn: ClassFolder, tmp_path: Path) -> None:
    note = Remark(SAME_WORK, Text("Same as bob.json.", "Hetzelfde als bob.json."))
    one = result("s1")
    noted = FileResult("a.json", "graded", None, "s1", one.written, "none", (note,), ())
    files = Reporter(autumn, "en").write([noted], tmp_path)
    theirs = next(file for file in files if file.name.startswith("s1-"))
    assert "bob.json" not in theirs.read_text("utf-8")
    assert "bob.json" in self_contained(files[0].read_bytes()).words()


def test_everybody_has_a_page_with_the_reason_if_there_is_no_grade(autumn: ClassFolder, tmp_path: Path) -> None:
    others = [refused("s2", "It was changed."), refused(None, "It is no submission.", "junk.json")]
    files = Reporter(autumn, "nl").write([result("s1"), *others], tmp_path)
    index, pages = files[0], {file.name.rsplit("-", 1)[0]: file for file in files[1:]}
    assert set(pages) == set(autumn.learners)
    assert "It was changed." in self_contained(pages["s2"].read_bytes()).words()
    assert "geen bestand" in self_contained(pages["s4"].read_bytes()).words()
    overview = self_contained(index.read_bytes())
    assert {str(each["href"]) for each in overview.all("a")} == {file.name for file in files[1:]}
    assert "junk.json" in overview.words() and "50%" in overview.words()


def test_the_overview_names_lessons_by_number_and_rounds_down(autumn: ClassFolder, tmp_path: Path) -> None:
    almost = result("s1", share=0.7999, lesson="02_scale_the_loss").lessons
    found = replace(
        result("s1", lesson="01_accumulate"), lessons=(*result("s1", lesson="01_accumulate").lessons, *almost)
    )
    heads = [text for tag, text in self_contained(_index(autumn, [found], tmp_path)).text if tag == "th"]
    assert heads[:3] == ["Learner", "01", "02"]
    assert "79%" in self_contained(_index(autumn, [found], tmp_path)).words()
    twice = replace(found, lessons=(*found.lessons, *result("s1", lesson="01_another").lessons))
    assert "01_another" in self_contained(_index(autumn, [twice], tmp_path)).words()


def _index(autumn: ClassFolder, results: list[FileResult], folder: Path) -> bytes:
    return Reporter(autumn, "en").write(results, folder)[0].read_bytes()


def test_a_copys_page_does_not_name_the_classmate_and_the_index_does(autumn: ClassFolder, tmp_path: Path) -> None:
    why = Remark("copied", Text("It holds the same work as ada_lovelace.json.", "Zelfde werk als ada_lovelace.json."))
    copied = FileResult("zoe.json", "copied", why, "s3", "2026-09-01T10:00:00Z")
    index, *files = Reporter(autumn, "en").write([result("s1"), copied], tmp_path)
    theirs = next(file for file in files if file.name.startswith("s3-")).read_text("utf-8")
    assert "same work as another file" in theirs and "ada_lovelace" not in theirs
    assert "ada_lovelace" in index.read_text("utf-8")


def test_a_class_of_any_size_is_written_one_result_at_a_time(autumn: ClassFolder, tmp_path: Path) -> None:
    seen: list[weakref.ref[LessonResult]] = []

    def one_at_a_time():
        for learner in ("s1", "s2", "s3", "s4", "a stranger", "another"):
            one = result(learner, [("small-choice", "choice", 1, 1.0, None)])
            seen.append(weakref.ref(one.lessons[0]))
            yield one
            del one
            assert sum(each() is not None for each in seen) <= 1

    assert len(Reporter(autumn, "en").write(one_at_a_time(), tmp_path)) == 5
    assert len(seen) == 6


def test_no_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    ids = ["../../up", "/etc/passwd", "..", ".", "a/b", "a\\b", "CON", "é" * 60, "x" * 200, "a b", "a_b"]
    (tmp_path / "roster.csv").write_text("id\n" + "\n".join(ids) + "\n", encoding="utf-8")
    made = new_class(tmp_path / "made", tmp_path / "roster.csv")
    files = Reporter(made, "en").write([], tmp_path / "out")
    assert len({file.name for file in files}) == len(ids) + 1
    assert {file.parent for file in files} == {tmp_path / "out"} and all(len(file.name) < 70 for file in files)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "made", tmp_path / "out", tmp_path / "roster.csv"]


def test_questions_that_changed_since_are_said_to_have(autumn: ClassFolder) -> None:
    assert "have changed" in page_of(autumn, result("s1", [("small-choice", "choice", 1, 0.0, "mean")])).words()


def test_a_lesson_that_is_gone_keeps_its_result(autumn: ClassFolder) -> None:
    words = page_of(autumn, result("s1", share=0.9, lesson="55_gone")).words()
    assert "55_gone" in words and "90%" in words and "only its result is known" in words


@pytest.mark.parametrize("value", [{"a": 1}, [], [1, None], "x" * 20000, None, True, -1e300, ["sums", "nobody"]])
def test_an_answer_of_any_shape_is_shown_cut_short(autumn: ClassFolder, value) -> None:
    from gradacc_lessons.classroom.answers import shown_answer

    for question in autumn.bank(LESSON)[0].questions:
        for language in LANGUAGES:
            assert len(shown_answer(question, value).to(language)) < 500


def test_a_full_disk_leaves_the_pages_of_before(
    autumn: ClassFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Reporter(autumn, "en").write([result("s1", share=0.85)], tmp_path)
    before = {file: file.read_bytes() for file in files}

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"\.html"):
        Reporter(autumn, "nl").write([result("s1", share=0.10)], tmp_path)
    assert {file: file.read_bytes() for file in tmp_path.iterdir() if file.suffix == ".html"} == before
