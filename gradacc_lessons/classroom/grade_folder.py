"""Grading a folder: every file once, on several cores, and the same results each time.

One line per file goes into the journal as it is done; when all are, the files are compared with one another and
results.jsonl is written, sorted. Whatever interrupts it costs the files that were being graded.
"""

import hashlib
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import active_children, get_context
from pathlib import Path

from gradacc_lessons import __version__
from gradacc_lessons.classroom import sandbox
from gradacc_lessons.classroom.class_folder import ClassFolder, open_class
from gradacc_lessons.classroom.grading import Grader
from gradacc_lessons.classroom.inbox import files, read_file, shown
from gradacc_lessons.classroom.journal import NAME, Journal, line_of
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.results import RESULTS_NAME, CodeRun, FileResult, result_from
from gradacc_lessons.classroom.same_work import compared
from gradacc_lessons.detective import client, limits
from gradacc_lessons.whole_file import alone

PIECE = 4
"""Files that one process takes at a time."""
AHEAD = 3
"""Pieces that wait for each process."""
Tell = Callable[[int, int], object]
"""Hears how many files are done, and how many there are."""


@dataclass(frozen=True)
class Summary:
    """What came of grading a folder."""

    file: Path
    """results.jsonl."""
    counts: Counter[str]
    """How many files have which status."""
    code: CodeRun
    """How code was run, where there was any."""
    why_no_sandbox: str | None
    """What is missing; None if there is a sandbox."""
    resumed: int
    """Files that an earlier, interrupted run had graded."""


def grade_folder(
    of_class: ClassFolder,
    folder: Path,
    *,
    unsafe: bool = False,
    jobs: int | None = None,
    to: Path | None = None,
    tell: Tell = lambda done, total: None,
) -> Summary:
    """Grade what was handed in into `folder`, and write `to`/results.jsonl, in the class's folder without `to`.

    `jobs` processes work at once, one per core without it. Where there is no sandbox, code is run only if `unsafe`.
    ClassError if the class or the folder cannot be used; SandboxError if the sandbox stops working, and then, as
    after an interrupt, the same call goes on where this one stopped.
    """
    to, names = to or of_class.results, files(folder)
    missing = sandbox.missing()
    kind: CodeRun = "sandbox" if missing is None else "unsafe" if unsafe else "refused"
    to.mkdir(parents=True, exist_ok=True)
    with _alone(to):
        counts, resumed = _grade_all(of_class, folder, kind, names, jobs or _cores(), to, tell)
    return Summary(to / RESULTS_NAME, counts, kind, missing, resumed)


@contextmanager
def _alone(to: Path) -> Iterator[None]:
    """Hold the folder of the results; ClassError if another grading does."""
    with ExitStack() as held:
        try:
            held.enter_context(alone(to, patience=0.0))
        except TimeoutError:
            raise ClassError(
                "busy",
                f"another `gradacc class grade` writes to {to}; wait until it is done, or name another folder with "
                "--to",
                f"een andere `gradacc class grade` schrijft naar {to}; wacht tot die klaar is, of noem een andere map "
                "met --to",
            ) from None
        yield


def _grade_all(
    of_class: ClassFolder, folder: Path, kind: CodeRun, names: list[str], jobs: int, to: Path, tell: Tell
) -> tuple[Counter[str], int]:
    """Grade these files; how many have which status, and how many had been graded before."""
    journal = Journal(to / NAME, _what(of_class, kind))
    try:
        done = {name for name in names if name in journal.entries and _unchanged(folder, name, journal)}
        left = [name for name in names if name not in done]
        count = len(done)
        tell(count, len(names))
        for lines in _graded(of_class, folder, kind, left, jobs):
            for name, line in lines:
                journal.add(name, line)
            count += len(lines)
            tell(count, len(names))
        counts = _write(to / RESULTS_NAME, journal, names)
    except BaseException:
        journal.close()
        raise
    journal.close(done=True)
    return counts, len(done)


def _what(of_class: ClassFolder, kind: CodeRun) -> dict[str, object]:
    """What grading depends on beside the files: a journal of anything else is of no use."""
    banks = {
        lesson: hashlib.sha256(file.read_bytes()).hexdigest() for lesson, file in sorted(of_class.bank_files.items())
    }
    return {
        "class": of_class.id,
        "version": __version__,
        "code": kind,
        "banks": banks,
        "codes": sorted(of_class.by_handle),
    }


def _unchanged(folder: Path, name: str, journal: Journal) -> bool:
    seen = ""
    with suppress(ClassError):
        seen = hashlib.sha256(read_file(folder, name)).hexdigest()
    return seen == journal.entries[name].seen


Lines = list[tuple[str, bytes]]


def _graded(of_class: ClassFolder, folder: Path, kind: CodeRun, names: list[str], jobs: int) -> Iterator[Lines]:
    """The journal's lines for these files, piece by piece, as they are done."""
    pieces = (names[at : at + PIECE] for at in range(0, len(names), PIECE))
    jobs = min(jobs, -(-len(names) // PIECE))
    if jobs <= 1:
        yield from _graded_here(Grader(of_class, folder, kind), kind, pieces)
        return
    begin = (of_class.folder, folder, kind, os.getpid())
    # "spawn", as a fork of a process with threads may hang; each process has a sandboxed worker of its own.
    pool, others = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, begin), set(active_children())
    try:
        with _no_interrupt():
            running = {pool.submit(_grade, piece) for piece in islice(pieces, AHEAD * jobs)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(_grade, piece) for piece in islice(pieces, len(ended))}
            yield from (each.result() for each in ended)
    except BrokenProcessPool:  # of a result, or of the next piece that it is given
        raise RuntimeError(
            "a process that grades was ended from outside, perhaps for want of memory; run the same command again to "
            "go on where it stopped, with fewer --jobs if memory was short"
        ) from None
    except BaseException:  # what they are at may take minutes
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """The keyboard's interrupt waits meanwhile, and does not reach processes that start here until they can bear it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _graded_here(grader: Grader, kind: CodeRun, pieces: Iterable[list[str]]) -> Iterator[Lines]:
    """The same in this process: a second one would take longer to start than a few files take."""
    before = client.WORKER
    if kind in ("sandbox", "unsafe"):
        sandbox.use(kind)
    try:
        for piece in pieces:
            yield [(name, line_of(name, grader.grade(name))) for name in piece]
    finally:
        if client.WORKER is not before:
            client.WORKER.close()
            client.use(before)


_GRADER: Grader | str = "nothing has begun"
"""The process's own; if it could not be made, why."""


def _begin(class_folder: Path, folder: Path, kind: CodeRun, parent: int) -> None:
    """What each process of the pool does first."""
    global _GRADER
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop, and ends this process
    limits.end_with(parent)
    try:
        if kind in ("sandbox", "unsafe"):
            sandbox.use(kind)
        _GRADER = Grader(open_class(class_folder), folder, kind)
    except (ValueError, OSError, RuntimeError) as error:  # raised here, the pool would print it as a traceback
        _GRADER = str(error)


def _grade(names: list[str]) -> Lines:
    if isinstance(_GRADER, str):
        raise RuntimeError(_GRADER)
    return [(name, line_of(name, _GRADER.grade(name))) for name in names]


def _write(file: Path, journal: Journal, names: list[str]) -> Counter[str]:
    """Write results.jsonl, whole or not at all; how many files have which status."""
    verdicts, notes = compared({name: journal.entries[name] for name in names})
    counts: Counter[str] = Counter()
    fresh = file.with_name(f".{file.name}-new")
    with fresh.open("wb") as stream:
        for name, line in zip(names, journal.lines(names), strict=True):
            status = journal.entries[name].status
            if name in verdicts:
                status, reason = verdicts[name]
                entry = journal.entries[name]
                line = FileResult(shown(name), status, reason, entry.learner, entry.written).line()
            elif name in notes:
                result = result_from(json.loads(line))
                line = replace(result, notes=(*result.notes, notes[name])).line()
            counts[status] += 1
            stream.write(line)
    os.replace(fresh, file)
    return counts


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
