"""Checks of functions that learners wrote, each in a thread of its own while the rest of the panel goes on."""

from collections.abc import Callable
from threading import RLock, Thread
from time import monotonic, sleep
from typing import Any

from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.feedback import Note
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.questions import Question
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.text import Text

# Callbacks may come from several threads at once, checks have their own, and what one panel is told all others show:
# with a lock of its own each, two panels could wait for one another. No Condition: an interrupt in one keeps it locked.
PANELS = RLock()
SECONDS_BETWEEN_LOOKS = 0.01
"""How often whoever waits looks whether a check has ended."""


class Checks:
    """What one panel has checked. Calls `ended(question)` after each, under the lock of all panels."""

    def __init__(self, quiz: Quiz, ended: Callable[[Question], None]) -> None:
        self._quiz, self._ended = quiz, ended
        self._running: set[str] = set()
        self._came: dict[str, Note] = {}

    def runs(self, question: Question) -> bool:
        """Whether the question is being checked."""
        return question.id in self._running

    def begin(self, question: Question, function: Any) -> None:
        """Check in a thread: it takes seconds, and a callback that waits would stop every other control."""
        self._running.add(question.id)
        Thread(target=self._check, args=(question, function), daemon=True, name="quiz check").start()

    def said(self, question: Question | None) -> Note | None:
        """What there is to say about a check of the question; its outcome is said once, also if it came late."""
        if question is None:
            return None
        if self.runs(question):
            return Note(words.CHECKING, self._quiz.language)
        return self._came.pop(question.id, None)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no function is being checked; TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            with PANELS:  # what comes of a check is drawn under it
                if not self._running:
                    return
            if deadline is not None and monotonic() > deadline:
                raise TimeoutError(f"the check was still going after {timeout} seconds")
            sleep(SECONDS_BETWEEN_LOOKS)

    def _check(self, question: Question, function: Any) -> None:
        try:
            said: Note = self._quiz.answer(question.id, function)
        except Exception as error:
            said = Note(went_wrong(error), self._quiz.language)
        with PANELS:
            self._running.discard(question.id)
            self._came[question.id] = said
            self._ended(question)


def went_wrong(error: Exception) -> Text:
    """What a learner reads of an error that is not theirs."""
    return fill(words.WENT_WRONG, {"error": f"{type(error).__name__}: {error}"})
