"""What test_conftest runs: notes the home that a test has, and that of a process which it starts."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def test_a_home_is_there_and_can_be_used():
    home = Path(os.environ["GRADACC_HOME"])
    (home / "kept").write_text("something", encoding="utf-8")
    asked = [sys.executable, "-c", "import os; print(os.environ['GRADACC_HOME'])"]
    inherited = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    Path(tempfile.gettempdir(), "homes.txt").write_text(f"{home}\n{inherited}", encoding="utf-8")
