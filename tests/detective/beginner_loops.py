"""The loop of the textbooks in all the ways in which beginners write it, and which mistakes each way contains."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

from gradacc_lessons.detective.faults import compiled

ZEROS = ((), ("start",), ("each",), ("after",), ("start", "after"), ("after_if",), ("before_step",))
"""Where zero_grad stands: when the epoch begins, before each backward, after the update, after the if, before the
update; or nowhere."""
TESTS = {
    "(k + 1) % accumulation_steps == 0": None,
    "k % accumulation_steps == accumulation_steps - 1": None,
    "k % accumulation_steps == 0 from 1": None,
    "k % accumulation_steps == 0": "window_off_by_one",
    "k and k % accumulation_steps == 0": "window_off_by_one",
    "(k + 1) % accumulation_steps == 0 from 1": "step_before_backward",  # true before the last backward
}
"""The test for a full window, and its mistake; "from 1" where k starts there."""
STEPS = ("inside", "outside")
"""Whether optimizer.step() stands inside the if."""
SCALES = {
    "n": "accumulation_steps",
    "own": "min(accumulation_steps, len(micro_batches) - {i} // accumulation_steps * accumulation_steps)",
    "running": "({i} % accumulation_steps + 1)",
    "running_epoch": "({i} + 1)",
    "epoch": "len(micro_batches)",
    "one": "1",
}
"""What the loss is divided by; {i} is the index of the micro-batch."""
TAILS = ("none", "in_test", "rest", "rescaled", "always")
"""How the short last window gets its update: not; in the test; after the loop, if anything is left; the same with a
divisor of its own; after the loop without asking."""


@dataclass(frozen=True)
class Way:
    """One way to write the loop."""

    zeros: tuple[str, ...]
    test: str | None
    step: str
    scale: str
    tail: str

    @property
    def source(self) -> str:
        """The loop's text."""
        one = self.test is not None and self.test.endswith("from 1")
        test = (self.test or "").removesuffix(" from 1")
        if self.tail == "in_test":
            test = f"({test}) or k {'' if one else '+ 1 '}== len(micro_batches)"
        zero, update = "optimizer.zero_grad()", []
        if "before_step" in self.zeros:
            update.append(zero)
        update.append("optimizer.step()")
        after = [zero] if "after" in self.zeros else []
        if self.test is None:
            body = [*update, *after]
        elif self.step == "outside":
            body = [*update, f"if {test}:", *(f"    {line}" for line in after or ["pass"])]
        else:
            body = [f"if {test}:", *(f"    {line}" for line in [*update, *after])]
        divisor = SCALES[self.scale].format(i="(k - 1)" if one else "k")
        lines = [
            *([zero] if "start" in self.zeros else []),
            f"for k, batch in enumerate(micro_batches{', start=1' if one else ''}):",
            *([f"    {zero}"] if "each" in self.zeros else []),
            f"    loss = loss_fn(model, batch) / {divisor}",
            "    loss.backward()",
            *(f"    {line}" for line in body),
            *([f"    {zero}"] if "after_if" in self.zeros else []),
            *self._after_the_loop([*update, *after]),
        ]
        head = "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):"
        return "\n".join([head, *(f"    {line}" for line in lines), ""])

    def _after_the_loop(self, update: list[str]) -> list[str]:
        if self.tail == "always":
            return update
        if self.tail not in ("rest", "rescaled"):
            return []
        rescale = [
            "for parameter in model.parameters():",
            "    if parameter.grad is not None:",
            "        parameter.grad *= accumulation_steps / (len(micro_batches) % accumulation_steps)",
        ]
        flush = [*(rescale if self.tail == "rescaled" else []), *update]
        return ["if len(micro_batches) % accumulation_steps:", *(f"    {line}" for line in flush)]

    @property
    def every(self) -> bool:
        """Whether there is an update at every micro-batch."""
        return self.test is None or self.step == "outside"

    @property
    def mistakes(self) -> set[str]:
        """Every fault of the catalogue that stands in this text."""
        zeros = set(self.zeros)
        cleared_each = bool(zeros & {"each", "after_if"}) or (self.test is None and "after" in zeros)
        uses_test = self.test is not None and (self.step == "inside" or "after" in zeros)
        there = {
            "missing_scale": self.scale == "one",
            "running_scale": self.scale.startswith("running"),
            "divided_by_epoch_length": self.scale == "epoch",
            "never_zero_grad": zeros <= {"start"},
            "zero_grad_every_micro_batch": cleared_each,
            "zero_grad_before_step": "before_step" in zeros,
            "step_every_micro_batch": self.every,
            "no_accumulation": self.every and cleared_each,
            TESTS.get(self.test): uses_test,
            "tail_dropped": self.tail == "none" and bool(zeros - {"after"}),
            "tail_leaks": self.tail == "none" and not zeros - {"after"},
            "tail_underscaled": self.scale == "n" and self.tail != "rescaled",
            "mean_of_means": True,
        }
        return {name for name, true in there.items() if true} - {None}


def ways() -> Iterator[Way]:
    """All combinations that can be written down."""
    tests = [(test, step) for test, step in product(TESTS, STEPS)] + [(None, "outside")]
    for zeros, (test, step), scale, tail in product(ZEROS, tests, SCALES, TAILS):
        if (tail == "rescaled" and scale != "n") or (tail == "in_test" and test is None):
            continue
        yield Way(zeros, test, step, scale, tail)


def loop_of(way: Way):
    return compiled(way.source, f"<{way}>")


LENGTHS = ((8, 4), (6, 2), (6, 3), (10, 4), (3, 4))
"""Micro-batches and N of every scenario."""


class _Number:
    """A loss or a gradient that writes down what is done to it."""

    def __init__(self, calls: list, made_of: tuple) -> None:
        self.calls, self.made_of = calls, made_of

    def __truediv__(self, divisor):
        return _Number(self.calls, (*self.made_of, divisor))

    def backward(self):
        self.calls.append(self.made_of)

    def __imul__(self, factor):
        self.calls.append(("rescaled", factor))
        return self


class _Parts:
    """The model and the optimizer of a loop, which write down what is asked of them."""

    def __init__(self) -> None:
        self.calls: list = []

    def zero_grad(self):
        self.calls.append("zero_grad")

    def step(self):
        self.calls.append("step")

    def parameters(self):
        return [SimpleNamespace(grad=_Number(self.calls, ()))]


def calls_of(way: Way) -> tuple:
    """All that the text asks of model, optimizer and losses, in order. What asks the same leaves the same numbers."""
    loop, asked = loop_of(way), []
    for length, accumulation_steps in LENGTHS:
        parts = _Parts()
        loop(
            parts,
            parts,
            range(length),
            lambda _, batch, calls=parts.calls: _Number(calls, (batch,)),
            accumulation_steps,
        )
        asked.append(tuple(parts.calls))
    return tuple(asked)
