"""What `gradacc plan` does: find the model, plan it, and say the plan."""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from json import dumps
from pathlib import Path
from typing import Any

from gradacc_lessons.home import expanded
from gradacc_lessons.memory.config import Parts, parts_of_config
from gradacc_lessons.memory.paste import TITLES
from gradacc_lessons.memory.plan import Plan, plan
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.recipe import Recipe

CONTRACT = "it must return (build_model, loss_fn, make_batch)"


def planned_file(target: str, recipe: Recipe, **wishes: Any) -> Plan:
    """The plan for what FILE:FUNCTION returns. The file runs in this process. `wishes` are arguments of `plan`.

    ValueError, in one sentence, for whatever goes wrong in it.
    """
    file, _, name = target.rpartition(":")
    path = expanded(file)
    if not file or not name.isidentifier():
        raise ValueError(f"{target!r} is not of the form FILE:FUNCTION, as in my_model.py:parts")
    with _in_a_sentence(path):
        parts = _parts(path, name)
        return plan(*parts, recipe, **wishes)


def planned_config(file: Path, sequence: int, recipe: Recipe, **wishes: Any) -> Plan:
    """The plan for the language model that a configuration file describes. `wishes` are arguments of `plan`.

    ValueError, in one sentence, for what cannot be planned, and where transformers is missing.
    """
    try:
        parts = parts_of_config(file, sequence)
    except ImportError as error:
        raise ValueError(str(error)) from error
    return plan(*parts, recipe, **wishes)


def as_text(found: Plan) -> str:
    """The plan, and the lines to paste."""
    pieces = [str(found)]
    size, count = found.equal
    peak = f", predicted peak {readable(found.equal_peak_bytes)}" if found.equal_peak_bytes is not None else ""
    for framework, title in TITLES.items():
        what = "" if framework == "loop" else f": {count:,} x {size:,}{peak}"
        pieces += ["", f"# {title}{what}", found.lines(framework)]
    return "\n".join(pieces)


def as_json(found: Plan) -> str:
    """The plan and the lines to paste, for programs."""
    lines = {framework: found.lines(framework) for framework in TITLES}
    return dumps({**found.as_dict(), "lines": lines}, indent=2)


def _parts(path: Path, name: str) -> Parts:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    spec = spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file; its name should end in .py")
    module = module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # as if it were run: it may import what lies beside it
    spec.loader.exec_module(module)
    function: Callable[[], Any] | None = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{path} has no function {name!r}")
    parts = function()
    if not isinstance(parts, tuple) or len(parts) != 3 or not all(map(callable, parts)):
        raise ValueError(f"{name}() in {path} does not give what is planned: {CONTRACT}, three functions")
    return parts


@contextmanager
def _in_a_sentence(path: Path) -> Iterator[None]:
    """Whatever the file's code raises becomes a ValueError that says what and where."""
    try:
        yield
    except ValueError as error:
        if _line_in(path, error) is None:
            raise
        raise ValueError(_sentence(path, error)) from error
    except (Exception, SystemExit) as error:
        raise ValueError(_sentence(path, error)) from error


def _sentence(path: Path, error: BaseException) -> str:
    words = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
    line = _line_in(path, error)
    return f"{path} failed with {said}" + (f", at line {line}" if line is not None else "")


def _line_in(path: Path, error: BaseException) -> int | None:
    """The last line of the file that the error passed through."""
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path.resolve())), None)
