"""The gradient of one loss, without touching anybody's `.grad`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradacc_lessons.detective.examination.errors import ExamineError
from gradacc_lessons.errors import words_of

Gradient = tuple[Tensor | None, ...]
"""One for each parameter, complex ones as pairs of numbers; None where the loss does not depend on it."""


class NeedsBackwardError(Exception):
    """Reentrant checkpoints refuse torch.autograd.grad."""


def gradient_of(loss: Tensor, wanted: Sequence[Tensor], by_backward: bool = False) -> Gradient:
    """With respect to these tensors. ExamineError, in one sentence, for a backward that fails.

    NeedsBackwardError for a graph that only `.backward()` may go through; the forward has to run again for it.
    """
    if by_backward:
        return _by_backward(loss, wanted)
    asked = [tensor for tensor in wanted if tensor.requires_grad]  # the loss may have frozen some
    try:
        found = iter(torch.autograd.grad(loss, asked, allow_unused=True))
        return tuple(_plain(next(found)) if tensor.requires_grad else None for tensor in wanted)
    except Exception as error:
        if "checkpoint" in str(error).lower() and ".grad()" in str(error):
            raise NeedsBackwardError from error
        raise ExamineError(f"the backward fails: {words_of(error)}") from error


def _by_backward(loss: Tensor, wanted: Sequence[Tensor]) -> Gradient:
    """For reentrant checkpoints, which refuse torch.autograd.grad: `.grad` is empty meanwhile.

    It also sets off what people hang on their gradients, such as an optimizer in backward.
    """
    before = [(tensor, tensor.grad, tensor.detach().clone()) for tensor in wanted]
    try:
        for tensor in wanted:
            tensor.grad = None
        try:
            loss.backward()
        except Exception as error:
            raise ExamineError(f"the backward fails: {words_of(error)}") from error
        if not all(torch.equal(tensor, values) for tensor, _, values in before):
            raise ExamineError(
                "the parameters change during backward: an optimizer runs in it, so each micro-batch makes an update "
                "of its own and nothing accumulates; take its hooks off the parameters"
            )
        return tuple(_plain(tensor.grad) for tensor in wanted)
    finally:
        for tensor, gradient, _ in before:
            tensor.grad = gradient


def _plain(gradient: Tensor | None) -> Tensor | None:
    if gradient is None:
        return None
    gradient = gradient.detach()
    gradient = gradient.to_dense() if gradient.layout != torch.strided else gradient
    return torch.view_as_real(gradient.resolve_conj()) if gradient.is_complex() else gradient
