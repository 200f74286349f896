"""A run of the tests leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path


def test_neither_a_run_nor_its_processes_leave_a_home_behind(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "OFFLINE_BY" and "XDIST" not in name}
    quick = ["-p", "no:cacheprovider", "-p", "no:nbval", "-p", "no:hypothesispytest", "-o", "addopts="]
    command = [sys.executable, "-m", "pytest", *quick, "--import-mode=importlib", "--numprocesses", "1"]
    ended = subprocess.run(
        [*command, Path(__file__).with_name("test_home.py")],
        env={**env, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout
    assert list(tmp_path.glob("gradacc-tests-*")) == []
