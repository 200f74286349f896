"""Loops that are right: their windows are seen, and nothing is found wrong."""

import pytest
from detective.tape.bench import WINDOWS, lengths
from detective.tape.right_loops import RIGHT, SPECIAL


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_found(name: str) -> None:
    tape = RIGHT[name]()
    assert tape.findings == []
    if name not in SPECIAL:
        assert lengths(tape) == WINDOWS
