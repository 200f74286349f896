"""Sizes in bytes: read as people write them, written as people read them."""

import re

MEBIBYTE = 2**20
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
LARGEST = 2**63 - 1
"""More bytes than any address can reach."""
LONGEST = 40
"""Characters of what was written that a message repeats."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def bytes_in(text: str) -> int:
    """The bytes that "24GiB", "512 MiB" or "16 GB" stands for.

    ValueError, in one sentence, for anything else, and for more than any machine has.
    """
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{shown(text)} is no size: write a number and a unit, such as 24GiB, 512MiB or 16GB")
    size = float(match[1]) * unit
    if size > LARGEST:
        raise ValueError(f"{shown(text)} is more memory than any machine has")
    return round(size)


def shown(value: object) -> str:
    """A wrong value as a message repeats it: its beginning, where it is longer than anybody would read."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def readable(size: float) -> str:
    """A size with three figures and the unit that suits it: 1.50 GiB, 44.1 MiB, 512 bytes."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        amount = size / _UNITS[unit.upper()]
        if amount >= 1023.5 / 1024:  # in the next smaller unit it would round to 1024
            decimals = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
            return f"{amount:.{decimals}f} {unit}"
    return f"{size:.0f} bytes"
