"""The exhibits: every file in the folder `exhibits` is one, and no list has to be edited."""

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from gradacc_lessons.museum.exhibit import Exhibit

FOLDER = Path(__file__).parent / "exhibits"
PACKAGE = "gradacc_lessons.museum.exhibits"


@cache
def exhibits(folder: Path = FOLDER) -> dict[str, Exhibit]:
    """The exhibits by id, the oldest bug first. ValueError names a file that holds none, or more than one."""
    found = [_exhibit_in(file) for file in sorted(folder.glob("*.py")) if not file.name.startswith("_")]
    return {one.id: one for one in sorted(found, key=lambda one: (one.year, one.project.lower(), one.id))}


def exhibit(name: str, folder: Path = FOLDER) -> Exhibit:
    """The exhibit with this id; ValueError names those there are."""
    known = exhibits(folder)
    if name not in known:
        raise ValueError(f"there is no exhibit {name!r}; there are {', '.join(known)}")
    return known[name]


def _exhibit_in(file: Path) -> Exhibit:
    module = _module(file)
    classes = [
        value for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Exhibit) and value.__module__ == module.__name__
    ]  # fmt: skip
    if len(classes) != 1:
        raise ValueError(f"{file} must hold one class of exhibit, and it holds {len(classes)}")
    made: Exhibit = classes[0]()
    return made


def _module(file: Path) -> ModuleType:
    name = f"{PACKAGE}.{file.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(file):
        return loaded
    spec = spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = module_from_spec(spec)
    sys.modules[name] = module  # pickling and inspect look it up
    spec.loader.exec_module(module)
    return module
