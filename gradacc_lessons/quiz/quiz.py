"""Taking a quiz: everything that the view does, as methods that need no widgets."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gradacc_lessons.course import course_folder
from gradacc_lessons.progress import PASS_MARK, Answer, Prediction, Progress, learner_progress
from gradacc_lessons.quiz import draw, words
from gradacc_lessons.quiz.bank import find_bank, load_bank
from gradacc_lessons.quiz.exercise import source_of
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.feedback import Feedback, Note, Result, graded, joined, passes
from gradacc_lessons.quiz.formula import Number
from gradacc_lessons.quiz.grade import committed, fill, grade, grade_prediction, no_answer
from gradacc_lessons.quiz.number import NotANumber, written
from gradacc_lessons.quiz.questions import (
    ChoiceQuestion,
    CodeQuestion,
    Guess,
    MultipleQuestion,
    NumberQuestion,
    Option,
    PredictQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.text import LANGUAGES, Language, Text


class Quiz:
    """The quiz of one lesson, for one learner.

    `lesson` is its name or its number ("01_accumulate", "01"); ValueError lists the lessons there are. `language`
    is "en" or "nl"; without it, the one the learner chose. `bank_folder` holds other banks than the course's.
    """

    def __init__(
        self,
        lesson: str,
        language: Language | None = None,
        *,
        bank_folder: Path | str | None = None,
        progress: Progress | None = None,
    ) -> None:
        if language is not None and language not in LANGUAGES:
            raise ValueError(f"the language {language!r} is not one of {', '.join(LANGUAGES)}")
        self.bank = load_bank(find_bank(Path(bank_folder or course_folder("quizzes")), lesson))
        self.lesson = self.bank.lesson
        self.progress = progress or learner_progress()
        self._language = language
        self._hints_given: dict[str, int] = {}
        self._told: set[Text] = set()

    @property
    def language(self) -> Language:
        """The language of what is said; setting it is the learner's choice for all lessons, and is kept."""
        return self._language or self.progress.language

    @language.setter
    def language(self, language: Language) -> None:
        self._language = language
        self.progress.set("language", language)

    @property
    def take(self) -> int:
        """Which take this is, from 1."""
        return self.progress.take(self.lesson) or 1

    @property
    def counted(self) -> tuple[Question, ...]:
        """The questions that go towards the result: all but the predictions."""
        return tuple(question for question in self.bank.questions if not isinstance(question, PredictQuestion))

    @property
    def score(self) -> float:
        """The best take's share of the points, 0 to 1."""
        return self.result().best

    def show(self) -> None:
        """Show the quiz in the notebook, where the learner stopped; outside a notebook, say what it asks."""
        from gradacc_lessons.quiz.view import show

        show(self, [question.id for question in self.counted])

    def ask(self, question_id: str) -> None:
        """Show one question alone, in the middle of a lesson."""
        from gradacc_lessons.quiz.view import show

        show(self, [self.bank.question(question_id).id])

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

    def options(self, question_id: str) -> list[Option | Guess]:
        """What can be picked, in the learner's own order; empty where nothing is picked."""
        question = self.bank.question(question_id)
        if not isinstance(question, ChoiceQuestion | MultipleQuestion | PredictQuestion):
            return []
        by_id: dict[str, Option | Guess] = {option.id: option for option in question.options}
        ids = list(by_id)
        if not isinstance(question, PredictQuestion) and question.shuffle:
            ids = draw.order(ids, self._key(question))
        return [by_id[each] for each in ids]

    def answer(self, question_id: str, value: Any) -> Feedback:
        """Answer a question.

        `value` is an option's id, several ids, a number (or its text), a line number, or the function that an
        exercise asks for. What cannot be read as an answer costs nothing.
        """
        question = self.bank.question(question_id)
        if isinstance(question, PredictQuestion):
            return self._commit(question, value)
        if isinstance(question, CodeQuestion):
            result = exercise(question.exercise).check(value)
            kept: Any = source_of(value)
        else:
            result = grade(question, value, self.variables(question_id))
            kept = _as_json(value) if result.counted else None
        counts = True
        if result.counted:
            take, points = self.take, question.points
            self.progress.begin_take(self.lesson, take, self._points, len(self.counted))
            # Code is written in tries: it counts as soon as it passes. Everything else counts as first answered.
            counts = self.progress.add_answer(
                self.lesson, question.id, take, kept, result.fraction, points, retry=isinstance(question, CodeQuestion)
            )
        return self._with_notices(graded(result, self.language, counts=counts))

    def given(self, question_id: str) -> Answer | None:
        """The answer that counts in this take; of an exercise's tries, the best."""
        return self._counting(self.take).get(question_id)

    def has_hint(self, question_id: str) -> bool:
        """Whether there is a hint at all."""
        return bool(self._hints_for(self.bank.question(question_id)))

    def hint(self, question_id: str) -> Note:
        """The next hint; after the last one, the last one again."""
        hints = self._hints_for(self.bank.question(question_id))
        if not hints:
            return Note(words.NO_HINT, self.language)
        number = min(self._hints_given.get(question_id, 0) + 1, len(hints))
        self._hints_given[question_id] = number
        hint = fill(hints[number - 1], self.variables(question_id))
        return Note(_both(words.HINT, {"number": number, "total": len(hints), "hint": hint}), self.language)

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
        return Note(_both(words.SOLUTION, {"solution": self._right(question)}), self.language)

    def prediction(self, question_id: str) -> float | str | None:
        """What the learner predicted: a number, an option's id, or None if nothing yet."""
        kept = self.progress.prediction(self.lesson, self._predicts(question_id).id)
        value: float | str | None = kept.value if kept else None
        return value

    def prediction_text(self, question_id: str) -> Text | None:
        """The prediction as it stands in a sentence, with its unit."""
        predicted = self.prediction(question_id)
        return None if predicted is None else self._shown(self._predicts(question_id), predicted)

    def measured(self, question_id: str, value: float | str) -> Feedback:
        """Say what a run measured: compares it with the prediction, and closes the prediction."""
        question = self._predicts(question_id)
        try:
            outcome = committed(question, value)
        except NotANumber as error:
            raise ValueError(f"{question_id} was measured as {value!r}: {error}") from None
        kept = self.progress.prediction(self.lesson, question.id)
        if kept is None:
            said = _both(words.NO_PREDICTION, {"measured": self._shown(question, outcome)})
            return Feedback(said, self.language, correct=None, counts=False)
        result = grade_prediction(question, kept.value, outcome)
        if kept.measured != outcome:
            self.progress.add_prediction(self.lesson, question.id, Prediction(kept.value, outcome, result.fraction))
        return graded(result, self.language)

    def result(self) -> Result:
        """How this take stands, the best one, and what to read again."""
        take, of = self.take, self._points
        counting = self._counting(take)
        shares = [self._earned(self._counting(each)) / of for each in range(1, take + 1)]
        points, best = self._earned(counting), max(shares)
        lost = [q for q in self.counted if q.id not in counting or counting[q.id].fraction < 1]
        reread = tuple(dict.fromkeys(question.section for question in lost))
        message = self._result_text(points, best, len(counting), reread)
        return Result(
            message, self.language, "", points, of, points / of, best, passes(best), take, len(counting),
            len(self.counted), reread,
        )  # fmt: skip

    def retake(self) -> int:
        """Begin again with other numbers and another order; the best take counts. Returns the take's number."""
        if self._counting(self.take):
            self.progress.begin_take(self.lesson, self.take + 1, self._points, len(self.counted))
            self._hints_given.clear()
        return self.take

    def _with_notices(self, said: Feedback) -> Feedback:
        """What happened to the progress file, each thing once."""
        news = [notice for notice in self.progress.notices if notice not in self._told]
        self._told.update(news)
        return replace(said, message=joined([said.message, *news], "\n")) if news else said

    def _hints_for(self, question: Question) -> tuple[Text, ...]:
        return exercise(question.exercise).hints if isinstance(question, CodeQuestion) else question.hints

    @property
    def _points(self) -> float:
        return sum(question.points for question in self.counted)

    def _key(self, question: Question) -> str:
        return draw.key(self.progress.seed(), self.take, question.id)

    def _counting(self, take: int) -> dict[str, Answer]:
        """The answers that count in a take, by question; questions that the bank no longer has are left out."""
        known = {question.id for question in self.counted}
        best: dict[str, Answer] = {}
        for answer in self.progress.answers(self.lesson):
            if answer.take == take and answer.counts and answer.question in known:
                earlier = best.get(answer.question)
                if earlier is None or answer.fraction > earlier.fraction:
                    best[answer.question] = answer
        return best

    def _earned(self, counting: Mapping[str, Answer]) -> float:
        return sum(q.points * counting[q.id].fraction for q in self.counted if q.id in counting)

    def _commit(self, question: PredictQuestion, value: Any) -> Feedback:
        try:
            predicted = committed(question, value)
        except NotANumber as error:
            return graded(no_answer(error.sentence), self.language)
        kept = self.progress.prediction(self.lesson, question.id)
        if kept is not None and kept.measured is not None:
            said = _both(words.TOO_LATE, {"predicted": self._shown(question, kept.value)})
            return Feedback(said, self.language, correct=None, counted=False, counts=False)
        if kept is None or kept.value != predicted:
            self.progress.add_prediction(self.lesson, question.id, Prediction(predicted))
        said = _both(words.COMMITTED, {"predicted": self._shown(question, predicted)})
        return self._with_notices(Feedback(joined([words.NOTED, said]), self.language, correct=None, counts=False))

    def _predicts(self, question_id: str) -> PredictQuestion:
        question = self.bank.question(question_id)
        if not isinstance(question, PredictQuestion):
            raise ValueError(f"{question_id} is a {question.kind} question; only a predict question is measured")
        return question

    def _shown(self, question: PredictQuestion, value: float | str) -> Text:
        """A predicted or measured value as it stands in a sentence."""
        for option in question.options:
            if option.id == value:
                return option.text
        number = Text(*(written(value, language) for language in LANGUAGES))
        return joined([number, question.unit]) if question.unit else number

    def _right(self, question: Question) -> Text:
        if isinstance(question, ChoiceQuestion | MultipleQuestion):
            return joined([option.text for option in question.options if option.correct], "; ")
        if isinstance(question, SpotQuestion):
            lines = Text(*(f" {words.OR.to(to)} ".join(map(str, question.line)) for to in LANGUAGES))
            return _both(words.LINE, {"lines": lines})
        assert isinstance(question, NumberQuestion)
        value = question.answer.value(self.variables(question.id))
        number = Text(*(written(value, language) for language in LANGUAGES))
        formula = Text(f"({question.answer.text})", f"({question.answer.text})")
        return joined([number, *([question.unit] if question.unit else []), formula])

    def _result_text(self, points: float, best: float, answered: int, reread: tuple[str, ...]) -> Text:
        of = self._points
        numbers = {"points": points, "of": of, "share": f"{points / of:.0%}", "mark": f"{PASS_MARK:.0%}"}
        parts = [words.PASSED if passes(best) else words.NOT_YET, fill(words.RESULT, numbers)]
        if self.take > 1:
            parts.append(fill(words.BEST, {"share": f"{best:.0%}"}))
        if answered < len(self.counted):
            parts.append(fill(words.ANSWERED, {"answered": answered, "questions": len(self.counted)}))
        predictions = [question.id for question in self.bank.questions if isinstance(question, PredictQuestion)]
        if predictions:
            made = sum(self.prediction(each) is not None for each in predictions)
            parts.append(fill(words.PREDICTED, {"made": made, "asked": len(predictions)}))
        if reread:
            parts.append(fill(words.REREAD, {"sections": ", ".join(reread)}))
        return joined(parts)


def _both(text: Text, values: Mapping[str, Any]) -> Text:
    """`fill`, where some of the values are texts themselves."""
    filled = []
    for language in LANGUAGES:
        here = {name: value.to(language) if isinstance(value, Text) else value for name, value in values.items()}
        filled.append(fill(text, here).to(language))
    return Text(*filled)


def _as_json(value: Any) -> Any:
    """An answer as it is kept."""
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, list | tuple | set | frozenset):
        return sorted(str(each)[:200] for each in value)
    return float(value)
