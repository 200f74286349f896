"""The training loop whose memory is measured and predicted: the same code for both, on real or on fake tensors."""

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.memory.parts import part
from gradacc_lessons.nested import mapped
from gradacc_lessons.recipe import Recipe

LossFunction = Callable[[nn.Module, Any], Tensor]


@contextmanager
def training_as_usual(recipe: Recipe) -> Iterator[None]:
    """With a graph, and without what the caller has switched on around: inference mode, anomaly detection, a default
    dtype that is not the recipe's, a default device."""
    dtype = torch.get_default_dtype()
    # A device only where there is another: it costs time at each call.
    place = nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")
    torch.set_default_dtype(dtype if dtype == parameter_dtype(recipe) else torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.autograd.set_detect_anomaly(False), place:
            yield
    finally:
        torch.set_default_dtype(dtype)


def parameter_dtype(recipe: Recipe) -> torch.dtype:
    """What the recipe's parameters are made of."""
    return {"bfloat16": torch.bfloat16, "float64": torch.float64}.get(recipe.precision, torch.float32)


def in_precision(batch: Any, recipe: Recipe) -> Any:
    """The batch with its floating-point numbers in the dtype that the recipe asks for, where it asks for one.

    float32 is no such wish: who trains in float32 gives float32, and anything else is a mistake to be told.
    """
    dtype = parameter_dtype(recipe)
    if dtype == torch.float32:
        return batch
    return mapped(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor, batch)


def one_update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    window: Sequence[Any],
    loss_fn: LossFunction,
    recipe: Recipe,
    update: Callable[[], object] | None = None,
) -> None:
    """One window: a forward and a backward for each of its micro-batches, then one update.

    `loss_fn(model, batch)` is the mean loss, a scalar. `update` stands for `optimizer.step` if it is given.
    ValueError if the loss is not a scalar tensor that depends on the parameters.
    """
    for batch in window:
        with part("loss_fn"), _autocast(model, recipe):
            loss = loss_fn(model, batch)
        _check(loss)
        (loss / len(window)).backward()
        del loss
    if recipe.max_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), recipe.max_norm)
    (update or optimizer.step)()
    optimizer.zero_grad(set_to_none=recipe.set_to_none)


def bring_state_into_being(
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    update: Callable[[], object] | None = None,
    without: Set[Tensor] = frozenset(),
) -> None:
    """An update on zero gradients, without a forward and a backward: after it the optimizer's state exists.

    `update` stands for `optimizer.step` if it is given. The parameters in `without` get no gradient, and so no state.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter not in without:
                parameter.grad = torch.zeros_like(parameter)
    (update or optimizer.step)()
    optimizer.zero_grad(set_to_none=recipe.set_to_none)


def _autocast(model: nn.Module, recipe: Recipe) -> AbstractContextManager[Any]:
    if recipe.precision != "autocast":
        return nullcontext()
    return torch.autocast(next(model.parameters()).device.type, dtype=torch.bfloat16)


def _check(loss: object) -> None:
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"a {type(loss).__name__}"
        raise ValueError(f"the loss must be one number, as a scalar tensor; loss_fn returned {what}")
    if not loss.requires_grad:
        raise ValueError("the loss does not depend on any parameter that is trained, so there is nothing to accumulate")
