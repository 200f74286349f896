"""The Makefile decides rightly what to install, in a folder whose path has a space; nothing is installed here."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
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


def make(folder, *arguments, **exported):
    ours = ("MAKEFLAGS", "MAKELEVEL", "TORCH", "CUDA", "PYTHON")
    env = {name: value for name, value in os.environ.items() if name not in ours} | exported
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


@pytest.mark.parametrize("torch", ["gpu", "cpu cuda", "cpu cpu", "%", "c%", "cpu gpu"])
def test_what_is_not_one_build_of_pytorch_is_refused_in_a_sentence(folder, torch):
    for ended in (make(folder, "lab", f"TORCH={torch}"), make(folder, "lab", TORCH=torch)):
        assert ended.returncode != 0
        assert f'TORCH must be cpu, cuda or default; it is "{torch}"' in ended.stderr
    assert not (folder / ".venv").exists()


@pytest.mark.parametrize("cuda", ["cu126 cu130", "13.0", "%"])
def test_what_is_not_one_cuda_build_is_refused_in_a_sentence(folder, cuda):
    ended = make(folder, "lab", "TORCH=cuda", f"CUDA={cuda}")
    assert ended.returncode != 0
    assert f'CUDA must be one build, such as cu130; it is "{cuda}"' in ended.stderr


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("torch", ["default", "cpu"])
def test_an_empty_choice_is_no_choice(folder, torch, empty):
    """Given or exported: the build that is here, or else the default."""
    if torch != "default":
        installed(folder, torch)
    names = ("TORCH", "CUDA", "PYTHON")
    expected = make(folder, "--dry-run", "lab")
    assert expected.returncode == 0
    assert ("touch .venv/.torch-default" in expected.stdout) == (torch == "default")
    assert make(folder, "--dry-run", "lab", *(f"{name}={empty}" for name in names)).stdout == expected.stdout
    assert make(folder, "--dry-run", "lab", **dict.fromkeys(names, empty)).stdout == expected.stdout
    cuda = make(folder, "--dry-run", "lab", "TORCH=cuda", CUDA=empty).stdout
    assert cuda == make(folder, "--dry-run", "lab", "TORCH=cuda").stdout and "/whl/cu" in cuda


def test_spaces_around_a_choice_are_no_part_of_it(folder):
    assert make(folder, "-n", "lab", "TORCH= cpu ").stdout == make(folder, "-n", "lab", "TORCH=cpu").stdout


def test_the_readme_and_the_makefile_say_one_size(folder):
    told = re.search(r"TORCH=cpu` \|.*\| about ([\d.]+ GB) \|", (ROOT / "README.md").read_text("utf-8"))[1]
    assert f"into .venv: about {told}," in make(folder, "--dry-run", "lab", "TORCH=cpu").stdout
    assert f"(with TORCH=cpu: {told})" in make(folder, "--dry-run", "lab", "TORCH=cuda").stdout


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
    assert '--editable ".[models,certificate]";' in make(folder, "--dry-run", "lab").stdout
    assert '--editable ".[dev]";' in make(folder, "--dry-run", "test").stdout


def test_a_second_time_nothing_is_installed(folder):
    installed(folder, "default", ".installed-base", ".installed-dev")
    assert "pip" not in make(folder, "--dry-run", "lab").stdout
    assert "pip" not in make(folder, "--dry-run", "install").stdout


def with_colabs_versions(folder):
    """As it is after `make test`."""
    installed(folder, "default", "pyvenv.cfg", ".installed-base", ".installed-dev")
    for name in ("make_venv.py", "constraints.txt"):
        (folder / "tests" / "colab" / name).touch()
    (folder / ".venv-colab").mkdir()
    stamp = folder / ".venv-colab" / ".installed"
    stamp.touch()
    os.utime(stamp, (time.time() + 30, time.time() + 30))


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        (None, False),
        ("pyproject.toml", False),
        ("constraints.txt", False),
        ("tests/colab/constraints.txt", True),
        ("tests/colab/make_venv.py", True),
        (".venv/pyvenv.cfg", True),
    ],
)
def test_colabs_versions_are_installed_again_only_when_they_or_the_venv_below_have_changed(folder, changed, again):
    with_colabs_versions(folder)
    if changed:
        os.utime(folder / changed, (time.time() + 60, time.time() + 60))
    plan = make(folder, "--dry-run", "test").stdout
    assert ("tests/colab/make_venv.py .venv-colab" in plan) == again
    assert ("--editable" in plan) == (changed in ("pyproject.toml", "constraints.txt"))


@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize("target", ["test", "test-all"])
def test_where_colabs_versions_cannot_be_had_their_tests_are_left_out_and_it_says_so(folder, target, left_out):
    with_colabs_versions(folder)
    python = folder / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "ran: $*"\n', encoding="utf-8")
    python.chmod(0o755)
    if left_out:
        (folder / ".venv-colab" / "left-out").write_text("Left out: why\n", encoding="utf-8")
    ended = make(folder, "--silent", target)
    assert ended.returncode == 0, ended.stderr
    assert len(re.findall("^ran: .* .venv/bin/python -m pytest", ended.stdout, re.MULTILINE)) == 3
    colab = len(re.findall("^ran: .* .venv-colab/bin/python -m pytest", ended.stdout, re.MULTILINE))
    assert (colab, ended.stdout.count("Left out: why\n")) == ((0, 2) if left_out else (2, 0))


def test_a_python_newer_than_colabs_gets_a_sentence_and_no_environment(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make_venv", ROOT / "tests" / "colab" / "make_venv.py")
    make_venv = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_venv)
    monkeypatch.setattr(make_venv, "COLABS_PYTHON", (3, 10))
    (tmp_path / "colab" / "bin").mkdir(parents=True)  # of an earlier Python
    assert make_venv.main(tmp_path / "colab") == 0
    assert [path.name for path in (tmp_path / "colab").iterdir()] == ["left-out"]
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    said = (tmp_path / "colab" / "left-out").read_text(encoding="utf-8")
    assert said == f"Left out: Colab's versions run on Python 3.10 or older, and .venv has {here}.\n"


def test_colabs_versions_are_installed_where_there_are_none(folder):
    for name in ("make_venv.py", "constraints.txt"):
        (folder / "tests" / "colab" / name).touch()
    plan = make(folder, "--dry-run", "test").stdout
    assert plan.index("-m venv --clear .venv") < plan.index("--editable") < plan.index("tests/colab/make_venv.py")


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
