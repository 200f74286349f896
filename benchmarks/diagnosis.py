"""How long a learner waits for the name of their mistake."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.row import Row, median_row, timed

HERE = Path(__file__).resolve().parent.parent


def diagnosis(quick: bool) -> list[Row]:
    """A loop is diagnosed.

    `diagnose` with everything it asks (scope "items"), in fresh Python processes: the first check of a process starts
    the worker in which loops run, the later ones find it warm. A right loop, and one with a mistake that has a name.
    The import of `gradacc_lessons` and of what it needs before the first check is not in it.
    """
    command = [sys.executable, "-c", f"from benchmarks.diagnosis import measure; measure({1 if quick else 8})"]
    seconds: dict[str, list[float]] = {"cold": [], "right": [], "wrong": []}
    for _ in range(1 if quick else 3):
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout
        for name, values in json.loads(printed).items():
            seconds[name] += values
    return [
        median_row("first check of a process, a right loop", seconds["cold"], "s"),
        median_row("later check, a right loop", seconds["right"], "s"),
        median_row("later check, 1/N is missing", seconds["wrong"], "s"),
    ]


def measure(checks: int) -> None:
    """In a fresh process: print the seconds of a cold check and of `checks` warm ones of either loop."""
    from gradacc_lessons import diagnose

    def expect(loop: Any, outcome: str) -> None:
        found = diagnose(loop)
        if found.outcome.name != outcome:
            raise RuntimeError(f"{loop.__name__} should be {outcome}, but it is {found.outcome.name}: {found.message}")

    right, wrong = timed(lambda: expect(right_loop, "CORRECT")), timed(lambda: expect(without_1_over_n, "WRONG"))
    seconds: dict[str, list[float]] = {"cold": [right()], "right": [], "wrong": []}
    for _ in range(checks):
        seconds["right"].append(right())
        seconds["wrong"].append(wrong())
    print(json.dumps(seconds))


def right_loop(model: Any, optimizer: Any, micro_batches: Any, loss_fn: Any, accumulation_steps: int) -> None:
    """Every item counts the same, in short windows and ragged micro-batches too."""
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start : start + accumulation_steps]
        items = sum(len(batch[0]) for batch in window)
        for batch in window:
            (loss_fn(model, batch) * len(batch[0]) / items).backward()
        optimizer.step()
        optimizer.zero_grad()


def without_1_over_n(model: Any, optimizer: Any, micro_batches: Any, loss_fn: Any, accumulation_steps: int) -> None:
    """The most common mistake."""
    for start in range(0, len(micro_batches), accumulation_steps):
        for batch in micro_batches[start : start + accumulation_steps]:
            loss_fn(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
