"""A class of four that was graded: what gradebook, reports and item analysis are tried on."""

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

from classroom.class_room import AT, LESSON

from gradacc_lessons.classroom.results import AnswerResult, CodeRun, FileResult, LessonResult, Remark
from gradacc_lessons.text import Text

Given = tuple[str, str, int, float, str | None]
"""Question, kind, take, fraction, mistake."""


def result(
    learner: str, answers: Sequence[Given] = (), *, share: float = 0.5, lesson: str = LESSON, code: CodeRun = "none"
) -> FileResult:
    """What grading says of a file with these answers to one lesson."""
    kept = tuple(
        AnswerResult(question, kind, take, "sums", fraction, 1.0, mistake, Text("Said.", "Gezegd."))
        for question, kind, take, fraction, mistake in answers
    )
    of_lesson = LessonResult(lesson, "0" * 64, 1, 10 * share, 10.0, share, share >= 0.8, kept)
    return FileResult(f"{learner}.json", "graded", None, learner, AT, code, (), (of_lesson,))


def refused(learner: str | None, why: str, name: str = "bad.json") -> FileResult:
    """What grading says of a file that it did not take."""
    return FileResult(name, "refused", Remark("checksum", Text(why, why)), learner, AT)


class Page(HTMLParser):
    """What stands in a page: its tags, its text by tag, and whether they are closed in order."""

    EMPTY = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, Mapping[str, str | None]]] = []
        self.text: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(content.decode("utf-8"))
        assert self._open == [], self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, (tag, self._open)

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.text.append((self._open[-1], data.strip()))

    def all(self, tag: str) -> list[Mapping[str, Any]]:
        """The attributes of every such tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    def words(self, without: Sequence[str] = ("style",)) -> str:
        """All text that is shown."""
        return " ".join(data for tag, data in self.text if tag not in without)


def self_contained(content: bytes) -> Page:
    """The page, which runs nothing, loads nothing, and has the parts that a reader by ear goes by."""
    page = Page(content)
    names = [name for name, _ in page.tags]
    assert not {"script", "link", "iframe", "object", "form"} & set(names)
    assert all(str(each["src"]).startswith("data:image/png;base64,") and each["alt"] for each in page.all("img"))
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert names.count("h1") == names.count("main") == names.count("title") == 1
    assert page.all("html")[0]["lang"] in ("en", "nl")
    levels = [int(name[1]) for name in names if name in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in pairwise(levels))
    assert names.count("table") == names.count("caption")
    assert all(each.get("scope") in ("col", "row") for each in page.all("th"))
    return page
