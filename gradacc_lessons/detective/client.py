"""The near end of the worker: starts it, asks it, ends it. Shared by the whole process, safe in threads."""

import atexit
import contextlib
import os
import secrets
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from gradacc_lessons.detective import limits
from gradacc_lessons.detective.wire import LENGTH, MAX_FRAME_BYTES, Array, WireError, pack, unpack

START_SECONDS = 120.0
"""An import of torch from a cold disk can take a minute."""
GRACE_SECONDS = 5.0
"""Beyond the check's own limit, for the worker to end it and to say so."""
CLOSE_SECONDS = 3.0
"""For a worker to end what it runs when it is told to go."""
COMMAND = [sys.executable, "-P", "-m", "gradacc_lessons.detective.worker"]


class WorkerError(RuntimeError):
    """The checking process cannot be started or does not answer; the text says what it said last."""


@dataclass(frozen=True)
class Answer:
    """How one check ended."""

    frame: bytes
    """What the child wrote; may be empty or anything."""
    reason: str | None = None
    """Why the child was ended: time, output, answer, memory; None when it ended by itself."""
    code: int = 0
    """Its exit code, negative for a signal."""
    printed: str = ""
    """The beginning of what the code printed."""


@dataclass(frozen=True)
class Reply(Answer):
    """An answer that has been read."""

    header: dict[str, Any] | None = None
    """What the child says. None when it was ended, or when what it wrote is no answer to this question."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """The arrays that came with it."""


class Worker:
    """One worker process; started at the first question, and again when it has died."""

    def __init__(self, command: Sequence[str] = COMMAND, environment: Mapping[str, str] | None = None) -> None:
        self._command, self._environment = command, environment
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._owner = 0
        self._ready = self._taken = self._over = False

    def import_path(self) -> list[str] | None:
        """Where a check finds what the learner's code imports; None for where the worker finds its own."""
        return import_path()

    @property
    def pid(self) -> int | None:
        """The worker's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def warm_up(self) -> None:
        """Start the process if there is none, and wait for nothing: who holds the lock has it started already."""
        if self._lock.acquire(blocking=False):
            try:
                self.start()
            finally:
                self._lock.release()

    def start(self) -> None:
        """Start the process if there is none, without waiting until it has imported torch.

        Another thread's check has to end first."""
        with self._lock:
            if self._owner != os.getpid():  # a fork of this process must not talk on its parent's pipes
                self._process = None
            if self.pid is not None:
                return
            self.close()
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment() if self._environment is None else self._environment,
                start_new_session=True,
            )
            if self._owner == 0:
                atexit.register(self._leave)
            self._owner, self._ready = os.getpid(), False

    def ask(self, request: bytes, time_limit: float) -> Answer:
        """Send one request and wait for its answer.

        A worker that died since the last question is replaced; WorkerError when it dies over this one, or when the
        new one does not start.
        """
        with self._lock:
            for attempt in (1, 2):
                self.start()
                self._taken = False
                try:
                    return self._exchange(request, time_limit)
                except (OSError, EOFError, WireError) as error:
                    last = self._last_words()
                    self.close()
                    if self._taken or self._over or attempt == 2:
                        raise WorkerError(last or str(error) or type(error).__name__) from error
                except BaseException:  # an interrupted exchange would leave half an answer in the pipe
                    self.close()
                    raise
        raise AssertionError("unreachable")

    def _leave(self) -> None:
        """At exit. Ends the process first: a thread that waits for its answer holds the lock until one comes."""
        self._over = True
        if self.pid is not None and self._owner == os.getpid():
            self._process.terminate()  # type: ignore[union-attr]
        self.close()

    def close(self) -> None:
        """End the worker and the check it may be running, when no thread waits for an answer any more."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None and self._owner == os.getpid():
                process.terminate()  # lets it end a check that is running, with everything that one started
                try:
                    process.wait(CLOSE_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                for pipe in (process.stdin, process.stdout):
                    with contextlib.suppress(OSError):
                        pipe.close()  # type: ignore[union-attr]
            if self._errors is not None:
                self._errors.close()
                self._errors = None

    def _exchange(self, request: bytes, time_limit: float) -> Answer:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        source = process.stdout.fileno()
        if not self._ready:
            _read_blob(source, START_SECONDS)
            self._ready = True
        process.stdin.write(LENGTH.pack(len(request)) + request)
        process.stdin.flush()
        _read_blob(source, GRACE_SECONDS)
        self._taken = True
        ending, _ = unpack(_read_blob(source, time_limit + GRACE_SECONDS))
        frame = _read_blob(source, GRACE_SECONDS)
        return Answer(frame, ending["reason"], ending["code"], ending["printed"])

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def ask_once(request: bytes, time_limit: float) -> Answer:
    """The same in a fresh process, for platforms without fork: slow, and bounded in time only."""
    command = [*COMMAND, "--once"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        try:
            # The import of torch is not the learner's time, and cannot be told from it here.
            out, _ = process.communicate(request, time_limit + START_SECONDS / 4)
        except subprocess.TimeoutExpired:
            process.kill()
            return Answer(b"", reason="time")
    return Answer(out[LENGTH.size :], code=process.returncode)


def environment() -> dict[str, str]:
    """One thread, no GPU, no spare heaps that would count as memory, and the import path for what the worker needs."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    path = os.pathsep.join(worker_path())
    return {**os.environ, **single, "CUDA_VISIBLE_DEVICES": "", "MALLOC_ARENA_MAX": "1", "PYTHONPATH": path}


def worker_path() -> list[str]:
    """sys.path without the learner's own folders, where a random.py would take the place of Python's.

    Those are the current folder and that of the script that runs. A check looks in them too: it has `import_path`.
    """
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None) if getattr(main, "__spec__", None) is None else None
    own = {os.path.realpath(folder) for folder in (os.getcwd(), script and os.path.dirname(script)) if folder}
    path = [folder for folder in import_path() if os.path.realpath(folder) not in own]
    course = str(Path(__file__).parents[2])
    return path if course in path else [*path, course]


def import_path() -> list[str]:
    """sys.path, with the current folder by name: where a check finds what the learner's code imports."""
    return [folder or os.getcwd() for folder in sys.path]


def ask(request: bytes, time_limit: float = limits.TIME_LIMIT) -> Answer:
    """Have a request checked in the process that this platform allows."""
    if hasattr(os, "fork"):
        return WORKER.ask(request, time_limit)
    return ask_once(request, time_limit)


def ask_for(
    mode: Literal["diagnose", "load", "values"],
    source: dict[str, Any],
    time_limit: float = limits.TIME_LIMIT,
    arrays: dict[str, Array] | None = None,
    **wanted: Any,
) -> Reply:
    """Have the function of `source` checked and read what comes back. `wanted` and `arrays` are what this mode takes:
    specs and their arrays, nothing, calls. WorkerError when the checking process does not work."""
    nonce = secrets.token_hex(16)
    header = {"mode": mode, "nonce": nonce, "time_limit": time_limit, "source": source}
    header["sys_path"] = WORKER.import_path()
    answer = ask(pack({**header, **wanted}, arrays), time_limit)
    try:
        said, found = unpack(answer.frame)
    except WireError:
        said, found = {}, {}
    if answer.reason is not None or said.get("nonce") != nonce:  # a check that was ended has said nothing
        return Reply(**vars(answer))
    return Reply(**vars(answer), header=said, arrays=found)


def use(worker: Worker) -> None:
    """Have every further check of this process made by `worker`."""
    global WORKER
    WORKER = worker


def warm_up() -> None:
    """Start the worker, so that the first diagnosis finds it ready. Never waits, not even for a check that runs."""
    if hasattr(os, "fork"):
        WORKER.warm_up()


def _read_blob(fd: int, patience: float) -> bytes:
    deadline = time.monotonic() + patience
    (length,) = LENGTH.unpack(_read(fd, LENGTH.size, deadline))
    if length > 2 * MAX_FRAME_BYTES:
        raise WireError("the answer is too long")
    return _read(fd, length, deadline)


def _read(fd: int, length: int, deadline: float) -> bytes:
    parts, left = [], length
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while left:
            if not selector.select(max(deadline - time.monotonic(), 0.0)):
                raise WireError("the checking process does not answer")
            part = os.read(fd, min(left, 2**20))
            if not part:
                raise EOFError("the checking process has ended")
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


WORKER = Worker()
