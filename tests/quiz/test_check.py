"""What `gradacc quiz check` finds that one file, read alone, does not show."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.check import SEEDS, check_banks, draws, notebook_headings, summary
from gradacc_lessons.quiz.questions import Bank

BANKS = Path(__file__).parent / "banks"
Edit = Callable[..., Path]


def found(path: Path) -> list[str]:
    problems = check_banks(path.parent)
    assert all(problem.startswith(f"{path.parent}/") and "\n" not in problem for problem in problems)
    return problems


def test_the_banks_of_the_course_and_the_small_bank_have_no_problems() -> None:
    assert check_banks(course_folder("quizzes")) == []
    assert check_banks(BANKS) == []
    assert summary(BANKS) == (
        "2 banks, 9 questions (1 choice, 1 code, 1 multiple, 1 number, 2 order, 2 predict, 1 spot)"
    )


EDITS = {
    "aim never asked": (
        "  counts: {en: Count",
        "  idle: {en: a, nl: b}\n  counts: {en: Count",
        "objectives.idle",
        "no question asks",
    ),
    "exercise unknown": ("exercise: updates_per_epoch", "exercise: updates", "questions[6].exercise", "not one of"),
    "placeholder in one language": (
        '{en: "{n} times.", nl: "{n} keer."}',
        '{en: "{n} times.", nl: "n keer."}',
        "questions[2].hints[0]",
        "{n} stands in one language",
    ),
    "placeholder unknown": (
        "{en: That is one micro-batch., nl: Dat is één micro-batch.}",
        '{en: "{c}", nl: "{c}"}',
        "questions[2].mistakes[1].feedback",
        "{c} is nothing",
    ),
    "answer in the wrong feedback": (
        '{en: "{given} is not it. Multiply.", nl: "{given} is het niet. Vermenigvuldig."}',
        '{en: "{answer}", nl: "{answer}"}',
        "questions[2].feedback.wrong",
        "{answer} is nothing",
    ),
    "measured before the run": (
        '{en: "How many updates?", nl: "Hoeveel updates?"}',
        '{en: "{measured}?", nl: "{measured}?"}',
        "questions[4].prompt",
        "{measured} is nothing",
    ),
    "division by zero for some": ("answer: b * n", "answer: b / (n - 5)", "questions[2].answer", "divides by zero"),
    "no real value for some": ("answer: b * n", "answer: sqrt(n - 5)", "questions[2].answer", "no value"),
    "distractor fails for some": (
        "formula: b + n",
        "formula: b / (n - 7)",
        "questions[2].mistakes[0].formula",
        "divides by zero",
    ),
    "distractor right for some": (
        "formula: b + n",
        "formula: b * 7",
        "questions[2].mistakes[0].formula",
        "n = 7 this is the right answer",
    ),
    "distractor that is never said": (
        "formula: b,",
        "formula: n + b,",
        "questions[2].mistakes[1].formula",
        "always that of the earlier mistake 'b + n'",
    ),
    "distractor within tolerance": (
        "answer: b * n",
        "tolerance: 0.45\n    answer: b * n",
        "questions[2].mistakes[0].formula",
        "b = 4, n = 3 this is the right answer",
    ),
    "right option in the hint": (
        "{en: Call it twice., nl:",
        "{en: it adds  the gradient to it, nl:",
        "questions[0].hints[0]",
        "text of a right option",
    ),
    "formula in the prompt": (
        'How many examples?"',
        'How many examples (b*n)?"',
        "questions[2].prompt",
        "formula of the answer",
    ),
    "formula in the Dutch hint": ('nl: "{n} keer."', 'nl: "{b} \u00d7 {n}"', "questions[2].hints[0]", ""),
    "faulty line in the prompt": (
        '{en: "Which line is wrong?"',
        '{en: "Is line 5 wrong?"',
        "questions[3].prompt",
        "names the faulty line",
    ),
    "faulty lines in the prompt": (
        '{en: "Which line is wrong?"',
        '{en: "Look at lines 5 and 6."',
        "questions[3].prompt",
        "names the faulty line",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_is_wrong_is_found(edited: Edit, name: str) -> None:
    old, new, field, said = EDITS[name]
    problems = found(edited((old, new)))
    assert any(f": {field}: " in problem and said in problem for problem in problems), problems


def test_a_constant_answer_in_its_own_prompt_is_found(edited: Edit) -> None:
    path = edited(("answer: b * n", "answer: 12"), ('N = {n}. How many examples?"', 'N = {n}. Is 12 enough?"'))
    assert any("questions[2].prompt: it holds the answer" in problem for problem in found(path))


def test_an_answer_that_only_the_dutch_prompt_holds_is_found(edited: Edit) -> None:
    path = edited(("answer: b * n", "answer: 12.5"))
    text = path.read_text(encoding="utf-8")
    assert not any("holds the answer" in problem for problem in found(path))
    at = text.index("nl:", text.index("How many examples?"))
    end = text.index('?"', at)
    path.write_text(f"{text[:end]}, of 12,5{text[end:]}", encoding="utf-8")
    assert any("questions[2].prompt: it holds the answer" in problem for problem in found(path))


def test_a_bank_in_which_nothing_counts_is_found(edited: Edit) -> None:
    path = edited()
    text = path.read_text(encoding="utf-8")
    begin, end = text.index("  - id: small-choice"), text.index("  - id: small-predict")
    path.write_text(text[:begin] + text[end : text.index("  - id: small-code")], encoding="utf-8")
    (idle, nothing) = found(path)
    assert "objectives.adds: no question asks" in idle
    assert ": questions: " in nothing and "nobody can pass" in nothing


def test_an_id_of_another_bank_is_found(edited: Edit) -> None:
    path = edited()
    shutil.copy(path, path.with_name("91_other.yaml"))
    text = path.read_text(encoding="utf-8").replace("lesson: 90_small", "lesson: 91_other")
    path.with_name("91_other.yaml").write_text(text, encoding="utf-8")
    problems = found(path)
    assert len(problems) == 7
    assert all("91_other.yaml" in problem and "is a question of 90_small.yaml too" in problem for problem in problems)


def test_a_bank_that_cannot_be_read_does_not_hide_the_others(edited: Edit) -> None:
    path = edited(("exercise: updates_per_epoch", "exercise: updates"))
    path.with_name("00_broken.yaml").write_text("a: *b\n")
    problems = found(path)
    assert len(problems) == 2 and "00_broken.yaml:1" in problems[0] and "exercise" in problems[1]


def test_a_folder_without_banks_is_a_problem(tmp_path: Path) -> None:
    (problem,) = check_banks(tmp_path)
    assert "no bank" in problem


def test_a_section_must_be_a_heading_of_the_notebook(edited: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradacc_lessons.quiz.check.notebook_headings", lambda lesson: {"Backward adds"})
    problems = found(edited())
    assert problems and all("'Once per window' is no heading of 90_small.ipynb" in problem for problem in problems)


def test_headings_are_those_of_the_notebook() -> None:
    assert notebook_headings("90_small") is None
    headings = notebook_headings("00_start_here")
    assert headings is not None and {"Start here", "Quiz", "Is your machine ready?"} <= headings


def test_a_thousand_seeds_reach_every_set_of_numbers(small: Bank) -> None:
    sets = draws(small.question("small-number"))  # type: ignore[arg-type]
    assert len(sets) == 3 * 10 and SEEDS == 1_000
