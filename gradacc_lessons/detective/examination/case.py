"""The bench with what is known so far: how numbers are drawn, how exactly they can be compared."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from gradacc_lessons.detective.examination import weights as weigh
from gradacc_lessons.detective.examination.bench import Bench, Run
from gradacc_lessons.detective.examination.draws import Draws, Layout
from gradacc_lessons.detective.examination.findings import Findings
from gradacc_lessons.detective.examination.generators import everybodys_generators, same_states
from gradacc_lessons.detective.examination.reach import Reach
from gradacc_lessons.detective.examination.rows import NATIVE_TOLERANCE, TOLERANCE, Cut
from gradacc_lessons.detective.examination.weights import FLOAT64, Tolerance


@dataclass
class Case:
    """One model with its loss and batch under examination."""

    bench: Bench
    """Where it is run."""
    roots: dict[str, Any]
    """The model and the loss."""
    expected: weigh.Weights
    """1/N each, or each micro-batch's share of the counts."""
    counted: bool
    """Whether counts were given."""
    findings: Findings = field(default_factory=Findings)
    """What was found."""
    tolerance: Tolerance = FLOAT64
    """How far gradients may be apart."""
    draws: Draws | None = None
    """Random numbers that are drawn once, if they change the gradient."""
    draws_per_piece: Sequence[int] = ()
    """How often each micro-batch draws by itself."""
    hidden: bool = False
    """Whether random numbers come from where no seed reaches."""
    unrepeatable: bool = False
    """Whether some random numbers cannot be given again."""

    losses: dict[int | None, float] = field(default_factory=dict)
    """What the loss was before anything ran in float64: of the whole batch (None), and of some micro-batches."""

    moved: bool = False
    """Whether this goes on at other values of the parameters, as nothing is seen at the caller's."""

    @property
    def number(self) -> int:
        """N."""
        return len(self.bench.pieces)

    @property
    def unmatched(self) -> bool:
        """Whether micro-batches drew numbers of their own: what differs may then be chance."""
        return self.hidden or self.unrepeatable or (self.draws is not None and self.draws.missed > 0)

    def recorder(self, layout: Layout = "contiguous") -> Draws:
        """For random numbers that are drawn once."""
        draws = Draws(self.bench.pieces, layout)
        for k, number in enumerate(self.draws_per_piece):
            draws.counted(k, number)
        return draws

    def run(self, piece: int | None, **how: Any) -> Run:
        """Run with the random numbers that were drawn once, if there are any."""
        return self.bench.run(piece, draws=self.draws, **how)

    def differ(self, one: Run, other: Run) -> bool:
        """Whether two runs of the same examples give other gradients, beyond rounding."""
        names = [""] * len(one.gradient)
        lengths = [0.0] * len(one.gradient)
        return not weigh.agree(weigh.compared_sum(names, one.gradient, other.gradient, lengths, self.tolerance))

    def changes(self) -> dict[str, Any]:
        """What is different now from what it was at the beginning of a run."""
        return self.bench.start.changes(Reach(self.roots))

    def cut(self, piece: int) -> Cut:
        """One micro-batch, for comparing rows."""
        tolerance = TOLERANCE if self.bench.wide else NATIVE_TOLERANCE
        return Cut(*self.bench.pieces[piece], self.bench.examples, tolerance)

    def drawn(self) -> Any:
        """Changes whenever a number is drawn that the whole batch's run did not draw."""
        if self.draws is None or not self.unmatched:
            return None
        states = everybodys_generators()
        if not self.unrepeatable:  # torch's numbers are given again, or counted as missed
            states.pop("torch")
        return self.draws.missed, _Comparable(states)

    @contextmanager
    def elsewhere(self, seed: int, last_digit: bool = False) -> Iterator[None]:
        """Other values of the parameters, not too far away; or those right beside them."""
        here = self.bench.start
        try:
            self.go_elsewhere(seed, last_digit)
            yield
        finally:
            self.bench.start = here
            here.put_back()

    def go_elsewhere(self, seed: int, last_digit: bool = False) -> None:
        """The same, to stay there."""
        self.bench.start.put_back()
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.bench.parameters.values():
            values = parameter.data
            noise = torch.randn(values.shape, generator=generator, dtype=torch.float64).to(values)
            if last_digit:
                values.mul_(1 + torch.finfo(values.dtype).eps * noise.sgn())
            else:
                values.add_(noise * (0.3 * values.abs().square().mean().sqrt() + 0.05))
        self.bench.start = type(self.bench.start)(self.bench.reach)


class _Comparable:
    """States of generators that can be compared with ==."""

    def __init__(self, states: Any) -> None:
        self._states = states

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Comparable) and same_states(self._states, other._states)

    __hash__ = None  # type: ignore[assignment]  # states change
