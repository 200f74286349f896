"""Item analysis: what the first answers of a class say about its questions, and about its misconceptions.

Only the first take of each learner is looked at, and in it the first answer to each question: later ones have seen
feedback. Of a function that was written, which may be tried again, it is the best try.

* difficulty: the mean share of the points, 0 (nobody) to 1 (everybody right).
* discrimination: the correlation of a question's share with the rest score, the points of all other questions of the
  lesson in the same take. For a question that is right or wrong it is the point-biserial correlation. Near 0 or below
  the question does not tell those who know from those who do not: look at its text. Not a number where all did alike.
* mistakes: of those who answered, the share that showed each misconception.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gradacc_lessons.classroom.results import FileResult, LessonResult

COMMON = 0.15
"""A mistake is a misconception of the class if at least this share of those who answered showed it …"""
FEWEST = 3
"""… and at least so many learners."""
LOW = 0.2
"""Below this a question discriminates little."""
FEWEST_TO_CORRELATE = 3
ANSWER_COLUMNS = ("learner", "lesson", "question", "kind", "fraction", "points", "mistake")


@dataclass(frozen=True)
class ItemAnalysis:
    """What the first answers say."""

    items: pd.DataFrame
    """A row per question: lesson, question, kind, n, difficulty, discrimination, right (share fully right), mistake
    (the commonest; empty if there is none) and mistake_share."""
    mistakes: pd.DataFrame
    """A row per question and mistake, the commonest first: lesson, question, mistake, count, n, share."""

    def misconceptions(self) -> pd.DataFrame:
        """The mistakes that a good part of the class shares, the commonest first."""
        common = (self.mistakes["share"] >= COMMON) & (self.mistakes["count"] >= FEWEST)
        found = self.mistakes[common]
        return found.sort_values(["share", "lesson", "question"], ascending=[False, True, True], ignore_index=True)

    def of_lesson(self, lesson: str) -> "ItemAnalysis":
        """The same for one lesson."""
        return ItemAnalysis(
            self.items[self.items["lesson"] == lesson].reset_index(drop=True),
            self.mistakes[self.mistakes["lesson"] == lesson].reset_index(drop=True),
        )


def first_answers(results: Iterable[FileResult]) -> pd.DataFrame:
    """A row per learner and question of the first take: learner, lesson, question, kind, fraction, points, mistake.

    Code that was not run, for want of a sandbox, says nothing and has no row.
    """
    rows = [row for result in results if result.status == "graded" for row in _rows(result)]
    return pd.DataFrame(rows, columns=list(ANSWER_COLUMNS))


def _rows(result: FileResult) -> Iterator[tuple[Any, ...]]:
    for lesson in result.lessons:
        for answer in _first(lesson):
            if answer.kind != "code" or result.code in ("sandbox", "unsafe"):
                yield (
                    result.learner, lesson.lesson, answer.question, answer.kind, answer.fraction, answer.points,
                    answer.mistake or "",
                )  # fmt: skip


def _first(lesson: LessonResult) -> Iterable[Any]:
    """The first answer to each question in the first take."""
    take = min((answer.take for answer in lesson.answers), default=1)
    first: dict[str, Any] = {}
    for answer in lesson.answers:
        if answer.take == take:
            first.setdefault(answer.question, answer)
    return first.values()


def analyse(answers: pd.DataFrame) -> ItemAnalysis:
    """The analysis of first answers, as `first_answers` returns them; questions in the order in which they came."""
    items, mistakes = [], []
    for lesson, of_lesson in answers.groupby("lesson", sort=True):
        earned = of_lesson.assign(earned=of_lesson["fraction"] * of_lesson["points"])
        total = earned.groupby("learner")["earned"].sum()
        for question, of_question in earned.groupby("question", sort=False):
            found = _mistakes(of_question)
            rest = of_question["learner"].map(total) - of_question["earned"]
            where = {"lesson": lesson, "question": question}
            commonest = found[0] if found else {"mistake": "", "share": 0.0}
            items.append(
                where
                | {
                    "kind": of_question["kind"].iloc[0],
                    "n": len(of_question),
                    "difficulty": of_question["fraction"].mean(),
                    "discrimination": _correlation(of_question["fraction"].to_numpy(float), rest.to_numpy(float)),
                    "right": (of_question["fraction"] >= 1).mean(),
                    "mistake": commonest["mistake"],
                    "mistake_share": commonest["share"],
                }
            )
            mistakes += [where | each for each in found]
    return ItemAnalysis(
        pd.DataFrame(items, columns=[
            "lesson", "question", "kind", "n", "difficulty", "discrimination", "right", "mistake", "mistake_share",
        ]),
        pd.DataFrame(mistakes, columns=["lesson", "question", "mistake", "count", "n", "share"]),
    )  # fmt: skip


def _mistakes(of_question: pd.DataFrame) -> list[dict[str, Any]]:
    """Each mistake with how many showed it, the commonest first. Several wrong options picked at once count each."""
    shown = of_question["mistake"][of_question["mistake"] != ""].str.split(",").explode()
    counts, n = shown.value_counts(), len(of_question)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return [{"mistake": str(name), "count": int(count), "n": n, "share": count / n} for name, count in ordered]


def _correlation(share: np.ndarray[Any, Any], rest: np.ndarray[Any, Any]) -> float:
    """Pearson's correlation; not a number where one of the two does not vary."""
    if len(share) < FEWEST_TO_CORRELATE or np.ptp(share) < 1e-12 or np.ptp(rest) < 1e-12:
        return float("nan")
    return float(np.corrcoef(share, rest)[0, 1])
