"""A quiz in a terminal: the same questions, the same progress and the same words as in a notebook."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from gradacc_lessons.cli_output import say
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.feedback import Feedback
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.questions import (
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    OrderQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.quiz.show import lines_of
from gradacc_lessons.text import Language, Text
from gradacc_lessons.user_file import load

HINT, SOLUTION, NEXT, QUIT = "?", "s", "n", "q"
"""What can be typed in place of an answer."""


class Stopped(Exception):
    """The learner wants to stop."""


class Terminal:
    """Asks the questions that are still open, one after another."""

    def __init__(self, quiz: Quiz, code: Path | None = None) -> None:
        self.quiz, self._code = quiz, code
        self._ids = [question.id for question in quiz.counted]

    def run(self) -> None:
        """Until all is answered or the learner stops; every answer is kept at once, so that nothing is lost then."""
        try:
            self._say(self.quiz.bank.title)
            if not any(map(self._is_open, self._ids)) and not self._again():
                return
            for question_id in filter(self._is_open, self._ids):
                self._ask(self.quiz.bank.question(question_id))
            self._say(self.quiz.result().message)
        except (Stopped, EOFError, KeyboardInterrupt):
            say("")
            self._say(self.quiz.result().message)
            self._say(words.STOPPED)

    def _is_open(self, question_id: str) -> bool:
        """Without an answer; an exercise until it is right."""
        given = self.quiz.given(question_id)
        code = isinstance(self.quiz.bank.question(question_id), CodeQuestion)
        return given is None or (code and given.fraction < 1)

    def _again(self) -> bool:
        """All is answered: how it stands, and whether to begin anew."""
        self._say(self.quiz.result().message)
        if not self.quiz.may_retake or self._read(words.AGAIN).casefold() not in ("y", "yes", "j", "ja"):
            return False
        self.quiz.retake()
        return True

    def _ask(self, question: Question) -> None:
        say("")
        number = {"number": self._ids.index(question.id) + 1, "total": len(self._ids)}
        self._say(fill(words.QUESTION_OF, number))
        for line in lines_of(self.quiz, question.id):
            say(line)
        self._say(self._how(question))
        while (said := self._try(question)) is None:
            pass
        wrong = isinstance(said, Feedback) and not said.correct
        if wrong and self._read(words.AFTER_WRONG).casefold() == SOLUTION:
            say(str(self.quiz.solution(question.id)))

    def _try(self, question: Question) -> Feedback | Literal[False] | None:
        """One line from the learner: what was said to an answer, False to go on without one, None to ask again."""
        typed = self._read(words.TYPED)
        if typed == HINT:
            say(str(self.quiz.hint(question.id)))
        elif typed.casefold() == NEXT:
            return False
        elif typed.casefold() == SOLUTION and self.quiz.may_see_solution(question.id):
            say(str(self.quiz.solution(question.id)))
        elif typed or isinstance(question, CodeQuestion):
            return self._answered(question, typed)
        else:
            self._say(words.PICK_FIRST)
        return None

    def _answered(self, question: Question, typed: str) -> Feedback | None:
        value: Any = typed
        if isinstance(question, CodeQuestion):
            if self._code is None:
                self._say(fill(words.NO_FILE, {"name": exercise(question.exercise).function}))
                return None
            self._say(words.CHECKING)
            try:
                value = load(f"{self._code}:{exercise(question.exercise).function}")[1]
            except ValueError as error:
                say(str(error))
                return None
        elif isinstance(question, ChoiceQuestion | MultipleQuestion | OrderQuestion):
            ids = [option.id for option in self.quiz.options(question.id)]
            value = _picked(typed, ids)
            if not value or (isinstance(question, ChoiceQuestion) and len(value) > 1):
                self._say(fill(words.NO_SUCH_NUMBER, {"last": len(ids)}))
                self._say(self._how(question))
                return None
            value = value[0] if isinstance(question, ChoiceQuestion) else value
        said = self.quiz.answer(question.id, value)
        say(str(said))
        settled = said.counted and (said.correct or not isinstance(question, CodeQuestion))
        return said if settled else None

    def _how(self, question: Question) -> Text:
        if isinstance(question, CodeQuestion):
            name = exercise(question.exercise).function
            return fill(words.TYPE_CODE, {"name": name}) if self._code else fill(words.NO_FILE, {"name": name})
        by_kind = {
            ChoiceQuestion: words.TYPE_ONE, MultipleQuestion: words.TYPE_SEVERAL, OrderQuestion: words.TYPE_ORDER,
            SpotQuestion: words.TYPE_LINE,
        }  # fmt: skip
        return by_kind.get(type(question), words.TYPE_NUMBER)

    def _read(self, prompt: Text) -> str:
        typed = input(prompt.to(self.quiz.language) + " ").strip()
        if typed.casefold() == QUIT:
            raise Stopped
        return typed

    def _say(self, text: Text) -> None:
        say(text.to(self.quiz.language))


def take_quiz(
    lesson: str,
    *,
    bank_folder: Path | None = None,
    language: Language | None = None,
    code: Path | None = None,
    again: bool = False,
    review: bool = False,
) -> None:
    """Take a lesson's quiz, or what is due of it; a language that is given is the learner's choice from now on."""
    quiz = Quiz(lesson, bank_folder=bank_folder)
    if language is not None:
        quiz.language = language
    if again:
        quiz.retake()
    if not review:
        Terminal(quiz, code).run()
        return
    due = quiz.reviewing()
    if due.counted:
        Terminal(due, code).run()
    else:
        say(str(due.result()))


def _picked(typed: str, ids: Sequence[str]) -> list[str]:
    """The ids behind the numbers that were typed; nothing if one of them stands for nothing."""
    parts = typed.replace(",", " ").replace(">", " ").split()
    known = {str(number): each for number, each in enumerate(ids, start=1)}
    return [known[part] for part in parts] if all(part in known for part in parts) else []
