"""What every hook does first: look at what was done since the last one, and write it down."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim.optimizer import Optimizer

from gradacc_lessons.detective.tape.events import During, Kind
from gradacc_lessons.detective.tape.gradients import GradientWatch
from gradacc_lessons.detective.tape.log import Log, Raw
from gradacc_lessons.detective.tape.others import Rates, Writes

NORMS = 8
"""The norm of the gradient is taken before so many updates: enough to see what it is clipped to."""
LOW = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
"""Types in which adding up loses what is small."""


class Looks:
    """Compares the state of a model with that at the last look, and writes the differences into a log."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | None,
        scheduler: Any,
        scaler: GradScaler | None,
        watch: Sequence[nn.Module],
    ) -> None:
        self.names = [name for name, _ in model.named_parameters()]
        self.parameters = list(model.parameters())
        self.gradients = GradientWatch(self.parameters)
        self.rates, self.scaler = Rates(optimizer, scheduler), scaler
        self.log = Log()
        self.micro_batch = self.update = 0
        self.stepping = False
        """An optimizer's step is running."""
        self.low: set[str] = set()
        """The 16-bit types that gradients were seen in."""
        self._trained = Writes([parameter for parameter in self.parameters if parameter.requires_grad])
        self._others: dict[Kind, Writes] = {
            "buffers": Writes(list(model.buffers())),
            "watched": Writes(list(_watched(model, watch))),
        }
        self._began = time.perf_counter()

    def begin(self) -> None:
        """What was done before now is no business of the tape."""
        self.gradients.look()
        self._trained.moved()
        for writes in self._others.values():
            writes.moved()
        self.rates.moves()
        self._began = time.perf_counter()

    def write(self, kind: Kind, **fields: Any) -> Raw:
        """A new entry of the log."""
        during: During = fields.pop("during", "update" if self.stepping else "loop")
        raw = Raw(kind, self.micro_batch, self.update, time.perf_counter() - self._began, during, **fields)
        self.log.append(raw)
        return raw

    def everything(self, *, closely: bool = False, norm: bool = False) -> None:
        """Parameters, gradients, buffers, schedule: who updates by hand zeroes afterwards."""
        if not self.stepping and (tensors := self._trained.moved()):
            self.write("parameters", tensors=tensors)
        self.at_gradients(closely=closely, norm=norm)
        self.at_others()
        if moves := self.rates.moves():
            self.write("schedule", moves=moves, rate=self.rates.rate)

    def at_gradients(self, *, closely: bool = True, norm: bool = False) -> None:
        """Gradients alone: all there is to see within a micro-batch."""
        scale = float(self.scaler.get_scale()) if norm and self.scaler is not None else None
        norm = norm and self.update < NORMS
        if (change := self.gradients.look(closely=closely, norm=norm, scale=scale)) is not None:
            self.write("gradient", change=change)

    def at_others(self, **fields: Any) -> None:
        """Buffers, frozen parameters and watched modules."""
        for kind, writes in self._others.items():
            if tensors := writes.moved():
                self.write(kind, tensors=tensors, **fields)

    def updated(self) -> None:
        """An update has been made: the parameters it wrote to are its own."""
        self.update += 1
        self._trained.moved()
        dtypes = {parameter.grad.dtype for parameter in self.parameters if parameter.grad is not None}
        self.low |= {LOW[dtype] for dtype in dtypes & LOW.keys()}


def _watched(model: nn.Module, watch: Sequence[nn.Module]) -> Iterator[Tensor]:
    yield from (parameter for parameter in model.parameters() if not parameter.requires_grad)
    for module in watch:
        yield from module.parameters()
        yield from module.buffers()
