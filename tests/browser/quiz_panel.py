"""A quiz as a learner meets it on the page."""

from browser.lab import OUTPUT, Lab
from playwright.sync_api import Locator


class QuizPanel:
    """The quiz with several questions in it; the single questions in the middle of a lesson are not meant."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.box: Locator = lab.page.locator(f"{OUTPUT} .gradacc-quiz", has_text="Question ").last

    def text(self) -> str:
        """Everything that can be read in it."""
        return self.box.inner_text()

    def said(self) -> str:
        """The feedback, where a screen reader is told it."""
        return self.box.locator('[role="status"]').inner_text()

    def number(self) -> Locator:
        """The field for a number."""
        return self.box.get_by_label("Your answer", exact=False)

    def press(self, name: str) -> None:
        """Press the button of that name."""
        self.box.get_by_role("button", name=name, exact=True).click()

    def answer_number(self, value: float) -> str:
        """Type a number, answer, and return the feedback."""
        before = self.said()
        self.number().fill(f"{value:g}")
        self.number().press("Tab")
        self.press("Answer")
        self.lab.until(lambda: self.said() not in ("", before), "the quiz has said something new")
        return self.said()

    def pick(self, option: str) -> str:
        """Pick an option that contains `option`, answer, and return the feedback."""
        before = self.said()
        self.box.locator("label", has_text=option).locator("input").check()
        self.press("Answer")
        self.lab.until(lambda: self.said() not in ("", before), "the quiz has said something new")
        return self.said()
