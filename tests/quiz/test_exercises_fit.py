"""Lesson 10's exercises: a model of one's own is planned in the process it lives in, a choice of window is measured."""

import math
import re
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from gradacc_lessons.detective import client
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.quiz import judge_fit
from gradacc_lessons.quiz.examine_parts import (
    FAULTS,
    LONGEST_TEXT,
    NUMBERS_OF_THE_MODEL,
    PLANNED_BUDGET,
    PLANNED_TARGET,
    first_fault,
)
from gradacc_lessons.quiz.exercise import NOT_ATTEMPTED, build
from gradacc_lessons.quiz.exercises_fit import CHOOSE_WITH_CHECKPOINTING, MODEL, PLAN_YOUR_OWN, setup_source
from gradacc_lessons.quiz.judge_fit import BUDGET_MEBIBYTES, TARGET, run_and_judge
from gradacc_lessons.text import LANGUAGES

DIVISORS = [size for size in range(1, TARGET + 1) if TARGET % size == 0]


def checked(**pieces: str) -> Any:
    return PLAN_YOUR_OWN.check(build(setup_source(**pieces), "setup"))


def answered(source: str) -> Any:
    return PLAN_YOUR_OWN.check(build(source, "setup"))


# plan_your_own ----------------------------------------------------------------------------------------------------


def test_the_described_model_has_as_many_numbers_as_are_looked_for() -> None:
    model = build(PLAN_YOUR_OWN.solution, "Classifier")()
    assert sum(parameter.numel() for parameter in model.parameters()) == NUMBERS_OF_THE_MODEL


def test_the_statement_describes_the_model_that_is_given() -> None:
    for language in LANGUAGES:
        said = re.findall(r"\d+", PLAN_YOUR_OWN.statement.to(language))
        assert said == ["5", str(LONGEST_TEXT), "500", "4"]
    assert "nn.Embedding(500, " in MODEL and "nn.Linear(64, 4)" in MODEL and PLAN_YOUR_OWN.starter.startswith(MODEL)


def test_a_right_answer_hears_its_plan_and_that_the_real_window_took_as_much() -> None:
    said = checked().feedback
    sizes = [int(size) for size in re.findall(r"\d+", said.en.split("become")[1].split(",")[0])]
    assert sum(sizes) == PLANNED_TARGET and max(sizes) - min(sizes) == 1  # ragged, as the lesson's own
    predicted, measured = (float(figure) for figure in re.findall(r"(\d+\.\d) MiB", said.en))
    assert measured == pytest.approx(predicted, rel=0.01) and measured <= PLANNED_BUDGET
    assert "Een echt venster kostte" in said.nl and f"{measured}".replace(".", ",") in said.nl


def fault(source: str) -> str | None:
    """What is found in the functions, without a process of their own and without a plan."""
    found = first_fault(build(source, "setup")())
    return found[0] if found else None


WAYS = {
    "class itself": setup_source(returned="[Classifier, loss_fn, make_batch]"),
    "by hand": setup_source(loss="-model(tokens).log_softmax(-1)[range(len(labels)), labels].mean()"),
    "constants": setup_source(batch=f"torch.full((size, {LONGEST_TEXT}), 7), torch.zeros(size, dtype=torch.long)"),
    "copies": setup_source(first="    import copy\n\n    mine = Classifier()\n\n", build="copy.deepcopy(mine)"),
    "a list": setup_source(batch=f"[torch.ones(size, {LONGEST_TEXT}, dtype=torch.int), torch.arange(size) % 4]"),
    "a dictionary, and a lambda": MODEL + (
        "def setup():\n    def make_batch(size):\n"
        "        return {'tokens': torch.randint(500, (size, 96)), 'labels': torch.randint(4, (size,))}\n"
        "    return Classifier, lambda m, b: F.cross_entropy(m(b['tokens']), b['labels']), make_batch\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_in_ways_to_be_right_nothing_is_found(way: str) -> None:
    assert fault(WAYS[way]) is None


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_ways_to_be_right_can_be_planned(way: str) -> None:
    grade = answered(WAYS[way])
    assert grade.correct, grade.feedback.en


@pytest.mark.parametrize(
    ("pieces", "mistake"),
    [
        ({"returned": "build_model, loss_fn"}, "no_parts"),
        ({"returned": "build_model, loss_fn, make_batch(4)"}, "no_parts"),
        ({"returned": "None"}, "no_parts"),
        ({"returned": "{'model': build_model}"}, "no_parts"),
        ({"batch": "torch.randint(500, (size, 96)), torch.randint(4, (8,))"}, "size_ignored"),
        ({"batch": "None"}, "size_ignored"),
        ({"batch": "torch.randint(500, (96, size)), torch.randint(4, (size,))"}, "size_ignored"),
        ({"batch": "torch.randint(500, (size, 5)), torch.randint(4, (size,))"}, "not_longest"),
        ({"batch": "torch.randint(500, (size, size)), torch.randint(4, (size,))"}, "not_longest"),
        ({"batch": "torch.randint(500, (size, 128)), torch.randint(4, (size,))"}, "not_longest"),
        ({"build": "None"}, "no_model"),
        ({"build": "Classifier().parameters()"}, "no_model"),
        ({"loss": "F.cross_entropy(model(tokens), labels).detach()"}, "no_graph"),
        ({"loss": "F.cross_entropy(model(tokens).detach(), labels)"}, "no_graph"),
        ({"loss": "model(tokens)"}, "not_scalar"),
        ({"loss": "2 * F.cross_entropy(model(tokens), labels) - 1 / len(labels)"}, "not_the_mean"),
    ],
)
def test_other_ways_to_make_the_same_mistakes(pieces: dict[str, str], mistake: str) -> None:
    assert fault(setup_source(**pieces)) == mistake


def test_one_shared_layer_is_found() -> None:
    first = "    table = nn.Embedding(500, 64)\n\n"
    first += "    def sharing(model):\n        model.tokens = table\n        return model\n\n"
    grade = checked(first=first, build="sharing(Classifier())")
    assert grade.mistake == "shares_parts" and "Shared: 1 of 27 tensors." in grade.feedback.en


def test_what_was_seen_is_said() -> None:
    assert "Asked for 1, it gave 8." in checked(batch="torch.ones(8, 96).long(), torch.ones(8).long()").feedback.en
    assert "Hun lengte is 48." in checked(batch="torch.ones(size, 48).long(), torch.ones(size).long()").feedback.nl
    assert "It returned 6." in checked(loss='F.cross_entropy(model(tokens), labels, reduction="none")').feedback.en


def test_each_mistake_that_is_looked_for_has_a_wrong_answer() -> None:
    assert {wrong.fault for wrong in PLAN_YOUR_OWN.wrong} == set(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_no_message_holds_a_line_of_the_solution(fault: str) -> None:
    lines = {line.strip() for line in PLAN_YOUR_OWN.solution.splitlines() if line.startswith("        ")}
    code = ("cross_entropy(", "randint", "Classifier()", "reduction", str(LONGEST_TEXT), str(NUMBERS_OF_THE_MODEL))
    for language in LANGUAGES:
        said = FAULTS[fault].words.to(language)
        assert not any(line in said for line in lines) and not any(piece in said for piece in code)


def test_what_the_learners_code_raises_is_the_learners_to_see() -> None:
    grade = checked(loss="F.cross_entropy(model(tokens), labels.float())")
    assert grade.mistake == "crashed" and "setup stopped with RuntimeError" in grade.feedback.en
    assert re.search(r"\(line \d+\)", grade.feedback.en)
    beyond = checked(batch="torch.full((size, 96), 500), torch.zeros(size).long()")
    assert beyond.mistake == "crashed" and "IndexError" in beyond.feedback.en


def test_what_cannot_be_followed_without_numbers_is_a_sentence() -> None:
    source = PLAN_YOUR_OWN.solution.replace(
        "return self.head(self.encoder(self.tokens(tokens)).mean(dim=1))",
        "x = self.encoder(self.tokens(tokens)).mean(dim=1)\n        return self.head(x if x.sum() > 1e9 else x * 1.0)",
    )
    grade = answered(source)
    assert grade.mistake == "crashed" and "cannot be followed without numbers" in grade.feedback.en


def test_an_unfinished_answer_is_no_attempt() -> None:
    assert not answered(MODEL + "def setup():\n    x = 1\n    raise NotImplementedError(x)\n").counted
    grade = answered(PLAN_YOUR_OWN.starter)
    assert not grade.counted and grade.feedback == NOT_ATTEMPTED


def test_one_that_never_returns_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_fit, "SECONDS", 1.0)
    assert checked(first="    while True:\n        pass\n\n").mistake == "timed_out"


def test_functions_of_a_learners_own_module_travel_too() -> None:
    grade = PLAN_YOUR_OWN.check(setup_here)
    assert grade.mistake == "another_model", grade.feedback.en


def setup_here() -> Any:
    return partial(nn.Linear, LONGEST_TEXT, 4), here_loss, here_batch


def here_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    return F.cross_entropy(model(batch[0]), batch[1])


def here_batch(size: int) -> Any:
    return torch.randn(size, LONGEST_TEXT), torch.zeros(size, dtype=torch.long)


def test_what_is_said_of_functions_that_draw_is_the_same_in_every_process(monkeypatch: pytest.MonkeyPatch) -> None:
    (other,) = (wrong for wrong in PLAN_YOUR_OWN.wrong if wrong.fault == "other_loss")
    first = answered(other.source)
    monkeypatch.setattr(client, "WORKER", fresh := client.Worker())
    try:
        assert answered(other.source) == first and first.mistake == "other_loss"
    finally:
        fresh.close()


def test_another_loss_is_found_where_the_batchs_own_is_the_same_by_chance() -> None:
    batch = f"torch.arange(size)[:, None].expand(size, {LONGEST_TEXT}), torch.zeros(size, dtype=torch.long)"
    loss = "F.cross_entropy(model(tokens), labels) + (tokens[:, 0] % 2 - 0.5).mean()"  # the mean of six is 0
    assert fault(setup_source(batch=batch, loss=loss)) == "other_loss"
    assert fault(setup_source(batch=batch)) is None


def test_a_loss_is_judged_by_its_parts_whatever_its_scale() -> None:
    parts = build(PLAN_YOUR_OWN.solution, "setup")()

    def judged(change: Any) -> str | None:
        found = first_fault((parts[0], lambda model, batch: change(parts[1](model, batch), len(batch[1])), parts[2]))
        return found[0] if found else None

    assert judged(lambda loss, size: loss) is None
    assert judged(lambda loss, size: loss * 1000) == "other_loss"
    assert judged(lambda loss, size: loss + 5) == "other_loss"
    assert judged(lambda loss, size: loss * size / 1000) == "sum_not_mean"
    assert judged(lambda loss, size: loss * math.sqrt(size)) == "not_the_mean"


# choose_with_checkpointing ----------------------------------------------------------------------------------------


def returning(value: Any) -> Any:
    return CHOOSE_WITH_CHECKPOINTING.check(lambda: value)


PLAIN = {size: "n_too_large" for size in DIVISORS if size < 10} | {
    10: None,
    15: "forgets_what_stays",
    **{size: "over_budget" for size in DIVISORS if size > 15},
}
AGAIN = {
    size: "checkpointing_for_nothing" if size <= 10 else "checkpointing_not_needed" if size <= 30 else
    "checkpointed_and_over"
    for size in DIVISORS
}  # fmt: skip
QUICK = [(9, False), (10, False), (15, False), (9, True), (10, True), (15, True)]
"""On either side of what fits. Every window takes its time, and the larger ones more."""
WINDOWS = [
    window if window in QUICK else pytest.param(*window, marks=pytest.mark.long)
    for window in ((size, checkpointing) for size in DIVISORS for checkpointing in (False, True))
]


@pytest.mark.parametrize(("size", "checkpointing"), WINDOWS)
def test_of_all_windows_one_is_right_and_each_other_hears_why_not(size: int, checkpointing: bool) -> None:
    grade = run_and_judge(size, TARGET // size, checkpointing)
    assert grade.correct == ((size, checkpointing) == (10, False))
    assert grade.mistake == (AGAIN if checkpointing else PLAIN)[size]
    without = judge_fit.measured_window(size, TARGET // size, False).peak_bytes <= BUDGET_MEBIBYTES * MEBIBYTE
    if checkpointing and grade.mistake != "checkpointed_and_over":  # what is said of the same window is so
        assert without == ("same micro-batch" in grade.feedback.en) == ("A smaller" not in grade.feedback.en)


def test_with_checkpointing_every_block_computes_its_forward_twice_and_without_once() -> None:
    from gradacc_lessons.lessons.peaks import LONGEST, recipe_for
    from gradacc_lessons.memory.checkpointing import checkpoint_blocks
    from gradacc_lessons.memory.loop import one_update
    from gradacc_lessons.optimizers import make_optimizer
    from gradacc_lessons.tasks import chat

    forwards = {}
    for n, checkpointing in ((3, False), (3, True), (1, True)):
        task, count = chat(length=LONGEST), 0

        def counted(*_: Any) -> None:
            nonlocal count
            count += 1

        model = task.build_model()
        model.blocks[0].wide.register_forward_hook(counted)  # type: ignore[union-attr, index]
        if checkpointing:
            checkpoint_blocks(model)
        recipe = recipe_for("adamw", 2, n)
        window = [task.make_batch(2) for _ in range(n)]
        one_update(model, make_optimizer(model, recipe), window, task.loss_fn, recipe)
        forwards[n, checkpointing] = count
    assert forwards == {(3, False): 3, (3, True): 6, (1, True): 2}


def test_the_window_cut_short_takes_what_the_whole_one_does() -> None:
    from gradacc_lessons.lessons.peaks import LONGEST, measured, recipe_for

    whole = measured(LONGEST, recipe_for("adamw", 3, 4))
    assert judge_fit.measured_window(3, 4, False).peak_bytes == whole.peak_bytes


def test_a_window_that_is_too_large_hears_by_how_much_it_was_measured() -> None:
    said = run_and_judge(15, 6, False).feedback
    over = judge_fit.measured_window(15, 6, False).peak_bytes / MEBIBYTE - BUDGET_MEBIBYTES
    assert f"Measured: {over:.0f} MiB too much" in said.en and f"Gemeten: {over:.0f} MiB te veel" in said.nl


@pytest.mark.parametrize("value", [(10.0, 9, False), [10, 9, False], (10, torch.tensor(9), False)])
def test_ways_to_choose_right(value: Any) -> None:
    assert returning(value).correct


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "value",
    [
        *(None, 10, (10, 9), (10, 9, False, 1), ("10", "9", False), (10.5, 9, True), (0, 9, False), (-10, -9, False)),
        *((10, 9, 0), (10, 9, "no"), (10, 9, None), (True, 90, False), {10: 9}, (None, 9, True), False),
    ],
)
def test_what_is_no_triple_is_told_so(value: Any) -> None:
    grade = returning(value)
    assert grade.mistake == "no_triple" and grade.counted and not grade.correct


def test_a_huge_choice_is_not_run() -> None:
    assert returning((10**6, 1, True)).mistake == "misses_target"


def test_a_choice_may_ask_for_predictions() -> None:
    source = (
        "from dataclasses import replace\n\n\ndef choose():\n"
        "    from gradacc_lessons import predict_peak\n    from gradacc_lessons.recipe import Recipe\n"
        "    from gradacc_lessons.tasks import chat\n\n    task = chat()\n"
        "    recipe = Recipe(optimizer='adamw', optimizer_kernel='for-loop')\n"
        "    for b in (10, 9):\n        parts = task.build_model, task.loss_fn, task.make_batch\n"
        "        tried = replace(recipe, micro_batch_size=b, accumulation_steps=90 // b)\n"
        "        if predict_peak(*parts, tried).peak_bytes <= 68 * 2**20:\n            return b, 90 // b, False\n"
    )
    assert CHOOSE_WITH_CHECKPOINTING.check(build(source, "choose")).correct


def test_what_raises_or_is_unfinished_is_told_apart() -> None:
    def broken() -> None:
        raise ZeroDivisionError

    assert CHOOSE_WITH_CHECKPOINTING.check(broken).mistake == "crashed"
    grade = CHOOSE_WITH_CHECKPOINTING.check(build(CHOOSE_WITH_CHECKPOINTING.starter, "choose"))
    assert not grade.counted and grade.feedback == NOT_ATTEMPTED


@pytest.mark.parametrize(("size", "checkpointing"), WINDOWS)
def test_no_message_gives_the_choice_away(size: int, checkpointing: bool) -> None:
    grade = run_and_judge(size, TARGET // size, checkpointing)
    for language in () if grade.correct else LANGUAGES:
        said = grade.feedback.to(language)
        assert "10" not in re.findall(r"\d+", re.sub(r"(Measured|Gemeten): \d+", "", said)), said


def test_no_hint_gives_the_choice_away() -> None:
    for hint in CHOOSE_WITH_CHECKPOINTING.hints:
        assert not re.findall(r"\d+", hint.en + hint.nl)


def test_the_statement_has_the_numbers_that_are_measured() -> None:
    for language in LANGUAGES:
        statement = CHOOSE_WITH_CHECKPOINTING.statement.to(language)
        assert {str(TARGET), str(BUDGET_MEBIBYTES)} <= set(re.findall(r"\d+", statement))
    assert f"{TARGET} examples" in CHOOSE_WITH_CHECKPOINTING.starter
    assert f"{BUDGET_MEBIBYTES} MiB" in CHOOSE_WITH_CHECKPOINTING.starter
