"""The bounds of a check, and how a process is held to them. A seat belt for honest mistakes, not a jail."""

import contextlib
import os
import signal
import subprocess
import sys

TIME_LIMIT = 10.0
"""Seconds for a whole check; a right loop needs well under one."""
LONGEST_TIME_LIMIT = 3600.0
"""Seconds that may be asked for at most; the clocks that hold a check to them count in 32 bits."""
MEMORY_LIMIT = 2**29
"""Bytes a check may take on top of what the idle worker holds."""
OUT_OF_MEMORY = 86
"""Exit code of a check that has no memory left for its answer; one that nobody ends a program with."""
OUTPUT_LIMIT = 2**20
"""Bytes a check may print."""
FILE_LIMIT = 2**20
"""Bytes of any file it writes."""
SHOWN_OUTPUT = 2000
"""Characters of what it printed that are kept to be shown."""

ENFORCED_BY_KERNEL = sys.platform.startswith("linux")
"""macOS accepts RLIMIT_AS and does not enforce it; there the worker looks at the memory itself."""


def checked(time_limit: float) -> float:
    """The time limit itself; ValueError when it is not positive or longer than LONGEST_TIME_LIMIT."""
    if not 0 < time_limit <= LONGEST_TIME_LIMIT:
        raise ValueError(
            f"the time limit must be a positive number of seconds, {LONGEST_TIME_LIMIT:g} at most, not {time_limit!r}"
        )
    return time_limit


def confine(time_limit: float, held: int | None = None) -> None:
    """Put the calling process under the limits that its platform has; `held` is its address space in bytes, if that
    was asked for before."""
    import resource

    seconds = int(time_limit) + 2
    signal.alarm(seconds)  # in case nobody is left to watch
    wanted = {"RLIMIT_CPU": seconds, "RLIMIT_FSIZE": FILE_LIMIT, "RLIMIT_CORE": 0}
    if ENFORCED_BY_KERNEL:
        wanted["RLIMIT_AS"] = (held or address_space()) + MEMORY_LIMIT
    for name, soft in wanted.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        limit = soft if hard == resource.RLIM_INFINITY else min(soft, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))


def first_to_go() -> None:
    """On Linux: where memory runs out for everybody, the calling process and what it starts are ended before others."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def address_space() -> int:
    """Bytes of addresses that the calling process has, on Linux."""
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """Memory that a process holds, asked of `ps`; 0 when that cannot be said."""
    try:
        asked = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, timeout=5, check=False)
        return int(asked.stdout or b"0") * 1024
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def adopt_orphans() -> None:
    """On Linux: processes whose parent ended become children of this one, so that `end_children` finds them."""
    set_child_subreaper = 36
    _prctl(set_child_subreaper, 1)


def end_with(parent: int) -> None:
    """On Linux: have the calling process killed when its parent is, also if that has happened already."""
    set_parent_death_signal = 1
    _prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end_group(group: int) -> None:
    """Kill a process group, whoever is left in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_children(rounds: int = 50) -> None:
    """Kill and reap every child of this process, also those that left their group. Bounded in rounds."""
    for _ in range(rounds):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        children = _children()
        if not children:
            return
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    me, found = str(os.getpid()), []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as line:
            if line.read().rpartition(")")[2].split()[1] == me:
                found.append(int(name))
    return found
