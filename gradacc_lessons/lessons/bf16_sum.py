"""Lesson 08: many small pieces added up in bfloat16, and in the buffers that lose nothing or nearly nothing."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any, Literal

import torch
from torch import Tensor

from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.bf16_sum_figure import SumFigure, sum_table
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.buffers import kahan_add
from gradacc_lessons.tasks import digits
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Prediction, Run

Buffer = Literal["bfloat16", "kahan", "float32"]
Pieces = Literal["equal", "noisy", "model"]
BUFFERS: list[tuple[str, Buffer]] = [
    ("bfloat16", "bfloat16"),
    ("bfloat16 with Kahan's correction", "kahan"),
    ("float32", "float32"),
]
PIECES: list[tuple[str, Pieces]] = [
    ("N equal pieces of 2,000 random entries", "equal"),
    ("the same, each with noise of its own", "noisy"),
    ("gradients of the digits model", "model"),
]
ENTRIES = 2000
DRAWN = 250
"""How many entries are drawn, evenly chosen."""
POINTS = 40
"""About so many rows, evenly spread over a logarithmic axis."""
MOST_STEPS, MOST_EXAMPLES = 1024, 16
"""The ends of the sliders: the longest run takes about two seconds."""


def pieces_of(kind: Pieces, micro_batch_size: int, accumulation_steps: int, seed: int = 0) -> Iterator[Tensor]:
    """The N bfloat16 vectors that are added up.

    "equal": one vector of ENTRIES random numbers over N, N times. "noisy": each piece of it with other random numbers,
    as large as the vector's own, on top. "model": the gradients of N micro-batches of a digits model in bfloat16, each
    of its mean loss over N; the images come again after an epoch. ValueError for another kind.
    """
    _one_of("pieces", kind, [each for _, each in PIECES])
    n = accumulation_steps
    if kind == "model":
        yield from _gradients(micro_batch_size, n, seed)
        return
    draw = torch.Generator().manual_seed(seed)
    total = torch.randn(ENTRIES, generator=draw, dtype=torch.float64)
    for _ in range(n):
        noise = torch.randn(ENTRIES, generator=draw, dtype=torch.float64) if kind == "noisy" else 0.0
        yield ((total + noise) / n).bfloat16()


def _gradients(micro_batch_size: int, n: int, seed: int) -> Iterator[Tensor]:
    task = digits("mlp", dtype=torch.bfloat16)
    model = task.build_model(seed)
    for batch in islice(cycle(split(task.train, micro_batch_size)), n):
        model.zero_grad()
        (task.loss_fn(model, batch) / n).backward()
        yield gradient(model)


def _one_of(what: str, chosen: str, known: Sequence[str]) -> None:
    if chosen not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}; it is {chosen!r}")


class Sum:
    """A sum that is kept in one of the BUFFERS, or in float64; it begins with its first piece."""

    def __init__(self, buffer: Buffer | Literal["float64"]) -> None:
        _one_of("the buffer", buffer, [*(each for _, each in BUFFERS), "float64"])
        self.dtype = torch.bfloat16 if buffer == "kahan" else getattr(torch, buffer)
        self.corrected = buffer == "kahan"
        self.total = self.lost = self._before = self._piece = torch.zeros(0)

    def add(self, piece: Tensor) -> None:
        """Add a vector."""
        piece = piece.to(self.dtype)
        if not len(self.total):
            self.total, self.lost = torch.zeros_like(piece), torch.zeros_like(piece)
        self._before, self._piece = self.total, piece
        if self.corrected:
            self.total, self.lost = kahan_add(self.total, self.lost, piece)
        else:
            self.total = self.total + piece

    @property
    def stuck(self) -> float:
        """The share of entries that the last piece should have moved, and did not."""
        return float(((self.total == self._before) & (self._piece != 0)).double().mean())


def add_up(
    buffer: Buffer,
    pieces: Pieces,
    micro_batch_size: int,
    accumulation_steps: int,
    *,
    seed: int = 0,
    predicted: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Add up N pieces and compare with the float64 sum of the same pieces; about POINTS rows, the last is the end.

    Each row: `added` of `n` pieces; `error`, the norm of the difference over the norm of the float64 sum, and
    `error_bfloat16`, that of a plain bfloat16 sum, and `stuck`, the share of its entries that the last piece did not
    move; the arrays `truth` and `held` of up to DRAWN entries, in units of the largest true one; and what was chosen:
    `buffer`, `pieces`, `b`, `n`, `predicted`. ValueError where there is no such choice.
    """
    n = Recipe(micro_batch_size, accumulation_steps).accumulation_steps
    chosen = {"buffer": buffer, "pieces": pieces, "b": micro_batch_size, "n": n, "predicted": predicted}
    recorded = _recorded(n)
    kept, plain, truth = Sum(buffer), Sum("bfloat16"), Sum("float64")
    for added, piece in enumerate(pieces_of(pieces, micro_batch_size, n, seed), start=1):
        for each in (kept, plain, truth):
            each.add(piece)
        if added in recorded:
            errors = {"error": error(kept, truth), "error_bfloat16": error(plain, truth)}
            yield chosen | {"added": added, "stuck": plain.stuck} | errors | _drawn(kept, truth)


def _recorded(n: int) -> set[int]:
    """After how many pieces there is a row."""
    return {round(n ** (k / POINTS)) for k in range(POINTS + 1)}


def _drawn(kept: Sum, truth: Sum) -> dict[str, Any]:
    entries = torch.linspace(0, len(truth.total) - 1, DRAWN).long()
    held, wanted = (each.total[entries].double() for each in (kept, truth))
    return {"truth": (wanted / wanted.abs().max()).numpy(), "held": (held / wanted.abs().max()).numpy()}


def error(held: Sum, truth: Sum) -> float:
    """The norm of the difference over the norm of the truth, in float64."""
    return float((held.total.double() - truth.total).norm() / truth.total.norm())


def errors_over_seeds(pieces: Pieces, accumulation_steps: int, seeds: range) -> dict[Buffer, list[float]]:
    """How far the sum of N pieces is off in the end, for each buffer and seed; of the model, at b = 1."""
    sums = {name: Sum(name) for _, name in BUFFERS}
    truth = Sum("float64")
    streams = [pieces_of(pieces, 1, accumulation_steps, seed) for seed in seeds]
    for many in zip(*streams, strict=True):
        together = torch.stack(many)  # all seeds in one addition
        for each in (truth, *sums.values()):
            each.add(together)
    differences = {name: each.total.double() - truth.total for name, each in sums.items()}
    return {name: (each.norm(dim=1) / truth.total.norm(dim=1)).tolist() for name, each in differences.items()}


def explore_sum(prediction: Prediction | None = None) -> Explorer:
    """A slider for N, lists of buffers and of pieces; `prediction()` is the error that is expected, in percent."""

    def plan(micro_batch_size: int, accumulation_steps: int, pieces: Pieces, buffer: Buffer) -> Run:
        guess = prediction() if prediction else None
        run = partial(add_up, buffer, pieces, micro_batch_size, accumulation_steps, predicted=guess)
        return Run(run, len(_recorded(accumulation_steps)), "point")

    controls = [
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, MOST_STEPS, 512),
        Choice("buffer", "The sum is kept in", BUFFERS, "bfloat16"),
        Choice("pieces", "What is added", PIECES, "equal"),
        NumberSlider("micro_batch_size", "Images per gradient, b", 1, MOST_EXAMPLES, 8),
    ]
    return Explorer(controls, plan, SumFigure, sum_table, prediction)
