"""The Makefile decides rightly what to install, in a folder whose path has a space; nothing is installed here."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def folder(tmp_path):
    """A copy of the files that decide."""
    folder = tmp_path / "my course"
    (folder / "tests" / "colab").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def make(folder, *arguments):
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "TORCH")}
    return subprocess.run(["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def installed(folder, torch, *stamps):
    """As it is after an installation: a python, the chosen build of PyTorch, and then the rest."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    for age, name in enumerate(["bin/python", f".torch-{torch}", *stamps]):
        file = folder / ".venv" / name
        file.touch()
        os.utime(file, (time.time() + age, time.time() + age))


def test_help_names_every_target(folder):
    targets = re.search(r"^\.PHONY: (.*)$", (folder / "Makefile").read_text("utf-8"), re.MULTILINE)[1].split()
    told = make(folder, "help").stdout
    assert all(f"make {target} " in told for target in targets if target != "help")
    assert make(folder).stdout == told


def test_an_unknown_build_of_pytorch_is_refused_in_a_sentence(folder):
    ended = make(folder, "lab", "TORCH=gpu")
    assert ended.returncode != 0
    assert 'TORCH must be cpu, cuda or default; it is "gpu"' in ended.stderr


@pytest.mark.parametrize(
    ("torch", "index"),
    [
        ("cpu", r"--index-url https://download\.pytorch\.org/whl/cpu torch"),
        ("cuda", r"--index-url https://download\.pytorch\.org/whl/cu\d+ torch"),
    ],
)
def test_a_build_of_pytorch_comes_from_pytorchs_own_index_and_nothing_else_does(folder, torch, index):
    plan = make(folder, "--dry-run", "lab", f"TORCH={torch}").stdout
    assert len(re.findall(index, plan)) == plan.count("--index-url") == 1
    assert plan.index("--index-url") < plan.index("--editable")


def test_lab_installs_the_base_alone_and_test_what_the_tests_need(folder):
    assert "--editable .;" in make(folder, "--dry-run", "lab").stdout
    assert '--editable ".[dev]";' in make(folder, "--dry-run", "test").stdout


def test_a_second_time_nothing_is_installed(folder):
    installed(folder, "default", ".installed-base", ".installed-dev")
    assert "pip" not in make(folder, "--dry-run", "lab").stdout
    assert "pip" not in make(folder, "--dry-run", "install").stdout


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_what_has_changed_is_installed_again(folder, name):
    installed(folder, "default", ".installed-base", ".installed-dev")
    os.utime(folder / name, (time.time() + 60, time.time() + 60))
    assert "--editable" in make(folder, "--dry-run", "lab").stdout


def test_the_chosen_build_is_remembered_and_can_be_changed(folder):
    installed(folder, "cpu", ".installed-base", ".installed-dev")
    assert "pip" not in make(folder, "--dry-run", "lab").stdout
    assert "pip" not in make(folder, "--dry-run", "lab", "TORCH=cpu").stdout
    for other in ("cuda", "default"):
        plan = make(folder, "--dry-run", "lab", f"TORCH={other}").stdout
        assert plan.index("pip uninstall --quiet --yes torch") < plan.index("--editable")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 1", "is no Python 3.11 or newer that runs"),
        (
            'case "$2" in *ensurepip*) exit 1;; *python%d*) echo python3.12-venv;; esac',
            "apt-get install python3.12-venv",
        ),
    ],
    ids=["too_old", "without_venv"],
)
def test_a_python_that_cannot_do_it_is_answered_in_a_sentence(folder, script, words):
    python = folder / "odd python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o755)
    ended = make(folder, "install", f"PYTHON={python}")
    assert ended.returncode != 0
    assert words in ended.stderr
    assert not (folder / ".venv").exists()


def test_clean_takes_away_what_was_made_and_nothing_else(folder):
    before = {path.name for path in folder.iterdir()}
    installed(folder, "default")
    (folder / "tests" / "__pycache__").mkdir()
    assert make(folder, "clean").returncode == 0
    assert {path.name for path in folder.iterdir()} == before
    assert not (folder / "tests" / "__pycache__").exists()
