"""JupyterLab as `gradacc lab` starts it.

Every folder it reads or writes is temporary, and it never outlives the tests.
"""

import atexit
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

_START_LIMIT_S = 60.0
_SETTINGS = {
    # Cells that are out of sight stay in the page, so that a test need not scroll.
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
}


class Server:
    """`gradacc lab` on a copy of the lessons in `root`, from construction until `stop`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.log = folder / "jupyter.log"
        self.token = secrets.token_hex(16)
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = self._start(folder)
        atexit.register(self.stop)
        self._before = signal.signal(signal.SIGTERM, self._terminated)
        self._wait_until_up()

    def stop(self) -> None:
        """End the server and every kernel it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        atexit.unregister(self.stop)

    def _start(self, folder: Path) -> "subprocess.Popen[bytes]":
        settings = folder / "settings"
        for name, content in _SETTINGS.items():
            _write_json(settings / name, content)
        env = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
            "IPYTHONDIR": str(folder / "ipython"),
            "GRADACC_HOME": str(folder / "progress"),
        }
        command = [
            sys.executable, "-m", "gradacc_lessons", "lab", "--folder", str(self.root), "--no-browser",
            "--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}", "--expose-app-in-browser",
        ]  # fmt: skip
        with self.log.open("wb") as log:
            return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + _START_LIMIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/api/status?token={self.token}", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.2)
        self.stop()
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def _terminated(self, number: int, _frame: object) -> None:
        self.stop()
        signal.signal(number, self._before or signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _write_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
