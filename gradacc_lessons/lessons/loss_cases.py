"""Losses and models to ask of: can this be accumulated? Each is real, small, and built anew for every look at it."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.accumulation import Batch
from gradacc_lessons.device import seeded
from gradacc_lessons.lessons.overlap import (
    batch_dice,
    masks_of,
    root_mean_square,
    sample_dice,
    trained_segmenter,
)
from gradacc_lessons.lessons.pairs import contrastive_loss, embed, pairs_of, trained_encoder
from gradacc_lessons.tasks import digits

Loss = Callable[[nn.Module, Batch], Tensor]
MARGIN = 0.5
"""How much nearer than the nearest stranger the farthest of one's own class has to be."""
CODES, CODE_FEATURES, CODE_RATE = 8, 16, 0.1
"""The codebook: how many vectors, how long, and how far one moves towards its examples in a forward."""


@dataclass(frozen=True)
class Case:
    """A model, a loss and data."""

    label: str
    """What a learner picks from the list."""
    model: Callable[[], nn.Module]
    """A new model; the same each time."""
    loss_fn: Loss
    """(model, batch) -> a scalar tensor."""
    batch: Callable[[int], Batch]
    """A batch of so many examples."""
    alone: str | None = None
    """Why it is undefined for a single example, if it is."""


def hard_triplet(model: nn.Module, batch: Batch) -> Tensor:
    """For each image: its farthest of the same class against its nearest of another, among those of the batch."""
    images, labels = batch
    embedded = F.normalize(model(images))
    similarity = embedded @ embedded.T
    same = labels[:, None] == labels[None, :]
    farthest = similarity.masked_fill(~same, torch.inf).amin(dim=1)
    nearest = similarity.masked_fill(same, -torch.inf).amax(dim=1)
    return (nearest - farthest + MARGIN).relu().mean()


def variance_and_covariance(model: nn.Module, pairs: Batch) -> Tensor:
    """As in VICReg: the views agree, every feature varies over the batch, and features are not copies of each other."""
    first, second = embed(model, pairs)
    loss = F.mse_loss(first, second)
    for view in (first, second):
        centred = view - view.mean(dim=0)
        covariance = centred.T @ centred / (len(view) - 1)
        spread = (covariance.diagonal() + 1e-4).sqrt()
        loss = loss + (1 - spread).relu().mean() + (covariance - covariance.diag().diag()).square().sum() / len(spread)
    return loss


def cross_entropy(model: nn.Module, batch: Batch) -> Tensor:
    """The mean that people write."""
    return F.cross_entropy(model(batch[0]), batch[1])


def cross_entropy_sum(model: nn.Module, batch: Batch) -> Tensor:
    """The sum over the examples."""
    return F.cross_entropy(model(batch[0]), batch[1], reduction="sum")


def class_weighted(model: nn.Module, batch: Batch) -> Tensor:
    """Cross-entropy with a weight for each class: PyTorch divides by the sum of the weights in the batch."""
    weight = torch.linspace(0.2, 2.0, 10, dtype=batch[0].dtype)
    return F.cross_entropy(model(batch[0]), batch[1], weight=weight)


class Codebook(nn.Module):
    """Replaces each vector by the nearest of a few, which move towards what they replace, at every forward."""

    codes: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("codes", torch.randn(CODES, CODE_FEATURES))

    def forward(self, vectors: Tensor) -> Tensor:
        """(examples, features) -> as many of the codes; gradients go past the choice, straight to the vectors."""
        nearest = torch.cdist(vectors, self.codes).argmin(dim=1)
        chosen = self.codes[nearest]
        if self.training:
            with torch.no_grad():
                for code in nearest.unique():
                    self.codes[code] += CODE_RATE * (vectors[nearest == code].mean(dim=0) - self.codes[code])
        return vectors + (chosen - vectors).detach()


def _digits(count: int) -> Batch:
    images, labels = digits("mlp", dtype=torch.float64).train
    return images[:count], labels[:count]


def _classifier(width: int = 32, **between: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """How to build an MLP with these modules, by their names, behind its first layer."""

    def build() -> nn.Module:
        with seeded(0):
            first = {"flat": nn.Flatten(), "hidden": nn.Linear(64, width)}
            last = {"relu": nn.ReLU(), "head": nn.Linear(width, 10)}
            return nn.Sequential(OrderedDict(first | {name: new() for name, new in between.items()} | last)).double()

    return build


CASES: dict[str, Case] = {
    "cross_entropy": Case("cross-entropy, mean", _classifier(), cross_entropy, _digits),
    "cross_entropy_sum": Case("cross-entropy, sum", _classifier(), cross_entropy_sum, _digits),
    "class_weighted": Case("cross-entropy with class weights", _classifier(), class_weighted, _digits),
    "info_nce": Case("InfoNCE", trained_encoder, contrastive_loss, pairs_of),
    "hard_triplet": Case("hard triplets", _classifier(), hard_triplet, _digits),
    "vicreg": Case(
        "variance and covariance (VICReg)",
        _classifier(),
        variance_and_covariance,
        pairs_of,
        alone="the variance of a single example is undefined",
    ),
    "batch_dice": Case("Dice of the batch", trained_segmenter, batch_dice, masks_of),
    "sample_dice": Case("mean Dice of the examples", trained_segmenter, sample_dice, masks_of),
    "rmse": Case("root mean squared error", trained_segmenter, root_mean_square, masks_of),
    "dropout": Case("a model with dropout", _classifier(drop=nn.Dropout), cross_entropy, _digits),
    "batch_norm": Case("a model with BatchNorm", _classifier(norm=lambda: nn.BatchNorm1d(32)), cross_entropy, _digits),
    "layer_norm": Case("a model with LayerNorm", _classifier(norm=lambda: nn.LayerNorm(32)), cross_entropy, _digits),
    "codebook": Case("a model with a codebook", _classifier(CODE_FEATURES, book=Codebook), cross_entropy, _digits),
}
"""What the chooser offers, by key, in the order of the list."""


def setting(key: str, examples: int) -> tuple[nn.Module, Loss, Any]:
    """(model, loss_fn, batch) of one case, all new: what `examine` asks for."""
    case = CASES[key]
    return case.model(), case.loss_fn, case.batch(examples)
