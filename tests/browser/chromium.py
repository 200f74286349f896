"""The browser that the tests drive, and what is said where there is none."""

import os
import shutil
import sys
from pathlib import Path

import pytest

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ON_A_MAC = tuple(Path(f"/Applications/{name}.app/Contents/MacOS/{name}") for name in ("Google Chrome", "Chromium"))


def installed_browser() -> str:
    """The path of an installed Chromium or Chrome. A learner may do without; continuous integration may not."""
    found = [shutil.which(command) for command in COMMANDS] + [str(app) for app in ON_A_MAC if app.exists()]
    if path := next(filter(None, found), None):
        return path
    how = "brew install --cask google-chrome" if sys.platform == "darwin" else "sudo apt-get install chromium"
    sentence = f"no Chromium or Chrome is installed, and these tests drive one; for example: {how}"
    if os.environ.get("CI", "").lower() in ("", "0", "false"):
        pytest.skip(sentence)
    pytest.fail(sentence, pytrace=False)
