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

    With a `norm` and no model it is the CNN, with that norm in the place of GroupNorm; an MLP with a norm has it after
    its first layer. The norms: "batch"; "group", 4 groups; "layer", over all channels and pixels of an image;
    "frozen batch", BatchNorm whose statistics were taken once, from the training images under the initial weights, and
    are kept in training too, while its scale and shift are trained; "none". A seed gives the same initial weights
    whatever the norm.

    Images are (examples, 1, 8, 8) tensors between 0 and 1, labels (examples,) integers.
    ValueError for a model or a norm that is not in the list.
    """
    _check(model, norm)
    cnn = model == "cnn" or (model is None and norm is not None)
    images, labels = _images_and_labels()
    images, labels = images.to(dtype).to(device), labels.to(device)  # in this order: Apple's MPS has no float64

    def new_model(seed: int) -> nn.Module:
        with seeded(seed):
            net = _cnn(norm or "group") if cnn else _mlp(norm)
        if norm == "frozen batch":
            _freeze(net)
        return net.to(device=device, dtype=dtype)

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


def cross_entropy_sum(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of the cross-entropies of the images in the batch."""
    images, labels = batch
    return F.cross_entropy(model(images), labels, reduction="sum")


def count_examples(batch: Batch) -> int:
    """How many images the batch has."""
    return len(batch[1])


def _mlp(norm: DigitsNorm | None) -> nn.Module:
    between = [] if norm is None else [_norm(norm, 64, nn.BatchNorm1d)]
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), *between, nn.ReLU(), nn.Linear(64, 10))


def _cnn(norm: DigitsNorm) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        _norm(norm, 16, nn.BatchNorm2d),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        _norm(norm, 32, nn.BatchNorm2d),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def _norm(norm: DigitsNorm, channels: int, batch_norm: type[nn.BatchNorm1d] | type[nn.BatchNorm2d]) -> nn.Module:
    match norm:
        case "batch" | "frozen batch":
            return batch_norm(channels)
        case "group":
            return nn.GroupNorm(4, channels)
        case "layer":  # with as many parameters as the others have, which nn.LayerNorm((channels, 8, 8)) has not
            return nn.GroupNorm(1, channels)
        case "none":
            return nn.Identity()


class FrozenBatchNorm(nn.Module):
    """A BatchNorm that keeps the statistics it has, in training too; its scale and shift are trained."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, norm: nn.BatchNorm1d | nn.BatchNorm2d) -> None:
        super().__init__()
        self.weight, self.bias, self.eps = norm.weight, norm.bias, norm.eps
        self.register_buffer("running_mean", norm.running_mean)
        self.register_buffer("running_var", norm.running_var)

    def forward(self, features: Tensor) -> Tensor:
        """Whoever else is in the batch, an example comes out the same."""
        return F.batch_norm(features, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


def _freeze(model: nn.Module) -> None:
    """Take the statistics of all training images at once, layer after layer, and keep them."""
    images = _images_and_labels()[0][:TRAIN_EXAMPLES].to(next(model.parameters()).dtype)
    norms = [(name, each) for name, each in model.named_children() if isinstance(each, nn.BatchNorm1d | nn.BatchNorm2d)]
    for _, norm in norms:
        norm.momentum = 1.0  # what this one batch has, and nothing of before
    with torch.no_grad():
        model(images)
    for name, norm in norms:
        setattr(model, name, FrozenBatchNorm(norm))


@cache
def _images_and_labels() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(SHUFFLE_SEED))
    images = torch.tensor(data.images, dtype=torch.float64)[order].unsqueeze(1) / 16
    return images, torch.tensor(data.target)[order]
