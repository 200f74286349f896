"""How a function travels to the checking process: with cloudpickle, and by value where that process may lack it."""

import base64
import contextlib
import functools
import inspect
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ON_THE_WAY = "<dynamic-code>"
"""What cloudpickle writes in place of the file of a function that travels by value."""

# cloudpickle's registry of modules belongs to the whole process.
_REGISTRY = threading.Lock()


class MisuseError(TypeError):
    """The loop calls loss_fn in a way that cannot work."""


class NotPortableError(ValueError):
    """The function cannot be turned into bytes; the text says what stands in the way."""


def portable(function: Any) -> dict[str, Any]:
    """The `source` of a request for a function or callable object."""
    import cloudpickle

    try:
        with _REGISTRY, _by_value(function):
            sent = cloudpickle.dumps(function)
    except Exception as error:  # pickling runs the __reduce__ of anything the function refers to
        words = str(error).splitlines()[0][:200] if str(error) else ""
        raise NotPortableError(f"{type(error).__name__}: {words}" if words else type(error).__name__) from error
    return {"kind": "pickle", "bytes": base64.b64encode(sent).decode()}


@contextlib.contextmanager
def _by_value(function: Any) -> Iterator[None]:
    """A function of the learner's own module travels with its code: the file may have changed since it was imported,
    or stand where the checking process does not look."""
    import cloudpickle

    module = _module(function)
    if module is None or module.__name__ == "__main__" or _is_installed(module):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _module(function: Any) -> ModuleType | None:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__module__", None) or type(function).__module__
    return sys.modules.get(name)


def code_file(function: Any) -> str | None:
    """The file in which a function, or what a partial, method or callable object runs, was written."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):  # an instance whose class defines __call__
        function = getattr(type(function), "__call__")  # noqa: B004, B009
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_filename if code is not None else None


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    folders = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    ours = Path(__file__).parents[1]
    return any(Path(file).resolve().is_relative_to(folder.resolve()) for folder in (*folders, ours))
