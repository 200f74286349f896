"""Paths that begin with ~."""

from pathlib import Path


def expanded(path: str | Path) -> Path:
    """`path` with the home folder for a ~ at its beginning; ValueError if there is none, as for ~nobody-here."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        name = Path(path).parts[0]
        raise ValueError(f"{path} cannot be found, as there is no home folder {name}; write the path out") from None
