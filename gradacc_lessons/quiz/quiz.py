"""Taking a quiz: everything that the view does, as methods that need no widgets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradacc_lessons.course import course_folder
from gradacc_lessons.progress import Answer, Progress, learner_progress
from gradacc_lessons.progress_records import best_answers, best_take, take_from
from gradacc_lessons.quiz import draw, ordering, sentences, standing, words
from gradacc_lessons.quiz.bank import find_bank, load_bank
from gradacc_lessons.quiz.exercise import source_of
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.feedback import Feedback, Note, Result, graded, shown
from gradacc_lessons.quiz.formula import Number
from gradacc_lessons.quiz.grade import Grade, as_json, fill, grade
from gradacc_lessons.quiz.predictions import Predicted, Predictions
from gradacc_lessons.quiz.question_parts import Guess, Option, OrderItem
from gradacc_lessons.quiz.questions import (
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    PredictQuestion,
    Question,
)
from gradacc_lessons.quiz.sentences import fill_texts
from gradacc_lessons.text import LANGUAGES, Language, Text, joined

if TYPE_CHECKING:
    from gradacc_lessons.quiz.review import Reviewing


class Quiz:
    """The quiz of one lesson, for one learner.

    `lesson` is its name or its number ("01_accumulate", "01"); ValueError lists the lessons there are. `language`
    is "en" or "nl"; without it, the one the learner chose. `bank_folder` holds other banks than the course's.
    """

    may_retake = True
    """Whether it can be taken again."""

    def __init__(
        self,
        lesson: str,
        language: Language | None = None,
        *,
        bank_folder: Path | str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.own_language = None if language is None else _known(language)
        self.bank_folder = Path(bank_folder or course_folder("quizzes"))
        self.bank = load_bank(find_bank(self.bank_folder, lesson))
        self.lesson = self.bank.lesson
        self.progress = progress or learner_progress()
        self._predictions = Predictions(self.progress, self.lesson)
        self._hints_given: dict[tuple[int, str], int] = {}
        self._told: set[Text] = set()

    @property
    def language(self) -> Language:
        """The language of what is said; setting it is the learner's choice for all lessons, and is kept."""
        return self.own_language or self.progress.language

    @language.setter
    def language(self, language: Language) -> None:
        chosen, self.own_language = _known(language), None
        self.progress.set("language", chosen)

    @property
    def take(self) -> int:
        """Which take this is, from 1."""
        return self.progress.take(self.lesson) or 1

    @property
    def counted(self) -> tuple[Question, ...]:
        """The questions that go towards the result: all but the predictions."""
        return self.bank.counted

    @property
    def score(self) -> float:
        """The best take's share of the points, 0 to 1."""
        takes = self.progress.takes(self.lesson)
        return best_take(takes).share if takes else 0.0

    def show(self) -> None:
        """Show the quiz in the notebook, where the learner stopped; outside a notebook, say what it asks."""
        from gradacc_lessons.quiz.show import show

        show(self, [question.id for question in self.counted])

    def ask(self, question_id: str) -> None:
        """Show one question alone, in the middle of a lesson."""
        from gradacc_lessons.quiz.show import show

        show(self, [self.bank.question(question_id).id])

    def review(self) -> None:
        """Show again what was missed and is due today: 1 day after, then 3, 7 and 21 days after a right answer."""
        from gradacc_lessons.quiz.show import show

        due = self.reviewing()
        show(due, [question.id for question in due.counted])

    def reviewing(self, today: date | None = None) -> "Reviewing":
        """What `review` shows, as a quiz of its own without widgets; `today` is the learner's."""
        from gradacc_lessons.quiz.review import Reviewing

        return Reviewing(self, today or datetime.now().astimezone().date())

    def variables(self, question_id: str) -> Mapping[str, Number]:
        """The learner's own numbers in a question."""
        question = self.bank.question(question_id)
        return draw.variables(question.variables, self._key(question)) if isinstance(question, NumberQuestion) else {}

    def prompt(self, question_id: str) -> Text:
        """What is asked, with the learner's own numbers."""
        question = self.bank.question(question_id)
        if isinstance(question, CodeQuestion):
            statement = exercise(question.exercise).statement
            return joined([question.prompt, statement], "\n") if question.prompt else statement
        return fill(question.prompt, self.variables(question_id))

    def options(self, question_id: str) -> Sequence[Option | Guess | OrderItem]:
        """What can be picked or put in order, in the learner's own order; empty where nothing is."""
        question = self.bank.question(question_id)
        if isinstance(question, OrderQuestion):
            items = {item.id: item for item in question.items}
            return [items[each] for each in ordering.shuffled(question, self._key(question))]
        if not isinstance(question, ChoiceQuestion | MultipleQuestion | PredictQuestion):
            return []
        by_id: dict[str, Option | Guess] = {option.id: option for option in question.options}
        ids = list(by_id)
        if not isinstance(question, PredictQuestion) and question.shuffle:
            ids = draw.order(ids, self._key(question))
        return [by_id[each] for each in ids]

    def answer(self, question_id: str, value: Any) -> Feedback:
        """Answer a question.

        `value` is an option's id, several ids, all ids from first to last, a number (or its text), a line number, or
        the function that an exercise asks for. What cannot be read as an answer costs nothing. What is said to it
        stands below the cell that asks, whatever else the cell does.
        """
        return shown(self._answered(self.bank.question(question_id), value))

    def _answered(self, question: Question, value: Any) -> Feedback:
        if isinstance(question, PredictQuestion):
            return self._with_notices(self._predictions.commit(question, value, self.language))
        take = self.take  # a check takes a while, and belongs to the take in which it was asked for
        if isinstance(question, CodeQuestion):
            result = exercise(question.exercise).check(value)
        else:
            result = grade(question, value, self.variables(question.id))
        practice = self._keep(question, take, value, result) if result.counted else None
        return self._with_notices(graded(result, self.language, practice=practice))

    def given(self, question_id: str) -> Answer | None:
        """The answer that counts in this take; of an exercise's tries, the best."""
        return best_answers(self.progress.answers(self.lesson), self.take).get(question_id)

    def state(self, question_id: str) -> Text:
        """A word on the question: not answered yet, how well it was answered, or what was predicted."""
        if not isinstance(self.bank.question(question_id), PredictQuestion):
            return standing.state(self.given(question_id))
        return self._predictions.state(self._predicts(question_id))

    def has_hint(self, question_id: str) -> bool:
        """Whether there is a hint at all."""
        return bool(self._hints_for(self.bank.question(question_id)))

    def hint(self, question_id: str) -> Note:
        """The next hint; after the last one, the last one again."""
        hints = self._hints_for(self.bank.question(question_id))
        if not hints:
            return Note(words.NO_HINT, self.language)
        asked = (self.take, question_id)
        number = self._hints_given[asked] = min(self._hints_given.get(asked, 0) + 1, len(hints))
        hint = fill(hints[number - 1], self.variables(question_id))
        return Note(fill_texts(words.HINT, {"number": number, "total": len(hints), "hint": hint}), self.language)

    def may_see_solution(self, question_id: str) -> bool:
        """Whether `solution` says more than "answer first"."""
        return isinstance(self.bank.question(question_id), CodeQuestion) or self.given(question_id) is not None

    def solution(self, question_id: str) -> Note:
        """The solution: of an exercise at any time, of a question once it is answered."""
        question = self.bank.question(question_id)
        if isinstance(question, CodeQuestion):
            return Note(words.SOLUTION_CODE, self.language, exercise(question.exercise).solution)
        if isinstance(question, PredictQuestion):
            return Note(words.MEASURED_DECIDES, self.language)
        if not self.may_see_solution(question_id):
            return Note(words.ANSWER_FIRST, self.language)
        return Note(
            fill_texts(words.SOLUTION, {"solution": sentences.right(question, self.variables(question_id))}),
            self.language,
        )

    def prediction(self, question_id: str) -> float | str | None:
        """What the learner predicted: a number, an option's id, or None if nothing yet."""
        return self.predicted(question_id)()

    def predicted(self, question_id: str) -> Predicted:
        """The prediction as an explorer takes it, which waits for it and draws it."""
        return Predicted(self._predictions, self._predicts(question_id))

    def outcome(self, question_id: str) -> Feedback | None:
        """What a run said of the prediction; None before it is measured."""
        return self._predictions.outcome(self._predicts(question_id), self.language)

    def measured(self, question_id: str, value: float | str) -> Feedback:
        """Say what a run measured: compares it with the prediction, and closes the prediction.

        Without a prediction it says to predict first, and gives nothing away.
        """
        return self._predictions.measure(self._predicts(question_id), value, self.language)

    def result(self) -> Result:
        """How this take stands, the best one, and what to read again."""
        takes, predictions = self.progress.takes(self.lesson), self.bank.predictions
        take = takes[-1] if takes else take_from(1, self._asked, ())
        made = [self.prediction(each.id) is not None for each in predictions]
        return standing.result(take, self.score, self.counted, made, self.language)

    def retake(self) -> int:
        """Begin again with other numbers and another order; the best take counts. Returns the take's number."""
        take = self.take
        if best_answers(self.progress.answers(self.lesson), take):
            self.progress.begin_take(self.lesson, take + 1, self._asked)
        return self.take

    def _with_notices(self, said: Feedback) -> Feedback:
        """What happened to the progress file, each thing once."""
        news = [notice for notice in self.progress.notices if notice not in self._told]
        self._told.update(news)
        return replace(said, message=joined([said.message, *news], "\n")) if news else said

    def _hints_for(self, question: Question) -> tuple[Text, ...]:
        return exercise(question.exercise).hints if isinstance(question, CodeQuestion) else question.hints

    @property
    def _asked(self) -> dict[str, float]:
        """What a take that begins now asks, with the points of each question."""
        return {question.id: question.points for question in self.counted}

    @property
    def drawn(self) -> tuple[int, str]:
        """The take and the seed that the learner's own numbers follow from: other ones, other numbers."""
        return self.take, self.progress.seed(self.lesson, self.take)

    def _key(self, question: Question) -> str:
        take, seed = self.drawn
        return draw.key(seed, take, question.id)

    def _keep(self, question: Question, take: int, value: Any, result: Grade) -> Text | None:
        """Keep an answer; what to say if it does not go towards the result."""
        code = isinstance(question, CodeQuestion)
        self.progress.begin_take(self.lesson, take, self._asked)
        # Code is written in tries: it counts as soon as it passes. Everything else counts as first answered.
        counts = self.progress.add_answer(
            self.lesson,
            question.id,
            take,
            source_of(value) if code else as_json(question, value),
            result.fraction,
            question.points,
            retry=code,
        )
        asked = next(each.asked for each in self.progress.takes(self.lesson) if each.number == take)
        if question.id not in asked:
            return words.NEW_QUESTION
        return None if counts else words.PRACTICE

    def _predicts(self, question_id: str) -> PredictQuestion:
        question = self.bank.question(question_id)
        if not isinstance(question, PredictQuestion):
            raise ValueError(f"{question_id} is a {question.kind} question; only a predict question is measured")
        return question


def _known(language: Language) -> Language:
    if language not in LANGUAGES:
        raise ValueError(f"the language {language!r} is not one of {', '.join(LANGUAGES)}")
    return language
