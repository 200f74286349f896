"""What is said to an answer, as a notebook shows it: wherever in a cell it was given, and once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from gradacc_lessons.quiz.quiz import Quiz

BANKS = Path(__file__).parent / "banks"
CELLS = [
    f"from gradacc_lessons import Quiz\nquiz = Quiz('90_small', bank_folder={str(BANKS)!r})",
    "quiz.answer('small-choice', '?')\nquiz.hint('small-choice')",
    "quiz.answer('small-choice', '?')",
    "said = quiz.answer('small-choice', '?')",
    "said",
    "import threading\nasked = threading.Thread(target=quiz.answer, args=('small-choice', '?'))\n"
    "asked.start()\nasked.join()",
]


@pytest.fixture(scope="module")
def shown() -> list[list[str]]:
    """What each cell puts on the page."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    return [[output["data"]["text/plain"] for output in cell.outputs] for cell in notebook.cells]


def test_a_verdict_is_shown_also_when_another_line_follows(shown: list[list[str]]) -> None:
    verdict, hint = shown[1]
    assert verdict.startswith("○ Not an answer yet. Pick from these:") and hint.startswith("Hint 1 of")


def test_it_is_shown_once_in_its_cell_and_again_where_it_is_asked_for(shown: list[list[str]]) -> None:
    verdict = shown[1][0]
    assert shown[2] == shown[3] == shown[4] == [verdict]


def test_what_another_thread_answers_is_shown_by_whoever_asked(shown: list[list[str]]) -> None:
    assert shown[5] == []


@pytest.mark.parametrize(("asked_by", "displayed"), [("execute_request", 1), ("comm_msg", 0)])
def test_a_callback_shows_its_verdict_in_the_panel_alone(
    quiz: Quiz, monkeypatch: pytest.MonkeyPatch, asked_by: str, displayed: int
) -> None:
    told: list[Any] = []
    shell = SimpleNamespace(get_parent=lambda: {"header": {"msg_type": asked_by}}, execution_count=7)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr("IPython.display.display", told.append)
    said = quiz.answer("small-choice", "?")
    assert len(told) == displayed and said.shown_in == (7 if displayed else None)
