"""Lesson 09: the exhibits of the museum, run with another b and N, with the bug and after the fix.

Each exhibit has a number of its own. To look at all of them at once there is one more, the same for each: how far
the bug takes a run from the fixed one, as a share of the way that the fixed one has gone. For a bug in a model or a
loss it is how far the gradient of the micro-batches is from that of the whole batch.
"""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf, isfinite, isnan
from typing import Any

import torch
from torch import Tensor

from gradacc_lessons.accumulation import split
from gradacc_lessons.device import seeded
from gradacc_lessons.museum.collection import exhibit, exhibits
from gradacc_lessons.museum.exhibit import KINDS, Exhibit, Kind
from gradacc_lessons.museum.kinds import LoopExhibit, ModelExhibit, TapeExhibit
from gradacc_lessons.museum.measures import gradient_error
from gradacc_lessons.museum.scene import Scene
from gradacc_lessons.recipe import Recipe

EPOCHS = 2
"""Two, so that what leaks out of one epoch is seen in the next; loops that have epochs of their own are called once."""
SHOWS = 1e-6
"""A difference above this share shows; rounding is far below it, and mistakes are far above."""
RATE = 0.1
"""The learning rate where an exhibit has none, because its own number is taken at weights that stand still."""
MOST_HALVINGS = 10


@cache
def numbers(name: str) -> dict[Kind, float]:
    """The exhibit's own number, with the bug and after the fix."""
    with seeded(0):
        return {kind: exhibit(name).measure(kind) for kind in KINDS}


@dataclass(frozen=True)
class Own:
    """What an exhibit itself runs with."""

    micro_batch_size: int
    """b."""
    accumulation_steps: int
    """N."""
    examples: int | None
    """In the one batch of a model; None for a loop, whose examples can be taken again."""


@cache
def own(name: str) -> Own:
    """The b and N that an exhibit comes with."""
    one = exhibit(name)
    if isinstance(one, ModelExhibit):
        examples = len(_parts(name, "fixed")[2][0])
        return Own(one.micro_batch_size, examples // one.micro_batch_size, examples)
    scene = _scene(one)
    return Own(len(scene.micro_batches[0][0]), scene.accumulation_steps, None)


def check_possible(name: str, micro_batch_size: int, accumulation_steps: int) -> None:
    """ValueError, in a sentence, if the exhibit has fewer examples than one window would take."""
    recipe, examples = Recipe(micro_batch_size, accumulation_steps), own(name).examples
    if examples is not None:
        recipe.check_fits(examples)


def differences(name: str, micro_batch_size: int, accumulation_steps: int) -> Iterator[dict[str, Any]]:
    """One row per micro-batch that has been run (`position`, from 0), or per size of micro-batch (`position`).

    `bug` and `fixed` are differences from what is right, as shares: of the runs' parameters from those of the fixed
    run, or of the micro-batches' gradient from the whole batch's.
    """
    one = exhibit(name)
    with seeded(0):  # what a model or a loop draws is the same each time
        if isinstance(one, ModelExhibit):
            yield from _sizes(one, micro_batch_size, accumulation_steps)
        else:
            yield from _drift(one, micro_batch_size, accumulation_steps)


@cache
def final(name: str, micro_batch_size: int, accumulation_steps: int) -> float:
    """The difference that the bug makes in the end; infinite where it is no number any more."""
    one = exhibit(name)
    with seeded(0):
        if isinstance(one, ModelExhibit):
            last = _error(name, "bug", micro_batch_size * accumulation_steps, micro_batch_size)
        else:
            *_, row = _drift(one, micro_batch_size, accumulation_steps)
            last = row["bug"]
    return last if isfinite(last) else inf


def all_at(accumulation_steps: int) -> Iterator[dict[str, Any]]:
    """One row per exhibit, each with the examples of its own window, cut into N micro-batches.

    `name`, `project`, `year`, `instrument`, `difference` (a share), `shows` and `accumulation_steps`.
    """
    for name, one in exhibits().items():
        found = own(name)
        size = max(1, found.micro_batch_size * found.accumulation_steps // accumulation_steps)
        difference = final(name, size, accumulation_steps)
        yield {
            "name": name, "project": one.project, "year": one.year, "instrument": one.instrument,
            "difference": difference, "shows": difference > SHOWS, "accumulation_steps": accumulation_steps,
        }  # fmt: skip


def _sizes(one: ModelExhibit, micro_batch_size: int, accumulation_steps: int) -> Iterator[dict[str, Any]]:
    """The window of b x N examples in one micro-batch, then halved, down to b."""
    whole = micro_batch_size * accumulation_steps
    halves = [whole // 2**k for k in range(MOST_HALVINGS) if whole % 2**k == 0 and whole // 2**k > micro_batch_size]
    for size in (*halves, micro_batch_size):
        yield {"position": size} | {kind: _error(one.id, kind, whole, size) for kind in KINDS}


def _error(name: str, kind: Kind, examples: int, micro_batch_size: int) -> float:
    """How far micro-batches of the first `examples` are from them in one batch."""
    model, loss_fn, batch, *count = _parts(name, kind)
    first = tuple(tensor[:examples] for tensor in batch)
    error = gradient_error((model, loss_fn, first, *count), micro_batch_size)
    return 0.0 if isnan(error) else error  # examples that ask for nothing: no gradient, whole or in parts


@cache
def _parts(name: str, kind: Kind) -> tuple[Any, ...]:
    """(model, loss_fn, batch) or those and a count; a gradient taken of them moves no weights."""
    parts: tuple[Any, ...] = exhibit(name).code(kind)()
    return parts


def _scene(one: Exhibit) -> Scene:
    assert isinstance(one, LoopExhibit | TapeExhibit)
    return one.scene()


def _cut(scene: Scene, micro_batch_size: int, accumulation_steps: int) -> Scene:
    """The scene with as many windows as before, in other micro-batches; examples are taken again if there are few."""
    micro_batches = ceil(len(scene.micro_batches) * accumulation_steps / scene.accumulation_steps)
    whole = tuple(torch.cat(tensors) for tensors in zip(*scene.micro_batches, strict=True))
    wanted = torch.arange(micro_batches * micro_batch_size) % len(whole[0])
    for group in scene.optimizer.param_groups:
        group["lr"] = group["lr"] or RATE
    batches = split(tuple(tensor[wanted] for tensor in whole), micro_batch_size)
    return replace(scene, micro_batches=batches, accumulation_steps=accumulation_steps)


def _drift(one: Exhibit, micro_batch_size: int, accumulation_steps: int) -> Iterator[dict[str, Any]]:
    bug, fixed = (_path(one, kind, micro_batch_size, accumulation_steps) for kind in KINDS)
    way = float((fixed[-1] - fixed[0]).norm())  # 0 where something broken comes again in every window, all skipped
    for position in range(max(len(bug), len(fixed))):
        got, right = (path[min(position, len(path) - 1)] for path in (bug, fixed))
        off = float((got - right).norm())
        yield {"position": position, "bug": off / way if way else (inf if off else 0.0), "fixed": 0.0}


def _path(one: Exhibit, kind: Kind, micro_batch_size: int, accumulation_steps: int) -> list[Tensor]:
    """The parameters before each micro-batch that is run, and in the end."""
    scene = _cut(_scene(one), micro_batch_size, accumulation_steps)
    modules, path = [scene.model, *scene.watch], list[Tensor]()
    hook = scene.model.register_forward_pre_hook(lambda *_: path.append(_parameters(modules)))
    with suppress(*getattr(one, "stops", ())), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns of a schedule that moves too early
        scene.run(one.code(kind), min(EPOCHS, getattr(one, "epochs", EPOCHS)))
    hook.remove()
    return [*path, _parameters(modules)]


def _parameters(modules: list[Any]) -> Tensor:
    return torch.cat([p.detach().double().flatten() for module in modules for p in module.parameters()])
