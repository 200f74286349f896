"""`gradacc museum`: a list, one exhibit told, all of them, for people and for programs."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from gradacc_lessons.cli import main
from gradacc_lessons.museum import collection
from gradacc_lessons.museum.collection import exhibit, exhibits
from gradacc_lessons.museum.telling import number_in_words
from gradacc_lessons.text import LANGUAGES

SOME = ["accelerate-1773", "f5-tts-631"]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["museum", *arguments], catch_exceptions=False)


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A museum of two, so that all of it is run at once."""
    few = {name: exhibit(name) for name in SOME}
    monkeypatch.setattr(collection, "exhibits", lambda: few)
    return SOME


def test_without_an_id_it_lists_them_all_with_their_instrument() -> None:
    lines = run("--language", "en").stdout.splitlines()
    for line, one in zip(lines, exhibits().values(), strict=False):
        assert line.split()[:3] == [one.id, str(one.year), one.instrument]
        assert line.endswith(one.title.en)
    assert "gradacc museum ID" in lines[-1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_exhibit_is_told_as_a_visitor_reads_it(language: str) -> None:
    result, one = run("accelerate-1773", "--language", language), exhibit("accelerate-1773")
    assert result.exit_code == 0
    said = result.stdout
    parts = [
        one.title.to(language), one.symptom.to(language), "class Accelerator:",
        "-         loss = loss_fn(model, batch) / accumulation_steps",
        ": 0.25", ": 1\n", "4 x 4", one.fix.to(language), one.explanation.to(language), one.thread, f" {one.lesson}. ",
    ]  # fmt: skip
    places = [said.index(part) for part in parts]
    assert places == sorted(places)


def test_for_programs_it_is_json() -> None:
    details = json.loads(run("accelerate-1773", "--json").stdout)
    assert details["with_bug"] == pytest.approx(0.25) and details["after_fix"] == pytest.approx(1.0)
    assert details["findings"] == "double_scale" and details["found"] is True
    assert details["thread"].endswith("/accelerate/issues/1773") and "def bug(" in details["code_bug"]
    rows = json.loads(run("--json").stdout)
    assert [row["id"] for row in rows] == list(exhibits())


def test_all_are_run_one_line_each(some: list[str]) -> None:
    result = run("--all", "--language", "en")
    assert result.exit_code == 0
    first, second, last = result.stdout.splitlines()
    assert "1/2 accelerate-1773" in first and "0.25 -> 1  trace: double_scale -> nothing" in first
    assert "2/2 f5-tts-631" in second and "4 -> 1" in second
    assert last.startswith("2 of 2 exhibits")


def test_all_for_programs_is_json_alone_on_the_output(some: list[str]) -> None:
    result = run("--all", "--json")
    assert [row["id"] for row in json.loads(result.stdout)] == some
    assert "1/2" in result.stderr


def test_an_exhibit_that_is_not_found_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(exhibit("accelerate-1773")), "finding", "missing_scale")
    assert run("accelerate-1773").exit_code == 1


@pytest.mark.parametrize(("arguments", "words"), [(["nanogpt"], "no exhibit"), (["f5-tts-631", "--all"], "not both")])
def test_a_mistake_is_a_sentence(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 1 and words in result.stderr and result.stdout == ""


def test_rounding_is_told_as_nothing() -> None:
    assert [number_in_words(number) for number in (2e-16, 0.25 / 65536, 0.7909, 15.0)] == [
        "0",
        "3.81e-06",
        "0.791",
        "15",
    ]
