"""What is in the wheel, what an import costs, and that the files which list dependencies agree."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTORCH_INDEX = "https://download.pytorch.org/whl"
# conda-forge's name where it differs from the package index's.
CONDA_NAMES = {"torch": "pytorch"}
# What conda-forge does not have; `-e .` brings it from the package index.
NOT_ON_CONDA_FORGE = {"chitchat-dataset"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The course's wheel, built without a network from a copy of this checkout in which somebody has worked."""
    folder, checkout = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("checkout")
    for name in ("gradacc_lessons", "notebooks", "quizzes", "tests"):
        shutil.copytree(ROOT / name, checkout / name)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copyfile(ROOT / name, checkout / name)
    left = checkout / "notebooks" / ".ipynb_checkpoints" / "00_start_here-checkpoint.ipynb"
    left.parent.mkdir(exist_ok=True)
    left.write_text("{}", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--no-index", "--wheel-dir", folder, checkout], check=True)
    (file,) = folder.glob("*.whl")
    return file


def names_in(folder, pattern):
    return {path.name for path in (ROOT / folder).glob(pattern)}


@pytest.mark.parametrize(("folder", "pattern"), [("notebooks", "*.ipynb"), ("quizzes", "*.yaml")])
def test_the_wheel_carries_lessons_and_quizzes(wheel, folder, pattern):
    inside = zipfile.ZipFile(wheel).namelist()
    prefix = f"gradacc_lessons/_course/{folder}/"
    carried = {name.removeprefix(prefix) for name in inside if name.startswith(prefix)}
    assert carried == names_in(folder, pattern) != set()


def test_the_wheel_carries_the_licence_and_no_tests(wheel):
    inside = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("licenses/LICENSE") for name in inside)
    assert {name.split("/")[0] for name in inside} == {
        "gradacc_lessons",
        f"gradacc_lessons-{PYPROJECT['project']['version']}.dist-info",
    }
    assert not any("__pycache__" in name or ".ipynb_checkpoints" in name for name in inside)
    assert "gradacc_lessons/jupyter/labconfig/default_setting_overrides.json" in inside
    assert "gradacc_lessons/lessons/norm_accuracies.json" in inside
    assert "gradacc_lessons/certificate/dictionary_1.txt" in inside


def test_an_unpacked_wheel_finds_its_own_course_and_copies_it_for_the_learner(wheel, tmp_path):
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    source = (
        "from gradacc_lessons.course import course_folder; from gradacc_lessons.lab import lessons_folder;"
        "print(course_folder('notebooks')); print(lessons_folder(None)[0])"
    )
    command = [sys.executable, "-c", source]
    env = {**os.environ, "PYTHONPATH": str(site)}
    printed = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [
        str(site / "gradacc_lessons" / "_course" / "notebooks"),
        str(tmp_path.resolve() / "gradacc-notebooks"),
    ]
    copied = {path.name for path in (tmp_path / "gradacc-notebooks").iterdir()}
    assert copied == names_in("notebooks", "*.ipynb")


@pytest.mark.parametrize("module", ["gradacc_lessons", "gradacc_lessons.cli"])
def test_an_import_alone_loads_nothing_heavy(module):
    heavy = ["torch", "numpy", "pandas", "matplotlib", "ipywidgets", "IPython", "sklearn", "pydantic", "yaml"]
    heavy += ["jwt", "cryptography", "segno"]
    source = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", source], capture_output=True, text=True).stdout == "[]\n"


def test_the_package_and_pyproject_have_one_version():
    from gradacc_lessons import __version__

    assert PYPROJECT["project"]["version"] == __version__


def parsed(requirement):
    name, floor = re.fullmatch(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)", requirement).groups()
    return name.lower(), floor


def test_environment_yml_has_what_make_lab_installs_with_the_same_floors():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    listed = dict(parsed(entry) for entry in entries if isinstance(entry, str) and entry != "pip")
    python_floor = parsed(f"python{PYPROJECT['project']['requires-python']}")
    extras = PYPROJECT["project"]["optional-dependencies"]
    asked = [*PYPROJECT["project"]["dependencies"], *extras["models"], *extras["certificate"]]
    wanted = dict([python_floor, *map(parsed, asked)])
    for name in NOT_ON_CONDA_FORGE:
        del wanted[name]
    assert {CONDA_NAMES.get(name, name): floor for name, floor in wanted.items()}.items() <= listed.items()
    assert {"pip": ["-e ."]} in entries


def test_dependencies_are_floors_so_that_nothing_is_ever_upgraded_or_pinned_on_colab():
    for requirement in PYPROJECT["project"]["dependencies"]:
        assert re.fullmatch(r"[A-Za-z0-9._-]+>=[0-9.]+", requirement)


def test_the_makefile_names_a_version_of_pytorch_that_pyproject_allows():
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").split())
    floor = dict(map(parsed, PYPROJECT["project"]["dependencies"]))["torch"]
    assert tuple(map(int, pinned["torch"].split("."))) >= tuple(map(int, floor.split(".")))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this copy is no git checkout, which lists its own files")
def test_pytorchs_index_is_the_only_package_index_written_down():
    known = re.compile(r"https?://[^\s\"'`)>\\]*(?:pypi|/simple|/whl|conda)[^\s\"'`)>\\]*")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    found = set()
    for file in filter(None, files):
        if (ROOT / file).is_file() and Path(file) != Path(__file__).relative_to(ROOT):
            found |= set(known.findall((ROOT / file).read_text(encoding="utf-8", errors="ignore")))
    assert {address.rsplit("/", 1)[0] if "/whl/" in address else address for address in found} == {PYTORCH_INDEX}
