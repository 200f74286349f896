"""Run a measurement in a real Jupyter kernel, where every widget sends what it shows."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.row import Row

HERE = Path(__file__).resolve().parent.parent
LIMIT = 180
"""Seconds after which a measurement is given up."""
SET_UP = """
from gradacc_lessons import __version__
from gradacc_lessons.doctor import ready
ready(__version__)
"""
"""What the set-up cell of every lesson does."""
_ANSWER = "rows of the benchmark:"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def in_kernel(measure: Callable[[bool], list[Row]], quick: bool) -> list[Row]:
    """`measure(quick)`, a function of a module, in a fresh kernel. RuntimeError with its traceback if it fails."""
    from jupyter_client.manager import start_new_kernel

    quiet = ["--log-level=ERROR"]  # without its remark that it listens on this machine's own address
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(HERE), extra_arguments=quiet)
    printed: list[str] = []

    def listen(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    code = (
        f"{SET_UP}\n"
        f"from benchmarks.kernel import answer\nfrom {measure.__module__} import {measure.__name__} as measure\n"
        f"answer(measure({quick}))"
    )
    try:
        reply = client.execute_interactive(code, timeout=LIMIT, output_hook=listen, allow_stdin=False)["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    if reply["status"] != "ok":
        raise RuntimeError(f"the kernel could not measure:\n{_COLOURS.sub('', chr(10).join(reply['traceback']))}")
    rows = "".join(printed).split(_ANSWER)[1].splitlines()[0]
    return [Row(**row) for row in json.loads(rows)]


def answer(rows: list[Row]) -> None:
    """In the kernel: send the rows back."""
    print(f"{_ANSWER}{json.dumps([asdict(row) for row in rows])}")
