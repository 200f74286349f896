"""Tries out the loops and functions of lesson 07, in the checking process; what comes back are numbers per call."""

from collections.abc import Callable
from functools import wraps
from math import nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

N, EPOCHS = 4, 2
FULL, SHORT = 8, 10
"""Micro-batches in an epoch: two full windows, and two with a short one behind them."""
WINDOWS, CLIP, SCHEDULE, AVERAGE, TAIL = range(5)
"""What a call looks at; each takes for granted what stands before it."""
MAX_NORM, NO_CLIPPING = 0.3, 1e9
SHRINKS = 0.7
"""The learning rate, from one place of the schedule to the next."""
PROBES = 6
"""Directions along which weights are measured."""


def whole_loop(function: Callable[..., Any]) -> Callable[[int], list[float]]:
    """For calls (what it looks at,): the weights, the learning rates of the updates, or the averaged weights."""

    @wraps(function)  # it travels, and its lines are named, as the learner's own
    def tried(aspect: int) -> list[float]:
        import torch

        from gradacc_lessons.reference.ema import EMA

        model = _model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        moving = aspect in (SCHEDULE, TAIL)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda moves: SHRINKS**moves if moving else 1.0)
        optimizer.step()  # without gradients: torch need not warn of a schedule that moves first
        ema, rates = EMA(model, 0.8), list[float]()
        optimizer.register_step_pre_hook(lambda one, *_: rates.append(one.param_groups[0]["lr"]))
        most = MAX_NORM if aspect in (CLIP, TAIL) else NO_CLIPPING
        for _ in range(EPOCHS):
            batches = _batches(SHORT if aspect == TAIL else FULL)
            function(model, optimizer, batches, _loss, N, max_norm=most, scheduler=scheduler, ema=ema)
        if aspect == SCHEDULE:
            return [*rates, optimizer.param_groups[0]["lr"]]
        if aspect == AVERAGE:
            return _probed(ema.average)
        return [float(len(rates)), *_probed(model)] + (_probed(ema.average) if aspect == TAIL else [])

    return tried


def _model() -> "nn.Module":
    from torch import nn

    from gradacc_lessons.device import seeded

    with seeded(0):
        return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)).double()


def _batches(length: int) -> "list[tuple[Tensor, Tensor]]":
    import torch

    drawn = torch.Generator().manual_seed(length)
    inputs = [torch.randn(3, 5, generator=drawn, dtype=torch.float64) for _ in range(length)]
    return [(one, torch.randint(3, (3,), generator=drawn)) for one in inputs]


def _loss(model: "nn.Module", batch: "tuple[Tensor, Tensor]") -> "Tensor":
    from torch.nn import functional

    return 3 * functional.cross_entropy(model(batch[0]), batch[1])


def _probed(model: "nn.Module") -> list[float]:
    import torch

    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    probes = torch.randn(PROBES, len(weights), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    numbers: list[float] = (probes @ weights).tolist()
    return numbers


EVENTS = {
    "f": "forward",
    "b": "backward",
    "c": "clip",
    "U": "update",
    "s": "schedule",
    "z": "zero_grad",
    "e": "evaluation",
}
"""What a letter in TIMELINES stands for: the kinds of a tape's events."""
TIMELINES = (
    "fbfbfbfbcUzs" * 2,
    "fbfbcUzsfbcUzs",
    "zfbzfbzfbzfbcUs" * 2,
    "fbzfbfbUz",
    "fbfbfbUfbfbfbU",
    "fbUfbUzfbfbU",
    "fbfbUzeefbfbUze",
    "ffbffbUzfbfb",
)
"""Small timelines, a letter for each event."""


def read_timeline(function: Callable[..., Any]) -> Callable[[int], list[float]]:
    """For calls (place in TIMELINES,): the list of numbers that the function returns; a nan for anything else."""

    @wraps(function)
    def tried(place: int) -> list[float]:
        returned = function([EVENTS[letter] for letter in TIMELINES[place]])
        if not isinstance(returned, list | tuple):
            return [nan]
        try:
            return [float(each) for each in returned]
        except (TypeError, ValueError, OverflowError):
            return [nan]

    return tried
