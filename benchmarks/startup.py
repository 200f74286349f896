"""How long a learner waits before anything happens at all: fresh processes."""

import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from benchmarks.row import Row, in_turns, median_row, timed


def startup(quick: bool) -> list[Row]:
    """The package and its command start.

    Three fresh processes in turns: an interpreter that does nothing, one that imports `gradacc_lessons`, and
    `gradacc --help`. What the import costs is the difference between the first two of a turn.
    """
    processes = {
        "bare": _process(sys.executable, "-c", "pass"),
        "import": _process(sys.executable, "-c", "import gradacc_lessons"),
        "help": _process(str(Path(sysconfig.get_path("scripts")) / "gradacc"), "--help"),
    }
    seconds = in_turns(processes, rounds=2 if quick else 25)
    more = [imported - bare for imported, bare in zip(seconds["import"], seconds["bare"], strict=True)]
    return [
        median_row("python that does nothing", seconds["bare"], "ms"),
        median_row("import gradacc_lessons takes longer by", more, "ms", at_most=50),
        median_row("gradacc --help", seconds["help"], "ms", at_most=300),
    ]


def _process(*command: str) -> Callable[[], float]:
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
