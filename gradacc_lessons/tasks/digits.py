"""Handwritten digits: 1,797 images of 8x8 pixels, from scikit-learn, no download."""

from functools import cache
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.accumulation import Batch
from gradacc_lessons.device import seeded
from gradacc_lessons.tasks.task import Task

DigitsModel = Literal["mlp", "cnn"]
DigitsNorm = Literal["batch", "group", "layer", "frozen batch", "none"]
NORM_NAMES: dict[DigitsNorm, str] = {
    "batch": "BatchNorm",
    "group": "GroupNorm",
    "layer": "LayerNorm",
    "frozen batch": "frozen BatchNorm",
    "none": "no norm",
}
TRAIN_EXAMPLES = 1536  # 3 x 512: every power of two up to 512 divides it
SHUFFLE_SEED = 0  # the file is ordered by writer; the split must not be


def digits(
    model: DigitsModel | None = None,
    *,
    norm: DigitsNorm | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Task:
    """Classify digits with an MLP (4,810 parameters) or a CNN with GroupNorm (10,026 parameters).

    With a `norm` it is the CNN with that norm in the place of GroupNorm: "batch"; "group", 4 groups; "layer", over
    all channels and pixels of an image; "frozen batch", BatchNorm whose statistics were taken once, from the training
    images under the initial weights, and are kept in training too, while its scale and shift are trained; or "none".
    A seed gives the same initial weights whatever the norm.

    Images are (examples, 1, 8, 8) tensors between 0 and 1, labels (examples,) integers.
    ValueError for a model or a norm that is not in the list, and for an MLP with a norm.
    """
    _check(model, norm)
    cnn = model == "cnn" or norm is not None
    images, labels = _images_and_labels()
    images, labels = images.to(dtype).to(device), labels.to(device)  # in this order: Apple's MPS has no float64

    def new_model(seed: int) -> nn.Module:
        with seeded(seed):
            return (_cnn(norm or "group") if cnn else _mlp()).to(device=device, dtype=dtype)

    name = "digits, CNN" if cnn else "digits, MLP"
    return Task(
        name=f"{name}, {NORM_NAMES[norm]}" if norm else name,
        train=(images[:TRAIN_EXAMPLES], labels[:TRAIN_EXAMPLES]),
        test=(images[TRAIN_EXAMPLES:], labels[TRAIN_EXAMPLES:]),
        new_model=new_model,
        loss_sum=cross_entropy_sum,
        count=count_examples,
    )


def _check(model: DigitsModel | None, norm: DigitsNorm | None) -> None:
    for what, value, allowed in (("model", model, get_args(DigitsModel)), ("norm", norm, get_args(DigitsNorm))):
        if value is not None and value not in allowed:
            raise ValueError(f"the digits {what} must be one of {', '.join(allowed)}; it is {value!r}")
    if model == "mlp" and norm is not None:
        raise ValueError(f'the MLP has no norm: leave norm={norm!r} out, or ask for the "cnn"')


def cross_entropy_sum(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of the cross-entropies of the images in the batch."""
    images, labels = batch
    return F.cross_entropy(model(images), labels, reduction="sum")


def count_examples(batch: Batch) -> int:
    """How many images the batch has."""
    return len(batch[1])


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def _cnn(norm: DigitsNorm) -> nn.Module:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        _norm(norm, 16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        _norm(norm, 32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )
    if norm == "frozen batch":
        _freeze(model)
    return model


def _norm(norm: DigitsNorm, channels: int) -> nn.Module:
    match norm:
        case "batch":
            return nn.BatchNorm2d(channels)
        case "group":
            return nn.GroupNorm(4, channels)
        case "layer":  # with as many parameters as the others have, which nn.LayerNorm((channels, 8, 8)) has not
            return nn.GroupNorm(1, channels)
        case "frozen batch":
            return FrozenBatchNorm2d(channels, momentum=1.0)
        case "none":
            return nn.Identity()


class FrozenBatchNorm2d(nn.BatchNorm2d):
    """BatchNorm that keeps the statistics it has, in training too; its scale and shift are trained."""

    def train(self, mode: bool = True) -> "FrozenBatchNorm2d":
        """Stay in evaluation mode."""
        return super().train(False)


def _freeze(model: nn.Module) -> None:
    """Take the statistics of all training images at once, layer after layer, and keep them."""
    images = _images_and_labels()[0][:TRAIN_EXAMPLES].to(next(model.parameters()).dtype)
    with torch.no_grad():
        model(images)  # new layers are in training mode, and momentum 1 keeps what this batch has
    model.train()


@cache
def _images_and_labels() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(SHUFFLE_SEED))
    images = torch.tensor(data.images, dtype=torch.float64)[order].unsqueeze(1) / 16
    return images, torch.tensor(data.target)[order]
