"""Open the lessons in JupyterLab, on a learner's own copy where the course came as a wheel."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradacc_lessons.course import course_folder

FIRST_LESSON = "00_start_here.ipynb"
_START_LIMIT_S = 60.0


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
    is inside an installed package, gets a copy of the lessons that are not in it yet.
    """
    course = course_folder("notebooks")
    if wanted is None and course.parent.name != "_course":
        return course, f"The lessons are in {course}."
    folder = (wanted or Path("gradacc-notebooks")).expanduser().resolve()
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


def open_lab(folder: Path, options: Sequence[str] = (), say: Callable[[str], None] = print) -> int:
    """Run JupyterLab on `folder` until it is stopped, `say` its URL once it answers, return its exit code.

    `options` go to `jupyter lab` as they are.
    """
    first = folder / FIRST_LESSON
    command = [sys.executable, "-m", "jupyterlab", str(first if first.exists() else folder), "--log-level=WARN"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # in containers root is the only user there is
    process = subprocess.Popen([*command, *options])
    signal.signal(signal.SIGTERM, lambda number, _frame: process.send_signal(number))
    url = _url_of(process)
    if url is not None:
        say(f"JupyterLab runs at {url}\nStop it with Ctrl-C in this window.")
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # JupyterLab hears the Ctrl-C too, and asks whether to stop
    return process.wait()


def _url_of(process: "subprocess.Popen[bytes]") -> str | None:
    """The address with its token, once the server has written it down; None if it ended or stays silent."""
    from jupyter_server.serverapp import list_running_servers

    deadline = time.monotonic() + _START_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        for server in list_running_servers():
            if server["pid"] == process.pid:
                token = f"?token={server['token']}" if server["token"] else ""
                return f"{server['url']}lab{token}"
        time.sleep(0.2)
    return None
