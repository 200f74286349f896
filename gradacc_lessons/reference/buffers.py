"""Gradient buffers for a model in bfloat16, whose own `.grad` loses what is small beside the sum.

Both sums take 4 bytes per parameter, whatever N is, beside the bfloat16 weights and one micro-batch's `.grad`. The
float32 copies of the weights, which Float32Buffers keeps for the optimizer, take 4 more.
"""

import torch
from torch import Tensor, nn


class Float32Buffers:
    """A float32 copy of every trainable weight; the copies' `.grad` are the buffers.

    The optimizer is built on `masters`, and `torch.nn.utils.clip_grad_norm_` takes them too: sum, clipping and update
    are all in float32. `add()` after every backward; after the optimizer's update, `write_back()`.
    """

    def __init__(self, model: nn.Module) -> None:
        self.weights = [p for p in model.parameters() if p.requires_grad]
        self.masters = [nn.Parameter(p.detach().float()) for p in self.weights]

    def add(self) -> None:
        """Move what one backward left in the model's `.grad` into the buffers."""
        for weight, master in zip(self.weights, self.masters, strict=True):
            if weight.grad is None:
                continue
            piece = weight.grad.float()
            master.grad = piece if master.grad is None else master.grad.add_(piece)
            weight.grad = None  # or the next backward would add to it, in bfloat16

    @torch.no_grad()
    def write_back(self) -> None:
        """Round the updated copies into the model, and empty the buffers for the next window."""
        for weight, master in zip(self.weights, self.masters, strict=True):
            weight.copy_(master)
            master.grad = None


class KahanBuffers:
    """A bfloat16 sum for every trainable weight, and beside it what the rounding of that sum lost so far.

    Kahan (1965). `add()` after every backward; after the last, `to_grad()` puts the sums where any optimizer for the
    bfloat16 weights looks for them. The lost part lives on in rounded intermediate results: a compiler that keeps
    those in float32 takes the correction away.
    """

    def __init__(self, model: nn.Module) -> None:
        self.weights = [p for p in model.parameters() if p.requires_grad]
        self.sums: list[Tensor | None] = [None for _ in self.weights]
        self.lost: list[Tensor | None] = [None for _ in self.weights]

    @torch.no_grad()
    def add(self) -> None:
        """Move what one backward left in the model's `.grad` into the sums."""
        for k, weight in enumerate(self.weights):
            if weight.grad is None:
                continue
            before, lost = self.sums[k], self.lost[k]
            if before is None or lost is None:
                self.sums[k], self.lost[k] = weight.grad, torch.zeros_like(weight.grad)
            else:
                self.sums[k], self.lost[k] = kahan_add(before, lost, weight.grad)
            weight.grad = None

    def to_grad(self) -> None:
        """Put the window's sums into `.grad`, and begin anew."""
        for weight, total in zip(self.weights, self.sums, strict=True):
            weight.grad = total
        self.sums = [None for _ in self.weights]
        self.lost = [None for _ in self.weights]


def kahan_add(total: Tensor, lost: Tensor, piece: Tensor) -> tuple[Tensor, Tensor]:
    """`total + piece`, and what the rounding of that lost; `lost` is what it had lost before. All of one dtype."""
    wanted = piece + lost
    new_total = total + wanted
    return new_total, wanted - (new_total - total)  # what was to be added, minus what arrived
