"""`python -m benchmarks.norms`: measure lesson 05's table of accuracies, and store it where the lesson reads it."""

import argparse
import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any, get_args

from benchmarks.machine import machine
from gradacc_lessons.lessons.norm_table import CUTS, FILE, MADE_WITH, SEEDS, Cell
from gradacc_lessons.lessons.norms import Order
from gradacc_lessons.tasks.digits import DigitsModel, DigitsNorm

DIGITS_KEPT = 4
Result = tuple[float, float] | None


def main(arguments: list[str] | None = None) -> None:
    """Train every norm at every cut, in both orders, with every seed; write one file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.norms", description="Measure lesson 05's table.")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), metavar="S", help="how many seeds (default: all)")
    parser.add_argument("--file", type=Path, default=FILE, help="where to write (default: where the lesson reads)")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error(f"--seeds must be at least 1, not {options.seeds}")
    if options.seeds != len(SEEDS) and options.file.resolve() == FILE.resolve():
        parser.error(f"the lesson's table needs {len(SEEDS)} seeds: name another --file")
    where = dict(machine())
    cells = [Cell(*chosen) for chosen in product(get_args(DigitsModel), get_args(DigitsNorm), get_args(Order), CUTS)]
    began = time.monotonic()
    results = measure(cells, options.seeds)
    minutes = round((time.monotonic() - began) / 60, 1)
    content = {"machine": where, "minutes": minutes, "seeds": options.seeds, "made_with": MADE_WITH}
    options.file.write_text(as_json(content, [described(*each) for each in zip(cells, results, strict=True)]), "utf-8")
    print(f"{len(cells) * options.seeds} runs in {minutes} minutes, written to {options.file.name}")


def measure(cells: list[Cell], seeds: int) -> list[list[Result]]:
    """The (accuracy, accuracy as trained) of every seed for every cell, on all cores."""
    jobs = [(cell, seed) for cell in cells for seed in range(seeds)]
    context = multiprocessing.get_context("spawn")
    results = []
    with ProcessPoolExecutor(os.cpu_count(), context, _one_thread) as pool:
        for done, result in enumerate(pool.map(_run, jobs), start=1):
            results.append(result)
            print(f"\r{done} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [results[at : at + seeds] for at in range(0, len(results), seeds)]


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)  # the models are small, and every core has a run of its own


def _run(job: tuple[Cell, int]) -> Result:
    cell, seed = job
    return cell.run(seed)


def described(cell: Cell, results: list[Result]) -> dict[str, Any]:
    """One cell as it is stored; without accuracies where PyTorch refuses."""
    pairs = [result for result in results if result is not None]
    stored = {
        name: [round(pair[at], DIGITS_KEPT) for pair in pairs] for at, name in enumerate(("accuracy", "as_trained"))
    }
    return {**asdict(cell), **stored}


def as_json(content: dict[str, Any], cells: list[dict[str, Any]]) -> str:
    """The file: a line for each cell, so that a change can be read."""
    head = json.dumps(content, indent=1)[:-2]
    return f"{head},\n" + ' "cells": [\n  ' + ",\n  ".join(json.dumps(cell) for cell in cells) + "\n ]\n}\n"


if __name__ == "__main__":
    main()
