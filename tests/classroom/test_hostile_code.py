"""Code that was handed in and does harm: it fails with its reason, the next one is graded, and nothing is left."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.results import AnswerResult
from gradacc_lessons.detective import client
from gradacc_lessons.quiz import call_in_child
from gradacc_lessons.quiz.exercises import EXERCISES

Run = Callable[..., AnswerResult]
LOOP = "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):\n"
RIGHT = EXERCISES["train_epoch_windows"].solution
SUM = "def updates_per_epoch(examples, micro_batch_size, accumulation_steps):\n"
RIGHT_SUM = EXERCISES["updates_per_epoch"].solution
FIND_HEADER = """
import sys, os
def header():
    frame = sys._getframe()
    while "header" not in frame.f_locals or "nonce" not in frame.f_locals["header"]:
        frame = frame.f_back
    return frame.f_locals["header"]
"""


@pytest.fixture
def updates(ran: Run) -> Run:
    """Grades a source for updates_per_epoch."""
    return lambda source: ran(source, "90_small", "small-code")


@pytest.fixture(autouse=True)
def others_are_graded(updates: Run) -> Iterator[None]:
    """After each attack: an honest learner passes, and no process of the attack is there any more."""
    yield
    assert updates(RIGHT_SUM).fraction == 1.0
    assert _in_sandbox() <= 2, "bubblewrap's first process and the worker"


def _in_sandbox() -> int:
    """Processes that live below the worker's bubblewrap, itself excluded."""
    pid = client.WORKER.pid
    assert pid is not None
    parents = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return len(found) - 1


def _failed(answer: AnswerResult, *words: str) -> None:
    assert answer.fraction == 0.0 and answer.mistake is not None and answer.said is not None
    for word in words:
        assert word in answer.said.en, answer.said.en
    assert answer.said.nl != answer.said.en


def test_an_endless_loop(updates: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_in_child, "TIME_LIMIT", 1.0)
    _failed(updates(SUM + "    while True:\n        pass\n"), "did not come back in time")


def test_a_loop_without_end_when_the_source_is_read(updates: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_in_child, "TIME_LIMIT", 1.0)
    _failed(updates("while True:\n    pass\n"), "did not come back in time")


def test_one_that_refuses_to_end(updates: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_in_child, "TIME_LIMIT", 1.0)
    source = (
        "import signal, time\nfor number in range(1, 32):\n    try:\n        signal.signal(number, signal.SIG_IGN)\n"
        "    except OSError:\n        pass\ntime.sleep(1000)\n"
    )
    _failed(updates(source), "did not come back in time")


def test_endless_output(updates: Run) -> None:
    began = time.monotonic()
    _failed(updates(SUM + "    while True:\n        print('x' * 10000)\n"), "output")
    assert time.monotonic() - began < 4


def test_an_endless_answer(ran: Run) -> None:
    _failed(ran("import os\nwhile True:\n    os.write(3, b'x' * 65536)\n"))


def test_eight_gibibytes(updates: Run) -> None:
    _failed(updates(SUM + "    return len(bytearray(2**33))\n"), "MemoryError")
    _failed(updates(SUM + "    return float(torch.ones(2**31).sum())\n"), "RuntimeError", "allocate")


def test_eight_gibibytes_by_many_processes(updates: Run) -> None:
    source = SUM + (
        "    import os\n    for _ in range(20):\n        try:\n            os.fork()\n        except OSError:\n"
        "            break\n    kept = bytearray(2**30)\n    return 1\n"
    )
    _failed(updates(source))


def test_memory_that_no_limit_on_addresses_counts(updates: Run) -> None:
    source = SUM + (
        "    import os\n    for name in range(1000):\n        with open(f'/scratch/{name}', 'wb') as file:\n"
        "            file.write(bytes(2**20))\n    return 1\n"
    )
    _failed(updates(source), "No space left")
    _failed(updates(SUM + "    import os\n    os.memfd_create('x')\n"), "PermissionError")
    shared = "    import mmap\n    kept = [mmap.mmap(-1, 2**28) for _ in range(32)]\n    return 1\n"
    _failed(updates(SUM + shared), "Cannot allocate memory")


def test_a_fork_bomb(updates: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_in_child, "TIME_LIMIT", 3.0)
    _failed(updates(SUM + "    import os\n    while True:\n        os.fork()\n"))


def test_threads_without_end(updates: Run) -> None:
    source = SUM + (
        "    import threading, time\n    while True:\n"
        "        threading.Thread(target=time.sleep, args=(100,)).start()\n"
    )
    _failed(updates(source), "thread")


def test_a_process_that_stays_behind(updates: Run) -> None:
    source = SUM + (
        "    import os, time\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            time.sleep(1000)\n        os._exit(0)\n    return -1\n"
    )
    assert updates(source).fraction == 0.0  # and others_are_graded looks for it


def test_leaving_without_a_word(updates: Run, ran: Run) -> None:
    _failed(updates(SUM + "    import os\n    os._exit(0)\n"), "without returning")
    _failed(ran(LOOP + "    import os\n    os._exit(0)\n"), "without an answer")
    _failed(updates(SUM + "    import os\n    os._exit(87)\n"), "without returning")


def test_killing_whatever_can_be_reached(updates: Run) -> None:
    assert updates(SUM + "    import os\n    os.kill(-1, 9)\n    os.kill(os.getppid(), 9)\n").fraction == 0.0
    _failed(updates(SUM + "    import os\n    os.kill(2, 9)\n"), "ProcessLookupError")
    assert updates(SUM + "    import os\n    os.kill(1, 11)\n    os.killpg(0, 9)\n").fraction == 0.0


def test_reading_the_graders_files(updates: Run, autumn: ClassFolder) -> None:
    for file in ("class.key", "teacher.pem", "roster.csv", "bank/90_small.yaml"):
        path = autumn.folder / file
        assert path.is_file()
        _failed(updates(f"kept = open({str(path)!r}).read()\n" + RIGHT_SUM), "FileNotFoundError")
    for path in ("/etc/passwd", "/root", str(Path.home()), str(Path(__file__).parent)):
        source = f"import os\nif os.path.exists({path!r}) and os.listdir({path!r}) != ['.pyenv']: raise EOFError\n"
        assert updates(source + RIGHT_SUM).fraction == 1.0, path


def test_its_answer_cannot_make_the_grader_quote_a_file(ran: Run, autumn: ClassFolder) -> None:
    forged = {"status": "raised", "stage": "run", "type": "E", "text": "t", "own": True, "line": 1}
    key = autumn.folder / "class.key"
    source = (
        FIND_HEADER
        + LOOP
        + (
            f"    from gradacc_lessons.detective.wire import pack\n    said = {{**{forged!r}, 'file': {str(key)!r}}}\n"
            "    os.write(3, pack({**said, 'nonce': header()['nonce']}))\n    os._exit(0)\n"
        )
    )
    answer = ran(source)
    _failed(answer)
    assert answer.said is not None and key.read_text().strip() not in answer.said.en + answer.said.nl


def test_reading_the_graders_environment(updates: Run) -> None:
    assert os.environ["GRADERS_SECRET"] == "s3cret", "the worker was started with this around it"
    source = "import os\nif 'GRADERS_SECRET' in os.environ: raise EOFError\n" + RIGHT_SUM
    assert updates(source).fraction == 1.0
    source = (
        "import glob\nfor name in glob.glob('/proc/[0-9]*/environ'):\n    try:\n        text = open(name).read()\n"
        "    except OSError:\n        continue\n    if 's3cret' in text: raise EOFError\n" + RIGHT_SUM
    )
    assert updates(source).fraction == 1.0


@pytest.mark.parametrize(
    "stolen",
    [
        "from gradacc_lessons.quiz.exercises import EXERCISES\n",
        "from gradacc_lessons.quiz.exercises_uneven import FIX_TAIL\n",
        "from gradacc_lessons.detective.oracle import predict\n",
        "from gradacc_lessons.detective.faults import REFERENCE_SOURCE\n",
        "from gradacc_lessons.detective.catalogue import windows\n",
        "from gradacc_lessons.quiz.judge_museum import RIGHT\n",
        "from gradacc_lessons.course import course_folder\ncourse_folder('quizzes')\n",
    ],
)
def test_reading_the_oracle(updates: Run, stolen: str) -> None:
    _failed(updates(stolen + RIGHT_SUM), "Error")


@pytest.mark.parametrize(
    "peek",
    [
        "    frame = sys._getframe()\n    while 'which' not in frame.f_locals:\n        frame = frame.f_back\n"
        "    return frame.f_locals['which'] < 3\n",
        "    global asked\n    asked += 1\n    return asked <= 3\n",
        "    from gradacc_lessons.detective.wire import pack\n    calls = header()['calls']\n"
        "    said = {'status': 'returned', 'values': [1, 1, 1] + [0] * (len(calls) - 3), 'nonce': header()['nonce']}\n"
        "    os.write(3, pack(said))\n    os._exit(0)\n",
    ],
)
def test_which_loops_are_right_is_not_told_to_the_test_that_tries_them(ran: Run, peek: str) -> None:
    _failed(ran(f"{FIND_HEADER}asked = 0\ndef holds(train_epoch):\n{peek}", "09_bug_museum", "museum-write-test"))


@pytest.mark.parametrize(
    ("patch", "named"),
    [
        ("    torch.Tensor.backward = lambda *a, **k: None\n", "Tensor.backward"),
        ("    type(optimizer).step = lambda *a, **k: None\n", "SGD.step"),
        ("    torch.optim.Optimizer.zero_grad = lambda *a, **k: None\n", "Optimizer.zero_grad"),
        ("    torch.Tensor.__truediv__ = torch.Tensor.__mul__\n", "Tensor.__truediv__"),
        ("    nn.functional.cross_entropy = lambda *a, **k: 0\n", "cross_entropy"),
        ("    from gradacc_lessons.detective import rig\n    rig.run_all = lambda *a: ([], {}, 0.0)\n", "run_all"),
        ("    from gradacc_lessons.detective import child\n    child.pack = lambda *a: b''\n", "child.pack"),
        (
            "    from gradacc_lessons.detective import wire\n"
            "    def pack(header, arrays=None):\n        return b''\n    wire.pack.__code__ = pack.__code__\n",
            "pack",
        ),
        ("    import json, builtins\n    json.dumps = builtins.sum = lambda *a, **k: '{}'\n", "json.dumps"),
    ],
)
def test_patching_what_measures_it(ran: Run, patch: str, named: str) -> None:
    answer = ran(RIGHT.replace(":\n", f":\n{patch}", 1))
    assert answer.fraction == 0.0 and answer.said is not None
    assert answer.mistake == "tampered" and named in answer.said.en, answer.said.en


def test_an_optimizer_of_another_kind_is_no_attack(ran: Run) -> None:
    lines = "    torch.optim.RMSprop([nn.Parameter(torch.zeros(1))])\n    import copy\n    copy.deepcopy(model)\n"
    assert ran(RIGHT.replace(":\n", f":\n{lines}", 1)).fraction == 1.0


@pytest.mark.parametrize("call", ["torch.set_default_dtype(torch.float64)", "torch.compile(lambda x: x)"])
def test_what_torch_replaces_in_itself_is_no_attack(ran: Run, call: str) -> None:
    assert ran(f"{call}\n{RIGHT}").fraction == 1.0


@pytest.mark.parametrize(
    "claim",
    [
        "{'status': 'ran', 'correct': True, 'fraction': 1.0, 'accepted': [], 'records': [], 'seconds': 0.1}",
        "{'status': 'returned', 'values': [1]}",
        "{'status': 'passed'}",
    ],
)
def test_a_forged_verdict(ran: Run, claim: str) -> None:
    source = (
        FIND_HEADER
        + LOOP
        + (
            "    from gradacc_lessons.detective.wire import pack\n"
            f"    os.write(3, pack({{**{claim}, 'nonce': header()['nonce']}}))\n    os._exit(0)\n"
        )
    )
    _failed(ran(source))


def test_a_forged_answer_with_all_the_right_keys(updates: Run) -> None:
    source = (
        FIND_HEADER
        + SUM
        + (
            "    from gradacc_lessons.detective.wire import pack\n    asked = header()\n"
            "    values = [1 for call in asked['calls']]\n"
            "    said = {'status': 'returned', 'values': values, 'nonce': asked['nonce']}\n"
            "    os.write(3, pack(said))\n    os._exit(0)\n"
        )
    )
    answer = updates(source)
    assert answer.fraction == 0.0 and answer.said is not None


def test_a_forged_answer_before_the_honest_one(updates: Run) -> None:
    forging = (
        "    from gradacc_lessons.detective.wire import pack\n"
        "    os.write(3, pack({'status': 'returned', 'values': [1], 'nonce': header()['nonce']}))\n"
    )
    _failed(updates(FIND_HEADER + RIGHT_SUM.replace(":\n", f":\n{forging}", 1)), "without returning")


@pytest.mark.parametrize(
    "figures", ["[0, 10**12, 1, 1]", "[0, 2, 1e999, 1]", "[0]", "[99, 1]", "[-1]", "[]", "7", "[None, 1]"]
)
def test_figures_that_would_keep_the_grader_busy(ran: Run, figures: str) -> None:
    source = FIND_HEADER + (
        "def setup():\n    from gradacc_lessons.detective.wire import pack\n"
        f"    os.write(3, pack({{'status': 'returned', 'values': [{figures}], 'nonce': header()['nonce']}}))\n"
        "    os._exit(0)\n"
    )
    _failed(ran(source, "10_fit_a_budget", "fit-plan-your-own"), "setup ended its process")


def test_an_answer_without_the_nonce_is_none(updates: Run) -> None:
    source = SUM + (
        "    import os\n    from gradacc_lessons.detective.wire import pack\n"
        "    os.write(3, pack({'status': 'returned', 'values': [1], 'nonce': 'guess'}))\n    os._exit(0)\n"
    )
    _failed(updates(source), "without returning")


@pytest.mark.parametrize("place", ["/usr/x", "/etc/x", "/x", "/dev/shm/x", "/work-x", "{package}/x", "{home}/x"])
def test_writing_outside_its_folder(updates: Run, place: str) -> None:
    path = place.format(package=Path(call_in_child.__file__).parent, home=Path.home())
    _failed(updates(f"open({path!r}, 'w').write('x')\n" + RIGHT_SUM), "Error")
    assert not Path(path).exists()


def test_what_one_leaves_the_next_does_not_find(updates: Run) -> None:
    assert updates("open('/scratch/left', 'w').write('x')\n" + RIGHT_SUM).fraction == 1.0
    assert updates("import os\nif os.listdir('/scratch'): raise EOFError\n" + RIGHT_SUM).fraction == 1.0


def test_opening_a_socket(updates: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        source = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)\n" + RIGHT_SUM
        _failed(updates(source), "PermissionError")
        with pytest.raises(TimeoutError):
            server.accept()


def test_new_namespaces_and_mounts(updates: Run) -> None:
    call = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    for attempt in ("libc.unshare(0x10000000)", "libc.mount(b'x', b'/scratch', b'tmpfs', 0, None)", "libc.setuid(0)"):
        assert updates(call + f"if {attempt} == 0: raise EOFError\n" + RIGHT_SUM).fraction == 1.0, attempt


def test_a_source_that_breaks_the_parser(updates: Run) -> None:
    for source in ("(" * 5000, "x = " + "-" * 15000 + "1", "def f(:\n", "\x00", "9" * 5000):
        assert updates(source).fraction == 0.0


def test_a_long_error_is_cut_and_harmless(updates: Run) -> None:
    answer = updates("raise ValueError('\\x1b[2J' + 'y' * 100000 + str(object()))\n")
    _failed(answer, "ValueError")
    assert answer.said is not None and len(answer.said.en) <= 600 and "\x1b" not in answer.said.en
    answer = updates("raise ValueError(str(object()))\n")
    _failed(answer, "object at 0x…")
