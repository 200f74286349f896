"""A run of the tests leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path


def test_neither_a_run_nor_its_processes_leave_a_home_behind(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "OFFLINE_BY" and "XDIST" not in name}
    quick = ["-p", "no:cacheprovider", "-p", "no:nbval", "-p", "no:hypothesispytest", "-o", "addopts="]
    env = {**env, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", *quick, "--import-mode=importlib", "--numprocesses", "1"]
    inside = "--basetemp", str(tmp_path / "of pytest"), "-s"
    ended = subprocess.run(
        [*command, *inside, Path(__file__).with_name("home_of_a_run.py")], env=env, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout
    homes = (tmp_path / "homes.txt").read_text(encoding="utf-8").split("\n")
    assert len(homes) == 2 and len(set(homes)) == 1  # of a worker and of what it starts
    (home,) = set(homes)
    assert Path(home).parent == tmp_path and not Path(home).exists()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["of pytest"]


def test_of_a_test_with_many_cases_a_few_are_run_unless_all_are_asked_for():
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q"]
    file = Path(__file__).with_name("test_doctor.py")

    def collected(*options):
        ended = subprocess.run([*command, *options, file], capture_output=True, text=True, check=True)
        return [line for line in ended.stdout.splitlines() if "test_what_breaks_is_a_fail_with_a_fix" in line]

    few, all_of_them = collected(), collected("-m", "long or not long")
    assert len(few) == 5 < len(all_of_them) and set(few) < set(all_of_them)
