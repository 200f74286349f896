"""A whole quiz is taken in Dutch by keyboard alone: every kind of question, the exercise too."""

import json
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from browser.accessibility import check_accessibility
from browser.lab import OUTPUT, Lab
from playwright.sync_api import expect

from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.questions import (
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.quiz.quiz import Quiz

pytestmark = pytest.mark.long
NOTEBOOK = "keyboard.ipynb"
MOST_TABS = 80
# What has the focus: its kind, what it is called, and whether it is in the quiz.
_FOCUSED = f"""() => {{
    const here = document.activeElement, label = here.closest('label') ?? here.labels?.[0];
    return {{
        kind: here.tagName === 'BUTTON' ? 'button' : here.type ?? here.tagName,
        name: [here, label].map(each => each?.textContent.trim() ?? '').join(' '),
        inside: here.closest('{OUTPUT} .gradacc-quiz') !== null,
    }};
}}"""


class Keyboard:
    """Hands that have no mouse."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.keys = lab, lab.page.keyboard

    @property
    def focused(self) -> dict[str, str]:
        found: dict[str, str] = self.lab.page.evaluate(_FOCUSED)
        return found

    def tab_to(self, kind: str, name: str = "", *, back: bool = False) -> None:
        """Press Tab until a control of that kind has the focus, whose name holds `name`."""
        for _ in range(MOST_TABS):
            self.keys.press("Shift+Tab" if back else "Tab")
            focused = self.focused
            if focused["inside"] and focused["kind"] == kind and name in focused["name"]:
                return
        raise AssertionError(f"no {kind} {name!r} can be reached by Tab")

    def to_the_top(self) -> None:
        """Back to the choice of a language, above the question."""
        self.tab_to("button", "English", back=True)

    def press_button(self, name: str) -> None:
        self.tab_to("button", name)
        self.keys.press("Enter")

    def choose(self, place: int) -> None:
        """In the list that has the focus, the entry `place` below its first."""
        self.keys.press("Space")  # JupyterLab takes the arrows of a closed list
        self.lab.until(lambda: self._chosen["open"], "the list opens")
        for key in (*["ArrowDown"] * place, "Enter"):
            self.keys.press(key)
        self.lab.until(lambda: self._chosen == {"open": False, "place": place}, f"entry {place} is chosen")

    @property
    def _chosen(self) -> dict[str, Any]:
        here = "const here = document.activeElement"
        return self.lab.page.evaluate(
            f"() => {{ {here}; return {{open: here.matches(':open'), place: here.selectedIndex}} }}"
        )


@pytest.fixture(scope="module")
def quiz(lab: Lab) -> Iterator[Quiz]:
    """The quiz of lesson 01 in a notebook of its own, its language chosen; what the kernel keeps is read here too."""
    loop = exercise("train_epoch_windows").solution
    cells = ["from gradacc_lessons.quiz.quiz import Quiz\nquiz = Quiz('01')\n_ = quiz.retake()\nquiz.show()", loop]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    (lab.server.root / NOTEBOOK).write_text(json.dumps(book), encoding="utf-8")
    lab.open(NOTEBOOK)
    lab.run_all()
    lab.page.locator(f"{OUTPUT} .gradacc-quiz button", has_text="English").focus()
    keyboard = Keyboard(lab)
    keyboard.press_button("Nederlands")
    expect(lab.page.locator(f"{OUTPUT} .gradacc-quiz .gradacc-head")).to_contain_text("Vraag 1 van")
    progress = Progress(lab.server.root.parent / "progress" / "progress.sqlite")
    yield Quiz("01", progress=progress)
    progress.set("language", "en")
    (lab.server.root / NOTEBOOK).unlink()


def answer(keyboard: Keyboard, quiz: Quiz, question: Question) -> None:
    """Put the right answer in, and give it."""
    keyboard.to_the_top()
    match question:
        case ChoiceQuestion():
            right = next(option for option in question.options if option.correct)
            keyboard.tab_to("radio", right.text.nl.replace("`", ""))
            keyboard.keys.press("Space")
        case MultipleQuestion():
            for option in quiz.options(question.id):
                keyboard.tab_to("checkbox", option.text.nl.split("`")[0][:40])
                if option.correct:  # type: ignore[union-attr]
                    keyboard.keys.press("Space")
        case NumberQuestion():
            keyboard.tab_to("text", "Jouw antwoord")
            keyboard.keys.type(f"{question.answer.value(quiz.variables(question.id)):g}")
            keyboard.keys.press("Enter")
            return
        case SpotQuestion():
            keyboard.tab_to("select-one", "De foute regel")
            shown = [number for number, line in enumerate(question.listing(), start=1) if line.strip()]
            keyboard.choose(shown.index(question.line[0]) + 1)
        case OrderQuestion():
            ids = [item.id for item in quiz.options(question.id)]
            for place, item in enumerate(question.orders[-1], start=1):
                keyboard.tab_to("select-one", f"Plaats {place} van")
                keyboard.choose(ids.index(item) + 1)
        case CodeQuestion():
            keyboard.press_button("Kijk ")
            return
    keyboard.press_button("Antwoord")


def test_every_question_is_answered_and_the_quiz_is_passed(lab: Lab, quiz: Quiz) -> None:
    keyboard, box = Keyboard(lab), lab.page.locator(f"{OUTPUT} .gradacc-quiz")
    status = box.locator('[role="status"]')
    kinds = set()
    for number, question in enumerate(quiz.counted, start=1):
        expect(box.locator(".gradacc-head")).to_contain_text(f"Vraag {number} van {len(quiz.counted)}")
        answer(keyboard, quiz, question)
        lab.until(lambda: "✓ Goed." in status.inner_text(), f"{question.id} is right, and that is said")
        if question.kind not in kinds:
            check_accessibility(lab)
        kinds.add(question.kind)
        keyboard.press_button("Resultaat" if number == len(quiz.counted) else "Volgende")
    assert kinds == {"choice", "multiple", "number", "spot", "order", "code"}
    lab.until(lambda: "✓ Gehaald." in status.inner_text(), "the quiz is passed")
    check_accessibility(lab)
    assert quiz.score == 1.0 and quiz.language == "nl"
