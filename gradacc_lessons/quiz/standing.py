"""How a quiz stands: what each question's answer was worth, the result of a take, and what to read again."""

from collections.abc import Iterable, Sequence

from gradacc_lessons.progress import PASS_MARK, Answer, Take, passes
from gradacc_lessons.progress_records import percent
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.feedback import Result
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.questions import Question
from gradacc_lessons.text import Language, Text, joined


def state(given: Answer | None) -> Text:
    """A word on a question that counts: not answered yet, or how well."""
    if given is None:
        return words.STATE_OPEN
    if given.fraction == 1:
        return words.STATE_RIGHT
    return words.STATE_PARTLY if given.fraction > 0 else words.STATE_WRONG


def result(
    take: Take, best: float, questions: Iterable[Question], predictions: Sequence[bool], language: Language
) -> Result:
    """The result of `take`, beside the share of the best one.

    `questions` are those of the quiz as it is now; `predictions` says of each of its predictions whether it was made.
    """
    lost = [
        question
        for question in questions
        if question.id in take.asked and question.id in take.best and take.best[question.id].fraction < 1
    ]
    reread = tuple(dict.fromkeys(question.section for question in lost))
    return Result(
        _message(take, best, predictions, reread),
        language,
        points=take.points,
        of=take.of,
        fraction=take.share,
        best=best,
        passed=passes(best),
        take=take.number,
        answered=len(take.best),
        questions=len(take.asked),
        reread=reread,
    )


def _points(take: Take, best: float) -> list[Text]:
    """The verdict and the points; their share only when all is answered: before that it reads like a fail."""
    parts = [words.PASSED] if passes(best) else []
    still_open = len(take.asked) - len(take.best)
    points = {"points": round(take.points, 2), "of": take.of}
    if still_open:
        parts.append(fill(words.SO_FAR, {**points, "open": still_open, "questions": len(take.asked)}))
    else:
        parts += [] if parts else [words.NOT_YET]
        parts.append(fill(words.RESULT, {**points, "share": f"{percent(take.share)}%", "mark": f"{PASS_MARK:.0%}"}))
    return [*parts, fill(words.BEST, {"share": f"{percent(best)}%"})] if take.number > 1 else parts


def _message(take: Take, best: float, predictions: Sequence[bool], reread: Sequence[str]) -> Text:
    parts = []
    if take.asked:
        parts += _points(take, best)
    else:
        parts.append(words.NOTHING_COUNTS)
    if predictions:
        parts.append(fill(words.PREDICTED, {"made": sum(predictions), "asked": len(predictions)}))
    if reread:
        parts.append(fill(words.REREAD, {"sections": ", ".join(reread)}))
    return joined(parts)
