"""A file of the user's own: the function that FILE:FUNCTION names, and one sentence for whatever goes wrong in it."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TextIO

from gradacc_lessons.errors import words_of
from gradacc_lessons.home import expanded


def load(target: str) -> tuple[Path, Callable[[], Any]]:
    """The file and the function of `FILE:FUNCTION`, as in "my_model.py:parts". The file runs in this process.

    Call the function inside `in_a_sentence(path)`. ValueError, in one sentence, if there is no such function.
    """
    file, _, name = target.rpartition(":")
    path = expanded(file)
    if not file or not name.isidentifier():
        raise ValueError(f"{target!r} is not of the form FILE:FUNCTION, as in my_model.py:parts")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    # A name that nothing else has: random.py of the user's is not Python's.
    module_name = path.stem if path.stem not in sys.modules else f"file_{path.stem}"
    spec = spec_from_file_location(module_name, path.resolve())
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file; its name should end in .py")
    module = module_from_spec(spec)
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.insert(0, folder)  # as if it were run: it may import what lies beside it
    sys.modules[module_name] = module  # dataclasses look their module up
    with in_a_sentence(path):
        spec.loader.exec_module(module)
        function: Callable[[], Any] | None = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{path} has no function {name!r}")
    return path, function


@contextmanager
def in_a_sentence(path: Path) -> Iterator[None]:
    """Around the file's code: what it prints goes to the error stream, so that the answer is alone on the output.

    Whatever it raises becomes a ValueError that says what and where; a ValueError of the course's own stays as it is.
    """
    try:
        with _printing_aside():
            yield
    except ValueError as error:
        if _line_in(path, error) is None:
            raise
        raise ValueError(_sentence(path, error)) from error
    except (Exception, SystemExit) as error:
        raise ValueError(_sentence(path, error)) from error


@contextmanager
def _printing_aside() -> Iterator[None]:
    """Python's output, and the process's own too, which libraries and child processes write to."""
    try:
        output = os.dup(1)
    except OSError:  # no output at all
        output = None
    own = [stream for stream in (sys.stdout, sys.__stdout__) if stream is not None]
    _flush(own)
    try:
        with suppress(OSError):  # no error stream
            if output is not None:
                os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _flush(own)
        if output is not None:
            os.dup2(output, 1)
            os.close(output)


def _flush(streams: list[TextIO]) -> None:
    for stream in streams:
        with suppress(OSError, ValueError):  # its reader has gone, or it is closed
            stream.flush()


def _sentence(path: Path, error: BaseException) -> str:
    line = _line_in(path, error)
    return f"{path} failed with {words_of(error)}" + (f", at line {line}" if line is not None else "")


def _line_in(path: Path, error: BaseException) -> int | None:
    """The last line of the file that the error passed through."""
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path.resolve())), None)
