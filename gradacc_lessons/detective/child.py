"""What happens in the process of one check: fetch the learner's function, run it, put the answer into a frame."""

import base64
import contextlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gradacc_lessons.detective.rig import run_all
from gradacc_lessons.detective.scenarios import KEYWORDS
from gradacc_lessons.detective.sending import ON_THE_WAY, code_file, portable
from gradacc_lessons.detective.wire import Array, pack

REQUIRED = 5
"""model, optimizer, micro_batches, loss_fn, accumulation_steps: passed by position."""
MOST_NUMBERS = 16
"""A function may return so many at once."""
OURS = Path(__file__).resolve().parent


class LoadError(ValueError):
    """The named function cannot be had from the file; `problem` says why: no_function or no_module."""

    def __init__(self, problem: str, known: list[str]) -> None:
        super().__init__(problem)
        self.problem, self.known = problem, known


def answer(header: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """One frame: what the check of `header` measured, or why it could not. Never raises."""
    reply: dict[str, Any] = {"nonce": header["nonce"]}
    found: dict[str, Array] = {}
    loop: Any = None
    stage = "load"
    try:
        if header["sys_path"] is not None:  # else the worker's own is right
            sys.path[:] = header["sys_path"]
        source = _Source(header["source"])
        loop = source.fetch()
        stage = "run"
        if header["mode"] == "load":
            reply["status"] = "loaded"
        elif header["mode"] == "values":
            reply |= {"status": "returned", "values": [plain(loop(*call)) for call in header["calls"]]}
        else:
            measured, found = _try(loop, source, header["specs"], arrays)
            reply |= measured
    except LoadError as error:
        reply |= {"status": error.problem, "known": error.known}
    except BaseException as error:  # SystemExit and KeyboardInterrupt of the learner's code included
        found = {}
        reply |= {"status": "raised", "stage": stage, **describe(error, _code_file(loop, header["source"]))}
    return pack(reply, found)


def _try(
    loop: Any, source: "_Source", specs: list[dict[str, Any]], arrays: dict[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The answer to mode "diagnose": run the loop in the scenarios that suit its keywords, if it can be called."""
    status, accepted = fits(loop)
    reply = {"status": status, "kind": type(loop).__name__, "accepted": accepted}
    if status != "ran":
        return reply, {}
    suited = [spec for spec in specs if spec["needs"] in (None, *accepted) and spec["unless"] not in accepted]
    records, found, seconds = run_all(suited, arrays, loop, accepted, source.fetch)
    return {**reply, "records": records, "seconds": seconds}, found


def plain(value: Any) -> Any:
    """A number as JSON has it, also out of a tensor or array of one element; several in a tuple or list as a list.
    None for anything else, True included."""
    if type(value) in (tuple, list) and len(value) <= MOST_NUMBERS:
        return [_number(each) for each in value]
    return _number(value)


def _number(value: Any) -> float | None:
    with contextlib.suppress(Exception):  # the learner's own type may do anything here
        value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def fits(loop: Any) -> tuple[str, list[str]]:
    """Whether `loop` can be called as train_epoch is, and which of the keywords it accepts."""
    if not callable(loop):
        return "not_callable", []
    if inspect.isgeneratorfunction(loop) or inspect.iscoroutinefunction(loop):
        return "lazy", []
    try:
        signature = inspect.signature(loop)
        named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [name for name, parameter in signature.parameters.items() if parameter.kind in named]
        accepted: list[str] = [name for name in KEYWORDS if name in names]
        signature.bind(*range(REQUIRED), **dict.fromkeys(accepted))
    except (TypeError, ValueError):
        return "signature", []
    return "ran", accepted


def describe(error: BaseException, file: str | None) -> dict[str, Any]:
    """Kind, words and place of an error; the place is the innermost line of the learner's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if frame.filename in (file, ON_THE_WAY)]
    theirs = theirs or [frame for frame in frames if not _is_ours_or_installed(frame.filename)]
    place = theirs[-1] if theirs else None
    if isinstance(error, SyntaxError):
        return {
            "type": type(error).__name__,
            "text": error.msg,
            "file": error.filename,
            "line": error.lineno,
            "own": True,
        }
    own = bool(frames) and place is frames[-1]
    words = {"type": type(error).__name__, "text": _words(error), "own": own}
    return words | {"file": place.filename if place else None, "line": place.lineno if place else None}


def _is_ours_or_installed(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(OURS) or "site-packages" in path.parts or file.startswith("<frozen ")


def _words(error: BaseException) -> str:
    try:
        return next(iter(str(error).strip().splitlines()), "")[:300]
    except Exception:  # somebody's own __str__
        return ""


def _code_file(loop: Any, source: dict[str, Any]) -> str | None:
    return str(source["path"]) if source["kind"] == "file" else code_file(loop)


class _Source:
    """Where the learner's function comes from, as often as it is needed: always as it was before it first ran."""

    def __init__(self, source: dict[str, Any]) -> None:
        self.source = source
        self.pickled = base64.b64decode(source["bytes"]) if source["kind"] == "pickle" else None

    def fetch(self) -> Any:
        """The function, with the state that it had in the beginning."""
        if self.pickled is not None:
            import cloudpickle

            return cloudpickle.loads(self.pickled)
        loop = _from_file(self.source)
        # A file may do a lot of work of its own; it is run again only where the function cannot be copied.
        with contextlib.suppress(Exception):
            self.pickled = base64.b64decode(portable(loop)["bytes"])
        return loop


def _from_file(source: dict[str, Any]) -> Callable[..., Any]:
    path = Path(source["path"])
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(f"learner_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise LoadError("no_module", [])
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, source["name"]):
        own = [n for n, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == spec.name]
        raise LoadError("no_function", own[:20])
    return getattr(module, source["name"])  # type: ignore[no-any-return]
