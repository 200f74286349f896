"""The tests themselves run without a network: these prove that it is so, in both of the ways it can be done."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEST_NET = "192.0.2.1"  # RFC 5737: given to nobody
AT_ONCE_S = 5.0

needs_make_test = pytest.mark.skipif(
    "OFFLINE_BY" not in os.environ, reason="not started by `make test`, which takes the network away"
)

CONNECT = f"import socket; socket.create_connection(({TEST_NET!r}, 80), timeout=60)"
LOOK_UP = "import socket; socket.getaddrinfo('example.org', 80)"
SEND = f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ({TEST_NET!r}, 9))"
ASYNCIO = f"import asyncio; asyncio.run(asyncio.open_connection({TEST_NET!r}, 80))"
DOWNLOAD = "import urllib.request; urllib.request.urlopen('http://example.org', timeout=60)"
IN_A_CHILD = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {CONNECT!r}]))"
ATTEMPTS = [CONNECT, LOOK_UP, SEND, ASYNCIO, DOWNLOAD, IN_A_CHILD]
NAMES = ["connect", "look_up", "send", "asyncio", "download", "in_a_child"]

STAYS_HERE = """
import asyncio, socket
server = socket.create_server(("localhost", 0))
socket.create_connection(("localhost", server.getsockname()[1])).close()
asyncio.run(asyncio.sleep(0))
left, right = socket.socketpair()
left.sendall(b"x")
assert right.recv(1) == b"x"
"""


def python(source, **env):
    return subprocess.run(
        [sys.executable, "-c", source], env={**os.environ, **env}, capture_output=True, text=True, timeout=50
    )


@needs_make_test
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=NAMES)
def test_this_run_reaches_nothing_and_knows_at_once(attempt):
    start = time.monotonic()
    assert python(attempt).returncode != 0
    assert time.monotonic() - start < AT_ONCE_S


@needs_make_test
def test_this_process_is_cut_off_too():
    with pytest.raises(OSError):
        socket.create_connection((TEST_NET, 80), timeout=AT_ONCE_S)
    with pytest.raises(OSError):
        socket.getaddrinfo("example.org", 80)


def test_this_machine_itself_can_be_reached():
    assert python(STAYS_HERE).returncode == 0


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=NAMES)
def test_the_guard_refuses_with_a_clear_error(attempt):
    ended = python(attempt, PYTHONPATH=str(HERE / "guard"))
    assert ended.returncode != 0
    assert "the tests run without a network, and this is an attempt to reach '" in ended.stderr


def test_the_guard_lets_pass_what_stays_on_the_machine():
    ended = python(STAYS_HERE, PYTHONPATH=str(HERE / "guard"))
    assert ended.returncode == 0, ended.stderr


def test_the_guard_does_not_hide_another_sitecustomize(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['SEEN'] = 'yes'\n", encoding="utf-8")
    path = os.pathsep.join([str(HERE / "guard"), str(tmp_path)])
    ended = python(f"import os; print(os.environ['SEEN']); {LOOK_UP}", PYTHONPATH=path)
    assert ended.stdout == "yes\n"
    assert "without a network" in ended.stderr


def runner(*command, **env):
    return subprocess.run(
        [sys.executable, HERE / "run.py", *command],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=50,
    )


def test_the_runner_hands_on_the_exit_code():
    assert runner(sys.executable, "-c", "raise SystemExit(7)").returncode == 7


def test_the_runner_gives_the_command_a_home_of_its_own_and_takes_it_away_again():
    show = "import os; print(os.environ['GRADACC_HOME']); print(os.environ['JUPYTER_CONFIG_DIR'])"
    places = runner(sys.executable, "-c", show, GRADACC_HOME="/mine").stdout.split()
    assert len(places) == 2 and "/mine" not in places
    assert not any(Path(place).parent.exists() for place in places)


def test_without_unshare_the_guard_is_in_force(tmp_path):
    attempt = f"import os; print(os.environ['OFFLINE_BY'], flush=True); {LOOK_UP}"
    ended = runner(sys.executable, "-c", attempt, PATH=str(tmp_path))
    assert ended.stdout == "guard\n"
    assert "without a network" in ended.stderr
