"""What the tests of the lessons share: predictions as learners make them, with progress of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz.predictions import Predicted
from gradacc_lessons.quiz.quiz import Quiz

LESSONS = {
    **{"start": "00", "acc": "01", "scale": "02", "mem": "03", "uneven": "04", "norm": "05", "sum": "06"},
    **{"once": "07", "precision": "08", "museum": "09", "fit": "10"},
}
"""The lesson whose questions begin so."""


@pytest.fixture
def predicted(tmp_path: Path) -> Callable[..., Predicted]:
    """The prediction that a question asks for; answered, if a number is given."""

    def ask(question_id: str, number: float | None = None) -> Predicted:
        lesson = LESSONS[question_id.partition("-")[0]]
        quiz = Quiz(lesson, progress=Progress(tmp_path / "progress.sqlite"))
        if number is not None:
            quiz.answer(question_id, number)
        return quiz.predicted(question_id)

    return ask
