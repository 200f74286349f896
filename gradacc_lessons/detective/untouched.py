"""Whether the code of a check has changed what measures it: torch, the optimizer, or the checking process itself.

A check and the learner's code share one process, so this is no wall: the parent decides by numbers it knows. It names
the attempt, and catches what would make a wrong loop look right.
"""

import builtins
import json
import math
import struct
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from gradacc_lessons.detective.wire import Array, pack

TAMPERED = "tampered"
"""Status of an answer whose code changed what measures it."""
_KEPT_BY_PYTHON = {"__slotnames__", "__doc__", "__annotations__", "__abstractmethods__", "_abc_impl"}
"""What Python itself writes into a class or changes in one."""
_CHANGED_BY_TORCH = {"Storage", "_init_group"}
"""What torch itself replaces, in torch.set_default_dtype and torch.compile: no attack, and the numbers decide."""
MOST_NAMED = 3


def watched() -> Callable[[dict[str, Any], dict[str, Array]], bytes]:
    """child.answer, except that it says TAMPERED if anything that is there now was replaced meanwhile."""
    from gradacc_lessons.detective.child import answer

    before = [(owner, _looked_at(owner)) for owner in _owners()]
    codes = {id(f): (f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in _functions()}

    def answering(header: dict[str, Any], arrays: dict[str, Array], packed: Any = pack, told: Any = _told) -> bytes:
        frame = answer(header, arrays)
        if changed := told(before, codes):
            return bytes(packed({"nonce": header["nonce"], "status": TAMPERED, "changed": changed[:MOST_NAMED]}))
        return frame

    return answering


def _told(before: list[Any], codes: dict[int, Any]) -> list[str]:
    """The names of what is no longer what it was; it is put back, so that saying so works again."""
    found = []
    for owner, attributes in before:
        now = vars(owner)
        for name in [name for name, value in attributes.items() if now.get(name) is not value]:
            found.append(f"{owner.__name__}.{name}")
            setattr(owner, name, attributes[name])
        if isinstance(owner, type):
            found += [f"{owner.__name__}.{name}" for name in now if name not in attributes | _ANY]
    for function, *parts in codes.values():
        if [function.__code__, function.__defaults__, function.__kwdefaults__] != parts:
            found.append(function.__qualname__)
            function.__code__, function.__defaults__, function.__kwdefaults__ = parts
    return found


_ANY = dict.fromkeys(_KEPT_BY_PYTHON | _CHANGED_BY_TORCH)


def _looked_at(owner: Any) -> dict[str, Any]:
    """What of a module or class must stay as it is: all of a class; functions and classes of a module."""
    if isinstance(owner, type):
        left_out = _KEPT_BY_PYTHON | _CHANGED_BY_TORCH
        return {name: value for name, value in vars(owner).items() if name not in left_out}
    return {name: value for name, value in vars(owner).items() if callable(value) and name not in _CHANGED_BY_TORCH}


def _owners() -> Iterator[ModuleType | type]:
    import numpy as np
    import torch
    from torch import nn
    from torch.optim.lr_scheduler import LambdaLR, LRScheduler

    yield from (builtins, json, math, struct, np, torch, nn, nn.functional, torch.autograd, torch.optim)
    yield from (torch.Tensor, nn.Module, nn.Linear, nn.Tanh, nn.Sequential, nn.Parameter)
    yield from (torch.optim.Optimizer, torch.optim.SGD, torch.optim.Adam, LRScheduler, LambdaLR)
    yield from _ours()


def _ours() -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "gradacc_lessons"]


def _functions() -> Iterator[FunctionType]:
    """The functions and methods of the course that are loaded, and of the classes that a loop uses."""
    for owner in _owners():
        for value in list(vars(owner).values()):
            if isinstance(value, FunctionType):
                yield value
            elif isinstance(value, type) and value.__module__.split(".")[0] == "gradacc_lessons":
                yield from (each for each in vars(value).values() if isinstance(each, FunctionType))
