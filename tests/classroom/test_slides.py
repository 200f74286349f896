"""A lecture of each lesson, online and with reveal.js inside; the notes are for the speaker."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradacc_lessons.authoring.files import lessons
from gradacc_lessons.authoring.slides import SCRIPTS, STYLES, write_slides
from gradacc_lessons.cli import main

LESSON = lessons()[1]


@pytest.fixture
def reveal(tmp_path: Path) -> Path:
    """The files that are taken from reveal.js, with contents that can be recognised; not reveal.js itself."""
    folder = tmp_path / "reveal.js"
    for name in (*STYLES, *SCRIPTS):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / STYLES[0]).write_text(".reveal { color: red; }", encoding="utf-8")
    (folder / STYLES[1]).write_text("@import url(./fonts/other.css);\n.theme { color: blue; }", encoding="utf-8")
    (folder / SCRIPTS[0]).write_text('window.Reveal = {}; "</script>"; "<!--";', encoding="utf-8")
    (folder / SCRIPTS[1]).write_text("window.RevealNotes = {};", encoding="utf-8")
    return folder


def loads(page: str) -> list[str]:
    """What the page loads from elsewhere."""
    return re.findall(r"<script[^>]* src=\"([^\"]+)\"", page) + re.findall(r"<link[^>]* href=\"([^\"]+)\"", page)


OTHERS = [pytest.param(file, marks=pytest.mark.long) for file in lessons() if file != LESSON]
"""That nbconvert takes each of them, the tests of the notebooks say."""


@pytest.mark.parametrize("file", [LESSON, *OTHERS], ids=lambda file: file.stem)
def test_every_lesson_becomes_a_lecture(file: Path, tmp_path: Path) -> None:
    made = write_slides(file.stem, tmp_path / "lecture.html")
    page = made.file.read_text(encoding="utf-8")
    assert made.slides > 3 and made.notes >= 1 and not made.offline
    # reveal.js is all that it needs: neither TeX nor diagrams are in the lessons, and widgets need a kernel.
    assert len(loads(page)) == len(STYLES) + len(SCRIPTS) and all("reveal.js@" in url for url in loads(page))
    assert "Reveal.initialize(" in page and "import mermaid" not in page


def test_with_reveal_in_it_nothing_is_loaded(reveal: Path, tmp_path: Path) -> None:
    made = write_slides("01", tmp_path / "lecture.html", reveal)
    page = made.file.read_text(encoding="utf-8")
    assert made.offline and loads(page) == [] and "@import" not in page
    assert ".reveal { color: red; }" in page and ".theme { color: blue; }" in page
    assert 'window.Reveal = {}; "<\\/script>"' in page and "window.RevealNotes" in page


def test_reveal_below_this_folder_is_found(reveal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "node_modules").mkdir()
    reveal.rename(tmp_path / "node_modules" / "reveal.js")
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(main, ["slides", "1"])
    assert run.exit_code == 0 and "Everything is in the file." in run.output
    assert (tmp_path / f"{LESSON.stem}.slides.html").exists()


def test_a_folder_without_reveal_and_a_lesson_that_is_not_there_are_a_sentence(tmp_path: Path) -> None:
    for arguments, said in (
        (["01", "--reveal", str(tmp_path)], "does not hold reveal.js"),
        (["77"], "there is no lesson '77'"),
    ):
        run = CliRunner().invoke(main, ["slides", *arguments, "--to", str(tmp_path / "x.html")])
        assert run.exit_code == 1 and said in run.output and "Traceback" not in run.output
    assert not (tmp_path / "x.html").exists()
