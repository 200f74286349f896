"""Activation checkpointing for anybody's model: its repeated blocks are computed again in backward."""

from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint


class NoBlocks(ValueError):
    """The model has nothing that could be checkpointed."""


def checkpoint_blocks(model: nn.Module) -> int:
    """Let backward compute the model's blocks again instead of keeping what is inside them.

    A model with a method of its own for it (as in transformers) is asked to do it, and counts as one block. Otherwise
    the blocks are the children of each `nn.ModuleList`, or of an `nn.Sequential` that lies in no other: those that
    have parameters and are no single layer of torch.nn. Changes the model; returns how many blocks that are.

    NoBlocks (a ValueError) if the model has none.
    """
    for what in ("activation", "gradient"):  # transformers' newer and its older name
        enable = getattr(model, f"{what}_checkpointing_enable", None)
        if enable is not None:
            enable(**{f"{what}_checkpointing_kwargs": {"use_reentrant": False}})
            return 1
    blocks = list(_blocks(model))
    if not blocks:
        raise NoBlocks(
            f"{type(model).__name__} has no nn.ModuleList or nn.Sequential of blocks that could be computed again: "
            "give it a method gradient_checkpointing_enable(), or leave checkpointing off"
        )
    for block in blocks:
        block.forward = partial(_again, block.forward)
    return len(blocks)


def _blocks(module: nn.Module) -> Any:
    if isinstance(module, nn.ModuleList | nn.Sequential):
        children = [child for child in module if _has_parameters(child) and not _is_single_layer(child)]
        if children:
            yield from children
            return
    for child in module.children():
        yield from _blocks(child)


def _has_parameters(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())


def _is_single_layer(module: nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn.") and not any(True for _ in module.children())


def _again(forward: Any, *args: Any, **kwargs: Any) -> Any:
    return checkpoint(forward, *args, use_reentrant=False, **kwargs)
