"""What cannot be examined is one clear sentence."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.checkpoint
from detective.examination.pairs import batch, cross_entropy, mlp
from torch import nn
from torch.nn import functional as F

from gradacc_lessons import examine
from gradacc_lessons.detective.examine import ExamineError

X, Y = batch()


def _each(model: nn.Module, data: Any) -> Any:
    return F.cross_entropy(model(data[0]), data[1], reduction="none")


LOSSES: dict[str, tuple[Callable[..., Any], str]] = {
    "a loss for each example": (_each, "must return a scalar, not a tensor of shape (8,): end it with .mean() or"),
    "one number in a list": (lambda m, d: cross_entropy(m, d)[None], "a tensor of shape (1,): end it with .mean() or"),
    "a float": (lambda m, d: cross_entropy(m, d).item(), "must return a scalar tensor, not float: return the loss"),
    "nothing": (lambda m, d: None, "must return a scalar tensor, not NoneType"),
    "an output": (lambda m, d: SimpleNamespace(loss=cross_entropy(m, d)), "not SimpleNamespace: return its .loss"),
    "a complex number": (lambda m, d: cross_entropy(m, d) + 1j, "must return a real number, not a complex one"),
    "detached": (lambda m, d: cross_entropy(m, d).detach(), "the loss has no gradient"),
    "not a number": (lambda m, d: cross_entropy(m, d) * float("nan"), "the loss of the whole batch is nan"),
    "infinite": (lambda m, d: cross_entropy(m, d) / 0, "the loss of the whole batch is inf"),
    "a gradient that is NaN": (
        lambda m, d: (m(d[0]) * 0).abs().sqrt().sum(), "the gradient of 0.weight on the whole batch has NaN",
    ),
    "fails": (lambda m, d: m.nothing(d), "fails on the whole batch: AttributeError: 'Sequential' object has no"),
    "fails backward": (lambda m, d: _Broken.apply(cross_entropy(m, d)), "the backward fails: ZeroDivisionError"),
    "depends on no parameter": (
        lambda m, d: (d[0].requires_grad_() ** 2).sum(), "no parameter of the model gets a gradient from this loss",
    ),
}  # fmt: skip


class _Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / (1 // 0)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_without_a_gradient_to_compare(name: str) -> None:
    loss, words = LOSSES[name]
    _sentence(words, mlp(), loss, (X, Y), 2)


def test_a_model_that_fails_for_the_micro_batch_only() -> None:
    words = "runs on the whole batch, but fails on micro-batch 1 of 8, which has 1 example: ValueError: Expected more"
    _sentence(words, mlp(nn.BatchNorm1d(8)), cross_entropy, (X, Y), 1)


def test_a_micro_batch_in_which_nothing_counts() -> None:
    labels = Y.clone()
    labels[2:4] = -100
    _sentence("the loss of micro-batch 2 of 4 is nan", mlp(), cross_entropy, (X, labels), 2)


def test_a_loss_that_remembers_how_large_the_batch_was() -> None:
    words = "runs on the whole batch, but fails on micro-batch 1 of 4, which has 2 examples: ValueError: Expected input"
    _sentence(words, mlp(), lambda m, d: F.cross_entropy(m(d), Y), X, 2)


BATCHES: dict[str, tuple[Any, str]] = {
    "sizes": ((X, Y[:7]), "as many examples as one another along dimension 0: batch[0] has 8, batch[1] has 7"),
    "sizes by name": ({"x": X, "y": {"z": Y[:3]}}, "batch['x'] has 8, batch['y']['z'] has 3"),
    "an array": (X.numpy(), "nothing to cut in the batch, a ndarray"),
    "numbers": ([1, 2], "nothing to cut in the batch, a list"),
    "sparse": ((X.to_sparse(), Y), "batch[0] is sparse and cannot be cut into examples"),
    "no examples": ((X[:0], Y[:0]), "does not cut a batch of 0"),
    "one example": ((X[:1], Y[:1]), "does not cut a batch of 1 into micro-batches: give a batch of at least 2"),
    "scalars": ((torch.tensor(1.0),), "nothing to cut in the batch, a tuple"),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_that_cannot_be_cut(name: str) -> None:
    data, words = BATCHES[name]
    _sentence(words, mlp(), cross_entropy, data, 2)


SIZES: dict[Any, str] = {
    0: "does not cut a batch of 8 into micro-batches: it must be at least 1",
    -3: "it must be at least 1",
    8: "there is nothing to accumulate",
    20: "there is nothing to accumulate",
    2.0: "micro_batch_size is a whole number of examples, not 2.0",
    True: "micro_batch_size is a whole number of examples, not True",
    "2": "micro_batch_size is a whole number of examples, not '2'",
    None: "micro_batch_size is a whole number of examples, not None",
}


@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_cuts_nothing(size: Any) -> None:
    _sentence(SIZES[size], mlp(), cross_entropy, (X, Y), size)


def test_numpys_whole_numbers_are_whole_numbers() -> None:
    assert examine(mlp(), cross_entropy, (X, Y), np.int64(2)).additive


COUNTS: dict[str, tuple[Any, str]] = {
    "nothing": (lambda data: 0, "count(micro_batch) must give how many items count, not [0.0, 0.0, 0.0, 0.0]"),
    "negative": (lambda data: -1, "must give how many items count"),
    "not a number": (lambda data: float("nan"), "must give how many items count"),
    "many": (lambda data: data[1], "count(micro_batch) fails on micro-batch 1 of 4"),
    "fails": (lambda data: data["x"], "count(micro_batch) fails on micro-batch 1 of 4"),
    "no function": (3, "count must be a function count(micro_batch), not int"),
}


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_that_counts_nothing(name: str) -> None:
    count, words = COUNTS[name]
    _sentence(words, mlp(), cross_entropy, (X, Y), 2, count=count)


MODELS: dict[str, tuple[Any, str]] = {
    "no module": (len, "the model must be a torch.nn.Module, not builtin_function_or_method"),
    "frozen": (mlp().requires_grad_(False), "no parameter requires a gradient"),
    "no parameters": (nn.Tanh(), "no parameter requires a gradient"),
    "lazy": (nn.LazyLinear(3), "weight has no shape yet, as its layer is lazy"),
    "without numbers": (nn.Linear(6, 3, device="meta"), "weight is on the meta device and has no numbers"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_cannot_be_examined(name: str) -> None:
    model, words = MODELS[name]
    _sentence(words, model, cross_entropy, (X, Y), 2)


def test_a_model_that_is_spread_over_processes(tmp_path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        wrapped = nn.parallel.DistributedDataParallel(mlp())
        _sentence("wrapped in DistributedDataParallel", wrapped, cross_entropy, (X, Y), 2)
        assert examine(wrapped.module, cross_entropy, (X, Y), 2).additive
        for _ in range(2):
            cross_entropy(wrapped, (X, Y)).backward()  # it goes on working
    finally:
        torch.distributed.destroy_process_group()


def test_an_optimizer_in_a_backward_that_cannot_be_avoided() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.last, self.first(x), use_reentrant=True)

    model = Checkpointed()
    before = {name: value.clone() for name, value in model.state_dict().items()}

    def update(parameter: torch.Tensor) -> None:
        parameter.data.sub_(0.1 * parameter.grad)

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    _sentence("the parameters change during backward", model, cross_entropy, (X, Y), 2)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_languages_there_are() -> None:
    with pytest.raises(ValueError, match="'fr' is not one of en, nl"):
        examine(mlp(), cross_entropy, (X, Y), 2, language="fr")
    with pytest.raises(ValueError, match="'fr' is not one of en, nl"):
        examine(mlp(), cross_entropy, (X, Y), 2).to("fr")


def _sentence(words: str, *arguments: Any, **options: Any) -> None:
    with pytest.raises(ExamineError, match=re.escape(words)) as raised:
        examine(*arguments, **options)
    assert "\n" not in str(raised.value)
