"""The figures as a table in a terminal, and as the page docs/benchmarks.md."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.row import Row

HEADER = ("what", "measured", "goal", "met")
MET = {True: "yes", False: "NO", None: ""}
HEAD_OF_PAGE = """\
# Benchmarks

`make bench` measures on your machine how fast the course is, and how close its predictions of memory come. It prints
one table. Nothing here is a test: a busy machine is slower, and that is no mistake. This page was written by
`python -m benchmarks --write`.

A figure with brackets is a median, and half of the measurements lie between the two numbers in them. What is compared
is measured in turns, in one run, so a ratio means more than a time.
"""


@dataclass(frozen=True)
class Result:
    """What one benchmark gave."""

    benchmark: Callable[[bool], list[Row]]
    """The function that was run."""
    rows: list[Row] = field(default_factory=list)
    """Its figures."""
    missing: str = ""
    """Why there are none."""


def title(benchmark: Callable[[bool], list[Row]]) -> str:
    """The first line of its docstring."""
    return _said(benchmark)[0].rstrip(".")


def method(benchmark: Callable[[bool], list[Row]]) -> str:
    """The rest of its docstring: what is measured, and how."""
    return "\n".join(_said(benchmark)[1:]).strip()


def as_text(results: list[Result], machine: list[tuple[str, str]]) -> str:
    """One table for a terminal, a block for each benchmark, then the machine."""
    rows = [_cells(row) for result in results for row in result.rows]
    widths = [max(map(len, column)) for column in zip(HEADER, *rows, strict=True)]
    lines = ["", _padded(HEADER, widths), "  ".join("-" * width for width in widths)]
    for result in results:
        lines.append(title(result.benchmark))
        lines.extend(_padded(_cells(row), widths) for row in result.rows)
        if result.missing:
            lines.append(f"  {result.missing}")
        lines.append("")
    lines.extend(f"{name}: {value}" for name, value in machine)
    return "\n".join(lines)


def as_markdown(results: list[Result], machine: list[tuple[str, str]]) -> str:
    """The whole page: the machine, then what was measured, how, and the figures."""
    parts = [HEAD_OF_PAGE, "## The machine\n", _table(("part", "here"), machine)]
    for result in results:
        parts.append(f"\n## {title(result.benchmark)}\n\n{method(result.benchmark)}\n")
        rows = [(row.what, *_cells(row)[1:]) for row in result.rows]
        parts.append(_table(HEADER, rows) if rows else f"This was {result.missing}.\n")
    return "\n".join(parts)


def _said(benchmark: Callable[[bool], list[Row]]) -> list[str]:
    return (inspect.getdoc(benchmark) or benchmark.__name__).splitlines()


def _cells(row: Row) -> tuple[str, str, str, str]:
    return f"  {row.what}", row.measured, row.goal, MET[row.met]


def _padded(cells: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
