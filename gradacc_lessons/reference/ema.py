"""A running mean of the weights (EMA), moved once per update."""

from copy import deepcopy
from typing import Any

import torch
from torch import nn


class EMA:
    """Call `update()` after each `optimizer.step()`; `average` is the model to evaluate.

    After k updates the weights of j updates ago have the share (1 - decay) * decay ** j in it, and those it began with
    decay ** k. Between two updates the weights stand still: to move it there as well makes it forget faster, as if
    the decay were decay ** N.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        """ValueError unless the decay is between 0 and 1."""
        if not isinstance(decay, int | float) or not 0 <= decay < 1:
            raise ValueError(f"a decay is a number from 0 up to, not including, 1; it is {decay!r}")
        self.decay, self._model = decay, model
        self.average = deepcopy(model).eval().requires_grad_(False)
        self.average.zero_grad()  # the copy has the model's gradients too

    @torch.no_grad()
    def update(self) -> None:
        """Move towards the weights as they are now; buffers, such as running statistics, are copied."""
        for mean, now in zip(self.average.parameters(), self._model.parameters(), strict=True):
            mean.lerp_(now, 1 - self.decay)
        for copy, buffer in zip(self.average.buffers(), self._model.buffers(), strict=True):
            copy.copy_(buffer)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint has to hold: the average."""
        return self.average.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from an average that was saved."""
        self.average.load_state_dict(state_dict)
