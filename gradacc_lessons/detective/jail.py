"""What a check gets of its own inside the sandbox: namespaces for users, processes, mounts and messages, and a folder.

The sandbox around the worker (classroom.sandbox) has no network, no home and nothing that can be written. In here one
check is kept from the next: its processes end with it and its files lie in a tmpfs that nobody else sees.
"""

import ctypes
import os
import random
import signal
import struct

from gradacc_lessons.detective.refused_calls import known_here, refuse_calls

_NEW_USER, _NEW_PROCESSES, _NEW_MOUNTS, _NEW_MESSAGES = 0x10000000, 0x20000000, 0x00020000, 0x08000000
_NO_SUID, _NO_DEVICES, _NO_PROGRAMS, _RECURSIVE, _PRIVATE = 2, 4, 8, 0x4000, 0x40000
_NO_NEW_PRIVILEGES, _END_WITH_PARENT, _DROP_FROM_BOUND = 38, 1, 24
_CAPABILITIES_V3 = 0x20080522
_MOST_CAPABILITIES = 64
SCRATCH = "/scratch"
"""Where a check may write. Not /tmp: the course or its Python may lie there, as in a clone that is only tried out."""
SCRATCH_BYTES = 16 * 2**20
"""What it may keep there."""
MOST_FILES = 256
MOST_PROCESSES = 8
"""Processes and threads of one check, the first included."""
MOST_OPEN = 64
NO_JAIL = 87
"""Exit code of a check that could not be locked in; its code has not run."""


def enter() -> None:
    """Lock the calling process in; what returns is a new process, the first in its namespace.

    The calling process waits for it and ends as it ended. Whatever fails ends it with NO_JAIL: no code runs outside.
    """
    try:
        first = _isolated()
        if first:
            _end_as(first)
        _furnish()
        _confine()
        os.environ["HOME"] = os.environ["TMPDIR"] = SCRATCH
        random.seed(0)  # the worker's own state differs from run to run, and grading twice must not
    except BaseException:
        os._exit(NO_JAIL)


def _isolated() -> int:
    """In namespaces of its own, fork: 0 in the process that goes on, its id in the one that waits."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_USER | _NEW_PROCESSES | _NEW_MOUNTS | _NEW_MESSAGES)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return os.fork()


def _end_as(pid: int) -> None:
    """Wait for the process and end in the same way."""
    os.closerange(0, 4096)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
        signal.pause()
    os._exit(status)


def _furnish() -> None:
    """Mounts that only this check sees."""
    _prctl(_END_WITH_PARENT, signal.SIGKILL)
    _call("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    room = f"size={SCRATCH_BYTES},nr_inodes={MOST_FILES},mode=700".encode()
    _call("mount", b"tmpfs", SCRATCH.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, room)
    try:
        _call("mount", b"proc", b"/proc", b"proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS, None)
    except OSError:  # where the sandbox covers parts of its own /proc, no other may be mounted: then there is none
        _call("mount", b"none", b"/proc", b"tmpfs", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS, b"size=4k,nr_inodes=2")
    os.chdir(SCRATCH)


def _confine() -> None:
    """Limits, no powers over the namespaces either, and no calls that go around them."""
    import resource

    for kind, most in ((resource.RLIMIT_NPROC, MOST_PROCESSES), (resource.RLIMIT_NOFILE, MOST_OPEN)):
        resource.setrlimit(kind, (most, most))
    for capability in range(_MOST_CAPABILITIES):
        if _libc().prctl(_DROP_FROM_BOUND, capability, 0, 0, 0):
            break  # the kernel has no more of them
    _call("capset", struct.pack("=Ii", _CAPABILITIES_V3, 0), bytes(24))
    _prctl(_NO_NEW_PRIVILEGES, 1)
    if known_here():
        refuse_calls()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc(), name)(*arguments):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, value, 0, 0, 0)
