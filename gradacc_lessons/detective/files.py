"""A function in a file, named as FILE:FUNCTION, checked without importing the file here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradacc_lessons.detective import limits
from gradacc_lessons.detective.client import WorkerError, ask_for
from gradacc_lessons.detective.wording import filled
from gradacc_lessons.home import expanded
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
    "no_function": Text("{path} has no {name!r}.", "{path} heeft geen {name!r}."),
    "other_functions": Text(
        "{path} has no {name!r}; it defines {names}.", "{path} heeft geen {name!r}; het definieert {names}."
    ),
    "raised": Text("{path} cannot be imported: {error}.", "{path} kan niet worden geïmporteerd: {error}."),
    "raised_at": Text(
        "{path} cannot be imported: {error}, at line {line}.",
        "{path} kan niet worden geïmporteerd: {error}, op regel {line}.",
    ),
    "time": Text(
        "{path} was still not imported after {limit:g} seconds. Training code belongs in a function or under "
        'if __name__ == "__main__".',
        "{path} was na {limit:g} seconden nog niet geïmporteerd. Code die traint hoort in een functie of "
        'onder if __name__ == "__main__".',
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
    or crashes costs `time_limit` seconds at most. LoadFunctionError says in a sentence what is wrong. ValueError for a
    time limit that cannot be kept, and for a ~ without a home folder.
    """
    limits.checked(time_limit)
    file, _, name = spec.rpartition(":")
    function = FileFunction(expanded(file).resolve(), name)
    if not file or not name.isidentifier():
        problem: Text | None = filled(_ERRORS["form"], spec=spec)
    elif not function.path.is_file():
        problem = filled(_ERRORS["missing"], path=file)
    else:
        problem = _import(function, file, time_limit)
    if problem is not None:
        raise LoadFunctionError(problem.to(language))
    return function


def _import(function: FileFunction, file: str, time_limit: float) -> Text | None:
    """What is wrong with the function in `file`, as tried in the checking process; None if nothing is."""

    def problem(name: str, **values: Any) -> Text:
        return filled(_ERRORS[name], path=file, name=function.name, **values)

    try:
        reply = ask_for("load", function.source(), time_limit)
    except WorkerError as error:
        return problem("worker", error=error)
    if reply.reason == "time":
        return problem("time", limit=time_limit)
    said = reply.header or {}
    if said.get("status") == "loaded":
        return None
    if said.get("status") == "raised":
        words = f"{said.get('type')}: {said.get('text')}".rstrip(": ")
        return problem("raised_at" if said.get("line") else "raised", error=words, line=said.get("line"))
    if said.get("status") == "no_function":
        names = ", ".join(map(str, said.get("known") or ()))
        return problem("other_functions" if names else "no_function", names=names)
    return problem("no_module" if said.get("status") == "no_module" else "ended")
