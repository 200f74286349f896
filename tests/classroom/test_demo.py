"""A simulated class: its item analysis finds the misconceptions that were planted, all of them and no others."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gradacc_lessons.classroom.demonstration import Demonstration, demonstrate
from gradacc_lessons.classroom.gradebook import gradebook
from gradacc_lessons.classroom.results import read_results
from gradacc_lessons.classroom.simulated import (
    CLASS_LESSONS,
    COME_BACK,
    HANDED_IN,
    SHARES,
    right_answer,
    simulate,
    wrong_answers,
)
from gradacc_lessons.classroom.submission import read_submission
from gradacc_lessons.cli import main
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz import draw
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.grade import grade
from gradacc_lessons.quiz.questions import CodeQuestion, NumberQuestion

QUICK = ("01_accumulate",)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    """24 learners of one lesson."""
    return demonstrate(tmp_path_factory.mktemp("demo") / "small", 24, QUICK)


def check(shown: Demonstration, lessons: tuple[str, ...]) -> None:
    assert len(shown.planted) == len(SHARES) * len(lessons)
    assert shown.exact, shown.text().en
    found = shown.found.misconceptions()
    for each in shown.planted:
        (row,) = (row for _, row in found.iterrows() if row["question"] == each.question)
        # Everybody who holds it showed it, and nobody else but by a slip of the pen.
        assert len(each.holders) <= row["count"] <= len(each.holders) + max(3, 0.06 * shown.learners)


def test_a_small_class_shows_exactly_what_was_planted(small: Demonstration) -> None:
    check(small, QUICK)


def test_what_was_planted_is_told_beside_what_was_found(small: Demonstration) -> None:
    said = small.text().en
    assert all(each.question in said and each.mistake in said for each in small.planted)
    assert "Found exactly what was planted." in said
    # A mistake that nobody planted would be said to be one.
    other = Demonstration(small.folder, small.learners, small.planted[1:], small.found)
    assert not other.exact and "found, but not planted" in other.text().en and "not what was planted" in other.text().en
    spoilt = Demonstration(small.folder, small.learners, small.planted, small.found.of_lesson("no lesson"))
    assert not spoilt.exact and "not found" in spoilt.text().en


def test_the_files_are_what_learners_hand_in(small: Demonstration) -> None:
    files = sorted((small.folder / HANDED_IN).iterdir())
    assert len(files) == small.learners
    for file in files:
        submission = read_submission(file.read_bytes())
        assert set(submission.lessons) == set(QUICK)


def test_who_comes_back_has_a_better_grade_and_the_same_first_answers(small: Demonstration) -> None:
    results = list(read_results(small.folder / "results" / "results.jsonl"))
    takes = {result.learner: result.lessons[0].take for result in results}
    back = [learner for learner, take in takes.items() if take == 2]
    assert 0 < len(back) <= small.learners // COME_BACK
    held = [learner for each in small.planted for learner in each.holders if learner in back]
    assert held, "somebody who came back holds a misconception, which the first take still shows"
    shares = gradebook([], results).shares
    assert min(shares[learner][QUICK[0]] for learner in back) > 0.75


def test_the_same_seed_gives_the_same_class_and_another_one_another(tmp_path: Path) -> None:
    kept = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        made = simulate(tmp_path / name, 12, QUICK, seed=seed)
        kept.append([(each.question, each.mistake, each.holders) for each in made.planted])
    assert kept[0] == kept[1] != kept[2]


def test_a_class_that_is_too_small_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="12 learners"):
        simulate(tmp_path / "tiny", 11, QUICK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", sorted(course_folder("quizzes").glob("*.yaml")), ids=lambda file: file.stem)
def test_simulated_answers_are_what_grading_says_they_are(file: Path) -> None:
    for question in load_bank(file).counted:
        if isinstance(question, CodeQuestion):
            continue
        is_number = isinstance(question, NumberQuestion)
        numbers = draw.variables(question.variables, f"{question.id}") if is_number else {}
        assert grade(question, right_answer(question, numbers), numbers).correct
        wrong = wrong_answers(question, numbers)
        assert wrong and all(not grade(question, value, numbers).correct for value in wrong.values())


def test_the_command_makes_a_class_and_says_what_it_found(tmp_path: Path) -> None:
    run = CliRunner().invoke(main, ["class", "demo", str(tmp_path / "try"), "--learners", "12", "--lesson", "0"])
    # So few that a slip may look like a misconception: whether it does is told, and is the exit code.
    assert ("Found exactly what was planted." in run.output) == (run.exit_code == 0), run.output
    assert "gradacc class items" in run.output and (tmp_path / "try" / "results" / "results.jsonl").exists()
    again = CliRunner().invoke(main, ["class", "demo", str(tmp_path / "try"), "--learners", "12", "--lesson", "0"])
    assert again.exit_code == 1 and "Traceback" not in again.output


@pytest.mark.long
@pytest.mark.timeout(900)  # half a minute of one quiet core
@pytest.mark.parametrize("of_seed", [1, 2])  # seed 0 is the class that the guide shows
def test_a_class_of_hundreds_shows_exactly_what_was_planted(tmp_path: Path, of_seed: int) -> None:
    check(demonstrate(tmp_path / "large", 300, CLASS_LESSONS, seed=of_seed), CLASS_LESSONS)
