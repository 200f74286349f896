"""Open the lessons in JupyterLab, on a learner's own copy where the course came as a wheel."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradacc_lessons.course import course_folder
from gradacc_lessons.home import expanded

FIRST_LESSON = "00_start_here.ipynb"


@dataclass(frozen=True)
class Copied:
    """What `copy_lessons` did."""

    new: tuple[str, ...]
    """Files that were not there yet."""
    kept: tuple[str, ...]
    """Files that differ from the course's and were left as they are: the learner's work."""


def lessons_folder(wanted: Path | None) -> tuple[Path, str]:
    """The folder to open, and one sentence about it.

    A repository's notebooks are opened where they are. `wanted`, or the folder gradacc-notebooks when the course
    is inside an installed package, gets a copy of the lessons that are not in it yet. ValueError or OSError if there
    can be no such folder.
    """
    course = course_folder("notebooks")
    if wanted is None and course.parent.name != "_course":
        return course, f"The lessons are in {course}."
    folder = expanded(wanted or "gradacc-notebooks").resolve()
    copied = copy_lessons(course, folder)
    sentence = f"The lessons are in {folder}: {len(copied.new)} new."
    if copied.kept:
        sentence += f" Your own versions of {', '.join(copied.kept)} were left alone; rename one to get it fresh."
    return folder, sentence


def copy_lessons(course: Path, folder: Path) -> Copied:
    """Copy each notebook of `course` into `folder`, unless a file of that name is there. Nothing is overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    new, kept = [], []
    for notebook in sorted(course.glob("*.ipynb")):
        target = folder / notebook.name
        if not target.exists():
            shutil.copyfile(notebook, target)
            new.append(notebook.name)
        elif target.read_bytes() != notebook.read_bytes():
            kept.append(notebook.name)
    return Copied(tuple(new), tuple(kept))


def open_lab(folder: Path, options: Sequence[str] = ()) -> None:
    """Be JupyterLab on `folder` until it is stopped. It prints its URL itself; `options` are its own.

    What it tells administrators is left out, so that the URL is what a learner sees.
    """
    from jupyterlab.labapp import LabApp

    first = folder / FIRST_LESSON
    quiet = ["--LabApp.log_level=ERROR", "--ServerApp.log_level=ERROR"]
    # In containers root is the only user there is.
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    LabApp.launch_instance([str(first if first.exists() else folder), *quiet, *root, *options])
