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
TRAIN_EXAMPLES = 1536  # 3 x 512: every power of two up to 512 divides it
SHUFFLE_SEED = 0  # the file is ordered by writer; the split must not be


def digits(
    model: DigitsModel = "mlp", *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> Task:
    """Classify digits with an MLP (4,810 parameters) or a CNN with GroupNorm (10,026 parameters).

    Images are (examples, 1, 8, 8) tensors between 0 and 1, labels (examples,) integers.
    ValueError for a model that is not in the list.
    """
    if model not in get_args(DigitsModel):
        raise ValueError(f"the digits model must be one of {', '.join(get_args(DigitsModel))}; it is {model!r}")
    images, labels = _images_and_labels()
    images, labels = images.to(dtype).to(device), labels.to(device)  # in this order: Apple's MPS has no float64

    def new_model(seed: int) -> nn.Module:
        with seeded(seed):
            return (_mlp() if model == "mlp" else _cnn()).to(device=device, dtype=dtype)

    return Task(
        name=f"digits, {model.upper()}",
        train=(images[:TRAIN_EXAMPLES], labels[:TRAIN_EXAMPLES]),
        test=(images[TRAIN_EXAMPLES:], labels[TRAIN_EXAMPLES:]),
        new_model=new_model,
        loss_sum=cross_entropy_sum,
        count=count_examples,
    )


def cross_entropy_sum(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of the cross-entropies of the images in the batch."""
    images, labels = batch
    return F.cross_entropy(model(images), labels, reduction="sum")


def count_examples(batch: Batch) -> int:
    """How many images the batch has."""
    return len(batch[1])


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def _cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.GroupNorm(4, 16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.GroupNorm(4, 32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


@cache
def _images_and_labels() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(SHUFFLE_SEED))
    images = torch.tensor(data.images, dtype=torch.float64)[order].unsqueeze(1) / 16
    return images, torch.tensor(data.target)[order]
