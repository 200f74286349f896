"""Everything that a run can change: found by following the references of the model and its loss.

A loss may be a function that closes over an EMA teacher, a method of an object with a queue, a partial, or a
function that names a global. What is found is put back after each run, so nobody needs a copy of the model: a loss
that holds the model by its own reference works too.

What cannot be found, and stays changed by a run: what a function imports within itself, what is held by a weak
reference, an iterator, an open file, another thread or a library's own globals, hooks on nodes of the graph, and
whatever lies beyond MOST_OBJECTS.
"""

import dataclasses
import random
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper, partial
from itertools import chain
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gradacc_lessons.detective.examination.errors import ExamineError

MOST_OBJECTS = 1_000_000
"""A walk ends here: what lies further away is not the model's."""
_LEAVES = (
    str, bytes, int, float, complex, bool, type(None), torch.dtype, torch.device, torch.Size, np.generic, CodeType,
    BuiltinFunctionType, range, slice,
)  # fmt: skip
_PYTHONS_OWN = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
"""Where Python's modules lie."""
_UNNAMED = {"_parameters", "_buffers", "_modules"}
"""Attributes of a module whose entries go by their own names."""
_NO_STATE = {
    "_io", "_thread", "asyncio", "concurrent", "contextvars", "IPython", "ipywidgets", "logging", "matplotlib",
    "multiprocessing", "queue", "threading", "traitlets", "weakref",
}  # fmt: skip
"""Where the classes of objects come from that other threads change, or that no forward depends on."""
RANDOM_OBJECTS = (torch.Generator, np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)


@dataclasses.dataclass(frozen=True)
class Place:
    """A container whose contents can be read and put back."""

    name: str
    """Where it was found, such as `encoder.norm`; empty for the model itself."""
    holder: Any
    """The object."""
    kind: str
    """mapping, list, set, deque, attributes, slot, cell, global or class."""
    key: str = ""
    """Which entry, where only one is looked at."""
    in_module: bool = False
    """Whether these are the attributes, buffers, parameters or children of a module."""


class Reach:
    """What the roots refer to, directly or not, in the order in which it is met."""

    def __init__(self, roots: dict[str, Any]) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.modules: dict[str, nn.Module] = {}
        self.places: list[Place] = []
        self.arrays: dict[str, Any] = {}
        self.generators: list[Any] = []
        self.caches: list[Any] = []
        self._seen: dict[int, Any] = {}
        self._waiting: deque[tuple[str, Any]] = deque()
        self._soon: deque[tuple[str, Any]] = deque()
        for name, root in roots.items():  # one after the other: what the model has goes by the model's names
            self._later(name, root)
            while (self._soon or self._waiting) and len(self._seen) < MOST_OBJECTS:
                self._meet(*(self._soon or self._waiting).popleft())
        self.ended = bool(self._soon or self._waiting)
        """Whether there were more objects than are looked at."""

    def _meet(self, name: str, thing: Any) -> None:
        if isinstance(thing, _LEAVES) or id(thing) in self._seen:
            return
        self._seen[id(thing)] = thing
        for kinds, visit in _VISITS:
            if isinstance(thing, kinds):
                visit(self, name, thing)
                return
        self._attributes(name, thing)

    def _later(self, name: str, thing: Any) -> None:
        if isinstance(thing, nn.Module | Tensor):  # before anything else, in case there is more than can be looked at
            self._soon.append((name, thing))
        elif not isinstance(thing, _LEAVES):
            self._waiting.append((name, thing))

    def _label(self, key: Any) -> str:
        """What a key of a mapping is called: an optimizer's are the parameters themselves."""
        if isinstance(key, Tensor):
            return next((name for name, tensor in self.tensors.items() if tensor is key), "a tensor")
        return label(key)

    def _unique(self, name: str, names: dict[str, Any]) -> str:
        return name if name not in names else f"{name} ({len(names)})"

    def _tensor(self, name: str, tensor: Tensor) -> None:
        self.tensors[self._unique(name, self.tensors)] = tensor
        if tensor.is_leaf and tensor.grad is not None:
            self._later(f"{name}.grad", tensor.grad)
        if extra := getattr(tensor, "__dict__", None):
            self._mapping(name, extra)
        for hooks in (tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None)):
            for hook in (hooks or {}).values():  # an optimizer in backward is in there
                self._later(f"a hook on {name}", hook)

    def _module(self, name: str, module: nn.Module) -> None:
        self.modules[self._unique(name, self.modules)] = module
        if isinstance(module, torch.jit.ScriptModule):  # keeps its tensors elsewhere
            for key, tensor in (*module.named_parameters(), *module.named_buffers()):
                self._later(_under(name, key), tensor)
        contents = vars(module)
        self.places.append(Place(name, contents, "mapping", in_module=True))
        for key, value in contents.items():
            if key in _UNNAMED and isinstance(value, dict):
                self._seen[id(value)] = value
                self.places.append(Place(name, value, "mapping", in_module=True))
                for inner, entry in value.items():
                    self._later(_under(name, inner), entry)
            else:
                self._later(_under(name, key), value)
        self._class(type(module))

    def _mapping(self, name: str, mapping: dict[Any, Any]) -> None:
        self.places.append(Place(name, mapping, "mapping"))
        for key, value in mapping.items():
            self._later(_under(name, self._label(key)), value)

    def _sequence(self, name: str, sequence: Any) -> None:
        if not isinstance(sequence, tuple | frozenset):
            kind = {list: "list", set: "set", deque: "deque"}
            self.places.append(Place(name, sequence, next(k for t, k in kind.items() if isinstance(sequence, t))))
        if _is_plain(sequence):  # a data set may have millions of them
            return
        for k, value in enumerate(sequence):
            self._later(f"{name}[{k}]", value)

    def _function(self, name: str, function: FunctionType) -> None:
        code = function.__code__
        for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self.places.append(Place(key, cell, "cell"))
            for content in _content(cell):
                self._later(key, content)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._later(name, value)
        if vars(function):
            self._mapping(name, vars(function))
        if not is_library(function.__module__):
            self._names(function.__globals__, code)

    def _names(self, scope: dict[str, Any], code: CodeType) -> None:
        """Globals that code names, and what it names in modules of the user's own."""
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._names(scope, inner)
        for key in code.co_names:
            if key not in scope:
                continue
            value = scope[key]
            if isinstance(value, ModuleType):
                self._names_in(value, code)
            else:
                self.places.append(Place(key, scope, "global", key))
                self._later(key, value)

    def _names_in(self, module: ModuleType, code: CodeType) -> None:
        if is_library(module.__name__):
            return
        for key in code.co_names:
            if key in vars(module) and not isinstance(vars(module)[key], ModuleType):
                self.places.append(Place(f"{module.__name__}.{key}", vars(module), "global", key))
                self._later(key, vars(module)[key])

    def _method(self, name: str, method: MethodType) -> None:
        self._later(name, method.__self__)
        self._later(name, method.__func__)

    def _partial(self, name: str, made: "partial[Any]") -> None:
        for value in (made.func, *made.args, *made.keywords.values()):
            self._later(name, value)
        self._mapping(name, vars(made))

    def _cache(self, name: str, cache: Any) -> None:
        self.caches.append(cache)
        self._later(name, cache.__wrapped__)

    def _cell(self, name: str, cell: CellType) -> None:
        self.places.append(Place(name, cell, "cell"))
        for content in _content(cell):
            self._later(name, content)

    def _array(self, name: str, array: Any) -> None:
        self.arrays[self._unique(name, self.arrays)] = array

    def _generator(self, name: str, generator: Any) -> None:
        self.generators.append(generator)

    def _class(self, kind: type, name: str = "") -> None:
        """The methods of a class of the user's own (they may name globals), and what it holds itself."""
        for parent in kind.__mro__:
            if id(parent) in self._seen or is_library(parent.__module__):
                continue
            self._seen[id(parent)] = parent
            for key, value in list(vars(parent).items()):
                function = getattr(value, "__func__", getattr(value, "fget", value))
                if isinstance(function, FunctionType):
                    self._later(key, function)
                elif isinstance(value, _lru_cache_wrapper) or not (key.startswith("__") or hasattr(value, "__get__")):
                    self.places.append(Place(f"{parent.__name__}.{key}", parent, "class", key))
                    self._later(f"{parent.__name__}.{key}", value)

    def _attributes(self, name: str, thing: Any) -> None:
        """Any other object: what it has as attributes and in slots."""
        if type(thing).__module__.partition(".")[0] in _NO_STATE:
            return
        contents = getattr(thing, "__dict__", None)
        if isinstance(contents, dict):
            self._mapping(name, contents)
        for kind in type(thing).__mro__:
            for slot in _slots(kind):
                self.places.append(Place(name, thing, "slot", slot))
                self._later(_under(name, slot), getattr(thing, slot, None))
        self._class(type(thing))

    def _skip(self, name: str, thing: Any) -> None:
        pass


_VISITS: list[tuple[Any, Callable[[Reach, str, Any], None]]] = [
    (Tensor, Reach._tensor),
    (nn.Module, Reach._module),
    (random.SystemRandom, Reach._skip),
    (RANDOM_OBJECTS, Reach._generator),
    (np.ndarray, Reach._array),
    (dict, Reach._mapping),
    ((list, tuple, set, frozenset, deque), Reach._sequence),
    (FunctionType, Reach._function),
    (MethodType, Reach._method),
    (_lru_cache_wrapper, Reach._cache),
    (partial, Reach._partial),
    (CellType, Reach._cell),
    (ModuleType, Reach._skip),
    (type, lambda reach, name, kind: reach._class(kind, name)),
]


def is_library(module_name: Any) -> bool:
    """Whether a module belongs to Python or was installed, rather than being the user's own.

    Its file says it, not its name: somebody's `queue.py` is not Python's.
    """
    root = str(module_name).partition(".")[0]
    file = getattr(sys.modules.get(root), "__file__", None)
    if file is None:
        return root in sys.stdlib_module_names and root != "__main__"
    return any(folder in file for folder in ("site-packages", "dist-packages")) or file.startswith(_PYTHONS_OWN)


def _is_plain(sequence: Any) -> bool:
    """Whether there is nothing that can change in it but itself: numbers and words, or tuples of these."""
    kinds = set(map(type, sequence))
    if tuple in kinds:
        kinds.remove(tuple)
        kinds.update(map(type, chain.from_iterable(value for value in sequence if type(value) is tuple)))
    return all(issubclass(kind, _LEAVES) for kind in kinds)


def label(key: Any) -> str:
    """A key in words, not longer than they are for."""
    return str(key) if isinstance(key, str | int | float | tuple) and len(str(key)) < 40 else type(key).__name__


def _under(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _content(cell: CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # a name that has no value yet
        return


def _slots(kind: type) -> list[str]:
    if is_library(kind.__module__) and not dataclasses.is_dataclass(kind):
        return []
    slots = vars(kind).get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    return [slot for slot in slots if slot not in ("__dict__", "__weakref__")]


def refuse_what_has_no_numbers(reach: Reach) -> None:
    """ExamineError, in one sentence, for a model that cannot be run here and put back."""
    for name, module in reach.modules.items():
        if isinstance(module, nn.parallel.DistributedDataParallel):
            raise ExamineError(
                f"{name or 'the model'} is wrapped in DistributedDataParallel, which sends gradients to other "
                "processes: examine the module inside, its .module"
            )
    for name, tensor in reach.tensors.items():
        if nn.parameter.is_lazy(tensor):
            raise ExamineError(f"{name} has no shape yet, as its layer is lazy: run the model once on a batch first")
        if tensor.is_meta:
            raise ExamineError(f"{name} is on the meta device and has no numbers: give the model real weights")
        if type(tensor).__name__ == "DTensor":
            raise ExamineError(f"{name} is sharded over several processes: examine a model that is whole")
