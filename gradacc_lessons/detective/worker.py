"""The process in which learners' loops run, one fork per check.

It imports torch and builds an optimizer once, then waits for requests on standard input; each is answered by a
forked child that is limited, watched and ended with everything it started. It runs no backward itself, because a
fork of a process whose backward has used threads hangs. It ends when its parent does.

Run it as `python -m gradacc_lessons.detective.worker`; with `--once` (where fork does not exist) it answers one
request in this same process. With `--jail MODULE,…`, inside the sandbox of a class, each check is locked in by itself,
and says so if its code has changed what measures it; the modules are imported beforehand.
"""

import gc
import importlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradacc_lessons.detective import limits
from gradacc_lessons.detective.wire import LENGTH, MAX_FRAME_BYTES, Array, pack, unpack

PARENT_CHECK_SECONDS = 2.0
MEMORY_CHECK_SECONDS = 0.25
BREATH_SECONDS = 0.02
"""How long to wait for a child that has closed its pipe and not ended yet."""


def read_exactly(fd: int, length: int) -> bytes:
    """`length` bytes of a pipe; EOFError when it ends before."""
    parts, left = [], length
    while left:
        part = os.read(fd, min(left, 2**20))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def write_all(fd: int, *blobs: bytes) -> None:
    """Each blob behind its length."""
    view = memoryview(b"".join(LENGTH.pack(len(blob)) + blob for blob in blobs))
    while view:
        view = view[os.write(fd, view) :]


def read_blob(fd: int) -> bytes:
    """What `write_all` wrote as one blob."""
    return read_exactly(fd, LENGTH.unpack(read_exactly(fd, LENGTH.size))[0])


def warm_up(modules: Sequence[str] = ()) -> None:
    """Import what every check needs, `modules` too, and make torch's lazy parts load; no backward here."""
    import torch

    torch.set_num_threads(1)
    torch.backends.cpu.get_cpu_capability()  # looks in /proc, which a jailed check may not have; float32 rounds by it
    import cloudpickle  # noqa: F401

    import gradacc_lessons.accumulation
    import gradacc_lessons.detective.child  # noqa: F401

    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimizer = kind([parameter], lr=0.1)
        optimizer.step()
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda tick: 1.0)
    for module in modules:
        importlib.import_module(module)


@dataclass
class Watch:
    """How a running child is doing."""

    deadline: float
    """time.monotonic() at which it is ended."""
    result: bytearray = field(default_factory=bytearray)
    """Its answer so far."""
    printed: bytearray = field(default_factory=bytearray)
    """The beginning of what it printed."""
    printed_bytes: int = 0
    """How much it printed in all."""
    reason: str | None = None
    """Why we ended it, if we did: time, output, answer, memory or parent."""

    def judge(self, parent: int) -> None:
        """Set the reason when a bound is passed."""
        bounds = {
            "time": time.monotonic() > self.deadline,
            "output": self.printed_bytes > limits.OUTPUT_LIMIT,
            "answer": len(self.result) > MAX_FRAME_BYTES,
            "parent": os.getppid() != parent,
        }
        self.reason = self.reason or next((name for name, passed in bounds.items() if passed), None)


Answering = Callable[[dict[str, Any], dict[str, Array]], bytes]


def check(
    header: dict[str, Any], arrays: dict[str, Array], parent: int, jailed: Answering | None = None
) -> tuple[dict[str, Any], bytes]:
    """Fork, watch and end one check. Returns how it ended, and the raw answer.

    With `jailed`, the fork is locked in, and answers with that."""
    result_in, result_out = os.pipe()
    print_in, print_out = os.pipe()
    watch = Watch(time.monotonic() + header["time_limit"])
    me, pid = os.getpid(), os.fork()
    if pid == 0:
        _be_the_child(header, arrays, result_out, print_out, me, jailed)
    try:
        os.close(result_out)
        os.close(print_out)
        status = _supervise(pid, watch, result_in, print_in, parent)
    finally:  # also when the parent gives up and ends this process with SIGTERM
        limits.end_group(pid)
        limits.end_children()
    os.close(result_in)
    os.close(print_in)
    code = os.waitstatus_to_exitcode(status)
    shown = watch.printed.decode(errors="replace")
    return {"reason": watch.reason, "code": code, "printed": shown}, bytes(watch.result)


def _be_the_child(
    header: dict[str, Any],
    arrays: dict[str, Array],
    result_out: int,
    print_out: int,
    worker: int,
    jailed: Answering | None,
) -> None:
    """Never returns: os._exit, so that nothing of the worker runs twice."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        limits.end_with(worker)
        limits.first_to_go()
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(print_out, 1)
        os.dup2(print_out, 2)
        os.dup2(result_out, 3)
        os.closerange(4, 4096)  # the worker's own pipes are none of its business
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
        held = None
        if jailed:
            from gradacc_lessons.detective import jail

            held = limits.address_space()  # in there, there may be no /proc to ask
            jail.enter()
        limits.confine(header["time_limit"], held)
        from gradacc_lessons.detective.child import answer

        frame = memoryview((jailed or answer)(header, arrays))
        while frame:
            frame = frame[os.write(3, frame) :]
    except MemoryError:  # there was not even enough left to say so
        os._exit(limits.OUT_OF_MEMORY)
    finally:
        os._exit(0)


def _supervise(pid: int, watch: Watch, result_in: int, print_in: int, parent: int) -> int:
    """Collect what the child writes until it ends or passes a bound; its wait status."""
    looked = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for fd in (result_in, print_in):
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ)
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            _collect(selector, watch, result_in, 0.0 if ended else BREATH_SECONDS)
            if ended:
                while _collect(selector, watch, result_in, 0.0):
                    watch.judge(parent)
                    if watch.reason:
                        break
                return status
            watch.judge(parent)
            if not limits.ENFORCED_BY_KERNEL and time.monotonic() - looked > MEMORY_CHECK_SECONDS:
                looked = time.monotonic()
                if limits.resident_bytes(pid) > limits.MEMORY_LIMIT:
                    watch.reason = watch.reason or "memory"
            if watch.reason:
                limits.end_group(pid)
                return os.waitpid(pid, 0)[1]


def _collect(selector: selectors.BaseSelector, watch: Watch, result_in: int, wait: float) -> int:
    """Read what lies ready; the number of bytes read. A pipe that ended is not asked again."""
    if not selector.get_map():
        time.sleep(wait / 10)
        return 0
    read = 0
    for key, _ in selector.select(wait):
        data = os.read(key.fd, 2**16)
        read += len(data)
        if not data:
            selector.unregister(key.fd)
        elif key.fd == result_in:
            watch.result += data
        else:
            watch.printed_bytes += len(data)
            watch.printed += data[: max(limits.SHOWN_OUTPUT - len(watch.printed), 0)]
    return read


def serve(jail: Sequence[str] | None = None) -> None:
    """Answer requests until the parent closes the pipe or is gone; `jail` holds what to import if checks are jailed."""
    requests, replies, parent = os.dup(0), os.dup(1), os.getppid()
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # learners' code must not find our pipes there
        os.dup2(devnull, standard)
    limits.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    warm_up(jail or ())
    jailed = None
    if jail is not None:
        from gradacc_lessons.detective.untouched import watched

        jailed = watched()
    gc.freeze()  # or the first collection in each child would copy what it shares with this process
    write_all(replies, b"ready")
    selector = selectors.DefaultSelector()
    selector.register(requests, selectors.EVENT_READ)
    while os.getppid() == parent:
        if not selector.select(PARENT_CHECK_SECONDS):
            continue
        try:
            header, arrays = unpack(read_blob(requests))
            write_all(replies, b"taken")  # from here on, the end of this process is the doing of the check
            ending, frame = check(header, arrays, parent, jailed)
            write_all(replies, pack(ending), frame)
        except (EOFError, BrokenPipeError):
            return


def serve_once() -> None:
    """Answer the one request on standard input, in this process."""
    request = sys.stdin.buffer.read()
    replies = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    warm_up()
    from gradacc_lessons.detective.child import answer

    write_all(replies, answer(*unpack(request)))


if __name__ == "__main__":
    if "--once" in sys.argv:
        serve_once()
    else:
        serve(sys.argv[2].split(",") if sys.argv[1:2] == ["--jail"] else None)
