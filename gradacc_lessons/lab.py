"""Open the lessons in JupyterLab, on a learner's own copy where the course came as a wheel."""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradacc_lessons.course import course_folder
from gradacc_lessons.progress import progress_file

if TYPE_CHECKING:
    from traitlets.config import Config

FIRST_LESSON = "00_start_here.ipynb"
OUR_DEFAULTS = Path(__file__).with_name("jupyter")
"""A configuration folder of ours: what a learner has not set themselves is as it says (no question about news)."""


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
    folder = (wanted or Path("gradacc-notebooks")).resolve()
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


def open_lab(folder: Path, options: Sequence[str], say: Callable[[str], None]) -> None:
    """Be JupyterLab on `folder` until it is stopped; `options` are its own.

    As soon as it listens, `say` gets the address and what a learner needs to know. What JupyterLab tells
    administrators is left out; errors are not.
    """
    from jupyterlab.labapp import LabApp

    paths = [str(OUR_DEFAULTS), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(paths)
    server = LabApp.initialize_server([str(folder), *options], config=_ours(folder))
    said = _what_to_know(server)
    # Its own lines about the address go with a token that it says it made.
    server.identity_provider.token_generated = False
    server.io_loop.add_callback(say, said)
    signal.signal(signal.SIGINT, lambda *_: _stop(server))
    server.start()
    say("JupyterLab has stopped.")


def _stop(server: Any) -> None:
    """End at the first Ctrl-C, and without asking; a second one does not wait for the kernels."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    server.stop(from_signal=True)


def _ours(folder: Path) -> "Config":
    """How this JupyterLab differs from another; whatever a learner asks for goes before it."""
    from traitlets.config import Config

    first = f"/lab/tree/{FIRST_LESSON}" if (folder / FIRST_LESSON).exists() else "/lab"
    # In containers root is the only user there is.
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    ours = Config(
        LabApp={"default_url": first, "log_level": "ERROR"}, ServerApp={"log_level": "ERROR", "allow_root": root}
    )
    if _can_encrypt():
        ours.KernelManager.transport_encryption = "auto"
    return ours


def _can_encrypt() -> bool:
    """Whether what goes between kernel and server can be encrypted; kernels that could warn when it is not."""
    import zmq
    from jupyter_client.manager import KernelManager

    return zmq.has("curve") and "transport_encryption" in KernelManager.class_trait_names()


def _what_to_know(server: Any) -> str:
    """Where the lessons are to be seen, how to stop, and where answers are kept."""
    asked = int(server.config.ServerApp.get("port", server.trait_defaults("port")))
    lines = [
        "",
        f"  Open       {server.public_url if server.ip == 'localhost' else server.display_url}",
        "  Stop       Ctrl-C in this terminal",
        f"  Progress   {progress_file()}",
        "",
    ]
    if asked not in (0, server.port):
        lines.insert(1, f"  Port {asked} is taken by another program, so the lessons are on port {server.port}.")
    return "\n".join(lines)
