"""What a learner expects of a run, before it: kept, compared with what was measured, and told to who draws it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.progress import Prediction, Progress
from gradacc_lessons.quiz import sentences, words
from gradacc_lessons.quiz.feedback import Feedback, graded
from gradacc_lessons.quiz.grade import committed, grade_prediction, no_answer
from gradacc_lessons.quiz.number import NotANumber
from gradacc_lessons.quiz.questions import PredictQuestion
from gradacc_lessons.quiz.sentences import fill_texts
from gradacc_lessons.text import Language, Text, joined


@dataclass(frozen=True)
class Predictions:
    """The predictions of one lesson."""

    progress: Progress
    """Where they are kept."""
    lesson: str
    """The lesson's name."""

    def kept(self, question: PredictQuestion) -> Prediction | None:
        """What was predicted, and what was measured; None if nothing yet."""
        return self.progress.prediction(self.lesson, question.id)

    def state(self, question: PredictQuestion) -> Text:
        """A word on how it stands."""
        kept = self.kept(question)
        if kept is None:
            return words.STATE_OPEN
        said = {"predicted": sentences.predicted(question, kept.value)}
        if kept.measured is None:
            return fill_texts(words.STATE_COMMITTED, said)
        return fill_texts(words.STATE_MEASURED, {**said, "measured": sentences.predicted(question, kept.measured)})

    def commit(self, question: PredictQuestion, value: Any, language: Language) -> Feedback:
        """Predict, as long as nothing was measured."""
        try:
            predicted = committed(question, value)
        except NotANumber as error:
            return graded(no_answer(error.sentence), language)
        kept = self.kept(question)
        if kept is not None and kept.measured is not None:
            said = fill_texts(words.TOO_LATE, {"predicted": sentences.predicted(question, kept.value)})
            return Feedback(said, language, correct=None, counted=False, counts=False)
        if kept is None or kept.value != predicted:
            self.progress.add_prediction(self.lesson, question.id, Prediction(predicted))
        said = fill_texts(words.COMMITTED, {"predicted": sentences.predicted(question, predicted)})
        return Feedback(joined([words.NOTED, said]), language, correct=None, counts=False)

    def measure(self, question: PredictQuestion, value: float | str, language: Language) -> Feedback:
        """Compare with what a run measured, and close the prediction; without one, say to predict first."""
        try:
            outcome = committed(question, value)
        except NotANumber as error:
            raise ValueError(f"{question.id} was measured as {value!r}: {error}") from None
        kept = self.kept(question)
        if kept is None:
            return Feedback(words.NO_PREDICTION, language, counted=False, counts=False)
        result = grade_prediction(question, kept.value, outcome)
        if kept.measured != outcome:
            self.progress.add_prediction(self.lesson, question.id, Prediction(kept.value, outcome, result.fraction))
        return graded(result, language)

    def outcome(self, question: PredictQuestion, language: Language) -> Feedback | None:
        """What a run said of it; None before it is measured."""
        kept = self.kept(question)
        if kept is None or kept.measured is None:
            return None
        return graded(grade_prediction(question, kept.value, kept.measured), language)


@dataclass(frozen=True)
class Predicted:
    """A prediction that an explorer can wait for."""

    predictions: Predictions
    """Those of its lesson."""
    question: PredictQuestion
    """What asks for it."""

    def __call__(self) -> float | str | None:
        """What the learner predicted: a number, an option's id, or None if nothing yet."""
        kept = self.predictions.kept(self.question)
        value: float | str | None = kept.value if kept else None
        return value

    def on_change(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told()` when it may have changed, until what this returns is called."""
        return self.predictions.progress.on_change(told)
