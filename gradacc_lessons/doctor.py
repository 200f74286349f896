"""Is this machine ready for the course? One row per thing that must work, with what to do where it does not."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from gradacc_lessons import __version__
from gradacc_lessons.course import course_folder
from gradacc_lessons.device import Place, best_device, place
from gradacc_lessons.errors import first_line

if TYPE_CHECKING:
    import pandas as pd

OLDEST_PYTHON = (3, 11)
ROOM_FOR_PROGRESS_BYTES = 10_000_000
"""Far more than the answers of the whole course take."""
_REINSTALL = "in the course's folder run `make install` again, or `pip install -e .` where there is no make"
# Colab shows notebooks with a program of its own.
_NOT_NEEDED_ON_COLAB = {"jupyterlab"}


@dataclass(frozen=True)
class Check:
    """One row of the table."""

    name: str
    """What was looked at."""
    ok: bool
    """Whether the course can work with what was found."""
    found: str
    """What is there: a version, a place, or the first line of an error."""
    fix: str = ""
    """What to do about it; empty when nothing is wrong."""


@dataclass(frozen=True)
class Checkup:
    """All rows. A notebook shows it as a table, a terminal as text."""

    checks: tuple[Check, ...]
    """The rows, in the order in which they should be mended."""

    @property
    def ok(self) -> bool:
        """Whether every row is OK."""
        return all(check.ok for check in self.checks)

    @property
    def message(self) -> str:
        """One sentence: ready, or how many lines to mend."""
        failed = sum(not check.ok for check in self.checks)
        if not failed:
            return "Everything that the course needs works on this machine."
        what = "start with the first; what to do stands beside or below it"
        return f"{failed} of {len(self.checks)} lines say FAIL: {what}."

    def frame(self) -> "pd.DataFrame":
        """One row per check; columns check, result (OK or FAIL), found and what_to_do."""
        import pandas as pd

        rows = [(check.name, _verdict(check), check.found, check.fix) for check in self.checks]
        return pd.DataFrame(rows, columns=["check", "result", "found", "what_to_do"])

    def __str__(self) -> str:
        width = max((len(check.name) for check in self.checks), default=0)
        lines = []
        for check in self.checks:
            lines.append(f"{_verdict(check):<4}  {check.name:<{width}}  {check.found}")
            if check.fix:
                lines.append(f"{'':<4}  {'':<{width}}  -> {check.fix}")
        return "\n".join([*lines, "", self.message])

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{title}</th>' for title in ("check", "result", "found", "what to do"))
        rows = (
            f'<tr><th scope="row">{escape(check.name)}</th><td>{_verdict(check)}</td>'
            f"<td>{escape(check.found)}</td><td>{escape(check.fix)}</td></tr>"
            for check in self.checks
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table><p>{self.message}</p>"


def checkup(notebook_version: str | None = None) -> Checkup:
    """Look at everything the course needs. It changes nothing, and no row stops the ones after it.

    `notebook_version` is the course version that a notebook was made for; without it, the one that the set-up
    cell has told, if it ran.
    """
    probes: list[tuple[str, Callable[[], str], str]] = [
        ("Python", _python, "install Python 3.11 or newer, then run `make lab`"),
        ("course and notebook", lambda: _same_version(notebook_version or _told_version), _REINSTALL),
        ("packages", _packages, _REINSTALL),
        ("PyTorch", _torch, f"{_REINSTALL}; on a small disk or without a GPU: `make install TORCH=cpu`"),
        ("device", _device, "update the GPU's driver, or go on: every lesson runs on the CPU"),
        ("sliders", _widgets, f"{_REINSTALL}, restart the notebook's kernel and reload the page"),
        ("notebooks", _notebook_program, f"{_REINSTALL}, then start the lessons with `gradacc lab`"),
        ("pictures", _picture, _REINSTALL),
        ("data", _data, "run `pip install --force-reinstall scikit-learn`"),
        ("lessons and quizzes", _course_files, _REINSTALL),
        ("progress file", _progress, "free some disk space, or set GRADACC_HOME to a folder you may write in"),
        ("checking your code", _checking, "close other programs and try again; without it only code is not marked"),
    ]
    return Checkup(tuple(_probed(*probe) for probe in probes))


_told_version: str | None = None


def ready(notebook_version: str) -> None:
    """What the set-up cell of every notebook calls: say in one line whether the lesson can start.

    On Colab it first installs what the course needs and Colab lacks; it never upgrades what is there.
    """
    global _told_version
    _told_version = notebook_version
    # The lessons' models are so small that a second thread waits longer than it computes: on two busy cores
    # lesson 02 took five times as long with two. torch reads this when it is imported, which no cell before has done.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if place() is Place.COLAB:
        _install_missing()
    if notebook_version != __version__:
        print(f"gradacc_lessons {__version__} is here, but {_version_gap(notebook_version)}.")
    else:
        print(f"gradacc_lessons {__version__} is ready")


def missing_packages(requirements: Iterable[str] | None = None) -> list[str]:
    """The course's base requirements that are not installed at all, as `name>=floor`."""
    wanted = requires("gradacc-lessons") if requirements is None else requirements
    skipped = _NOT_NEEDED_ON_COLAB if place() is Place.COLAB else set()
    missing = []
    for requirement in wanted or ():
        name = re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0]
        if "extra ==" not in requirement and name not in skipped and _version_of(name) is None:
            missing.append(requirement)
    return missing


def _install_missing() -> None:
    missing = missing_packages()
    if missing:
        print(f"Installing what is missing here: {', '.join(missing)}")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)


def _probed(name: str, look: Callable[[], str], fix: str) -> Check:
    try:
        return Check(name, True, look())
    except Exception as error:  # whatever a broken installation raises belongs in the table
        return Check(name, False, first_line(error), fix)


def _verdict(check: Check) -> str:
    return "OK" if check.ok else "FAIL"


def _version_of(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _version_gap(notebook_version: str) -> str:
    return f"this notebook was made for version {notebook_version}: take both from the same copy of the course"


def _python() -> str:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        raise RuntimeError(f"{found} is too old")
    return found


def _same_version(notebook_version: str | None) -> str:
    if notebook_version not in (None, __version__):
        raise RuntimeError(f"gradacc_lessons is {__version__}; {_version_gap(str(notebook_version))}")
    return f"gradacc_lessons {__version__}"


def _packages() -> str:
    missing = missing_packages()
    if missing:
        raise RuntimeError(f"missing: {', '.join(missing)}")
    return "all installed"


def _torch() -> str:
    import torch

    weight = torch.ones(2, requires_grad=True)
    (weight * weight).sum().backward()
    if weight.grad is None or weight.grad.tolist() != [2.0, 2.0]:
        raise RuntimeError(f"PyTorch {torch.__version__} computes a wrong gradient")
    return str(torch.__version__)


def _device() -> str:
    import torch

    device = best_device()
    torch.ones(2, device=device).sum().item()  # a driver that does not fit fails here, not at the look-up
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{os.cpu_count()} cores"
    return f"{device.type} ({name})" if device.type != "mps" else "mps (Apple GPU)"


def _widgets() -> str:
    import ipywidgets

    ipywidgets.IntSlider(value=1, min=1, max=2)
    return f"ipywidgets {ipywidgets.__version__}"


def _notebook_program() -> str:
    if place() is Place.COLAB:
        return "Google Colab"
    if importlib.util.find_spec("ipykernel") is None:
        raise RuntimeError("ipykernel, which runs the cells, is missing")
    found = _version_of("jupyterlab")
    if found is None:
        raise RuntimeError("JupyterLab is missing")
    return f"JupyterLab {found}"


def _picture() -> str:
    from io import BytesIO

    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([0, 1])
    figure.savefig(BytesIO(), format="png")
    return f"matplotlib {matplotlib.__version__}"


def _data() -> str:
    from sklearn.datasets import load_digits

    return f"{len(load_digits().target):,} images of digits"


def _course_files() -> str:
    from gradacc_lessons.quiz.check import check_banks

    lessons = sorted(course_folder("notebooks").glob("*.ipynb"))
    problems = check_banks(course_folder("quizzes"))
    if problems:
        raise RuntimeError(problems[0])
    if not lessons:
        raise RuntimeError("there is no lesson in the notebooks folder")
    return f"{len(lessons)} lessons, every quiz can be read"


def _progress() -> str:
    from gradacc_lessons.progress import progress_file, shown

    file: Path = progress_file()
    folder = next(parent for parent in file.parents if parent.exists())
    # SQLite keeps its journal beside the file, so the folder must be writable too.
    if not all(os.access(path, os.W_OK) for path in (folder, file) if path.exists()) or not folder.is_dir():
        raise RuntimeError(f"{shown(file)} cannot be written")
    if shutil.disk_usage(folder).free < ROOM_FOR_PROGRESS_BYTES:
        raise RuntimeError(f"there is no room left on the disk of {shown(folder)}")
    return shown(file)


def _checking() -> str:
    from gradacc_lessons.detective.diagnose import diagnose
    from gradacc_lessons.detective.faults import TAUGHT_SOURCE, compiled

    diagnosis = diagnose(compiled(TAUGHT_SOURCE), scope="windows")
    if not diagnosis.correct:
        raise RuntimeError(diagnosis.message)
    return "a right loop was run in a process of its own, and found right"
