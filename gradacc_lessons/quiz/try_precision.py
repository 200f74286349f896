"""Tries out what learners write in lesson 08, in the checking process; what comes back are a few numbers per call."""

from collections.abc import Callable
from functools import wraps
from math import log2
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

FEATURES, HIDDEN = 6, 8
STEPS, WINDOWS, ROWS = 4, 3, 4
"""N, the windows of the epoch, and the examples of a micro-batch."""
FIRST_SCALE = 2.0**12
LEARNING_RATE = 0.1
BROKEN = 1e6
"""What the inputs of a broken micro-batch are multiplied by: float16 ends at 65,504."""
PROBES = 8
"""Directions along which a vector is measured: as many numbers tell any two apart, and the whole has more."""
REFUSALS = (
    "unscale_() has already been called",
    "unscale_() is being called after step()",
    "step() has already been called",
    "No inf checks were recorded",
    "but _scale is None",
)
"""What a GradScaler says when its calls come in an order that cannot be."""
FLOAT32, OTHER_TYPE, NO_BUFFERS = range(3)


def fp16_epoch(function: Callable[..., Any]) -> Callable[..., list[float]]:
    """For calls (seed, broken micro-batch from 1 or 0 for none, max_norm): [what the scaler refused, from 1, or 0;
    whether every forward was in float16; log2 of the scale in the end; along PROBES how far the weights moved]."""

    @wraps(function)  # it travels, and its lines are named, as the learner's own
    def tried(seed: int, broken: int, max_norm: float) -> list[float]:
        import torch

        from gradacc_lessons.lessons.training import parameters

        model, micro_batches = _small_model(seed), _small_batches(seed, STEPS * WINDOWS)
        if broken:
            inputs, targets = micro_batches[broken - 1]
            micro_batches[broken - 1] = (inputs * BROKEN, targets)
        types: set[torch.dtype] = set()
        model.register_forward_hook(lambda *given: types.add(given[2].dtype))
        scaler = torch.amp.GradScaler("cpu", init_scale=FIRST_SCALE)
        optimizer, start = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE), parameters(model)
        refused = _refused(lambda: function(model, optimizer, scaler, micro_batches, _loss, STEPS, max_norm))
        moved = (parameters(model) - start).double() / LEARNING_RATE
        said = [float(refused), float(types == {torch.float16}), log2(max(scaler.get_scale(), 1e-30))]
        return [*said, *_probed(10 * moved, seed)]

    return tried


def _refused(run: Callable[[], Any]) -> int:
    """Which of the REFUSALS ended the run, counted from 1; 0 for none."""
    try:
        run()
    except (RuntimeError, AssertionError) as error:
        for number, said in enumerate(REFUSALS, start=1):
            if said in str(error):
                return number
        raise
    return 0


def float32_sum(function: Callable[..., Any]) -> Callable[..., list[float]]:
    """For calls (seed, N): [FLOAT32, OTHER_TYPE or NO_BUFFERS; whether the weights stayed bfloat16 and as they were;
    along PROBES what the buffers hold, in units of its length in float64]."""

    @wraps(function)
    def tried(seed: int, n: int) -> list[float]:
        import torch

        from gradacc_lessons.lessons.training import parameters

        model, micro_batches = _small_model(seed).bfloat16(), _small_batches(seed, n)
        micro_batches = [tuple(tensor.bfloat16() for tensor in batch) for batch in micro_batches]
        start, length = parameters(model), _float64_length(model, micro_batches)
        found = function(model, micro_batches, _loss)
        kept = float(parameters(model).dtype == torch.bfloat16 and torch.equal(parameters(model), start))
        shapes = [p.shape for p in model.parameters()]
        if not isinstance(found, list | tuple) or [getattr(each, "shape", None) for each in found] != shapes:
            return [float(NO_BUFFERS), kept, *[0.0] * PROBES]
        kind = FLOAT32 if {each.dtype for each in found} == {torch.float32} else OTHER_TYPE
        total = torch.cat([each.detach().double().flatten() for each in found])
        return [float(kind), kept, *_probed(total / length, seed)]

    return tried


def _float64_length(model: "nn.Module", micro_batches: list[tuple["Tensor", ...]]) -> float:
    """The length of the gradient of the mean loss over all examples, of a float64 copy."""
    from copy import deepcopy

    import torch

    from gradacc_lessons.lessons.training import gradient

    exact = deepcopy(model).double()
    whole = tuple(torch.cat(tensors).double() for tensors in zip(*micro_batches, strict=True))
    _loss(exact, whole).backward()
    return float(gradient(exact).norm())


def _small_model(seed: int) -> "nn.Module":
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1))


def _small_batches(seed: int, number: int) -> list[tuple["Tensor", ...]]:
    """Micro-batches of ROWS examples, whose targets all pull the same way: their gradients do too."""
    import torch

    draw = torch.Generator().manual_seed(seed)
    inputs = torch.randn(number * ROWS, FEATURES, generator=draw)
    targets = 2 + 0.1 * torch.randn(number * ROWS, 1, generator=draw)
    return list(zip(inputs.split(ROWS), targets.split(ROWS), strict=True))


def _loss(model: "nn.Module", batch: tuple["Tensor", ...]) -> "Tensor":
    """The mean squared error of a micro-batch, in float32 where the model computes in float16."""
    inputs, targets = batch
    found = model(inputs)
    found = found.float() if found.dtype != targets.dtype else found
    result: Tensor = (found - targets).square().mean()
    return result


def _probed(vector: "Tensor", seed: int) -> list[float]:
    import torch

    draw = torch.Generator().manual_seed(seed)
    probes = torch.randn(PROBES, len(vector), generator=draw, dtype=torch.float64)
    found: list[float] = (probes @ vector).tolist()
    return found
