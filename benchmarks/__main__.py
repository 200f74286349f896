"""`python -m benchmarks`: measure, print one table, and with --write also renew docs/benchmarks.md."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.classroom import grading
from benchmarks.diagnosis import diagnosis
from benchmarks.explorers import first_point, gradients
from benchmarks.loops import loops
from benchmarks.machine import machine
from benchmarks.memory import memory_measured, memory_of_seven_billion, memory_predicted, memory_predicted_cuda
from benchmarks.plans import plans
from benchmarks.redraw import redraw
from benchmarks.report import Result, as_markdown, as_text, title
from benchmarks.row import NotHere, Row
from benchmarks.startup import startup
from benchmarks.tracing import tracing
from benchmarks.verifying import verifying

BENCHMARKS: tuple[Callable[[bool], list[Row]], ...] = (
    redraw, gradients, first_point, startup, loops, diagnosis, tracing, grading, verifying,
    plans, memory_measured, memory_of_seven_billion, memory_predicted, memory_predicted_cuda,
)  # fmt: skip
OPTIONAL = {"accelerate", "lightning", "transformers", "peft"}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmarks that are named, or all of them."""
    names = [benchmark.__name__ for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure how fast the course is, and how close."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which benchmarks: {', '.join(names)}; default: all")
    parser.add_argument("--quick", action="store_true", help="a few repeats only: does it run, not how fast is it")
    parser.add_argument("--write", action="store_true", help="write the figures to docs/benchmarks.md")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(names)}")
    if options.write and (options.quick or options.names):
        parser.error("--write needs all benchmarks at full length: leave out --quick and the names")
    where = machine()
    chosen = [benchmark for benchmark in BENCHMARKS if not options.names or benchmark.__name__ in options.names]
    results = [_run(benchmark, options.quick) for benchmark in chosen]
    print(as_text(results, where))
    if options.quick:
        print("A quick run: it shows that everything runs, and little about how fast it is.")
    if options.write:
        PAGE.write_text(as_markdown(results, where), encoding="utf-8")
        print(f"\nWritten to docs/{PAGE.name}")


def _run(benchmark: Callable[[bool], list[Row]], quick: bool) -> Result:
    """One benchmark, with a line of progress; an optional package that is not here is a reason, not an error."""
    print(f"{title(benchmark)} ...", end="", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        result = Result(benchmark, benchmark(quick))
    except NotHere as reason:
        result = Result(benchmark, missing=str(reason))
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        result = Result(benchmark, missing=f"not measured: {error.name} is not installed (`make bench` installs it)")
    print(f" {result.missing or f'{time.monotonic() - began:.0f} s'}", file=sys.stderr)
    return result


if __name__ == "__main__":
    main()
