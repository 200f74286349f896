"""What the tests of the quiz share: a bank with one question of each kind, and progress of its own for each test."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.questions import Bank
from gradacc_lessons.quiz.quiz import Quiz

BANKS = Path(__file__).parent / "banks"


@pytest.fixture(scope="session")
def small() -> Bank:
    return load_bank(BANKS / "90_small.yaml")


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    return Progress(tmp_path / "home" / "progress.sqlite")


@pytest.fixture
def quiz(progress: Progress) -> Quiz:
    return Quiz("90_small", bank_folder=BANKS, progress=progress)


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Path]:
    """The small bank with some of its text replaced; every replacement must hit exactly once."""

    def edit(*changes: tuple[str, str], name: str = "90_small.yaml") -> Path:
        text = (BANKS / "90_small.yaml").read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return edit
