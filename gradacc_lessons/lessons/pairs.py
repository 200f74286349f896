"""Pairs of digits: two views of one image, an encoder that brings them together, and its loss.

Everything is float64 on the CPU, because the lesson is about equality.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.accumulation import Batch
from gradacc_lessons.tasks import Task, digits

TEMPERATURE = 0.1
"""What similarities are divided by: the smaller, the more the nearest negatives count."""
TRAINED_UPDATES, TRAINED_PAIRS, LEARNING_RATE = 200, 64, 1e-2
"""How the encoder of the lesson was trained, with Adam: enough for the loss to fall below a third of its start."""
AddGradient = Callable[[nn.Module, Batch], object]
"""Adds to `.grad` what a batch of pairs asks for."""


def info_nce(first: Tensor, second: Tensor) -> Tensor:
    """The mean over pairs of the cross-entropy of finding the partner among all, in both directions.

    Row k of `first` and of `second` (pairs, features) belong together; all other rows are their negatives.
    """
    similarity = F.normalize(first) @ F.normalize(second).T / TEMPERATURE
    partner = torch.arange(len(similarity), device=similarity.device)
    return (F.cross_entropy(similarity, partner) + F.cross_entropy(similarity.T, partner)) / 2


def embed(model: nn.Module, pairs: Batch) -> tuple[Tensor, Tensor]:
    """The embeddings of both views."""
    first, second = pairs
    return model(first), model(second)


def contrastive_loss(model: nn.Module, pairs: Batch) -> Tensor:
    """InfoNCE of a batch of pairs."""
    return info_nce(*embed(model, pairs))


def two_views(images: Tensor, seed: int) -> Batch:
    """Two copies of each image (examples, 1, 8, 8), each shifted by at most one pixel at random."""
    generator = torch.Generator().manual_seed(seed)
    return _shifted(images, generator), _shifted(images, generator)


def _shifted(images: Tensor, generator: torch.Generator) -> Tensor:
    padded = F.pad(images, (1, 1, 1, 1))
    down, right = torch.randint(3, (2, len(images), 1, 1), generator=generator)
    rows, columns = down + torch.arange(8).view(8, 1), right + torch.arange(8)
    return padded[torch.arange(len(images)).view(-1, 1, 1), 0, rows, columns].unsqueeze(1)


def pairs_of(count: int, seed: int = 0) -> Batch:
    """`count` pairs of views of images that the encoder was not trained on."""
    return two_views(images_apart(count, seed), seed)


def images_apart(count: int, seed: int = 0) -> Tensor:
    """`count` images (count, 1, 8, 8) that nothing was trained on, drawn at random."""
    images = _task().test[0]
    return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))[:count]]


def most_images() -> int:
    """How many images there are that nothing was trained on."""
    return len(_task().test[0])


def trained_encoder(seed: int = 0) -> nn.Module:
    """A small MLP, trained on pairs of the training images; a copy, so that it can be changed."""
    return deepcopy(_trained(seed))


def train_encoder(add_gradient: AddGradient, updates: int, seed: int = 0) -> nn.Module:
    """A new MLP, trained for so many updates of 64 pairs each; how their gradient is made is the caller's.

    The pairs of an update depend on the seed alone, so that ways to make the gradient can be compared.
    """
    task = _task()
    model = task.build_model(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    generator = torch.Generator().manual_seed(seed)
    for update in range(updates):
        chosen = torch.randperm(task.examples, generator=generator)[:TRAINED_PAIRS]
        optimizer.zero_grad()
        add_gradient(model, two_views(task.train[0][chosen], seed * TRAINED_UPDATES + update))
        optimizer.step()
    return model


def share_found(model: nn.Module) -> float:
    """The share of first views whose partner is the most similar of all second views, among images never seen."""
    with torch.no_grad():
        first, second = (F.normalize(each) for each in embed(model, pairs_of(most_images())))
    return float(((first @ second.T).argmax(dim=1) == torch.arange(len(first))).double().mean())


@cache
def _task() -> Task:
    return digits("mlp", dtype=torch.float64)


@cache
def _trained(seed: int) -> nn.Module:
    return train_encoder(lambda model, pairs: contrastive_loss(model, pairs).backward(), TRAINED_UPDATES, seed)
