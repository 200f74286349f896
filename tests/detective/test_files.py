"""FILE:FUNCTION: found, refused with a sentence, and never run in this process."""

import sys
from types import ModuleType

import pytest

from gradacc_lessons.detective import sending
from gradacc_lessons.detective.diagnose import Outcome, diagnose
from gradacc_lessons.detective.faults import FAULTS, REFERENCE_SOURCE
from gradacc_lessons.detective.files import LoadFunctionError, load_function


def write(folder, text, name="training.py"):
    path = folder / name
    path.write_text(text)
    return path


def test_a_function_in_a_file_is_diagnosed(tmp_path):
    write(tmp_path, "SIZE = 3\n", "settings.py")
    source = "import settings\nassert settings.SIZE == 3\n" + FAULTS["missing_scale"].source
    path = write(tmp_path, source)
    assert diagnose(load_function(f"{path}:train_epoch")).faults == ("missing_scale",)
    assert not any(name.startswith(("learner_", "settings")) for name in sys.modules)


def test_a_file_that_changes_after_it_was_found_gets_a_sentence(tmp_path):
    path = write(tmp_path, REFERENCE_SOURCE)
    found = load_function(f"{path}:train_epoch")
    path.write_text("def another(): pass\n")
    gone = diagnose(found)
    assert gone.outcome is Outcome.CRASHED
    assert gone.message == f"{path} does not hold this function. Has the file changed since the function was found?"
    path.unlink()
    assert "FileNotFoundError" in diagnose(found).message


def test_the_line_shown_is_that_of_the_file_as_it_is_now(tmp_path):
    path = write(tmp_path, "def train(model, optimizer, micro_batches, loss_fn, n):\n    return first\n")
    found = load_function(f"{path}:train")
    assert "(line 2: return first)" in diagnose(found).message
    path.write_text("def train(model, optimizer, micro_batches, loss_fn, n):\n    return the_second\n")
    assert "(line 2: return the_second)" in diagnose(found).message


def test_an_error_with_braces_in_it_is_shown_as_it_is(tmp_path):
    path = write(tmp_path, "raise ValueError('{name} and {0}')\n")
    with pytest.raises(LoadFunctionError, match=r"ValueError: \{name\} and \{0\}, at line 1"):
        load_function(f"{path}:train_epoch")


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 1e10])
def test_a_time_limit_that_cannot_be_kept_is_refused(tmp_path, limit):
    path = write(tmp_path, REFERENCE_SOURCE)
    with pytest.raises(ValueError, match="the time limit must be a positive number of seconds, 3600 at most"):
        load_function(f"{path}:train_epoch", time_limit=limit)


def test_a_relative_path_counts_from_here(tmp_path, monkeypatch):
    write(tmp_path, REFERENCE_SOURCE)
    monkeypatch.chdir(tmp_path)
    assert diagnose(load_function("training.py:train_epoch")).correct


def test_an_error_in_the_loop_shows_the_line_of_the_file(tmp_path):
    path = write(
        tmp_path, "def train(model, optimizer, micro_batches, loss_fn, accumulation_steps):\n    return modle\n"
    )
    found = diagnose(load_function(f"{path}:train"))
    assert found.outcome is Outcome.CRASHED
    assert "NameError: name 'modle' is not defined (line 2: return modle)" in found.message


REFUSED = {
    "print('no function')\n": "has no 'train_epoch'.",
    "def train(): pass\ndef evaluate(): pass\n": "has no 'train_epoch'; it defines train, evaluate.",
    "import a_module_that_is_not_there\n": "cannot be imported: ModuleNotFoundError: No module named",
    "x = 1\ny = 1 / 0\n": "cannot be imported: ZeroDivisionError: division by zero, at line 2.",
    "def train_epoch(:\n": "cannot be imported: SyntaxError: invalid syntax, at line 1.",
    "import os\nos._exit(0)\n": "ended the process that tried it.",
    "import sys\nsys.exit(3)\n": "cannot be imported: SystemExit: 3, at line 2.",
    "while True: pass\n": "was still not imported after 1 seconds.",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_loaded_gets_a_sentence(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(LoadFunctionError) as caught:
        load_function(f"{path}:train_epoch", time_limit=1.0 if "while" in text else 10.0)
    assert REFUSED[text] in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("training.py", "not of the form FILE:FUNCTION"),
        ("training.py:", "not of the form FILE:FUNCTION"),
        (":train_epoch", "not of the form FILE:FUNCTION"),
        ("training.py:a b", "not of the form FILE:FUNCTION"),
        ("nowhere.py:train_epoch", "There is no file nowhere.py."),
    ],
)
def test_what_does_not_name_a_function_gets_a_sentence(spec, said):
    with pytest.raises(LoadFunctionError, match=said):
        load_function(spec)


def test_a_file_that_is_not_python(tmp_path):
    path = write(tmp_path, "hello", "notes.txt")
    with pytest.raises(LoadFunctionError, match="is not a Python file"):
        load_function(f"{path}:train_epoch")


def test_what_is_found_and_no_function_is_diagnosed_as_such(tmp_path):
    path = write(tmp_path, "train_epoch = 3\n")
    found = diagnose(load_function(f"{path}:train_epoch"))
    assert found.outcome is Outcome.WRONG
    assert "not a function that can be called, but int" in found.message


def test_dutch(tmp_path):
    with pytest.raises(LoadFunctionError, match="Er is geen bestand"):
        load_function("nergens.py:train_epoch", language="nl")


def test_a_folder_whose_name_begins_like_ours_is_the_learners_own(tmp_path, monkeypatch):
    """Its functions travel with their code: the checking process does not find the module."""
    monkeypatch.setattr(sending, "__file__", str(tmp_path / "gradacc_lessons" / "detective" / "sending.py"))
    mine = ModuleType("gradacc_lessons_mine.loop")
    mine.__file__ = str(tmp_path / "gradacc_lessons_mine" / "loop.py")
    assert not sending._is_installed(mine)
    ours = ModuleType("gradacc_lessons.loop")
    ours.__file__ = str(tmp_path / "gradacc_lessons" / "loop.py")
    assert sending._is_installed(ours)
