"""A function in a file, named as FILE:FUNCTION, checked without importing the file here."""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradacc_lessons.detective import limits
from gradacc_lessons.detective.client import WorkerError, ask, import_path
from gradacc_lessons.detective.wire import WireError, pack, unpack
from gradacc_lessons.text import Language, Text


class LoadFunctionError(ValueError):
    """FILE:FUNCTION does not lead to a function; the text is one sentence for whoever typed it."""


@dataclass(frozen=True)
class FileFunction:
    """A function by its place. The file is only ever run in the checking process."""

    path: Path
    """The Python file, absolute."""
    name: str
    """The function's name in it."""

    def source(self) -> dict[str, Any]:
        """What a request says about it."""
        return {"kind": "file", "path": str(self.path), "name": self.name}


_ERRORS: dict[str, Text] = {
    "form": Text(
        "{spec!r} is not of the form FILE:FUNCTION, as in training.py:train_epoch.",
        "{spec!r} heeft niet de vorm BESTAND:FUNCTIE, zoals training.py:train_epoch.",
    ),
    "missing": Text("There is no file {path}.", "Er is geen bestand {path}."),
    "no_module": Text(
        "{path} is not a Python file; its name should end in .py.",
        "{path} is geen Python-bestand; de naam hoort op .py te eindigen.",
    ),
    "no_function": Text("{path} has no {name!r}{known}.", "{path} heeft geen {name!r}{known}."),
    "known": Text("; it defines {names}", "; het definieert {names}"),
    "raised": Text("{path} cannot be imported: {error}{line}.", "{path} kan niet worden geïmporteerd: {error}{line}."),
    "line": Text(", at line {line}", ", op regel {line}"),
    "time": Text(
        "{path} was still not imported after {limit:g} seconds. Training code belongs in a function or under "
        'if __name__ == "__main__".',
        "{path} was na {limit:g} seconden nog niet geïmporteerd. Code die traint hoort in een functie of "
        "onder "
        'if __name__ == "__main__".',
    ),
    "ended": Text(
        "Importing {path} ended the process that tried it.",
        "Het importeren van {path} beëindigde het proces.",
    ),
    "worker": Text("The checking process does not work: {error}.", "Het controleproces werkt niet: {error}."),
}


def load_function(spec: str, *, language: Language = "en", time_limit: float = limits.TIME_LIMIT) -> FileFunction:
    """The function that `FILE:FUNCTION` names, for `diagnose`.

    The file is imported in the checking process to see that the function is there, so an import that hangs, exits
    or crashes costs `time_limit` seconds at most. LoadFunctionError says in a sentence what is wrong.
    """
    file, _, name = spec.rpartition(":")
    if not file or not name.isidentifier():
        raise _error("form", language, spec=spec)
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise _error("missing", language, path=file)
    function = FileFunction(path, name)
    problem = _import(function, time_limit)
    if problem is None:
        return function
    kind, values = problem
    if values.pop("names", None):
        values["known"] = _ERRORS["known"].to(language).format(names=values.pop("listed"))
    if "at" in values:
        at = values.pop("at")
        values["line"] = _ERRORS["line"].to(language).format(line=at) if at else ""
    raise _error(kind, language, path=file, name=name, limit=time_limit, **{"known": "", **values})


def _import(function: FileFunction, time_limit: float) -> tuple[str, dict[str, Any]] | None:
    nonce = secrets.token_hex(16)
    header = {
        "mode": "load",
        "nonce": nonce,
        "time_limit": time_limit,
        "source": function.source(),
        "specs": [],
    }
    try:
        answer = ask(pack({**header, "sys_path": import_path()}), time_limit)
    except WorkerError as error:
        return "worker", {"error": error}
    if answer.reason == "time":
        return "time", {}
    try:
        reply, _ = unpack(answer.frame)
        if reply["nonce"] != nonce:
            return "ended", {}
        if reply["status"] == "raised":
            return "raised", {"error": f"{reply['type']}: {reply['text']}".rstrip(": "), "at": reply["line"]}
        if reply["status"] == "no_function":
            return "no_function", {
                "names": bool(reply["known"]),
                "listed": ", ".join(map(str, reply["known"])),
            }
        return None if reply["status"] == "loaded" else (str(reply["status"]), {})
    except (WireError, KeyError, TypeError):
        return "ended", {}


def _error(kind: str, language: Language, **values: Any) -> LoadFunctionError:
    return LoadFunctionError(_ERRORS.get(kind, _ERRORS["ended"]).to(language).format(**values))
