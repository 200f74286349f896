"""The words of the questions: complete, in step in both languages, and without giving the answer away by their look."""

import json
import re
from collections import Counter

import pytest
from banks.course_content import LESSONS, all_banks, question, texts

from gradacc_lessons import doctor
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.questions import Bank, ChoiceQuestion, Question

BANKS = all_banks()
QUESTIONS = {each.id: each for bank in BANKS.values() for each in bank.questions}
SECTIONS = {
    "00_start_here": [
        *("Is your machine ready?", "One slider", "One question", "One exercise"),
        *("Where your progress is kept", "Questions people ask"),
    ],
    "01_accumulate": [
        *("A batch that does not fit", "Backward adds", "Four small batches, one big gradient"),
        *("The loop you keep", "Same gradients, same training", "Update and zero once per window"),
        "Write the loop",
    ],
    "02_scale_the_loss": [
        *("A run that blows up", "Exactly N times too long", "Adam hides it", "What gives it away"),
        *("Dividing twice, dividing by k + 1", "Three losses", "Who divides?", "Break it", "Repair it"),
    ],
    "03_the_memory_wall": [
        *("Raising N does not help", "Where the bytes go", "Predict the peak", "A line with a knee", "What N costs"),
        *("What keeps memory alive", "Keep within a budget", "What a GPU shows", "Find the leak", "Choose b and N"),
    ],
    "04_uneven_windows": [
        *("Three numbers that should agree", "Mean of means", "Weigh by what counts"),
        *("A batch of 10, cut 4, 4, 2", "The short last window", "A micro-batch without labels", "Write it"),
    ],
    "05_batch_norm": [
        *("One image among others", "The gradient is no longer the same", "Does accuracy show it?"),
        *("Running statistics move N times", "Training and evaluation disagree", "Write it"),
    ],
    "06_not_a_sum": [
        *("A loss that looks at pairs", "InfoNCE against N", "GradCache", "Overlap of a batch, overlap of an example"),
        *("Chance and state", "Is it additive?", "Examine your own"),
    ],
    "07_once_per_window": [
        *("Where did the other images go?", "A timeline", "Clip once, after the last backward"),
        *("Warm-up in updates", "An average of the weights", "Log and evaluate whole windows"),
        *("Save between windows", "Write it"),
    ],
    "08_mixed_precision": [
        *("A sum that stops", "How far is it off?", "On a real model", "Sums that hold"),
        *("Small numbers vanish in float16", "Once per window", "One overflow skips the window", "Write it"),
    ],
    "09_bug_museum": [
        *("A loss that grows with N", "All of them at once", "Find the bug", "Which instrument finds it"),
        *("A timeline of one", "Report it well", "An exhibit of your own", "Write it"),
    ],
    "10_fit_a_budget": [
        *("A target and a budget", "Predict, then measure", "Activation checkpointing", "Peak against time"),
        *("From a target to a plan", "What other tuners do", "Plan your own model", "On a GPU"),
    ],
}
LONGEST_FEEDBACK = 330
"""Characters: two sentences, or three short ones. More is not read after a wrong answer."""


@pytest.fixture(params=LESSONS)
def bank(request: pytest.FixtureRequest) -> Bank:
    return BANKS[request.param]


@pytest.fixture(params=sorted(QUESTIONS))
def asked(request: pytest.FixtureRequest) -> Question:
    return QUESTIONS[request.param]


def test_a_lesson_has_enough_questions_of_several_kinds(bank: Bank) -> None:
    kinds = Counter(each.kind for each in bank.questions)
    assert len(bank.questions) >= 8
    assert len(kinds) >= 5
    assert kinds["predict"] == 1 and kinds["code"] in (1, 2)


def test_the_doctor_s_lines_in_the_question_are_the_doctor_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise ModuleNotFoundError("No module named 'ipywidgets'")

    monkeypatch.setattr(doctor, "_widgets", missing)
    monkeypatch.setattr(doctor, "_checking", lambda: "not looked at here")
    failed = next(check for check in doctor.checkup().checks if check.name == "sliders")
    fine = (doctor.Check("PyTorch", True, "2.13.0"), doctor.Check("device", True, "cpu (4 cores)"))
    asked = question("start-doctor")
    assert isinstance(asked, ChoiceQuestion) and asked.code is not None
    assert str(doctor.Checkup((*fine, failed))).startswith(asked.code.rstrip() + "\n\n")


def test_every_aim_is_asked(bank: Bank) -> None:
    assert {each.objective for each in bank.questions} == set(bank.objectives)


def test_about_half_the_questions_need_a_calculation_or_a_listing(bank: Bank) -> None:
    worked_out = [
        each
        for each in bank.questions
        if each.kind in ("number", "spot", "predict", "code") or getattr(each, "code", None) is not None
    ]
    assert len(worked_out) >= 0.5 * len(bank.questions)


def test_the_section_to_reread_is_a_heading_of_the_lesson(bank: Bank) -> None:
    assert {each.section for each in bank.questions} <= set(SECTIONS[bank.lesson])
    notebook = course_folder("notebooks") / f"{bank.lesson}.ipynb"
    if not notebook.exists():
        pytest.skip(f"{notebook.name} is not there yet")
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "markdown")
    assert {each.section for each in bank.questions} <= set(re.findall(r"(?m)^## (.+?)\s*$", prose))


def test_feedback_is_short(asked: Question) -> None:
    for place, text in texts(asked):
        if place.startswith(("feedback", "mistake", "line")):
            for words in (text.en, text.nl):
                assert len(words) <= LONGEST_FEEDBACK, (place, len(words))
                assert len(re.findall(r"[.!?](?:\s|$)", words)) <= 3, (place, words)


def test_both_languages_hold_the_same_numbers(asked: Question) -> None:
    for place, text in texts(asked):
        assert numbers(text.en, ".") == numbers(text.nl, ","), (place, text)


def numbers(words: str, decimal: str) -> Counter[float]:
    grouping = "," if decimal == "." else "."
    found = re.findall(rf"(?<![\w.,])\d+(?:[{grouping}]\d{{3}})*(?:[{decimal}]\d+)?(?:e-?\d+)?(?!\w)", words)
    return Counter(float(each.replace(grouping, "").replace(decimal, ".")) for each in found)


def test_dutch_is_not_english(asked: Question) -> None:
    for place, text in texts(asked):
        if len(text.en.split()) > 6:
            assert text.en != text.nl, place
            english = re.findall(r"\b(?:the|and|with|that|which|gradients are)\b", text.nl)
            assert not english, (place, english)


def test_no_bare_step_where_micro_batch_or_update_is_meant(asked: Question) -> None:
    # "A step is a batch" is quoted as the misconception that it is.
    allowed = re.compile(
        r"(?:optimizer|scheduler|scaler)\.step|training_step|accumulation_steps"
        r"|A step is a batch|Een step is een batch",
        re.I,
    )
    for place, text in texts(asked):
        for words in (text.en, text.nl):
            assert not re.search(r"\bsteps?\b", allowed.sub("", words)), (place, words)


def test_the_right_option_does_not_stand_out_by_its_length() -> None:
    choices = [each for each in QUESTIONS.values() if each.kind == "choice"]
    for language in ("en", "nl"):
        lengths = [sorted((len(o.text.to(language)), o.correct) for o in each.options) for each in choices]
        longest = sum(right and size > other for *_, (other, _), (size, right) in lengths)
        assert longest <= 0.34 * len(choices), f"{longest} of {len(choices)} in {language}"


def test_options_are_different_and_so_is_what_is_said_about_them(asked: Question) -> None:
    options = [option for option in getattr(asked, "options", ()) if hasattr(option, "feedback")]
    for language in ("en", "nl"):
        for said in ([o.text.to(language) for o in options], [o.feedback.to(language) for o in options]):
            assert len(said) == len(set(said))


def test_where_several_can_be_picked_each_says_yes_or_no(asked: Question) -> None:
    # Elsewhere the verdict that stands before the feedback says it.
    for option in getattr(asked, "options", ()):
        if hasattr(option, "feedback"):
            several = asked.kind == "multiple"
            said = ("Yes. ", "Ja. ") if option.correct else ("No. ", "Nee. ")
            assert option.feedback.en.startswith(said[0]) == several, option.id
            assert option.feedback.nl.startswith(said[1]) == several, option.id
            assert several or not option.feedback.en.startswith(("Yes", "No.")), option.id
    for place, text in texts(asked):
        if not place.startswith("feedback"):
            assert not text.en.startswith(("Yes. ", "No. ")) and not text.nl.startswith(("Ja. ", "Nee. ")), place


def test_names_in_code_stand_between_backticks(asked: Question) -> None:
    for place, text in texts(asked):
        for words in (text.en, text.nl):
            bare = re.sub(r"`[^`\n]+`", "", words)
            assert "`" not in bare, (place, words)
            assert not re.search(r"\w\.\w+\(|(?<!\w)\.grad|\w_\w|\boptimizer\.", bare), (place, words)


def test_words_for_another_line_do_not_name_the_faulty_one() -> None:
    for asked in QUESTIONS.values():
        if asked.kind == "spot":
            for said in (asked.feedback.wrong, *asked.lines.values()):
                for line in asked.line:
                    assert f"line {line}" not in said.en and f"regel {line}" not in said.nl


def test_ids_begin_with_their_lesson() -> None:
    prefix = {"00_start_here": "start-", "01_accumulate": "acc-", "02_scale_the_loss": "scale-"}
    prefix |= {"03_the_memory_wall": "mem-", "04_uneven_windows": "uneven-", "06_not_a_sum": "sum-"}
    prefix |= {"08_mixed_precision": "precision-"}
    prefix |= {"05_batch_norm": "norm-", "07_once_per_window": "once-", "10_fit_a_budget": "fit-"}
    prefix |= {"09_bug_museum": "museum-"}
    for lesson, bank in BANKS.items():
        assert all(each.id.startswith(prefix[lesson]) for each in bank.questions)


def test_each_lesson_has_its_exercise() -> None:
    found = {question_id: question(question_id).exercise for question_id in EXERCISES}
    assert found == EXERCISES


EXERCISES = {
    "start-write-updates": "updates_per_epoch",
    "acc-write-loop": "train_epoch_windows",
    "scale-repair": "repair_scale",
    "mem-find-leak": "find_leak",
    "mem-choose": "choose_for_budget",
    "uneven-fix-tail": "fix_tail",
    "uneven-token-loop": "token_weights",
    "sum-embed": "embed_in_two_passes",
    "sum-dice": "dice_per_class",
    "once-repair": "once_per_window",
    "once-read-events": "read_timeline",
    "precision-repair-fp16": "repair_fp16",
    "precision-float32-sum": "float32_sum",
    "museum-two-bugs": "two_bugs",
    "museum-write-test": "write_the_test",
    "fit-plan-your-own": "plan_your_own",
    "fit-choose": "choose_with_checkpointing",
}
