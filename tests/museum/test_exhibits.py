"""Each exhibit: found by its instrument, clean after the fix, measured as it says, quick, and complete."""

import ast
import inspect
import re

import pytest

from gradacc_lessons.course import course_folder
from gradacc_lessons.detective.examination.findings import CAUSES
from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.detective.tape.said import SAID
from gradacc_lessons.museum.collection import exhibits
from gradacc_lessons.museum.exhibit import INSTRUMENTS, KINDS, Exhibit
from gradacc_lessons.museum.visit import Visit, visit
from gradacc_lessons.text import LANGUAGES, Text

KNOWN = {"diagnose": set(FAULTS), "examine": set(CAUSES), "trace": set(SAID)}
CLOSE = 0.05
SECONDS = 1.0
LINES = 20
OWNERS = {
    "Accelerate": "huggingface/accelerate", "DeepSpeed": "deepspeedai/DeepSpeed", "ESPnet": "espnet/espnet",
    "EveryDream2trainer": "victorchall/EveryDream2trainer", "F5-TTS": "SWivid/F5-TTS",
    "LLMs-from-scratch": "rasbt/LLMs-from-scratch", "LLaMA-Factory": "hiyouga/LlamaFactory",
    "Lightning": "Lightning-AI/pytorch-lightning", "MMCV": "open-mmlab/mmcv", "PyTorch": "pytorch/pytorch",
    "Swin-Transformer": "microsoft/Swin-Transformer", "TRL": "huggingface/trl",
    "Ultralytics YOLO": "ultralytics/ultralytics", "nanoGPT": "karpathy/nanoGPT",
    "open-instruct": "allenai/open-instruct",
    "segmentation_models.pytorch": "qubvel-org/segmentation_models.pytorch",
    "sentence-transformers": "huggingface/sentence-transformers", "torchtitan": "pytorch/torchtitan",
    "torchtune": "meta-pytorch/torchtune", "transformers": "huggingface/transformers",
}  # fmt: skip
"""Where the project's threads stand."""
ALL = list(exhibits().values())
each = pytest.mark.parametrize("one", ALL, ids=[one.id for one in ALL])
_visits: dict[str, Visit] = {}


def seen(one: Exhibit) -> Visit:
    """One visit to each, for all tests."""
    if one.id not in _visits:
        _visits[one.id] = visit(one)
    return _visits[one.id]


def texts(one: Exhibit) -> dict[str, Text]:
    return {name: value for name in dir(one) if isinstance(value := getattr(one, name), Text)}


@each
def test_its_instrument_finds_the_bug_and_nothing_else_and_nothing_after_the_fix(one: Exhibit) -> None:
    assert set(seen(one).bug.findings) == {one.finding, *one.also}
    assert seen(one).fixed.findings == ()
    assert seen(one).found


@each
def test_its_number_gives_it_away_and_is_what_the_exhibit_says(one: Exhibit) -> None:
    for found, expected in zip((seen(one).bug, seen(one).fixed), one.expected, strict=True):
        assert found.number == pytest.approx(expected, rel=CLOSE, abs=1e-12)
    bug, fixed = (run.number for run in (seen(one).bug, seen(one).fixed))
    assert max(bug, fixed) > 1.2 * min(bug, fixed)


@pytest.mark.parametrize("one", [one for one in ALL if one.instrument == "examine"], ids=lambda one: one.id)
def test_its_number_and_its_instrument_agree_though_they_know_nothing_of_each_other(one: Exhibit) -> None:
    assert seen(one).bug.number == pytest.approx(seen(one).bug.result.relative_error, rel=1e-6)


@each
def test_each_run_takes_less_than_a_second(one: Exhibit) -> None:
    visits = (seen(one), visit(one)) if seen(one).seconds > SECONDS else (seen(one),)  # others may be in the way
    for runs in zip(*((each.bug, each.fixed) for each in visits), strict=True):
        assert min(run.seconds for run in runs) < SECONDS
    if one.instrument == "diagnose":
        assert seen(one).bug.result.evidence["seconds"] < 10 * SECONDS


@each
def test_its_thread_belongs_to_its_project_and_to_its_id(one: Exhibit) -> None:
    address = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+)/(issues|pull)/(\d+)", one.thread)
    assert address is not None
    assert address[1] == OWNERS[one.project]
    repository = address[1].partition("/")[2].lower()
    name = {"pytorch-lightning": "lightning"}.get(repository, re.sub(r"[^a-z0-9]", "-", repository))
    assert one.id == f"{name}-{address[3]}"
    assert 2016 < one.year <= 2026


@each
def test_it_is_told_in_both_languages(one: Exhibit) -> None:
    told = texts(one)
    assert {"title", "symptom", "number_name", "fix", "explanation"} <= told.keys()
    for name, text in told.items():
        assert text.en.strip() and text.nl.strip() and text.en != text.nl, name
        assert name in ("title", "number_name") or (text.en.endswith(".") and text.nl.endswith(".")), name
        assert re.findall(r"\d+", text.en) == re.findall(r"\d+", text.nl), name
    said = seen(one).bug.said
    assert said.en != said.nl


@each
def test_the_code_is_short_and_differs_only_in_the_bug(one: Exhibit) -> None:
    bug, fixed = (one.source(kind).splitlines() for kind in KINDS)
    assert bug[0].replace("def bug", "def fixed") == fixed[0]
    for kind in KINDS:
        assert len(one.source(kind).splitlines()) <= LINES
        (definition,) = ast.parse(one.source(kind)).body
        assert isinstance(definition, ast.FunctionDef) and definition.name == kind
    assert len(set(bug[1:]) ^ set(fixed[1:])) <= 12
    assert list(inspect.signature(one.code("bug")).parameters) == list(inspect.signature(one.code("fixed")).parameters)


@each
def test_its_finding_is_one_of_its_instruments_and_its_lesson_is_there(one: Exhibit) -> None:
    assert {one.finding, *one.also} <= KNOWN[one.instrument]
    lessons = {file.stem for file in course_folder("notebooks").glob("*.ipynb")}
    assert one.lesson in lessons


def test_there_are_many_of_many_projects_and_each_instrument_finds_some() -> None:
    assert len(ALL) >= 14
    assert len({one.project for one in ALL}) >= 12
    least = {"diagnose": 3, "examine": 3, "trace": 5}
    assert all(sum(one.instrument == name for one in ALL) >= least[name] for name in INSTRUMENTS)
    assert len({one.finding for one in ALL}) >= 12


def test_a_kind_that_is_neither_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="bug and fixed, not 'other'"):
        ALL[0].code("other")  # type: ignore[arg-type]


def test_every_language_has_its_row() -> None:
    rows = [seen(ALL[0]).row(language) for language in LANGUAGES]
    assert rows[0]["title"] != rows[1]["title"]
    assert rows[0]["with_bug"] == rows[1]["with_bug"] == seen(ALL[0]).bug.number
