"""Masks of digits: a tiny network that finds the strokes in noise, and losses that are ratios of sums.

Everything is float64 on the CPU, because the lesson is about equality.
"""

from copy import deepcopy
from functools import cache

import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch
from gradacc_lessons.device import seeded
from gradacc_lessons.lessons.pairs import images_apart
from gradacc_lessons.tasks import digits

EPS = 1e-6
"""Added above and below the line, so that an empty mask that is found empty counts as a perfect overlap."""
INK = 0.5
"""A pixel brighter than this belongs to the stroke."""
NOISE = 0.3
"""Standard deviation of what is added to the brightness of each pixel."""
TRAINED_UPDATES, TRAINED_IMAGES, LEARNING_RATE = 200, 32, 1e-2
"""How the network of the lesson was trained, with Adam on the mean of each example's Dice loss."""


def batch_dice(model: nn.Module, batch: Batch) -> Tensor:
    """One minus the overlap of all masks of the batch taken together."""
    images, masks = batch
    found: Tensor = model(images).sigmoid()
    overlap = 2 * (found * masks).sum() + EPS
    return 1 - overlap / ((found + masks).sum() + EPS)


def sample_dice(model: nn.Module, batch: Batch) -> Tensor:
    """The mean over the examples of one minus the overlap of their own masks."""
    images, masks = batch
    found: Tensor = model(images).sigmoid()
    overlap = 2 * (found * masks).sum(dim=(1, 2, 3)) + EPS
    return (1 - overlap / ((found + masks).sum(dim=(1, 2, 3)) + EPS)).mean()


def root_mean_square(model: nn.Module, batch: Batch) -> Tensor:
    """The root of the mean squared difference between what is found and the mask."""
    images, masks = batch
    found: Tensor = model(images).sigmoid()
    return (found - masks).square().mean().sqrt()


def noisy(images: Tensor, seed: int) -> Batch:
    """(images in noise, masks of their strokes), both (examples, 1, 8, 8)."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(images.shape, generator=generator, dtype=images.dtype)
    return images + NOISE * noise, (images > INK).to(images.dtype)


def masks_of(count: int, seed: int = 0) -> Batch:
    """`count` images that the network was not trained on, in noise, and the masks of their strokes."""
    return noisy(images_apart(count, seed), seed)


def trained_segmenter(seed: int = 0) -> nn.Module:
    """Two convolutions (153 parameters), trained; a copy, so that it can be changed."""
    return deepcopy(_trained(seed))


@cache
def _trained(seed: int) -> nn.Module:
    images = digits("mlp", dtype=torch.float64).train[0]
    with seeded(seed):
        model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    generator = torch.Generator().manual_seed(seed)
    for update in range(TRAINED_UPDATES):
        chosen = torch.randperm(len(images), generator=generator)[:TRAINED_IMAGES]
        optimizer.zero_grad()
        sample_dice(model, noisy(images[chosen], seed * TRAINED_UPDATES + update)).backward()
        optimizer.step()
    return model
