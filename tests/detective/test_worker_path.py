"""Files of the learner's that are named like modules take nobody's place; the learner's own modules are found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradacc_lessons.detective.client import worker_path

LOOP = """
import my_helper

def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start:start + accumulation_steps]
        items = sum(len(batch[0]) for batch in window)
        for batch in window:
            (loss_fn(model, batch) * my_helper.share(batch, items)).backward()
        optimizer.step()
        optimizer.zero_grad()
"""
LOOPS = {
    "correct": (LOOP, "✔ Correct."),
    "wrong": (LOOP.replace(" * my_helper.share(batch, items)", ""), "✘ Not yet."),
    "raises": (LOOP.replace("optimizer.step()", "raise ValueError('in my loop')"), "ValueError: in my loop (line "),
}
INSTALLED = ["torch", "numpy", "pandas", "sympy", "networkx", "click", "cloudpickle", "gradacc_lessons"]
IN_A_PROGRAM = """
import sys
import cloudpickle, torch
from gradacc_lessons import diagnose
from gradacc_lessons.detective.files import load_function
sys.path.insert(0, "")  # as in a notebook
import correct, wrong, raises
loops = [module.train_epoch for module in (correct, wrong, raises)]
loops += [load_function(f"{name}.py:train_epoch") for name in ("correct", "wrong", "raises")]  # as the command does
print(*(diagnose(loop, "windows") for loop in loops), sep="\\n--\\n")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file for every name that something imports, and each ends what imports it."""
    for name in [*sys.stdlib_module_names, *INSTALLED]:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('the {name}.py of the learner')", encoding="utf-8")
    (tmp_path / "my_helper.py").write_text("def share(batch, items): return len(batch[0]) / items", encoding="utf-8")
    for name, (source, _) in LOOPS.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **variables})


@pytest.mark.long
def test_the_command_diagnoses_a_loop_beside_files_named_like_modules(folder: Path) -> None:
    ended = run(folder, "-m", "gradacc_lessons", "diagnose", "correct.py:train_epoch", "--language", "en")
    assert ended.stdout.startswith("✔ Correct."), ended
    assert ended.returncode == 0


def test_a_program_in_that_folder_gets_its_diagnoses(folder: Path) -> None:
    ended = run(folder, "-c", IN_A_PROGRAM)
    assert ended.returncode == 0, ended
    for said, (_, expected) in zip(ended.stdout.split("\n--\n"), [*LOOPS.values()] * 2, strict=True):
        assert expected in said, ended


SHOWN = "from gradacc_lessons.detective.client import worker_path; print(*worker_path(), sep='\\n')"


def test_the_folder_of_a_script_and_the_current_one_are_left_out_and_the_course_is_not(tmp_path: Path) -> None:
    script, here = tmp_path / "scripts" / "mine.py", tmp_path / "here"
    here.mkdir()
    script.parent.mkdir()
    script.write_text(f"import sys; sys.path += ['', '.']; {SHOWN}", encoding="utf-8")
    other = tmp_path / "other"
    ended = subprocess.run(
        [sys.executable, str(script)],
        cwd=here,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["", str(other)])},
    )
    path = [Path(line) for line in ended.stdout.splitlines()]
    assert other in path and Path(__file__).parents[2] in path, ended
    assert not {here, script.parent, Path()} & set(path)


def test_the_course_is_found_when_it_lies_in_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    course = Path(__file__).parents[2]
    monkeypatch.chdir(course)
    monkeypatch.setattr(sys, "path", ["", str(course), *sys.path])
    assert worker_path().count(str(course)) == 1 and worker_path()[-1] == str(course)
