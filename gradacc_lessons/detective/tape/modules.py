"""What the hooks ask of modules: which of them a loop calls, and which tensors go in and come out."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from torch import Tensor, nn
from torch.distributed import is_available, is_initialized


class ForwardHook:
    """A forward hook; what a copied or saved model has in its place does nothing, and needs nothing of ours."""

    def __init__(self, does: Callable[..., None]) -> None:
        self._does = does

    def __call__(self, *arguments: Any) -> None:
        self._does(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (nullcontext(), "__exit__")


def synchronises(module: nn.Module) -> bool:
    """Whether a backward of this forward all-reduces: DistributedDataParallel knows; others may be wrapped in it."""
    return bool(getattr(module, "require_backward_grad_sync", is_available() and is_initialized()))


def called_children(module: nn.Module) -> Iterator[nn.Module]:
    """What a loop calls that does not call the model itself; lists and dicts of modules are never called."""
    for child in module.children():
        if isinstance(child, nn.ModuleList | nn.ModuleDict):
            yield from called_children(child)
        else:
            yield child


def tensors(found: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists and dicts; what transformers' models return are dicts."""
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, dict):
        for value in found.values():
            yield from tensors(value)
    elif isinstance(found, tuple | list):
        for value in found:
            yield from tensors(value)
