"""A ~ leads to a home folder, or to a sentence."""

from pathlib import Path

import pytest

from gradacc_lessons.home import expanded


def test_a_home_folder_is_found_and_other_paths_stay_as_they_are(monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    assert expanded("~/x") == Path("/somewhere/x")
    assert [expanded(path) for path in ("x/~", "/x", Path("x"))] == [Path("x/~"), Path("/x"), Path("x")]


def test_nobodys_home_folder_is_told_in_a_sentence():
    with pytest.raises(ValueError, match=r"^~nobody-here/x cannot be found, as there is no home folder ~nobody-here;"):
        expanded("~nobody-here/x")
