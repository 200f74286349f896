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
from gradacc_lessons.detective.diagnose import Outcome, diagnose
from gradacc_lessons.detective.exchange import described
from gradacc_lessons.detective.faults import fault_loop
from gradacc_lessons.detective.scenarios import included
from gradacc_lessons.detective.sending import portable
from gradacc_lessons.detective.wire import WireError, pack, unpack

linux = pytest.mark.skipif(not limits.ENFORCED_BY_KERNEL, reason="needs Linux's /proc and its memory limit")

HOSTILE = {
    "hangs": (Outcome.TIMED_OUT, "did not come back within 1 seconds"),
    "deaf": (Outcome.TIMED_OUT, "did not come back within 1 seconds"),
    "allocates": (Outcome.CRASHED, "more memory than the 512 MB"),
    "allocates_tensors": (Outcome.CRASHED, "more memory than the 512 MB"),
    "exits": (Outcome.CRASHED, "ends the whole program"),
    "exits_hard": (Outcome.CRASHED, "ended without an answer (exit code 0)"),
    "kills_itself": (Outcome.CRASHED, "ended by signal SIGKILL"),
    "segfault": (Outcome.CRASHED, "ended by signal SIGSEGV"),
    "prints": (Outcome.CRASHED, "The loop prints too much: more than 1024 kB. It was stopped there."),
    "prints_much_and_ends": (Outcome.CRASHED, "The loop prints too much: more than 1024 kB. It was stopped there."),
    "has_no_memory_to_say_so": (Outcome.CRASHED, "more memory than the 512 MB"),
    "writes_to_every_pipe": (Outcome.CRASHED, "no readable answer"),
    "fills_the_disk": (Outcome.CRASHED, "File too large"),
}
PATIENT = 120.0
"""Seconds that a busy machine may take over something that ends by itself."""


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not yet waited for does not."""
    try:
        with open(f"/proc/{pid}/stat") as line:
            return line.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(pid: str) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", pid], capture_output=True, text=True, check=False)
    return [int(child) for child in listed.stdout.split()]


def check_of(worker: int) -> int:
    """The process of the check that a worker runs, once it does."""
    deadline = time.monotonic() + PATIENT
    while not children(str(worker)) and time.monotonic() < deadline:
        time.sleep(0.02)
    (check,) = children(str(worker))
    return check


def started() -> int:
    """The pid of a worker that answers."""
    assert diagnose(slices, "windows", time_limit=PATIENT).correct
    return WORKER.pid


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENT
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pid)


@linux
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_loops_are_contained_and_named(name):
    outcome, said = HOSTILE[name]
    before = WORKER.pid or started()
    found = diagnose(getattr(wrong_loops, name), time_limit=1.0 if outcome is Outcome.TIMED_OUT else PATIENT)
    assert found.outcome is outcome
    assert said in found.message
    assert found.faults == ()
    assert WORKER.pid == before  # it kept its word within the seconds of grace, or it would have been replaced
    assert diagnose(slices, "windows", time_limit=PATIENT).correct


@linux
def test_a_loop_that_kills_the_worker_costs_a_restart(tmp_path):
    note = tmp_path / "pid"

    def loop(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        note.write_text(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)

    found = diagnose(loop)
    assert found.outcome is Outcome.CRASHED
    assert gone(int(note.read_text()))
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
    """The thread would sleep for 1,000 seconds; the answer would not come before the limit."""
    assert diagnose(wrong_loops.leaves_a_thread, time_limit=PATIENT).correct


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


@linux
def test_warming_up_never_waits_for_a_check():
    """A quiz warms up while another cell's loop is being checked, in the thread that draws its widgets."""
    found = {}
    assert diagnose(slices, "windows").correct
    before = WORKER.pid
    check = threading.Thread(target=lambda: found.update(hang=diagnose(wrong_loops.sleeps, time_limit=PATIENT)))
    check.start()
    child = check_of(before)
    client.warm_up()
    assert check.is_alive() and not found
    assert WORKER.pid == before
    os.kill(child, signal.SIGKILL)
    check.join(60)
    assert found["hang"].outcome is Outcome.CRASHED


@pytest.mark.long
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


PARENT = """
    from gradacc_lessons.detective.diagnose import diagnose
    from gradacc_lessons.detective.faults import REFERENCE_SOURCE, compiled

    def sleeps(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        import time
        time.sleep(1000)

    for _ in range(2):
        found = diagnose(compiled(REFERENCE_SOURCE), "windows")
        print(found.outcome.name, WORKER.pid, flush=True)
        try:
            diagnose(sleeps, time_limit=500)
        except KeyboardInterrupt:
            continue
"""


@linux
@pytest.mark.long
def test_after_an_interrupt_it_answers_again_and_a_killed_parent_leaves_nothing():
    parent = _parent(PARENT)
    outcome, first = parent.stdout.readline().split()
    assert outcome == "CORRECT"
    check = check_of(first)
    parent.send_signal(signal.SIGINT)
    outcome, second = parent.stdout.readline().split()
    assert outcome == "CORRECT"
    assert gone(int(first)) and gone(check)
    check = check_of(second)
    parent.kill()
    parent.wait()
    assert gone(int(second)) and gone(check)


LEAVES = """
    import os, threading, time
    from gradacc_lessons.detective.diagnose import diagnose

    def sleeps(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        import time
        time.sleep(1000)

    threading.Thread(target=diagnose, args=(sleeps,), kwargs={"time_limit": 500}, daemon=True).start()
    while WORKER.pid is None or not os.popen(f"ps -o pid= --ppid {WORKER.pid}").read().strip():
        time.sleep(0.05)
    print(WORKER.pid, flush=True)
"""


@linux
@pytest.mark.long
def test_a_program_that_ends_does_not_wait_for_a_check_in_another_thread():
    parent = _parent(LEAVES)
    worker = int(parent.stdout.readline())
    assert parent.wait(60) == 0
    assert gone(worker)


KERNEL = """
from gradacc_lessons import diagnose
from gradacc_lessons.detective.client import WORKER

def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    helper(model)

def helper(model):
    raise ValueError("in a cell")

found = diagnose(train_epoch, "windows")
assert 'ValueError: in a cell (line 8: raise ValueError("in a cell"))' in found.message, found.message
print(WORKER.pid)
"""


@linux
@pytest.mark.long
def test_in_a_notebook_the_line_of_the_cell_is_shown_and_a_restart_leaves_nothing():
    from jupyter_client.manager import KernelManager

    manager = KernelManager()
    manager.start_kernel()
    client_ = manager.blocking_client()
    client_.start_channels()
    try:
        client_.wait_for_ready(timeout=60)
        said = []
        client_.execute_interactive(KERNEL, timeout=90, output_hook=lambda message: said.append(message["content"]))
        assert not any("ename" in content for content in said), said
        worker = int(next(content["text"] for content in said if "text" in content))
        assert alive(worker)
        manager.restart_kernel(now=True)
        assert gone(worker)
    finally:
        client_.stop_channels()
        manager.shutdown_kernel(now=True)


def test_a_plain_function_returns_its_values():
    """What quizzes ask: numbers, whatever kind of number it is; nothing else comes back."""
    import torch

    def function(x):
        return [x, torch.tensor(x + 1.0), "text", True, None][int(x)]

    reply = client.ask_for("values", portable(function), calls=[[0], [1], [2], [3], [4]])
    assert reply.header["status"] == "returned"
    assert reply.header["values"] == [0, 2.0, None, None, None]


@linux
def test_where_memory_runs_out_a_check_is_ended_before_anything_else():
    def first(number):
        return int(open("/proc/self/oom_score_adj").read())

    assert client.ask_for("values", portable(first), calls=[[1]]).header["values"] == [1000]
    with open(f"/proc/{WORKER.pid}/oom_score_adj") as worker, open("/proc/self/oom_score_adj") as ours:
        assert int(worker.read()) == int(ours.read())


@pytest.mark.long
def test_without_fork_diagnose_gives_the_same(monkeypatch):
    monkeypatch.delattr(os, "fork")
    assert diagnose(fault_loop("missing_scale"), "windows").faults == ("missing_scale",)


def test_without_fork_a_hang_is_ended(monkeypatch):
    monkeypatch.setattr(client, "START_SECONDS", 4.0)  # a second of it on top of the limit
    monkeypatch.delattr(os, "fork")
    assert diagnose(wrong_loops.sleeps, time_limit=1.0).outcome is Outcome.TIMED_OUT


@linux
def test_the_worker_ends_what_takes_too_much_where_the_kernel_does_not():
    """As on macOS: the limit on address space is not set, and the worker looks at the memory itself."""
    script = "import sys; from gradacc_lessons.detective import limits, worker; limits.ENFORCED_BY_KERNEL = False; "
    unenforced = client.Worker(command=[sys.executable, "-c", script + "worker.serve()"])
    specs, arrays = described(included("windows"))
    asked = {"specs": specs, "mode": "diagnose", "nonce": "", "time_limit": PATIENT, "sys_path": sys.path}
    try:
        for loop, reason in ((wrong_loops.allocates_slowly, "memory"), (slices, None)):
            request = pack({**asked, "source": portable(loop)}, arrays)
            assert unenforced.ask(request, PATIENT).reason == reason
    finally:
        unenforced.close()


def test_memory_is_watched_where_the_kernel_does_not_enforce_it():
    block = bytearray(os.urandom(2**20)) * 64
    assert limits.resident_bytes(os.getpid()) > len(block)
    assert limits.resident_bytes(2**30) == 0


def test_an_answer_of_another_check_is_not_taken(monkeypatch):
    real = client.ask

    def swapped(request, time_limit):
        header, arrays = unpack(request)
        return real(pack({**header, "nonce": "other"}, arrays), time_limit)

    monkeypatch.setattr(client, "ask", swapped)
    found = diagnose(slices, "windows")
    assert found.outcome is Outcome.CRASHED
    assert "no readable answer" in found.message


@pytest.mark.parametrize("frame", [b"", b"x" * 100, b"\0" * 7 + b"\x02{}", b"\xff" * 8])
def test_a_broken_worker_is_told(monkeypatch, frame):
    monkeypatch.setattr(client, "ask", lambda request, limit: client.Answer(frame))
    assert diagnose(slices, "windows").outcome is Outcome.CRASHED
    with pytest.raises(WireError):
        unpack(frame)


def test_a_worker_that_cannot_start_is_told(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("raise ImportError('no torch here')")
    worker = client.Worker([sys.executable, str(script)])
    with pytest.raises(client.WorkerError, match="no torch here"):
        worker.ask(b"anything", 1.0)
    assert worker.pid is None
