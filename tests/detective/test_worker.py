"""The checking process: hostile loops, its own life and death, threads, and the fresh process without fork."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from detective import wrong_loops
from detective.correct_loops import slices

from gradacc_lessons.detective import client, limits
from gradacc_lessons.detective.client import WORKER
from gradacc_lessons.detective.diagnose import Outcome, diagnose, request_frame
from gradacc_lessons.detective.faults import fault_loop
from gradacc_lessons.detective.scenarios import included
from gradacc_lessons.detective.sending import portable
from gradacc_lessons.detective.wire import WireError, unpack

linux = pytest.mark.skipif(not limits.ENFORCED_BY_KERNEL, reason="needs Linux's /proc and its memory limit")

HOSTILE = {
    "hangs": (Outcome.TIMED_OUT, "did not come back within 2 seconds", 2.0),
    "deaf": (Outcome.TIMED_OUT, "did not come back within 2 seconds", 2.0),
    "allocates": (Outcome.CRASHED, "more memory than the 512 MB", 20.0),
    "allocates_tensors": (Outcome.CRASHED, "more memory than the 512 MB", 20.0),
    "exits": (Outcome.CRASHED, "ends the whole program", 10.0),
    "exits_hard": (Outcome.CRASHED, "ended without an answer (exit code 0)", 10.0),
    "kills_itself": (Outcome.CRASHED, "ended by signal SIGKILL", 10.0),
    "segfault": (Outcome.CRASHED, "ended by signal SIGSEGV", 10.0),
    "prints": (Outcome.CRASHED, "prints without end; it was stopped after 1024 kB", 10.0),
    "writes_to_every_pipe": (Outcome.CRASHED, "no readable answer", 10.0),
    "fills_the_disk": (Outcome.CRASHED, "File too large", 10.0),
}


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not yet waited for does not."""
    try:
        with open(f"/proc/{pid}/stat") as line:
            return line.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int, patience: float = 10.0) -> bool:
    deadline = time.monotonic() + patience
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


@linux
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_loops_are_contained_and_named(name):
    outcome, said, limit = HOSTILE[name]
    assert diagnose(slices, "windows").correct
    before = WORKER.pid
    began = time.monotonic()
    found = diagnose(getattr(wrong_loops, name), time_limit=limit)
    assert found.outcome is outcome
    assert said in found.message
    assert found.faults == ()
    assert time.monotonic() - began < limit + client.GRACE_SECONDS
    assert WORKER.pid == before
    assert diagnose(slices, "windows").correct


@linux
def test_a_loop_that_kills_the_worker_costs_a_restart():
    found = diagnose(wrong_loops.kills_its_parent)
    assert found.outcome is Outcome.CRASHED
    assert "If your loop ends other processes" in found.message
    assert diagnose(slices, "windows").correct


@linux
def test_nothing_that_a_loop_started_is_left(tmp_path):
    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        pids = [
            subprocess.Popen(["sleep", "1000"]).pid,
            subprocess.Popen(["sleep", "1000"], start_new_session=True).pid,
            int(subprocess.check_output(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"])),
        ]
        print(*pids)
        raise RuntimeError("and goes")

    found = diagnose(loop)
    assert "and goes" in found.message
    pids = [int(pid) for pid in found.evidence["printed"].split()]
    assert len(pids) == 3
    assert all(gone(pid) for pid in pids)


@linux
def test_a_thread_that_a_loop_leaves_does_not_hold_the_answer_up():
    began = time.monotonic()
    assert diagnose(wrong_loops.leaves_a_thread).correct
    assert time.monotonic() - began < 8


def test_the_learners_process_is_never_touched():
    """Neither its globals nor its threads nor its environment."""
    counted = []

    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        counted.append(1)
        os.environ["GRADACC_TEST"] = "changed"
        slices(model, optimizer, micro_batches, loss_fn, accumulation_steps)

    assert diagnose(loop, "windows").correct
    assert counted == []
    assert "GRADACC_TEST" not in os.environ


def test_a_worker_that_dies_between_two_questions_is_replaced():
    assert diagnose(slices, "windows").correct
    before = WORKER.pid
    os.kill(before, signal.SIGKILL)
    assert diagnose(slices, "windows").correct
    assert WORKER.pid != before


def test_threads_share_the_worker():
    found, loops = {}, ["missing_scale", "never_zero_grad", "double_scale", "running_scale"]

    def ask(name):
        found[name] = diagnose(fault_loop(name), "windows").faults

    threads = [threading.Thread(target=ask, args=(name,)) for name in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {name: (name,) for name in loops}


def test_a_backward_with_threads_in_the_parent_does_no_harm():
    """A fork of a process whose backward has used threads hangs; the parent is never forked."""
    import torch

    big = torch.randn(400, 400, requires_grad=True)
    (big @ big).relu().sum().backward()
    assert diagnose(slices, "windows", time_limit=20).correct


def _parent(script: str) -> subprocess.Popen[str]:
    source = "from gradacc_lessons.detective.client import WORKER, ask\n" + textwrap.dedent(script)
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)


WAITING = """
    import sys, threading, time
    from gradacc_lessons.detective.diagnose import diagnose
    from gradacc_lessons.detective.faults import REFERENCE_SOURCE, compiled

    def sleeps(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        import time
        time.sleep(1000)

    assert diagnose(compiled(REFERENCE_SOURCE), "windows").correct
    print(WORKER.pid, flush=True)
    if sys.argv[1:] == []:
        threading.Timer(0.5, lambda: print("asking", flush=True)).start()
        diagnose(sleeps, time_limit=500)
"""


@linux
def test_the_worker_ends_with_a_killed_parent_even_in_mid_check():
    parent = _parent(WAITING)
    worker = int(parent.stdout.readline())
    assert parent.stdout.readline().strip() == "asking"
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(worker)], capture_output=True, text=True, check=False)
    parent.kill()
    parent.wait()
    assert gone(worker)
    assert all(gone(int(pid)) for pid in children.stdout.split())


@linux
def test_after_an_interrupt_the_next_question_is_answered_and_at_the_end_nothing_is_left():
    script = WAITING.replace("diagnose(sleeps, time_limit=500)", "pass") + (
        "    try:\n        diagnose(sleeps, time_limit=500)\n    except KeyboardInterrupt:\n        "
        'print(diagnose(compiled(REFERENCE_SOURCE), "windows").outcome.name, WORKER.pid, flush=True)\n'
    )
    parent = _parent(script)
    parent.stdout.readline()
    assert parent.stdout.readline().strip() == "asking"
    parent.send_signal(signal.SIGINT)
    outcome, worker = parent.stdout.readline().split()
    assert outcome == "CORRECT"
    assert parent.wait(30) == 0
    assert gone(int(worker))


def test_without_fork_diagnose_gives_the_same(monkeypatch):
    monkeypatch.delattr(os, "fork")
    assert diagnose(fault_loop("missing_scale"), "windows").faults == ("missing_scale",)


def test_without_fork_a_hang_is_ended(monkeypatch):
    monkeypatch.setattr(client, "START_SECONDS", 4.0)  # a second of it on top of the limit
    request = request_frame("diagnose", portable(wrong_loops.sleeps), "a nonce", 1.0, included("windows"))
    assert client.ask_once(request, 1.0).reason == "time"


def test_memory_is_watched_where_the_kernel_does_not_enforce_it():
    block = bytearray(os.urandom(2**20)) * 64
    assert limits.resident_bytes(os.getpid()) > len(block)
    assert limits.resident_bytes(2**30) == 0


def test_an_answer_of_another_check_is_not_taken(monkeypatch):
    real = client.ask

    def swapped(request, time_limit):
        header, arrays = unpack(request)
        from gradacc_lessons.detective.wire import pack

        return real(pack({**header, "nonce": "other"}, arrays), time_limit)

    monkeypatch.setattr("gradacc_lessons.detective.diagnose.ask", swapped)
    found = diagnose(slices, "windows")
    assert found.outcome is Outcome.CRASHED
    assert "no readable answer" in found.message


@pytest.mark.parametrize("frame", [b"", b"x" * 100, b"\0" * 7 + b"\x02{}", b"\xff" * 8])
def test_a_broken_worker_is_told(monkeypatch, frame):
    monkeypatch.setattr("gradacc_lessons.detective.diagnose.ask", lambda request, limit: client.Answer(frame))
    assert diagnose(slices, "windows").outcome is Outcome.CRASHED
    with pytest.raises(WireError):
        unpack(frame)


def test_a_worker_that_cannot_start_is_told(monkeypatch, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("raise ImportError('no torch here')")
    monkeypatch.setattr(client, "COMMAND", [sys.executable, str(script)])
    worker = client.Worker()
    with pytest.raises(client.WorkerError, match="no torch here"):
        worker.ask(b"anything", 1.0)
    assert worker.pid is None
