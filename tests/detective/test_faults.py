"""The catalogue: complete, in both languages, readable, and silent about the repair."""

import ast
import inspect
import re

import pytest

from gradacc_lessons.course import course_folder
from gradacc_lessons.detective.catalogue.fault import Fault
from gradacc_lessons.detective.changes import CHANGES
from gradacc_lessons.detective.diagnosis import HEADINGS
from gradacc_lessons.detective.faults import FAULTS, REFERENCE_SOURCE, TAUGHT_SOURCE, compiled, fault_loop
from gradacc_lessons.detective.scenarios import SCENARIOS, SCOPES
from gradacc_lessons.detective.wording import PLACES, SENTENCES
from gradacc_lessons.text import LANGUAGES, Text

PROMISED = {
    "missing_scale",
    "double_scale",
    "running_scale",
    "mean_of_means",
    "zero_grad_every_micro_batch",
    "never_zero_grad",
    "step_every_micro_batch",
    "window_off_by_one",
    "tail_dropped",
    "tail_leaks",
    "tail_underscaled",
    "clip_every_micro_batch",
    "scheduler_every_micro_batch",
    "sum_then_backward",
}
LESSONS = {"01_accumulate", "02_scale_the_loss", "03_the_memory_wall", "04_uneven_windows", "07_once_per_window"}
REPAIRS = (
    r"/\s*accumulation_steps",
    r"/\s*N\b(?!,)",
    r"/\s*len\(",
    r"len\(window\)",
    r"\*\s*(len|count)\(",
    r"/\s*(items|examples|total)\b",
    r"\(\s*i\s*\+\s*1\s*\)",
    r"%\s*accumulation_steps",
    r"loss\.backward\(\)",
    r"clip_grad_norm_",
    r"\.detach\(\)",
    r"torch\.no_grad",
)


def texts(fault: Fault) -> list[Text]:
    return [fault.title, fault.message, *fault.hints]


def code_lines(source: str) -> set[str]:
    """The lines that say something. The names of two calls that every loop makes may be said."""
    calls = {"optimizer.step()", "optimizer.zero_grad()"}
    return {line.strip() for line in source.splitlines() if len(line.strip()) > 12} - calls


def test_all_promised_faults_are_there_and_each_has_a_switch():
    assert FAULTS.keys() >= PROMISED
    assert len(FAULTS) >= 16
    assert FAULTS.keys() == CHANGES.keys() | {"sum_then_backward", "window_in_one_batch", "graphs_kept_alive"}
    assert all(fault.id == name for name, fault in FAULTS.items())


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_a_fault_is_complete(fault):
    assert fault.lesson in LESSONS
    assert fault.scope in SCOPES
    assert 2 <= len(fault.hints) <= 4
    for language in LANGUAGES:
        said = [text.to(language) for text in texts(fault)]
        assert all(words.strip() == words and words for words in said)
        assert len(set(said)) == len(said)
        assert not said[0].endswith(".")
        assert all(words[-1] in ".?" for words in said[1:])
        assert len(said[1]) < 320
    assert all(text.en != text.nl for text in texts(fault))


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_no_text_gives_the_repaired_line_away(fault):
    repaired = code_lines(REFERENCE_SOURCE) | code_lines(TAUGHT_SOURCE)
    for text in texts(fault):
        for language in LANGUAGES:
            words = text.to(language)
            assert not any(line in words for line in repaired)
            found = [pattern for pattern in REPAIRS if re.search(pattern, words)]
            assert not found, (words, found)


def test_step_never_stands_alone():
    """It could be a micro-batch or an update; only names in code and the N of the course may have it."""
    said = [text for fault in FAULTS.values() for text in texts(fault)] + [*SENTENCES.values(), *PLACES.values()]
    for words in [words for text in said for words in (text.en, text.nl)]:
        assert not re.search(r"(?<![\w.])(?<!accumulation )(steps?|stap(pen)?)(?!\w)", words), words


def test_no_sentence_gives_a_repaired_line_away():
    for text in SENTENCES.values():
        for words in (text.en, text.nl):
            assert not [pattern for pattern in REPAIRS if re.search(pattern, words)], words


def test_sentences_and_places_are_in_both_languages():
    for text in [*SENTENCES.values(), *PLACES.values(), *HEADINGS.values()]:
        assert text.en.strip() and text.nl.strip()
        assert set(re.findall(r"{[^}]*}", text.en)) == set(re.findall(r"{[^}]*}", text.nl))
    assert PLACES.keys() == {scenario.name for scenario in SCENARIOS}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.id)
def test_a_listing_is_short_readable_python(fault):
    tree = ast.parse(fault.source)
    (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert function.name == "train_epoch"
    lines = fault.source[fault.source.index("def ") :].strip().splitlines()
    assert 5 <= len(lines) <= 16
    assert max(map(len, lines)) <= 100
    names = list(inspect.signature(fault_loop(fault.id)).parameters)
    assert names[:5] == ["model", "optimizer", "micro_batches", "loss_fn", "accumulation_steps"]


def test_listings_differ_from_each_other_and_from_the_reference():
    sources = [REFERENCE_SOURCE, TAUGHT_SOURCE, *(fault.source for fault in FAULTS.values())]
    assert len(set(sources)) == len(sources)


def test_an_unknown_fault_is_named_with_those_there_are():
    with pytest.raises(KeyError, match=r"no fault 'typo'.*missing_scale"):
        fault_loop("typo")


def test_compiled_code_shows_its_lines_in_errors():
    loop = compiled("def train_epoch():\n    raise ValueError('here')\n", "<a listing>")
    assert "raise ValueError" in inspect.getsource(loop)


def test_lessons_that_exist_are_named_as_their_files():
    have = {path.stem for path in course_folder("notebooks").glob("*.ipynb")}
    numbers = {stem.split("_")[0]: stem for stem in have}
    for fault in FAULTS.values():
        assert numbers.get(fault.lesson.split("_")[0], fault.lesson) == fault.lesson
