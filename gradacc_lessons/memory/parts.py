"""What goes wrong in the functions that a prediction is made from: one sentence that says what, and at which line."""

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from gradacc_lessons.errors import words_of
from gradacc_lessons.memory.uncounted import CannotCount

NO_SIZES = (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException)
"""What torch raises where tensors without numbers do not suffice."""
_NO_RULE = "no fake impl"
_ONLY_WITHOUT_NUMBERS = ("FakeTensor", "tensor subclass", "data pointer", _NO_RULE)
"""Words of errors that a real tensor would not have given."""
_OURS_AND_TORCHS = (Path(__file__).parent, Path(torch.__file__).parent)
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


@contextmanager
def part(name: str) -> Iterator[None]:
    """Around a call of `build_model`, `loss_fn` or `make_batch`: what it raises becomes a ValueError with its place.

    A ValueError has a sentence of its own, and stays as it is; for NO_SIZES there is `without_numbers`. CannotCount
    (a ValueError) for what else only a tensor without numbers makes go wrong.
    """
    try:
        yield
    except (ValueError, *NO_SIZES):
        raise
    except Exception as error:
        if any(words in str(error) for words in _ONLY_WITHOUT_NUMBERS):
            what = "it has an operation without a size rule" if _NO_RULE in str(error) else f"{name} failed"
            raise not_followed(f"{what} ({words_of(error)}){place_in(error)}") from error
        raise ValueError(f"{name} failed with {words_of(error)}{place_in(error)}") from error


def without_numbers(error: RuntimeError) -> CannotCount:
    """The refusal that one of NO_SIZES stands for."""
    operation, place = error.func, place_in(error)  # type: ignore[attr-defined]  # all three have it
    if isinstance(error, UnsupportedOperatorException):
        return not_followed(f"it has an operation without a size rule ({operation}){place}")
    if operation is torch.ops.aten._local_scalar_dense.default:
        asked = "it asks what a tensor holds (with .item(), float(), an if, or a format such as {:.3f})"
        return not_followed(f"{asked}, which depends on its weights{place}", "Leave that out of what is followed, or")
    return not_followed(f"its sizes depend on what a tensor holds ({operation}){place}")


def not_followed(what: str, instead: str = "If it runs for real,") -> CannotCount:
    """The refusal of a model that needs numbers."""
    return CannotCount(
        f"this model cannot be followed without numbers: {what}. {instead} measure it with `measure_peak`"
    )


def place_in(error: BaseException) -> str:
    """ ", at line 12 of my_model.py, in forward": the last line that the error passed and that is nobody else's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    theirs = [frame for frame in frames if not _within(frame.filename, _OURS_AND_TORCHS)]
    found = [frame for frame in theirs if not _within(frame.filename, _INSTALLED)] or theirs
    if not found:
        return ""
    file = Path(found[-1].filename)
    of_file = f" of {file.name}" if file.is_file() else ""  # a notebook's cell has a name that says nothing
    return f", at line {found[-1].lineno}{of_file}, in {found[-1].name}"


def _within(file: str, folders: tuple[Path, ...]) -> bool:
    return any(folder in Path(file).parents for folder in folders)
