"""Taking a quiz without widgets: what counts, what is kept, and what is said."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gradacc_lessons.progress import PASS_MARK, Progress
from gradacc_lessons.quiz.check import draws
from gradacc_lessons.quiz.exercise import build
from gradacc_lessons.quiz.exercises import UPDATES_PER_EPOCH
from gradacc_lessons.quiz.feedback import html
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.text import LANGUAGES

BANKS = Path(__file__).parent / "banks"
SOLUTION = build(UPDATES_PER_EPOCH.solution, "updates_per_epoch")
WRONG = build(UPDATES_PER_EPOCH.wrong[0].source, "updates_per_epoch")


def again(quiz: Quiz) -> Quiz:
    """The same learner after a restart of the kernel."""
    return Quiz("90", bank_folder=BANKS, progress=Progress(quiz.progress.file))


def right_number(quiz: Quiz) -> float:
    drawn = quiz.variables("small-number")
    return drawn["b"] * drawn["n"]


def answer_all(quiz: Quiz) -> None:
    quiz.answer("small-choice", "sums")
    quiz.answer("small-multiple", ["zero", "step"])
    quiz.answer("small-number", right_number(quiz))
    quiz.answer("small-spot", 5)
    quiz.answer("small-code", SOLUTION)


# Which quiz


def test_lessons_are_found_and_unknown_ones_listed(progress: Progress) -> None:
    for name in ("01_accumulate", "01", "1"):
        assert Quiz(name, progress=progress).lesson == "01_accumulate"
    with pytest.raises(ValueError, match=r"no quiz for lesson '77'.*00_start_here, 01_accumulate"):
        Quiz("77", progress=progress)
    with pytest.raises(ValueError, match="90_small"):
        Quiz("01", bank_folder=BANKS, progress=progress)
    with pytest.raises(ValueError, match="'fr' is not one of en, nl"):
        Quiz("01", "fr", progress=progress)  # type: ignore[arg-type]


def test_an_unknown_question_lists_those_there_are(quiz: Quiz) -> None:
    for call in (quiz.hint, quiz.solution, quiz.prediction, quiz.prompt, quiz.ask, lambda q: quiz.answer(q, 1)):
        with pytest.raises(ValueError, match="no question 'other'; it has small-choice"):
            call("other")


def test_without_an_argument_progress_is_the_learners_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRADACC_HOME", str(tmp_path / "own"))
    Quiz("90", bank_folder=BANKS).answer("small-choice", "sums")
    assert Progress(tmp_path / "own" / "progress.sqlite").results()[0].answered == 1


# What counts


def only_predictions(edited: Callable[..., Path]) -> Path:
    path = edited()
    text = path.read_text(encoding="utf-8")
    begin, end = text.index("  - id: small-choice"), text.index("  - id: small-predict")
    text = text[:begin] + text[end : text.index("  - id: small-code")]
    path.write_text(text.replace("  adds: {en: Backward adds., nl: Backward telt op.}\n", ""), encoding="utf-8")
    return path


def test_the_first_answer_of_a_take_counts_and_the_rest_is_practice(quiz: Quiz) -> None:
    first = quiz.answer("small-choice", "mean")
    assert (first.correct, first.counts, first.mistake) == (False, True, "mean")
    assert str(first) == "✗ Not right. Nobody divides <u>here</u>; you do."
    second = quiz.answer("small-choice", "sums")
    assert (second.correct, second.counts) == (True, False)
    assert str(second).startswith("✓ Right. Yes;") and str(second).endswith("this one is practice.")
    assert quiz.result().points == 0.0
    given = again(quiz).given("small-choice")
    assert given is not None and given.value == "mean"


def test_what_is_no_answer_is_not_recorded(quiz: Quiz) -> None:
    for question_id, value in (
        ("small-choice", "?"), ("small-number", "1.234"), ("small-spot", 99), ("small-multiple", []), ("small-code", 3),
    ):  # fmt: skip
        said = quiz.answer(question_id, value)
        assert (said.correct, said.counted) == (None, False) and str(said).startswith("○ Not an answer yet.")
    assert quiz.result().answered == 0 and quiz.progress.results() == []


class Stubborn:
    """An object that refuses whatever is done with it."""

    def refuse(self, *_: Any) -> Any:
        raise RuntimeError("no")

    __float__ = __eq__ = __bool__ = __iter__ = __len__ = __str__ = __repr__ = refuse
    __hash__ = None  # type: ignore[assignment]


NO_ANSWERS = [
    None, True, {}, {"sums": 1}, [], [[1]], [None], [["step"], "zero"], ({},), object(), "", "?", "\ud800", b"?", 1j,
    float("nan"), float("-inf"), range(3), iter("ab"), np.array([1, 2]), np.array(["sums", "mean"]),
    pd.Series(["sums", "mean"]), pd.NA, Stubborn(), [Stubborn()],
]  # fmt: skip


@pytest.mark.parametrize("value", NO_ANSWERS, ids=lambda value: type(value).__name__)
def test_whatever_is_no_answer_to_any_kind_costs_nothing_and_gets_a_sentence(quiz: Quiz, value: Any) -> None:
    for question in quiz.bank.questions:
        said = quiz.answer(question.id, value)
        assert (said.correct, said.counted) == (None, False), question.id
        for language in LANGUAGES:
            assert len(said.message.to(language)) > len("○ Not an answer yet.") + 10
        assert str(said).startswith("○ Not an answer yet.")
    assert quiz.progress.answers(quiz.lesson) == [] and quiz.prediction("small-guess") is None


@pytest.mark.parametrize(
    ("question_id", "value", "kept"),
    [
        ("small-choice", "mean", "mean"),
        ("small-multiple", ("zero", "step"), ["step", "zero"]),
        ("small-multiple", {"zero"}, ["zero"]),
        ("small-number", np.float32(1.5), 1.5),
        ("small-number", " 12 ", " 12 "),
        ("small-spot", np.array(5), 5.0),
    ],
)
def test_an_answer_of_any_library_is_kept_as_plain_values(quiz: Quiz, question_id: str, value: Any, kept: Any) -> None:
    assert quiz.answer(question_id, value).counted
    assert again(quiz).given(question_id).value == kept  # type: ignore[union-attr]


def test_all_right_passes_with_every_point(quiz: Quiz) -> None:
    answer_all(quiz)
    result = quiz.result()
    assert (result.points, result.of, result.fraction, result.passed) == (8.0, 8.0, 1.0, True)
    assert (result.answered, result.questions, result.reread) == (5, 5, ())
    assert "✓ Passed. 8 of 8 points (100%); 80% passes." in str(result)
    assert quiz.score == 1.0 and again(quiz).score == 1.0
    assert quiz.progress.results()[0].best == 1.0


def test_a_quiz_of_predictions_alone_has_a_result(edited: Callable[..., Path], progress: Progress) -> None:
    quiz = Quiz("90", bank_folder=only_predictions(edited).parent, progress=progress)
    quiz.answer("small-predict", 48)
    result = quiz.result()
    assert (result.points, result.of, result.fraction, result.best, result.passed) == (0, 0, 0, 0, False)
    assert str(result) == "Nothing here counts towards a result. 1 of 2 predictions made."
    assert quiz.score == 0.0 and quiz.retake() == 1


def test_after_a_bank_has_changed_quiz_and_overview_agree_and_nothing_is_taken_away(
    quiz: Quiz, edited: Callable[..., Path]
) -> None:
    answer_all(quiz)
    path = edited(("id: small-choice", "id: small-new"), ("points: 2", "points: 9"))
    changed = Quiz("90", bank_folder=path.parent, progress=quiz.progress)
    assert str(changed.result()) == str(quiz.result()) and changed.result().passed
    new = changed.answer("small-new", "mean")
    assert not new.counts and "This question is new since you began" in str(new)
    assert "Deze vraag is nieuw" in new.message.nl
    assert changed.given("small-new") is not None and changed.may_see_solution("small-new")
    assert changed.score == changed.progress.results()[0].best == 1.0
    changed.retake()
    assert changed.answer("small-new", "sums").counts and changed.answer("small-multiple", ["step", "zero"]).counts
    result, (overview,) = changed.result(), changed.progress.results()
    assert (result.points, result.of, result.questions) == (10.0, 15.0, 5)
    assert (result.best, result.passed) == (overview.best, overview.passed) == (1.0, True)


def test_predictions_count_as_taken_part_and_never_towards_the_mark(quiz: Quiz) -> None:
    quiz.answer("small-predict", 48)
    quiz.measured("small-predict", 48)
    result = quiz.result()
    assert result.points == 0.0 and result.of == 8.0
    assert "1 of 2 predictions made" in str(result)


def test_the_result_says_what_to_read_again(quiz: Quiz) -> None:
    answer_all(quiz)
    quiz.retake()
    quiz.answer("small-choice", "sums")
    quiz.answer("small-multiple", ["zero"])
    result = quiz.result()
    assert result.reread == ("Once per window",)  # what is still open was not lost
    assert "Read again: Once per window." in str(result)
    assert "Lees nog eens: Once per window." in result.message.nl
    assert result.points == 2.0 and result.best == 1.0 and result.passed and "Your best take: 100%" in str(result)


def test_a_quiz_that_is_going_on_does_not_read_like_a_fail(quiz: Quiz) -> None:
    quiz.answer("small-choice", "mean")
    quiz.answer("small-multiple", ["zero", "step"])
    english, dutch = quiz.result().message.en, quiz.result().message.nl
    assert english.startswith("2 of 8 points so far; 3 of 5 questions still open.")
    assert dutch.startswith("Tot nu toe 2 van 8 punten; nog 3 van 5 vragen open.")
    assert not any(words in english for words in ("%", "passed", "✗"))
    for question_id, value in (("small-number", 1), ("small-spot", 1), ("small-code", WRONG)):
        quiz.answer(question_id, value)
    assert str(quiz.result()).startswith("✗ Not passed yet. 2 of 8 points (25%); 80% passes.")


def test_the_pass_mark_is_reached_by_exactly_its_share(quiz: Quiz, monkeypatch: pytest.MonkeyPatch) -> None:
    quiz.answer("small-code", SOLUTION)
    quiz.answer("small-multiple", ["zero", "step"])
    quiz.answer("small-choice", "sums")
    assert quiz.result().fraction == 6 / 8 and not quiz.result().passed
    monkeypatch.setattr("gradacc_lessons.progress_records.PASS_MARK", 0.75)
    assert quiz.result().passed and PASS_MARK == 0.8


def test_an_exercise_counts_as_soon_as_it_passes(quiz: Quiz) -> None:
    first = quiz.answer("small-code", WRONG)
    assert first.counts and first.mistake == "rounds_down" and quiz.result().points == 0
    second = quiz.answer("small-code", SOLUTION)
    assert second.counts and second.correct and quiz.result().points == 3
    third = quiz.answer("small-code", WRONG)
    assert not third.correct and quiz.result().points == 3 and again(quiz).result().points == 3


# Takes


def test_a_retake_draws_new_numbers_and_another_order_and_the_best_take_counts(quiz: Quiz) -> None:
    assert quiz.retake() == 1  # nothing answered yet: nothing to retake
    seen, orders = [], []
    for take in range(1, 7):
        seen.append(tuple(quiz.variables("small-number").values()))
        orders.append(tuple(option.id for option in quiz.options("small-multiple")))
        assert sorted(orders[-1]) == ["backward", "forward", "step", "zero"]
        quiz.answer("small-number", right_number(quiz) if take == 2 else 1)
        assert quiz.answer("small-number", right_number(quiz)).correct
        assert quiz.retake() == take + 1
    assert len(set(seen)) > 2 and len(set(orders)) > 2
    assert quiz.score == 1 / 8 and quiz.result().points == 0 and quiz.result().take == 7


def test_the_learners_numbers_stay_the_same_within_a_take_and_differ_between_learners(
    quiz: Quiz, tmp_path: Path
) -> None:
    drawn = quiz.variables("small-number")
    assert again(quiz).variables("small-number") == drawn
    assert quiz.prompt("small-number").en == f"Micro-batches of {drawn['b']}, N = {drawn['n']}. How many examples?"
    others = {
        tuple(
            Quiz("90", bank_folder=BANKS, progress=Progress(tmp_path / f"{n}.sqlite"))
            .variables("small-number")
            .values()
        )
        for n in range(6)
    }
    assert len(others) > 2
    assert drawn in draws(quiz.bank.question("small-number"))  # type: ignore[arg-type]


def test_options_can_keep_an_order_that_means_something(progress: Progress, tmp_path: Path) -> None:
    text = (BANKS / "90_small.yaml").read_text(encoding="utf-8")
    text = text.replace("kind: choice", "kind: choice\n    shuffle: false")
    (tmp_path / "90_small.yaml").write_text(text, encoding="utf-8")
    quiz = Quiz("90", bank_folder=tmp_path, progress=progress)
    for _ in range(4):
        assert [option.id for option in quiz.options("small-choice")] == ["sums", "mean", "replaces"]
        quiz.answer("small-choice", "sums")
        quiz.retake()


def test_two_notebooks_agree_on_the_take_and_on_the_first_answer(quiz: Quiz) -> None:
    other = again(quiz)
    assert quiz.answer("small-choice", "mean").counts and not other.answer("small-choice", "sums").counts
    assert other.retake() == 2 and quiz.take == 2
    assert quiz.answer("small-choice", "sums").counts and other.result().points == 1


# Predictions


def test_a_prediction_is_committed_can_be_changed_and_is_closed_by_the_run(quiz: Quiz) -> None:
    assert quiz.prediction("small-predict") is None
    said = quiz.answer("small-predict", "40 updates")
    assert said.correct is None and "You predict 40 updates" in str(said)
    quiz.answer("small-predict", 47)
    assert again(quiz).prediction("small-predict") == 47.0
    assert not quiz.answer("small-predict", "many").counted and quiz.prediction("small-predict") == 47.0
    refused = quiz.answer("small-predict", -3)
    assert str(refused) == "○ Not an answer yet. It cannot be less than 1: predict another number."
    assert not refused.counted and quiz.prediction("small-predict") == 47.0
    measured = quiz.measured("small-predict", np.int64(48))
    assert measured.correct and "47 it is, measured 48." in str(measured)
    late = again(quiz).answer("small-predict", 48)
    assert not late.counted and "stays 47 updates" in str(late) and quiz.prediction("small-predict") == 47.0
    assert quiz.measured("small-predict", 100).correct is False  # another run, another outcome


def test_a_guess_is_one_of_its_options(quiz: Quiz) -> None:
    assert [option.id for option in quiz.options("small-guess")] == ["peak", "mean"]
    assert "You predict The mean" in str(quiz.answer("small-guess", "mean"))
    assert quiz.prediction("small-guess") == "mean"
    assert quiz.measured("small-guess", "peak").correct is False
    with pytest.raises(ValueError, match="small-guess was measured as 'other'"):
        quiz.measured("small-guess", "other")


def test_a_run_without_a_prediction_says_to_predict_first_and_gives_nothing_away(quiz: Quiz) -> None:
    said = quiz.measured("small-predict", 48)
    assert said.correct is None and not said.counted
    assert str(said) == "Predict first, above; then run this cell again and read what was measured."
    assert not re.search(r"\d", said.message.en + said.message.nl)
    assert quiz.prediction("small-predict") is None and quiz.outcome("small-predict") is None
    assert quiz.answer("small-predict", 50).counted
    with pytest.raises(ValueError, match="only a predict question is measured"):
        quiz.measured("small-choice", 48)


# Hints and solutions


def test_hints_come_in_steps(quiz: Quiz) -> None:
    assert quiz.has_hint("small-choice") and not quiz.has_hint("small-spot")
    said = [str(quiz.hint("small-choice")) for _ in range(3)]
    assert said == ["Hint 1 of 2: Call it twice.", *["Hint 2 of 2: Look at <.grad> in between."] * 2]
    n = quiz.variables("small-number")["n"]
    assert str(quiz.hint("small-number")) == f"Hint 1 of 1: {n} times."
    assert str(quiz.hint("small-spot")) == "There is no hint for this question."
    assert UPDATES_PER_EPOCH.hints[0].en in str(quiz.hint("small-code"))


def test_solutions_come_after_the_answer_and_for_exercises_at_any_time(quiz: Quiz) -> None:
    for question_id in ("small-choice", "small-multiple", "small-number", "small-spot"):
        assert not quiz.may_see_solution(question_id)
        assert str(quiz.solution(question_id)).startswith("Answer the question first")
    assert quiz.solution("small-code").code == UPDATES_PER_EPOCH.solution
    assert "the run decides" in str(quiz.solution("small-predict"))
    answer_all(quiz)
    right = right_number(quiz)
    assert str(quiz.solution("small-choice")) == "Solution: It adds the gradient to it."
    assert str(quiz.solution("small-multiple")) == "Solution: The update; zero_grad"
    assert str(quiz.solution("small-number")) == f"Solution: {right} examples (b * n)"
    assert quiz.solution("small-spot").message.nl == "Oplossing: regel 2 of 5"


# Language and safety


def test_the_language_is_the_learners_choice_and_is_kept(quiz: Quiz) -> None:
    assert quiz.language == "en"
    quiz.language = "nl"
    assert again(quiz).language == "nl" and str(quiz.answer("small-choice", "mean")).startswith("✗ Niet goed.")
    for unknown in ("xx", None, "EN"):
        with pytest.raises(ValueError, match="is not one of en, nl"):
            quiz.language = unknown  # type: ignore[assignment]
    assert quiz.progress.language == "nl"
    explicit = Quiz("90", "en", bank_folder=BANKS, progress=quiz.progress)
    assert str(explicit.hint("small-choice")).startswith("Hint 1 of 2: Call") and quiz.progress.language == "nl"


def everything_said(quiz: Quiz) -> list[Any]:
    said = [quiz.hint(question.id) for question in quiz.bank.questions]
    for question_id, value in (
        ("small-choice", "mean"), ("small-choice", "<script>"), ("small-number", "<img src=x onerror=alert(1)>"),
        ("small-number", 1), ("small-spot", 5), ("small-multiple", ["forward"]), ("small-predict", "<b>"),
    ):  # fmt: skip
        said.append(quiz.answer(question_id, value))
    return [
        *said,
        quiz.measured("small-predict", 4),
        quiz.result(),
        quiz.solution("small-choice"),
        quiz.solution("small-code"),
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_is_said_is_text_and_never_markup(quiz: Quiz, language: Any) -> None:
    quiz.language = language
    for note in everything_said(quiz):
        shown = note._repr_html_()
        rest = shown
        for tag in ("div", "/div", "pre", "/pre", "code", "/code", "br"):
            rest = rest.replace(f"<{tag}>", "")
        assert "<" not in rest and str(note) == repr(note)
        assert note.language == language


def test_code_in_texts_is_set_as_code_after_escaping() -> None:
    assert html("a `b<c>` & d\ne `f") == "a <code>b&lt;c&gt;</code> &amp; d<br>e `f"
    assert html("`<script>`") == "<code>&lt;script&gt;</code>"


def test_a_refusing_disk_is_said_once_with_the_feedback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    quiz = Quiz("90", bank_folder=BANKS, progress=Progress(tmp_path / "file" / "progress.sqlite"))
    first, second = str(quiz.answer("small-choice", "sums")), str(quiz.answer("small-spot", 5))
    assert "cannot be saved" in first and "cannot be saved" not in second
    assert quiz.result().points == 2


def test_the_package_offers_the_quiz_without_loading_torch() -> None:
    code = (
        "import sys; from gradacc_lessons import Quiz; quiz = Quiz('01'); quiz.answer(quiz.counted[0].id, 'x');"
        "assert 'torch' not in sys.modules and 'ipywidgets' not in sys.modules, 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


def test_in_a_terminal_show_and_ask_print(quiz: Quiz, capsys: pytest.CaptureFixture[str]) -> None:
    quiz.show()
    shown = capsys.readouterr().out
    for option in quiz.options("small-choice"):
        assert f"  {option.id}: {option.text.en}" in shown
    assert "small-number: Micro-batches of" in shown and "[examples]" in shown and "  5      if index % n" in shown
    assert "small-predict" not in shown
    quiz.ask("small-predict")
    assert "small-predict: How many updates?" in capsys.readouterr().out
