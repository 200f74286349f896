"""What every lesson trains: data, a model and a loss, under three fixed names."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch


@dataclass(frozen=True)
class Task:
    """Real data with a real model and its loss.

    `loss_sum` and `count` are the pair that keeps averages right whatever the cut: sums are added, counts are
    added, and the division happens once.
    """

    name: str
    """What it is, for captions: "digits, MLP"."""
    train: Batch
    """The training examples, along dimension 0."""
    test: Batch
    """The examples kept apart for accuracy."""
    new_model: Callable[[int], nn.Module]
    """seed -> a freshly initialised model on the data's device and dtype."""
    loss_sum: Callable[[nn.Module, Batch], Tensor]
    """The SUM of the losses of the items in a batch, a scalar tensor."""
    count: Callable[[Batch], int]
    """How many items that sum runs over."""

    def build_model(self, seed: int = 0) -> nn.Module:
        """A freshly initialised model; the same seed gives the same weights."""
        return self.new_model(seed)

    def loss_fn(self, model: nn.Module, batch: Batch) -> Tensor:
        """The MEAN loss that people write: `loss_sum / count`."""
        return self.loss_sum(model, batch) / self.count(batch)

    @property
    def examples(self) -> int:
        """How many training examples there are."""
        return len(self.train[0])

    def make_batch(self, size: int) -> Batch:
        """The `size` training examples with the most items: the longest batch, which needs the most memory.

        A copy, on the data's device; with more than there are examples, they come again. ValueError unless `size`
        is at least 1.
        """
        if size < 1:
            raise ValueError(f"a batch needs at least 1 example, not {size}")
        rows = self._longest_first[torch.arange(size) % self.examples]
        return tuple(tensor[rows.to(tensor.device)] for tensor in self.train)

    @cached_property
    def _longest_first(self) -> Tensor:
        items = [self.count(tuple(t[k : k + 1] for t in self.train)) for k in range(self.examples)]
        return torch.tensor(items).argsort(descending=True, stable=True)
