"""Tries out what learners write in lesson 06, in the checking process; what comes back are a few numbers per call."""

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from torch import Tensor, nn

FEATURES, HIDDEN, EMBEDDED = 6, 8, 5
PROBES = 8
"""Directions along which a gradient is measured: as many numbers tell any two apart, and the whole has more."""
CLASSES, SIDE = 2, 8
NUMBER, NO_TENSOR, NOT_SCALAR, NO_GRAPH = range(4)
"""What came of a loss: a number that a backward can start from, or why it is none."""
Trial = Callable[[Callable[..., Any]], Callable[..., list[float]]]


def second_pass(function: Callable[..., Any]) -> Callable[..., list[float]]:
    """For calls (seed, size of each micro-batch …): [graphs alive at once beyond one, along PROBES what was added to
    the gradients that were there already]."""

    @wraps(function)  # it travels, and its lines are named, as the learner's own
    def tried(seed: int, *sizes: int) -> list[float]:
        import torch

        from gradacc_lessons.lessons.training import gradient

        model, micro_batches = small_encoder(seed), small_batches(seed, *sizes)
        for p in model.parameters():
            p.grad = torch.randn(p.shape, generator=_generator(seed), dtype=p.dtype)
        before, graphs = gradient(model), _Graphs(model)
        function(model, micro_batches, pair_loss, own_loss)
        added = gradient(model) - before
        probes = torch.randn(PROBES, len(added), generator=_generator(seed), dtype=torch.float64)
        return [float(graphs.most > 1), *(probes @ added).tolist()]

    return tried


class _Token:
    """Lives as long as the graph of one forward."""


class _Graphs:
    """Counts the graphs that are alive: made by a forward, not yet gone backward, and not yet dropped."""

    def __init__(self, model: "nn.Module") -> None:
        self.alive: WeakSet[_Token] = WeakSet()
        self.most = 0
        model.register_forward_hook(self._forward)

    def _forward(self, model: Any, inputs: Any, output: "Tensor") -> "Tensor | None":
        if not output.requires_grad:
            return None
        watched: Tensor = _watched()(output, self.alive)
        self.most = max(self.most, len(self.alive))
        return watched


@cache
def _watched() -> Any:
    """The identity, as a node of the graph that holds a token until its backward or its end."""
    import torch

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, output: "Tensor", alive: "WeakSet[_Token]") -> "Tensor":
            ctx.token, ctx.alive = _Token(), alive
            alive.add(ctx.token)
            return output.view_as(output)

        @staticmethod
        def backward(ctx: Any, gradient: "Tensor") -> "tuple[Tensor, None]":
            ctx.alive.discard(ctx.token)
            return gradient, None

    return Watched.apply


def small_encoder(seed: int) -> "nn.Module":
    """A two-layer encoder in float64."""
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, EMBEDDED)).double()


def small_batches(seed: int, *sizes: int) -> list["Tensor"]:
    """Micro-batches (size, FEATURES) of these sizes."""
    import torch

    return list(torch.randn(sum(sizes), FEATURES, generator=_generator(seed), dtype=torch.float64).split(list(sizes)))


def pair_loss(embeddings: "Tensor") -> "Tensor":
    """A loss in which every example is compared with every other one."""
    from torch.nn import functional as F

    similarity = F.normalize(embeddings) @ F.normalize(embeddings).T
    return (5 * similarity).logsumexp(dim=1).mean()


def own_loss(embeddings: "Tensor", batch: "Tensor") -> "Tensor":
    """A mean over examples, each by itself: how far the sum of its embedding is from the sum of its features."""
    return (embeddings.sum(dim=1) - batch.sum(dim=1)).square().mean()


def dice(function: Callable[..., Any]) -> Callable[..., list[float]]:
    """For calls (seed, pixels of each mask …, CLASSES to an example): [what came back, its value if it is one]."""

    @wraps(function)
    def tried(seed: int, *areas: int) -> list[float]:
        import torch

        found, masks = found_and_masks(seed, *areas)
        loss = function(found.requires_grad_(), masks)
        if not isinstance(loss, torch.Tensor):
            return [NO_TENSOR, 0.0]
        if loss.numel() != 1:
            return [NOT_SCALAR, 0.0]
        return [NUMBER if loss.requires_grad else NO_GRAPH, float(loss.detach())]

    return tried


def found_and_masks(seed: int, *areas: int) -> tuple["Tensor", "Tensor"]:
    """(probabilities, masks), both (examples, CLASSES, SIDE, SIDE); where a mask is empty, nothing is found either."""
    import torch

    generator = _generator(seed)
    order = torch.stack([torch.randperm(SIDE * SIDE, generator=generator) for _ in areas])
    masks = (order < torch.tensor(areas).unsqueeze(1)).double()
    found = (0.6 * masks + 0.3 * torch.rand(masks.shape, generator=generator, dtype=torch.float64)).clamp(0, 1)
    found = found * (torch.tensor(areas).unsqueeze(1) > 0)
    return found.view(-1, CLASSES, SIDE, SIDE), masks.view(-1, CLASSES, SIDE, SIDE)


def _generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed)
