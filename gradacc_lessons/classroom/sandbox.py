"""Where code that was handed in runs: the detective's worker inside bubblewrap, without network, home or files.

What the worker sees is Python, its packages and this course without its solutions, all of it read-only. Each check is
locked in once more by itself (detective.jail). What comes back is read with distrust; the verdict is made out here.
"""

import os
import re
import secrets
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Literal

import gradacc_lessons
from gradacc_lessons.detective import client
from gradacc_lessons.detective.client import Answer, Worker, WorkerError
from gradacc_lessons.detective.jail import NO_JAIL, SCRATCH
from gradacc_lessons.detective.sending import portable
from gradacc_lessons.detective.untouched import TAMPERED
from gradacc_lessons.detective.wire import WireError, pack, unpack
from gradacc_lessons.detective.written import Written

Kind = Literal["sandbox", "unsafe"]
NOBODY = 54321
"""A user id that no account has: as root, limits on processes would bind nothing."""
PROBE_SECONDS = 60.0
PYTHON = (sys.executable, "-P")
NEEDED = ("quiz/judge_fit.py", "quiz/judge_norm.py", "quiz/try_*.py", "quiz/examine_parts.py", "detective/written.py")
"""Modules with which functions are tried out over there: loaded once, before any code that was handed in."""
HIDDEN = tuple(
    f"{folder}/{name}"
    for of, names in {"quiz": ("exercises*", "judge_museum.*"), "detective": ("oracle.*", "faults.*")}.items()
    for folder in (of, f"{of}/__pycache__")
    for name in names
)
HIDDEN_FOLDERS = ("_course", "detective/catalogue", "museum")
"""What of the course holds right answers, and right and wrong loops by name; over there it is empty."""
_NO_FILE = re.compile(r"<[^/\\]*>")
"""What stands in place of a file's name where code was in none; a name between < and > may be a path all the same."""
MOST_ANSWER = 2**20
"""Bytes of an answer; an honest one takes some 100 kB."""


class SandboxError(RuntimeError):
    """There is no sandbox on this machine, or it stopped working; the text says why and what to do."""


class Tampered(Exception):
    """The code that was handed in replaced what measures it; `names` says what, with commas."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = ", ".join(names)


class Sandboxed(Worker):
    """The worker in the sandbox, or with `unsafe` outside of one, and what it says read with distrust."""

    def __init__(self, kind: Kind) -> None:
        inside = kind == "sandbox"
        super().__init__(command() if inside else client.COMMAND, {} if inside else None)
        self.kind = kind

    def import_path(self) -> list[str] | None:
        """The worker's own: nothing of this machine's folders is told to what was handed in."""
        return None

    def ask(self, request: bytes, time_limit: float) -> Answer:
        """Have one request checked, and read what comes back with distrust.

        Tampered if its code changed what measures it, WorkerError if it ended the worker; SandboxError if the sandbox
        itself does not work, so that nobody's code is to blame.
        """
        try:
            answer = super().ask(request, time_limit)
        except WorkerError as error:
            self._must_work(str(error))
            raise
        if answer.code == NO_JAIL and not answer.frame:
            self._must_work("a check could not be locked in")
        if len(answer.frame) > MOST_ANSWER:
            return Answer(b"", "answer", answer.code)
        try:
            header, arrays = unpack(answer.frame)
        except WireError:
            return answer
        if header.get("status") == TAMPERED and header.get("nonce") == unpack(request)[0]["nonce"]:
            raise Tampered([str(name)[:60] for name in header.get("changed", [])])
        return Answer(pack(_without_files(header), arrays), answer.reason, answer.code)

    def _must_work(self, otherwise: str) -> None:
        """SandboxError if not even a function that returns 1 can be checked."""
        header = {"mode": "values", "nonce": "", "time_limit": 10.0, "sys_path": None, "calls": [[]]}
        source = portable(Written("def one():\n    return 1\n", "one"))
        try:
            said = unpack(super().ask(pack({**header, "source": source}), 10.0).frame)[0]
        except (WorkerError, WireError) as error:
            raise SandboxError(f"the sandbox does not work any more: {error or otherwise}") from None
        if said.get("values") != [1]:
            raise SandboxError(f"the sandbox does not work any more: {otherwise}")


def _without_files(header: dict[str, Any]) -> dict[str, Any]:
    """Messages quote the line of a file that an answer names: not of a file of this machine."""
    if header.get("file") is not None and not _NO_FILE.fullmatch(str(header["file"])):
        return {**header, "file": None, "line": None}
    return header


def use(kind: Kind) -> None:
    """Have every further check of this process made there; SandboxError if there is no sandbox."""
    if kind == "sandbox":
        command()
    client.use(Sandboxed(kind))


@cache
def command() -> tuple[str, ...]:
    """How the worker is started inside the sandbox; SandboxError says what is missing."""
    refused = None
    for prefix in _ways():
        try:
            _probe(prefix)
        except SandboxError as error:
            refused = refused or error
        else:
            return (*prefix, *PYTHON, "-m", "gradacc_lessons.detective.worker", "--jail", ",".join(_modules()))
    raise refused or SandboxError("the sandbox cannot run as root here: run the command as another user")


def missing() -> str | None:
    """Why there is no sandbox here, in a sentence; None if there is one."""
    try:
        command()
    except SandboxError as error:
        return str(error)
    return None


def environment() -> dict[str, str]:
    """All that the worker is told: nothing of the grader's own."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {
        **single,
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": SCRATCH,
        "CUDA_VISIBLE_DEVICES": "",
        "MALLOC_ARENA_MAX": "1",
        "PYTHONPATH": str(_package().parent),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _ways() -> list[list[str]]:
    """Ways to start the sandbox here, the best first. Limits on processes do not bind root, so none runs as root."""
    program = shutil.which("bwrap") if sys.platform.startswith("linux") else None
    if program is None:
        raise SandboxError("the sandbox needs Linux and bubblewrap: sudo apt-get install bubblewrap")
    apart = ["--die-with-parent", "--new-session", "--hostname", "sandbox", *_view(), "--clearenv"]
    apart += [part for name, value in environment().items() for part in ("--setenv", name, value)]
    plain = [program, "--unshare-all", "--cap-drop", "ALL", *apart]
    if os.geteuid() != 0:
        return [plain]
    ways = []
    if setpriv := shutil.which("setpriv"):
        become = [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
        spaces = [f"--unshare-{each}" for each in ("pid", "net", "ipc", "uts")]
        powers = [part for name in ("SETUID", "SETGID", "SETPCAP") for part in ("--cap-add", f"CAP_{name}")]
        # Root binds folders that only it may read, and becomes nobody inside; else nobody starts it.
        inside = [*become, "--bounding-set=-all", "--inh-caps=-all"]
        ways = [[program, *spaces, "--cap-drop", "ALL", *powers, *apart, *inside], [*become, *plain]]
    if _is_root_of_the_machine():
        return ways
    # Root of a user namespace, as some containers have it, is somebody else outside, and limits bind it. Inside it must
    # not be called root: a check may not map root into a namespace of its own.
    return [*ways, [*plain, "--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]]


def _is_root_of_the_machine() -> bool:
    return Path("/proc/self/uid_map").read_text(encoding="ascii").split()[1] == "0"


def _view() -> list[str]:
    """What is seen inside: the system, Python and the course without its solutions, read-only."""
    view = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", SCRATCH]
    for name in ("bin", "sbin", "lib", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            view += ["--symlink", os.readlink(folder), str(folder)]
        elif folder.is_dir():
            view += ["--ro-bind", str(folder), str(folder)]
    # Without a look at the processor, torch takes its simplest code, whose float32 rounds otherwise than out here.
    for path in (Path("/etc/ld.so.cache"), Path("/sys/devices/system/cpu")):
        view += [*_folders_above(path), "--ro-bind-try", str(path), str(path)]
    package = _package()
    folders = list(dict.fromkeys([Path(sys.base_prefix), Path(sys.prefix), package]))
    if not any(folder.is_relative_to("/tmp") for folder in folders):
        view += ["--symlink", SCRATCH, "/tmp"]  # for code that names it
    for folder in folders:
        if not folder.is_relative_to("/usr"):
            view += [*_folders_above(folder), "--ro-bind", str(folder), str(folder)]
    for file in sorted(file for pattern in HIDDEN for file in package.glob(pattern)):
        view += ["--ro-bind", "/dev/null", str(file)]
    for hidden in (str(package / name) for name in HIDDEN_FOLDERS if (package / name).is_dir()):
        view += ["--tmpfs", hidden, "--remount-ro", hidden]  # or what one check leaves there, the next would find
    return [*view, "--chdir", SCRATCH, "--remount-ro", "/dev", "--remount-ro", "/"]


def _folders_above(path: Path) -> list[str]:
    """bubblewrap would make them so that only root may look into them."""
    return [part for folder in reversed(path.parents[:-1]) for part in ("--perms", "0755", "--dir", str(folder))]


def _modules() -> list[str]:
    files = [file.relative_to(_package().parent) for pattern in NEEDED for file in sorted(_package().glob(pattern))]
    return [".".join(file.with_suffix("").parts) for file in files]


def _package() -> Path:
    return Path(str(gradacc_lessons.__file__)).resolve().parent


def _probe(prefix: list[str]) -> None:
    """Start the sandbox once, and lock a process in as a check is; SandboxError says what does not work."""
    word = secrets.token_hex(8)
    # On older kernels limits on processes count those of other namespaces: then a thread cannot start.
    thread = "import threading; thread = threading.Thread(target=int); thread.start(); thread.join()"
    script = f"from gradacc_lessons.detective import jail; jail.enter(); {thread}; print({word!r})"
    try:
        ended = subprocess.run(
            [*prefix, *PYTHON, "-c", script],
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"the sandbox does not start: {error}") from None
    if ended.returncode != 0 or ended.stdout.strip() != word:
        said = (ended.stderr.strip().splitlines() or ["the kernel allows no namespaces inside of it"])[-1]
        folders = ", ".join(dict.fromkeys(map(str, (sys.base_prefix, sys.prefix, _package()))))
        raise SandboxError(
            f"the sandbox does not work here: {said[:200]}. It needs user namespaces, and Python and the course in"
            f" folders that every user may read; they are in {folders}"
        )
