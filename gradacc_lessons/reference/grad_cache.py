"""GradCache: the full batch's gradient of a loss that compares examples, at the memory of one micro-batch.

Source: Gao, Zhang, Han and Callan, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup" (2021),
arXiv 2101.06983.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Item = TypeVar("Item")
RandomState = list[tuple[Callable[[Tensor], None], Tensor]]
"""How to set a generator, and to what: one entry for each that a forward may draw from."""


def grad_cache(
    model: nn.Module,
    window: Iterable[Item],
    embed: Callable[[nn.Module, Item], tuple[Tensor, ...]],
    loss_fn: Callable[..., Tensor],
) -> float:
    """Add to `.grad` the gradient of `loss_fn` over all embeddings of a window, micro-batch by micro-batch.

    `window` are the micro-batches behind one update; their sizes may differ. `embed(model, batch)` gives one or more
    tensors of (rows, features), such as those of images and of texts, or of questions and of twice as many answers;
    `loss_fn` takes as many, of the whole window, and returns a scalar; what else it needs, such as labels, it brings
    along. Parameters that only the loss uses, such as a temperature, get their gradient too.

    Each example is embedded twice, the second time from the same random state: dropout draws the same masks, and the
    generators end as if it had been once. What a forward changes (running statistics, an EMA) changes twice. Examples
    may meet in the loss, not in `embed`: a BatchNorm still sees only its micro-batch.

    Returns the loss. ValueError for a window without micro-batches.
    """
    states: list[RandomState] = []
    cache: list[tuple[Tensor, ...]] = []
    window = list(window)
    with torch.no_grad():  # 1: embed everything, keep no graph
        for batch in window:
            states.append(random_state())
            cache.append(embed(model, batch))
    if not cache:
        raise ValueError("a window needs at least 1 micro-batch")
    by_encoder = list(zip(*cache, strict=True))
    embeddings: list[Any] = [torch.cat(pieces).requires_grad_() for pieces in by_encoder]
    loss = loss_fn(*embeddings)
    loss.backward()  # 2: what the loss asks of each embedding
    end = random_state()
    asked = [_asked(e).split([len(rows) for rows in pieces]) for e, pieces in zip(embeddings, by_encoder, strict=True)]
    for batch, state, rows in zip(window, states, zip(*asked, strict=True), strict=True):
        set_random_state(state)
        again = embed(model, batch)  # 3: with a graph, and the same draws
        torch.stack([(z * row).sum() for z, row in zip(again, rows, strict=True)]).sum().backward()
    set_random_state(end)
    return float(loss.detach())


def _asked(embedding: Tensor) -> Tensor:
    return torch.zeros_like(embedding) if embedding.grad is None else embedding.grad


def random_state() -> RandomState:
    """The state of torch's generators: the CPU's and that of the accelerator in use."""
    kept: RandomState = [(torch.set_rng_state, torch.get_rng_state())]
    if torch.cuda.is_available():
        kept.append((torch.cuda.set_rng_state, torch.cuda.get_rng_state()))
    if torch.backends.mps.is_available():
        kept.append((torch.mps.set_rng_state, torch.mps.get_rng_state()))
    return kept


def set_random_state(state: RandomState) -> None:
    """Put the generators back to where `random_state` found them."""
    for put, value in state:
        put(value)
