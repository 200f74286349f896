"""FILE:FUNCTION: what the file prints goes aside, and what goes wrong in it is one sentence."""

import random
import subprocess
import sys

import pytest

from gradacc_lessons.user_file import in_a_sentence, load

PRINTING = """
import logging, os, subprocess, sys
print("from import")
log = logging.getLogger("theirs")
log.addHandler(logging.StreamHandler(sys.stdout))

def answer():
    print("from print")
    log.warning("from logging")
    sys.__stdout__.write("from the first stream\\n")
    os.write(1, b"from the process\\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"])
    return 42
"""

DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass, field
from typing import ClassVar

@dataclass
class Batch:
    kind: ClassVar[str] = "a batch"
    size: int = 7

def answer():
    return Batch().size
"""


def file(tmp_path, source, name="theirs.py"):
    path = tmp_path / name
    path.write_text(source, encoding="utf-8")
    return path


def test_whatever_the_file_prints_goes_to_the_error_stream(tmp_path, capfd):
    path, function = load(f"{file(tmp_path, PRINTING)}:answer")
    with in_a_sentence(path):
        found = function()
    print("the answer", found)
    out, aside = capfd.readouterr()
    assert out == "the answer 42\n"
    for words in ("import", "print", "logging", "the first stream", "the process", "a child"):
        assert f"from {words}" in aside


@pytest.mark.parametrize("closed", ["1", "2"])
def test_without_an_output_or_an_error_stream_the_file_runs_all_the_same(tmp_path, closed):
    path, result = file(tmp_path, "def answer():\n    return 42\n"), tmp_path / "result"
    code = (
        f"import os; os.close({closed}); from gradacc_lessons.user_file import *; from pathlib import Path\n"
        f"path, function = load({str(path) + ':answer'!r})\n"
        f"with in_a_sentence(path): found = function()\n"
        f"Path({str(result)!r}).write_text(str(found))"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert result.read_text() == "42"


def test_dataclasses_find_their_module(tmp_path):
    assert load(f"{file(tmp_path, DATACLASS, 'with_dataclass.py')}:answer")[1]() == 7


def test_a_file_may_be_called_as_a_module_of_pythons(tmp_path):
    before = random, sys.modules["random"]
    _, function = load(f"{file(tmp_path, DATACLASS, 'random.py')}:answer")
    assert function() == 7 and (random, sys.modules["random"]) == before


def test_a_mistake_in_a_neighbour_is_not_told_as_one_of_the_file(tmp_path):
    file(tmp_path, "\n\n\n\n\nx = (", "the_neighbour.py")
    with pytest.raises(ValueError, match=r"failed with SyntaxError: .*, at line 2$"):
        load(f"{file(tmp_path, chr(10) + 'import the_neighbour')}:answer")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def answer(:", "failed with SyntaxError: .*, at line 1$"),
        ("import no_such_module_here", "failed with ModuleNotFoundError: No module named .*, at line 1$"),
        ("\nraise SystemExit", "failed with SystemExit, at line 2$"),
        ("def answer():\n    raise ValueError('two\\nlines')", "failed with ValueError: two, at line 2$"),
        ("def answer():\n    return {}['key']", "failed with KeyError: 'key', at line 2$"),
        ("other = 1", "has no function 'answer'$"),
        ("answer = 1", "has no function 'answer'$"),
    ],
)
def test_what_goes_wrong_in_the_file_is_one_sentence(tmp_path, source, words):
    with pytest.raises(ValueError, match=words) as refused:
        path, function = load(f"{file(tmp_path, source)}:answer")
        with in_a_sentence(path):
            function()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("theirs.py", "is not of the form FILE:FUNCTION"),
        (":answer", "is not of the form FILE:FUNCTION"),
        ("theirs.py:not a name", "is not of the form FILE:FUNCTION"),
        ("nowhere.py:answer", "there is no file nowhere.py"),
        ("README.md:answer", "README.md is not a Python file"),
    ],
)
def test_what_names_no_function_is_one_sentence(target, words):
    with pytest.raises(ValueError, match=words):
        load(target)


def test_the_courses_own_sentences_stay_as_they_are(tmp_path):
    with pytest.raises(ValueError, match=r"^a sentence of ours$"), in_a_sentence(tmp_path / "theirs.py"):
        raise ValueError("a sentence of ours")
