"""The numbers in the questions are computed again: by the course's own loop, in float64, or by counting."""

import math
import re

import pytest
import torch
from banks.course_content import (
    EQUAL,
    all_banks,
    compiled,
    draws,
    full_gradients,
    mlp_task,
    question,
    unit_gradients,
)
from torch import Tensor, nn

from gradacc_lessons.accumulation import accumulate, split, windows
from gradacc_lessons.lessons.training import gradient, parameters, train
from gradacc_lessons.quiz.grade import fill, grade, grade_prediction
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import digits

TASK = mlp_task()
SEEDS = (0, 1, 2)
UPDATES = 25
HIDDEN = 1e-2
"""A difference of the weights, relative to how far they moved, that nobody would see in a curve."""


def test_the_training_set_is_as_large_as_the_questions_say() -> None:
    assert TASK.examples == 1536
    for question_id in ("start-predict-updates", "acc-step-or-batch"):
        assert "1,536" in question(question_id).prompt.en


# 00 ---------------------------------------------------------------------------------------------------------------


def test_keeping_b_times_n_and_halving_b_is_what_helps() -> None:
    pairs = {
        option.id: tuple(map(int, re.findall(r"\d+", option.text.en)))
        for option in question("start-out-of-memory").options
    }
    fits_and_equal = [name for name, (b, n) in pairs.items() if b < 16 and b * n == 16 * 2]
    assert fits_and_equal == [option.id for option in question("start-out-of-memory").options if option.correct]


def test_backward_step_and_zero_grad_are_called_as_often_as_the_right_option_says() -> None:
    calls = {"backward": 0, "step": 0, "zero": 0}
    for window in windows(range(12), 4):
        calls["backward"] += len(window)
        calls["step"] += 1
        calls["zero"] += 1
    (right,) = [option for option in question("start-rhythm").options if option.correct]
    assert list(map(int, re.findall(r"\d+", right.text.en))) == list(calls.values())


def test_the_prediction_of_updates_is_graded_by_counting_them() -> None:
    counted = len(list(windows(split(TASK.train, 8), 4)))
    asked = question("start-predict-updates")
    assert grade_prediction(asked, 48.0, counted).correct
    for wrong in (192.0, 384.0, 1536.0, 47.0):
        assert not grade_prediction(asked, wrong, counted).correct


def test_a_short_window_counts_as_an_update() -> None:
    asked = question("start-short-window")
    for drawn in draws(asked):
        counted = len(list(windows(range(int(drawn["m"])), int(drawn["n"]))))
        assert asked.answer.value(drawn) == counted
        assert drawn["m"] % drawn["n"], "there must be a short window"


# 01 ---------------------------------------------------------------------------------------------------------------


def test_backward_adds_what_the_answer_adds() -> None:
    asked = question("acc-backward-adds")
    for drawn in draws(asked):
        w = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        (w * drawn["p"]).backward()
        (w * drawn["q"]).backward()
        assert asked.answer.value(drawn) == float(w.grad)


def test_an_option_of_the_same_gradient_is_right_exactly_if_torch_says_so() -> None:
    asked = question("acc-same-gradient")
    (full,) = full_gradients(TASK, 32, 32)
    pieces = split(tuple(tensor[:32] for tensor in TASK.train), 8)

    def run(loss: str, *, clear: bool = False, after: int = 1) -> Tensor:
        model = TASK.build_model()
        for piece in pieces:
            if clear:
                model.zero_grad()
            losses = {"mean": TASK.loss_fn, "quarter": lambda m, p: TASK.loss_fn(m, p) / 4, "sum": TASK.loss_sum}
            losses[loss](model, piece).backward()
        return gradient(model) / after

    ways = {
        "divide-loss": run("quarter"),
        "divide-grad": run("mean", after=4),
        "sums": run("sum", after=32),
        "clear-between": run("quarter", clear=True),
        "plain": run("mean"),
    }
    assert set(ways) == {option.id for option in asked.options}
    for option in asked.options:
        assert bool((ways[option.id] - full).abs().max() <= EQUAL) == option.correct, option.id
    assert (ways["plain"] - 4 * full).abs().max() <= EQUAL  # "four times too long"


def test_effective_batch_and_n_are_those_of_the_recipe() -> None:
    effective, target = question("acc-effective"), question("acc-reach-target")
    for drawn in draws(effective):
        assert effective.answer.value(drawn) == Recipe(int(drawn["b"]), int(drawn["n"])).effective_batch_size
    for drawn in draws(target):
        micro_batches = split((torch.zeros(int(drawn["target"])),), int(drawn["b"]))
        assert target.answer.value(drawn) == len(micro_batches)


def test_the_total_of_updates_is_counted() -> None:
    asked = question("acc-step-or-batch")
    for drawn in draws(asked):
        per_epoch = len(list(windows(split(TASK.train, int(drawn["b"])), int(drawn["n"]))))
        assert asked.answer.value(drawn) == drawn["epochs"] * per_epoch


def test_without_zero_grad_the_windows_pile_up() -> None:
    def never_zero(model, optimizer, micro_batches, loss_fn, accumulation_steps):  # type: ignore[no-untyped-def]
        for k, batch in enumerate(micro_batches, start=1):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if k % accumulation_steps == 0:
                optimizer.step()

    asked = question("acc-grad-trace")
    for drawn in draws(asked):
        n, k = int(drawn["n"]), int(drawn["k"])
        assert asked.answer.value(drawn) == pytest.approx(unit_gradients(never_zero, n * k, n)[k - 1])


def test_the_predicted_lengths_are_1_with_the_division_and_n_without() -> None:
    acc, scale = question("acc-predict-distance"), question("scale-predict-ratio")
    assert grade_prediction(acc, 1.0, length(8, 4, "mean")).correct
    assert grade_prediction(scale, 8.0, length(8, 8, "none")).correct
    for asked, measured in ((acc, length(8, 4, "mean")), (scale, length(8, 8, "none"))):
        for wrong in (0.25, 0.125, 0.5, 2.0, 4.0, 8**0.5):
            assert not grade_prediction(asked, wrong, measured).correct


def length(b: int, n: int, scaling: str) -> float:
    """How many times as long as the full batch's gradient the accumulated one is."""
    (full,) = full_gradients(TASK, b * n, b * n)
    recipe = Recipe(b, n, loss_scaling=scaling)  # type: ignore[arg-type]
    model = TASK.build_model()
    for position, batch in enumerate(split(tuple(tensor[: b * n] for tensor in TASK.train), b)):
        (TASK.loss_fn(model, batch) / recipe.divisor(position)).backward()
    return float(gradient(model).norm() / full.norm())


def test_a_cnn_drifts_in_float32_and_not_in_float64() -> None:
    drift = {}
    for dtype in (torch.float32, torch.float64):
        task = digits("cnn", dtype=dtype)
        curves = [
            torch.tensor(
                [row["loss"] for row in train(task, Recipe(b, n, learning_rate=0.5), 100)], dtype=torch.float64
            )
            for b, n in ((32, 1), (8, 4))
        ]
        drift[dtype] = float(((curves[1] - curves[0]).abs() / curves[0]).max())
    assert drift[torch.float64] < 1e-10
    assert drift[torch.float32] > 1e-3  # visible: more than the width of a line


@pytest.mark.parametrize("seed", SEEDS)
def test_raising_n_at_equal_epochs_means_fewer_updates_that_are_not_larger(seed: int) -> None:
    loss, size, updates = {}, {}, {}
    for b, n in ((8, 1), (8, 8), (64, 1)):
        recipe = Recipe(b, n, seed=seed)
        updates[b, n] = 2 * recipe.updates_per_epoch(TASK.examples)
        before, moved = parameters(TASK.build_model(seed)), 0.0
        for row in train(TASK, recipe, updates[b, n]):
            after = parameters(row["model"])
            moved, before = moved + float((after - before).norm()), after
        loss[b, n] = float(TASK.loss_fn(row["model"], TASK.train).detach())
        size[b, n] = moved / updates[b, n]
    assert updates[8, 1] == 8 * updates[8, 8]
    assert size[8, 8] < size[8, 1]
    assert loss[8, 8] > 1.5 * loss[8, 1]
    assert loss[8, 8] == pytest.approx(loss[64, 1], rel=1e-9)  # "a real batch of 64 would do the same"


# 02 ---------------------------------------------------------------------------------------------------------------


def test_without_division_sgd_moves_as_at_n_times_the_learning_rate() -> None:
    asked = question("scale-factor")
    for drawn in draws(asked):
        n, rate = int(drawn["n"]), float(drawn["rate"])
        recipe = Recipe(4, n, loss_scaling="none", learning_rate=rate)
        right = Recipe(4, n, learning_rate=asked.answer.value(drawn))
        for wrong_row, right_row in zip(train(TASK, recipe, 3), train(TASK, right, 3), strict=True):
            difference = parameters(wrong_row["model"]) - parameters(right_row["model"])
            assert difference.abs().max() <= EQUAL


def test_a_running_divisor_leaves_what_the_answer_says() -> None:
    asked = question("scale-running")
    loop = compiled(question("scale-loop-running").code)
    for drawn in draws(asked):
        (used,) = unit_gradients(loop, 4, 4, size=float(drawn["g"]))
        assert asked.answer.value(drawn) == pytest.approx(used, rel=1e-12)


# How a missing 1/N changes training with Adam, for each option of the question that is about the weights.
CHANGES = {
    "clip": {"max_norm": 1.0},
    "eps": {"eps": 1e-3},
    "l2": {"weight_decay": 0.01},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.01},
    "rate": {"learning_rate": 0.0005},
}


def difference(seed: int, **change: object) -> float:
    """How far apart right and wrong loop are after UPDATES updates, relative to the distance travelled."""
    ends = []
    for scaling in ("mean", "none"):
        chosen = {"optimizer": "adam", "learning_rate": 0.001, **change}
        recipe = Recipe(4, 8, loss_scaling=scaling, seed=seed, **chosen)  # type: ignore[arg-type]
        *_, last = train(TASK, recipe, UPDATES)
        ends.append(parameters(last["model"]))
    travelled = ends[0] - parameters(TASK.build_model(seed))
    return float((ends[1] - ends[0]).norm() / travelled.norm())


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def test_adam_hides_what_sgd_shows() -> None:
    hidden = median([difference(seed) for seed in SEEDS])
    shown = median([difference(seed, optimizer="sgd", learning_rate=0.001) for seed in SEEDS])
    assert hidden < HIDDEN / 10
    assert shown > 1000 * hidden


@pytest.mark.parametrize("option_id", CHANGES)
def test_a_change_gives_the_bug_away_exactly_if_the_option_is_right(option_id: str) -> None:
    option = {each.id: each for each in question("scale-gives-away").options}[option_id]
    measured = median([difference(seed, **CHANGES[option_id]) for seed in SEEDS])
    assert (measured > HIDDEN) == option.correct, measured


def test_the_norm_gives_it_away_when_the_batch_is_cut_otherwise() -> None:
    asked = question("scale-gives-away")
    assert {each.id for each in asked.options} == {*CHANGES, "norm"}
    first = {
        (b, n, scaling): next(iter(train(TASK, Recipe(b, n, loss_scaling=scaling), 1)))["gradient_norm"]
        for b, n in ((8, 4), (4, 8))
        for scaling in ("mean", "none")
    }
    assert first[8, 4, "mean"] == pytest.approx(first[4, 8, "mean"], rel=EQUAL)
    assert first[4, 8, "none"] == pytest.approx(2 * first[8, 4, "none"], rel=EQUAL)


def test_right_gradients_have_the_norms_that_the_question_gives() -> None:
    recipe = Recipe(4, 8, optimizer="adam", learning_rate=0.001)
    norms = [row["gradient_norm"] for row in train(TASK, recipe, UPDATES)]
    assert min(norms) > 0.3 and max(norms) < 0.9, "around 0.5, and below the clipping norm of 1"
    assert 8 * min(norms) > 1, "the long ones are all cut"


def test_clipping_bites_from_the_norm_in_the_answer_on() -> None:
    asked = question("scale-clip")
    for drawn in draws(asked):
        bites_from = asked.answer.value(drawn)
        assert clipped(bites_from * 1.01, int(drawn["n"]), float(drawn["c"]))
        assert not clipped(bites_from * 0.99, int(drawn["n"]), float(drawn["c"]))


def clipped(right_norm: float, n: int, max_norm: float) -> bool:
    """Whether clipping changes the gradient of a loop without 1/N whose right gradient has that norm."""
    weight = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    slope = torch.tensor([0.6, 0.8], dtype=torch.float64) * right_norm
    for _ in range(n):
        (weight @ slope).backward()
    before = weight.grad.clone()  # type: ignore[union-attr]
    nn.utils.clip_grad_norm_([weight], max_norm)
    return not torch.allclose(before, weight.grad, rtol=1e-5)  # type: ignore[arg-type]


def test_the_logged_loss_is_the_real_one_divided_by_n() -> None:
    asked = question("scale-log-small")
    n, logged, real = map(float, re.findall(r"\d+(?:\.\d+)?", asked.prompt.en))
    assert logged * n == pytest.approx(real, rel=0.005)


def test_an_untrained_classifier_logs_the_sum_in_the_answer() -> None:
    asked = question("scale-log-sum")
    assert round(math.log(10), 1) == 2.3
    for drawn in draws(asked):
        n = int(drawn["n"])
        model = TASK.build_model()
        window = split(tuple(tensor[: 8 * n] for tensor in TASK.train), 8)
        logged = sum(float(TASK.loss_fn(model, batch).detach()) for batch in window)
        assert grade(asked, logged, drawn).correct


# All ---------------------------------------------------------------------------------------------------------------


def numbers() -> list[str]:
    return [each.id for bank in all_banks().values() for each in bank.questions if each.kind == "number"]


@pytest.mark.parametrize("question_id", numbers())
def test_each_wrong_formula_gets_its_own_words(question_id: str) -> None:
    asked = question(question_id)
    for drawn in draws(asked):
        right = grade(asked, asked.answer.value(drawn), drawn)
        assert right.correct
        for index, mistake in enumerate(asked.mistakes, start=1):
            wrong = grade(asked, mistake.formula.value(drawn), drawn)
            assert not wrong.correct
            assert wrong.mistake == f"mistake-{index}", drawn


@pytest.mark.parametrize("question_id", numbers())
def test_no_answer_can_be_read_in_the_words_for_a_wrong_one(question_id: str) -> None:
    asked = question(question_id)
    for drawn in draws(asked):
        right = asked.answer.value(drawn)
        for said in (asked.feedback.wrong, *(mistake.feedback for mistake in asked.mistakes), *asked.hints):
            words = fill(said, drawn)
            for text, decimal, thousands in ((words.en, ".", ","), (words.nl, ",", ".")):
                plain = re.sub(rf"(?<=\d)\{thousands}(?=\d{{3}}\b)", "", text).replace(decimal, ".")
                found = re.findall(r"\d+(?:\.\d+)?", plain)
                assert not any(math.isclose(float(each), right) for each in found), text


def test_accumulate_is_what_the_prediction_of_lesson_01_describes() -> None:
    (full,) = full_gradients(TASK, 32, 32)
    model = TASK.build_model()
    accumulate(model, split(tuple(tensor[:32] for tensor in TASK.train), 8), TASK.loss_sum, TASK.count)
    assert (gradient(model) - full).abs().max() <= EQUAL
