"""System calls that a check in the sandbox may not make: a filter in the kernel (seccomp) refuses them.

Namespaces and limits bound what a process reaches and takes; some calls go around them, as with a tmpfs of its own in
a new namespace, whose pages count for no limit. They return "operation not permitted" here.
"""

import ctypes
import platform
import struct

_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM, _ENOSYS = 1, 38
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_NEW_NAMESPACE = 0x7E020000
"""Every CLONE_NEW… flag that clone takes."""
_FOREIGN = 0x40000000
"""x86-64's second table of calls (x32) begins here."""


class _Machine:
    """The numbers of one architecture's calls."""

    def __init__(self, audit: int, clone: int, clone3: int, refused: dict[str, int]) -> None:
        self.audit, self.clone, self.clone3, self.refused = audit, clone, clone3, refused


_SHARED = {
    "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432, "pidfd_getfd": 438,
    "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E, 56, 435,
        {
            **_SHARED, "shmget": 29, "socket": 41, "socketpair": 53, "semget": 64, "msgget": 68, "ptrace": 101,
            "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "mq_open": 240, "add_key": 248,
            "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "setns": 308,
            "process_vm_readv": 310, "process_vm_writev": 311, "memfd_create": 319, "bpf": 321, "userfaultfd": 323,
        },
    ),
    "aarch64": _Machine(
        0xC00000B7, 220, 435,
        {
            **_SHARED, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "unshare": 97, "ptrace": 117,
            "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "socketpair": 199,
            "add_key": 217, "request_key": 218, "keyctl": 219, "perf_event_open": 241, "setns": 268,
            "process_vm_readv": 270, "process_vm_writev": 271, "memfd_create": 279, "bpf": 280, "userfaultfd": 282,
        },
    ),
}  # fmt: skip


def known_here() -> bool:
    """Whether the calls of this architecture are known; elsewhere there is no filter."""
    return platform.machine() in _MACHINES


def refuse_calls() -> None:
    """Put the filter on the calling process and all that it starts. OSError if the kernel does not take it.

    The process must have given up gaining privileges (PR_SET_NO_NEW_PRIVS).
    """
    program = _program(_MACHINES[platform.machine()])
    code = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    wanted = Filter(len(program) // 8, ctypes.cast(code, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.byref(wanted), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _program(machine: _Machine) -> bytes:
    """The filter: straight down, each refusal right behind its test."""
    return b"".join(
        [
            _load(_ARCHITECTURE_AT),
            _test(_EQUAL, machine.audit, unless=0, then=1),
            _end(_KILL),
            _load(_NUMBER_AT),
            *([_test(_ANY_BIT, _FOREIGN, unless=1, then=0), _end(_KILL)] if machine.clone == 56 else []),
            # Its flags lie in memory, where a filter cannot look; without it the C library takes clone.
            _test(_EQUAL, machine.clone3, unless=1, then=0),
            _end(_REFUSE | _ENOSYS),
            *(
                part
                for number in sorted(machine.refused.values())
                for part in (_test(_EQUAL, number, unless=1, then=0), _end(_REFUSE | _EPERM))
            ),
            _test(_EQUAL, machine.clone, unless=3, then=0),
            _load(_FIRST_ARGUMENT_AT),
            _test(_ANY_BIT, _NEW_NAMESPACE, unless=1, then=0),
            _end(_REFUSE | _EPERM),
            _end(_ALLOW),
        ]
    )


def _load(offset: int) -> bytes:
    return struct.pack("=HBBI", _LOAD, 0, 0, offset)


def _test(kind: int, value: int, *, then: int, unless: int) -> bytes:
    """Skip `then` instructions if the test holds, `unless` if not."""
    return struct.pack("=HBBI", kind, then, unless, value)


def _end(verdict: int) -> bytes:
    return struct.pack("=HBBI", _RETURN, 0, 0, verdict)
