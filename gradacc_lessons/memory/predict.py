"""The memory of a run that does not happen: the same loop on tensors that have sizes but no memory."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._foreach_utils import _get_foreach_kernels_supported_devices
from torch.utils._python_dispatch import TorchDispatchMode

from gradacc_lessons.device import seeded
from gradacc_lessons.memory.checkpointing import checkpoint_blocks
from gradacc_lessons.memory.fake import as_transformers_would_run, without_memory
from gradacc_lessons.memory.loop import (
    LossFunction,
    bring_state_into_being,
    in_precision,
    one_update,
    parameter_dtype,
    training_as_usual,
)
from gradacc_lessons.memory.measure import TRACKED_MISSES
from gradacc_lessons.memory.parts import part
from gradacc_lessons.memory.profile import MemoryProfile, profile_of
from gradacc_lessons.memory.tracker import Tracker
from gradacc_lessons.memory.uncounted import CannotCount, refuse_uncounted
from gradacc_lessons.memory.walk import by_example
from gradacc_lessons.nested import mapped, tensors_in
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe

PREDICTED = "a prediction: the tensors that would be alive, operation by operation"
UNCALIBRATED = "an uncalibrated prediction for {device}: a count of the CPU's kernels, not compared with a {device} yet"
TRACED_MICRO_BATCHES = 2
"""The second micro-batch of a window adds to the first one's gradient; every further one does what it did."""


def predict_peak(
    build_model: Callable[[], nn.Module],
    loss_fn: LossFunction,
    make_batch: Callable[[int], Any],
    recipe: Recipe,
    *,
    device: torch.device | str | None = None,
) -> MemoryProfile:
    """How much memory the recipe's loop would have in use at its peak, and for what, without taking it.

    `make_batch(size)` gives the longest batch of `size` examples, whose floating-point numbers take the dtype of a
    recipe in bfloat16 or float64; `loss_fn(model, batch)` gives its mean loss. What is followed is a window after the
    first update: only then the optimizer's state exists. Kernels with scratch of their own (convolutions, attention)
    run for real, once and cut down: to two examples, or one if there is only one.

    ValueError, in one sentence, for what cannot be followed: a model whose control flow or sizes depend on the
    numbers, an operation without a size rule, a loss that is no scalar, a batch of another size than asked for.
    """
    sizes = (recipe.micro_batch_size,) * recipe.accumulation_steps
    return predict_window(build_model, loss_fn, make_batch, recipe, sizes, device=device)


def predict_window(
    build_model: Callable[[], nn.Module],
    loss_fn: LossFunction,
    make_batch: Callable[[int], Any],
    recipe: Recipe,
    sizes: Sequence[int],
    *,
    device: torch.device | str | None = None,
) -> MemoryProfile:
    """`predict_peak` for a window whose micro-batches have these sizes, the largest first.

    The recipe's own micro-batch size and N are not looked at.
    """
    traced = sizes[:TRACED_MICRO_BATCHES]
    where = torch.device(device or "cpu").type
    recipe = _as_on(where, recipe)
    with seeded(recipe.seed), training_as_usual(recipe):
        real = {size: in_precision(checked_batch(make_batch, size), recipe) for size in dict.fromkeys(traced)}
    with seeded(recipe.seed), training_as_usual(recipe):
        tracker = _followed(build_model, loss_fn, [real[size] for size in traced], recipe)
    _refuse_leftovers(tracker)
    refuse_uncounted(tracker.operations)
    timeline, parts, phase = profile_of(tracker)
    # All further micro-batches do what the second did; until their turn comes they only wait.
    waiting = sum(input_bytes(real[sizes[0]], sizes[0], size) for size in sizes[TRACED_MICRO_BATCHES:])
    timeline[["inputs", "total"]] += waiting
    parts["inputs"] += waiting
    counter = PREDICTED if where == "cpu" else UNCALIBRATED.format(device=where.upper())
    return MemoryProfile(int(timeline["total"].max()), parts, phase, timeline, counter, TRACKED_MISSES)


def _as_on(device: str, recipe: Recipe) -> Recipe:
    """The recipe with the optimizer's kernel that torch takes on this device where none is asked for."""
    if recipe.optimizer_kernel == "default" and device in _get_foreach_kernels_supported_devices():
        return replace(recipe, optimizer_kernel="foreach")
    return recipe


def _followed(build_model: Callable[[], nn.Module], loss_fn: LossFunction, real: list[Any], recipe: Recipe) -> Tracker:
    """The tracker of a window on these batches that comes after an update."""
    with without_memory() as known:
        model = built(lambda: _new(build_model()), recipe)
        known.forget_constants_in([*model.parameters(), *model.buffers()])
        batches = [known.without_memory(batch) for batch in real]
        with as_transformers_would_run(known):
            tracker, unused = _second_window(model, batches, loss_fn, recipe, set())
            if unused:  # what never gets a gradient has no state either
                tracker, _ = _second_window(model, batches, loss_fn, recipe, unused)
        tracker.forget()
    return tracker


def _refuse_leftovers(tracker: Tracker) -> None:
    """CannotCount if something outside the prediction holds tensors without numbers."""
    if tracker.left_over():
        gc.collect()  # a model may refer to itself
        if tracker.left_over():
            raise CannotCount(
                "loss_fn or the model keeps tensors in something that outlives them, such as a list: a prediction "
                "leaves tensors without numbers there. Empty it, and keep them in the training loop instead"
            )


def _second_window(
    model: nn.Module, batches: list[Any], loss_fn: LossFunction, recipe: Recipe, unused: set[nn.Parameter]
) -> tuple[Tracker, set[nn.Parameter]]:
    """Follow a window that comes after an update; also returns the trained parameters that got no gradient."""
    optimizer = make_optimizer(model, recipe)
    trained = {p for p in model.parameters() if p.requires_grad}
    bring_state_into_being(optimizer, recipe, lambda: _step(optimizer), without=unused)
    window = [mapped(torch.clone, batch) for batch in batches]
    reached: set[nn.Parameter] = set()

    def update() -> None:
        reached.update(p for p in trained if p.grad is not None)
        _step(optimizer)

    tracker = Tracker(model, optimizer, window)
    with tracker:
        one_update(model, optimizer, window, loss_fn, recipe, update)
    for parameter in trained:
        parameter.grad = None
    return tracker, trained - unused - reached


def built(build_model: Callable[[], nn.Module], recipe: Recipe) -> nn.Module:
    """The model in the recipe's precision, with its blocks checkpointed if the recipe says so, ready to train."""
    previous, wanted = torch.get_default_dtype(), parameter_dtype(recipe)
    # Before and not after: a model of many gigabytes never exists in two dtypes.
    torch.set_default_dtype(wanted)
    try:
        with part("build_model"):
            model = build_model()
    finally:
        torch.set_default_dtype(previous)
    if wanted != torch.float32 and all(parameter.dtype != wanted for parameter in model.parameters()):
        model.to(wanted)  # it was made in a dtype of its own, whatever the default is
    if recipe.checkpointing:
        checkpoint_blocks(model)
    model.train()
    return model


def _new(model: nn.Module) -> nn.Module:
    parameters = list(model.parameters())
    if not any(parameter.requires_grad for parameter in parameters):
        raise ValueError(f"{type(model).__name__} has no parameter that is trained (requires_grad), so nothing learns")
    if before := sum(not isinstance(parameter, FakeTensor) for parameter in parameters):
        which = "it returned one" if before == len(parameters) else f"{before} of its parameters are of one"
        raise ValueError(
            f"build_model must make a new model each time, and {which} that was there before: let it build the whole "
            "model, or return copy.deepcopy(model)"
        )
    return model


def checked_batch(make_batch: Callable[[int], Any], size: int) -> Any:
    """A batch of `size` examples. ValueError, in one sentence, if make_batch gives another size."""
    with part("make_batch"):
        batch = make_batch(size)
    tensors = tensors_in(batch)
    if not tensors:
        raise ValueError(
            f"make_batch must give tensors, alone or in lists, tuples, dicts or dataclasses; it gave a "
            f"{type(batch).__name__}"
        )
    if any("sparse" in str(tensor.layout) for tensor in tensors):
        raise CannotCount(
            "make_batch gives a sparse tensor, whose size depends on its numbers: give a dense one, or measure it with "
            "`measure_peak`"
        )
    if not any(grows for _, grows in by_example(batch, size)):
        sizes = sorted({len(tensor) for tensor in tensors if tensor.dim()})
        raise ValueError(
            f"make_batch({size}) must give a batch of {size} examples along dimension 0; "
            f"its tensors have {', '.join(map(str, sizes)) or 'no such dimension'}"
        )
    return batch


def input_bytes(batch: Any, examples: int, wanted: int) -> int:
    """The bytes of a batch of `wanted` examples, going by one that has `examples` of them."""
    once = {id(tensor): (tensor.nbytes, grows) for tensor, grows in by_example(batch, examples)}
    sizes = once.values()
    return sum(size * wanted // examples if grows else size for size, grows in sizes)


class _AnyNumber(TorchDispatchMode):
    """Some optimizers ask for a number (Adafactor: a norm). Which one it is changes no size."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return 1.0 if args[0].is_floating_point() else 1
        return func(*args, **(kwargs or {}))


def _step(optimizer: torch.optim.Optimizer) -> None:
    with _AnyNumber():
        optimizer.step()
