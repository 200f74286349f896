"""One forward and one backward, of the whole batch or of one micro-batch, under given conditions."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from gradacc_lessons.detective.examination.batches import cut, rows
from gradacc_lessons.detective.examination.conditions import WIDE, Conditions
from gradacc_lessons.detective.examination.draws import Draws
from gradacc_lessons.detective.examination.errors import ExamineError
from gradacc_lessons.detective.examination.generators import SEED, same_states, seed_generators, states_now
from gradacc_lessons.detective.examination.gradients import Gradient, NeedsBackwardError, gradient_of
from gradacc_lessons.detective.examination.keep import Snapshot
from gradacc_lessons.detective.examination.reach import Reach
from gradacc_lessons.detective.examination.watch import Watcher
from gradacc_lessons.errors import words_of

LossFunction = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Run:
    """What one forward and backward gave."""

    loss: float
    """The value."""
    gradient: Gradient
    """Of each parameter."""
    extra: Gradient = ()
    """Of tensors that were put in for this run alone."""
    draws: int = 0
    """How many operations drew random numbers."""
    unrepeatable: bool = False
    """Whether one of them drew where its numbers cannot be given again."""
    moved: bool = False
    """Whether any generator moved."""
    halved: bool = False
    """Whether anything was computed in 16 bits."""
    others: Any = None
    """Where Python's and numpy's generators ended, the global ones and those that are held."""


@dataclass
class Bench:
    """A model with its loss, a batch and how it is cut."""

    model: nn.Module
    """The caller's, in the caller's mode."""
    loss_fn: LossFunction
    """loss_fn(model, batch)."""
    batch: Any
    """The whole batch."""
    pieces: list[tuple[int, int]]
    """(first example, number of examples) of each micro-batch."""
    parameters: dict[str, Tensor]
    """What the gradient is of, by name."""
    reach: Reach
    """What a run can change."""
    wide: bool = False
    """Whether everything is computed in float64."""
    by_backward: bool = False
    """Whether gradients are had by `.backward()` alone, as with reentrant checkpoints."""
    start: Snapshot = field(init=False)
    """How everything is at the beginning of a run."""

    def __post_init__(self) -> None:
        self.start = Snapshot(self.reach)

    @property
    def examples(self) -> int:
        """B."""
        return sum(size for _, size in self.pieces)

    def micro_batch(self, piece: int | None) -> Any:
        """A copy of one micro-batch, or of the whole batch."""
        first, size = (0, self.examples) if piece is None else self.pieces[piece]
        take = rows(first, size)

        def taken(tensor: Tensor) -> Tensor:
            part = take(tensor)
            if not self.wide or part.dtype not in WIDE:
                return part
            return part.detach().to(WIDE[part.dtype]).requires_grad_(part.requires_grad)

        return cut(self.batch, first, size, taken)

    def run(
        self,
        piece: int | None,
        *,
        fresh: bool = True,
        seed: int | None = SEED,
        draws: Draws | None = None,
        watch: Watcher | None = None,
        backward: bool = True,
    ) -> Run:
        """Run a micro-batch, or the whole batch (None).

        `fresh` puts everything back first; else the run goes on from what the last one left. `seed` None lets the
        generators go on too. `draws` records or replays random numbers. `watch` sees every module. Without
        `backward` there is no gradient.
        """
        if fresh:
            self.start.put_back()
        batch = self.micro_batch(piece)
        if seed is not None:
            seed_generators(seed, self.reach.generators)
        before = states_now(self.reach.generators)
        conditions = Conditions(draws, self.wide)
        if draws is not None:
            draws.start(piece)
        with ExitStack() as stack:
            for surroundings in (_as_in_training(self.wide), conditions):
                stack.enter_context(surroundings)
            if watch is not None:
                stack.enter_context(watch.hooked())
            loss = self._loss(batch, piece)
            if watch is not None:
                watch.forward_ended()
            wanted = [*self.parameters.values(), *(watch.extra if watch is not None else ())]
            objective = loss if watch is None or watch.objective is None else watch.objective
            gradient = gradient_of(objective, wanted, self.by_backward) if backward else (None,) * len(wanted)
        if draws is not None:
            draws.finish()
        own, more = gradient[: len(self.parameters)], gradient[len(self.parameters) :]
        after = states_now(self.reach.generators)
        run = Run(
            float(loss.detach()), own, more, conditions.draws, conditions.unrepeatable, not same_states(before, after),
            conditions.halved, [state for state in after if not isinstance(state, Tensor)],
        )  # fmt: skip
        self._check_numbers(run, piece)
        return run

    def find_the_way_back(self) -> None:
        """Whether torch.autograd.grad will do, or `.backward()` is needed."""
        try:
            self.run(None)
        except NeedsBackwardError:
            self.by_backward = True

    def _loss(self, batch: Any, piece: int | None) -> Tensor:
        try:
            loss = self.loss_fn(self.model, batch)
        except Exception as error:
            raise ExamineError(f"{self._which(piece)}: {words_of(error)}") from error
        return checked_loss(loss)

    def _which(self, piece: int | None) -> str:
        if piece is None:
            return "loss_fn(model, batch) fails on the whole batch"
        size = self.pieces[piece][1]
        return (
            f"loss_fn(model, batch) runs on the whole batch, but fails on micro-batch {piece + 1} of "
            f"{len(self.pieces)}, which has {size} example{'s' if size > 1 else ''}"
        )

    def _check_numbers(self, run: Run, piece: int | None) -> None:
        where = "the whole batch" if piece is None else f"micro-batch {piece + 1} of {len(self.pieces)}"
        if not _finite(run.loss):
            advice = ""
            if piece is not None:
                advice = "; does nothing in it count? Then its mean is 0/0: return a sum divided by max(count, 1)"
            raise ExamineError(f"the loss of {where} is {run.loss}, so there is nothing to compare{advice}")
        for name, gradient in zip(self.parameters, run.gradient, strict=True):
            if gradient is not None and not bool(torch.isfinite(gradient).all()):
                kind = "NaN" if bool(torch.isnan(gradient).any()) else "infinite numbers"
                raise ExamineError(f"the gradient of {name} on {where} has {kind}, so there is nothing to compare")


def checked_loss(loss: Any) -> Tensor:
    """The loss; ExamineError, in one sentence, if it is none that has a gradient."""
    if not isinstance(loss, Tensor):
        inner = getattr(loss, "loss", None)
        advice = "return its .loss" if isinstance(inner, Tensor) else "return the loss itself"
        raise ExamineError(f"loss_fn must return a scalar tensor, not {type(loss).__name__}: {advice}")
    if loss.dim():
        raise ExamineError(
            f"loss_fn must return a scalar, not a tensor of shape {tuple(loss.shape)}: end it with .mean() or .sum()"
        )
    if loss.is_complex():
        raise ExamineError("loss_fn must return a real number, not a complex one: take its .abs() or .real")
    if not loss.requires_grad:
        raise ExamineError(
            "the loss has no gradient: it does not depend on a parameter that requires one; was it computed under "
            "torch.no_grad(), detached, or made with .item()?"
        )
    return loss


@contextmanager
def _as_in_training(wide: bool) -> Iterator[None]:
    """Gradients on, whatever surrounds the call; a compiled model runs as it was written."""
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        if "torch._dynamo" in sys.modules:  # else nothing is compiled, and it takes seconds to load
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        if wide and torch.cuda.is_available():  # its fast kernels have no float64
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield


def _finite(number: float) -> bool:
    return number - number == 0
