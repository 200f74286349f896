"""Run a command with no network but this machine's own, and with a home of its own.

    python tests/offline/run.py COMMAND ARGUMENT ...

Where the kernel allows it (`unshare`), the command runs in a network namespace that has only loopback, so that
nothing in it, browser and subprocesses included, can reach anything else. Elsewhere (macOS, some containers)
the folder guard/ goes on PYTHONPATH: its sitecustomize refuses such connections in every Python process.
OFFLINE_BY tells the command which of the two it is. Progress, Jupyter's settings and matplotlib's cache go to a
temporary folder, so that a test run touches nothing of yours.
"""

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
# Root needs no user namespace, and keeps its other powers without one.
_WAYS = [["unshare", "--net"], ["unshare", "--map-root-user", "--net"]]


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code; 2 and a sentence if there is none."""
    if not arguments:
        print("usage: python tests/offline/run.py COMMAND ARGUMENT ...", file=sys.stderr)
        return 2
    if arguments[0] == "--inside":
        raise_loopback()
        os.execvp(arguments[1], arguments[1:])
    with tempfile.TemporaryDirectory(prefix="gradacc-tests-") as home:
        prefix, kind = isolation()
        return _run([*prefix, *arguments], environment(Path(home), kind))


def isolation() -> tuple[list[str], str]:
    """What to put before a command, and the name of the means: "namespace" or "guard"."""
    for way in _WAYS if shutil.which("unshare") else []:
        inside = [*way, sys.executable, str(HERE / "run.py"), "--inside"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0:
            return inside, "namespace"
    return [], "guard"


def environment(home: Path, kind: str) -> dict[str, str]:
    """This process's environment with temporary folders in it, and with the guard when it is needed."""
    changed = {"OFFLINE_BY": kind, "GRADACC_HOME": str(home / "progress")}
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MPLCONFIGDIR"):
        changed[name] = str(home / name.lower())
    if kind == "guard":
        before = os.environ.get("PYTHONPATH")
        changed["PYTHONPATH"] = os.pathsep.join([str(HERE / "guard"), *([before] if before else [])])
    return {**os.environ, **changed}


def raise_loopback() -> None:
    """Bring up `lo`, which is down in a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | _IFF_UP))


def _run(command: list[str], env: dict[str, str]) -> int:
    process = subprocess.Popen(command, env=env)

    def pass_on(number: int, _frame: object) -> None:
        process.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C reaches the command by itself; wait for its summary
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
