"""Lesson 05's questions are answered again by measuring: layers, gradients, running statistics, trained networks."""

from typing import Any

import pytest
import torch
from banks.course_content import all_banks, draws, question
from torch import nn

from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.norm_table import summary
from gradacc_lessons.lessons.norms import arranged, recipe_for, trained, window_gradient, window_of
from gradacc_lessons.lessons.running_statistics import weight_of_window
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.quiz.grade import committed, grade_prediction
from gradacc_lessons.quiz.number import NotANumber
from gradacc_lessons.reference.momentum import correct_momentum, corrected_momentum
from gradacc_lessons.tasks import digits


def right_of(question_id: str) -> set[str]:
    return {option.id for option in question(question_id).options if option.correct}


def cosine(model: str, norm: str, b: int) -> float:
    task = digits(model, norm=norm, dtype=torch.float64)  # type: ignore[arg-type]
    net, batch = trained(model, norm, 3), window_of(task, 64)  # type: ignore[arg-type]
    full, parts = (window_gradient(net, task, batch, size) for size in (64, b))
    return float(torch.cosine_similarity(parts, full, dim=0))


def test_the_prediction_is_right_at_what_is_measured_and_wrong_at_what_people_guess() -> None:
    asked, measured = question("norm-predict-cosine"), cosine("mlp", "batch", 2)
    assert grade_prediction(asked, round(measured, 1), measured).correct
    for wrong in (1.0, 0.9, 0.7, 0.5, -0.5):
        assert not grade_prediction(asked, wrong, measured).correct


@pytest.mark.parametrize("answer", ["5", "-1.2", "90"])
def test_what_is_no_cosine_is_no_prediction(answer: str) -> None:
    with pytest.raises(NotANumber):
        committed(question("norm-predict-cosine"), answer)


@pytest.mark.parametrize(("asked", "shown"), [("norm-weight", "{:.2f}"), ("norm-corrected", "{:.2e}")])
def test_a_right_value_rounded_as_asked_is_right_and_no_mistake_is(asked: str, shown: str) -> None:
    found = question(asked)
    assert "digits" in found.prompt.en and "cijfers" in found.prompt.nl
    for drawn in draws(found):
        right = found.answer.value(drawn)
        allowed = max(found.tolerance * abs(right), found.absolute_tolerance)
        assert abs(float(shown.format(right)) - right) <= allowed


def test_a_layer_moves_the_others_exactly_if_its_option_says_so() -> None:
    frozen = digits(norm="frozen batch", dtype=torch.float64).build_model()[1]
    layers: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
        "bn2d": (nn.BatchNorm2d(16), (8, 16, 5, 5)),
        "bn1d": (nn.BatchNorm1d(64), (8, 64)),
        "gn": (nn.GroupNorm(4, 16), (8, 16, 5, 5)),
        "ln": (nn.LayerNorm(64), (8, 64)),
        "frozen": (frozen, (8, 16, 5, 5)),
        "in": (nn.InstanceNorm2d(16), (8, 16, 5, 5)),
    }
    moved = set()
    for name, (layer, shape) in layers.items():
        features = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        changed = features.clone()
        changed[0] += 1
        layer.double().train()
        if (layer(features)[1:] - layer(changed)[1:]).abs().max() > 1e-9:
            moved.add(name)
    assert moved == right_of("norm-among")
    assert set(layers) == {option.id for option in question("norm-among").options}


def test_the_values_behind_a_mean_are_counted() -> None:
    asked = question("norm-values")
    for drawn in draws(asked):
        b, side = int(drawn["b"]), int(drawn["side"])
        assert asked.answer.value(drawn) == torch.zeros(b, 64, side, side)[:, 0].numel()


def test_nothing_but_other_statistics_repairs_the_gradient() -> None:
    assert right_of("norm-divisor") == {"norm"}
    assert abs(cosine("mlp", "frozen batch", 2) - 1) < 1e-12
    task = digits("mlp", norm="batch", dtype=torch.float64)
    net, batch = trained("mlp", "batch", 3), window_of(task, 64)
    full, before = (window_gradient(net, task, batch, size).clone() for size in (64, 2))
    correct_momentum(net, 32)
    assert torch.equal(window_gradient(net, task, batch, 2), before)
    assert (before - full).norm() > 0.4 * full.norm()  # in float64, on sums, with one division


def test_sorting_changes_batchnorms_gradient_alone() -> None:
    moved = set()
    for norm in ("batch", "group"):
        task = digits("mlp", norm=norm, dtype=torch.float64)  # type: ignore[arg-type]
        net, batch = trained("mlp", norm, 3), window_of(task, 64)  # type: ignore[arg-type]
        one, other = (window_gradient(net, task, arranged(batch, order), 8).clone() for order in ("shuffled", "sorted"))  # type: ignore[arg-type]
        if (one - other).norm() > 1e-12 * one.norm():
            moved.add(norm)
    assert moved == {"batch"} and right_of("norm-sorted") == {"only-bn"}


def test_the_statistics_move_as_often_as_the_answer_says() -> None:
    asked = question("norm-moves")
    images = digits().train[0]
    for drawn in draws(asked):
        layer = nn.BatchNorm2d(1)
        for (part,) in split((images,), int(drawn["b"])):
            layer(part)
        assert layer.num_batches_tracked is not None
        assert asked.answer.value(drawn) == drawn["epochs"] * int(layer.num_batches_tracked)
    assert "1,536" in asked.prompt.en and "1.536" in asked.prompt.nl


def test_weights_and_momenta_are_those_of_torchs_own_layer() -> None:
    weight, corrected = question("norm-weight"), question("norm-corrected")
    for drawn in draws(weight):
        assert weight.answer.value(drawn) == pytest.approx(weight_of_window(drawn["m"], int(drawn["n"])))
    for drawn in draws(corrected):
        answer = corrected.answer.value(drawn)
        assert answer == pytest.approx(corrected_momentum(drawn["m"], int(drawn["n"])))
        assert weight_of_window(answer, int(drawn["n"])) == pytest.approx(drawn["m"])


@pytest.mark.parametrize("asked", ["norm-weight", "norm-corrected", "norm-values", "norm-moves", "norm-sync"])
def test_a_mistake_is_never_within_the_tolerance(asked: str) -> None:
    found = question(asked)
    for drawn in draws(found):
        right = found.answer.value(drawn)
        allowed = max(found.tolerance * abs(right), found.absolute_tolerance)
        assert all(abs(each.formula.value(drawn) - right) > allowed for each in found.mistakes), drawn


def test_the_variance_lacks_what_lies_between_the_means() -> None:
    features = torch.arange(8.0, dtype=torch.float64).repeat_interleave(8).reshape(64, 1)  # sorted: equal parts
    full, parts = nn.BatchNorm1d(1, momentum=1.0, dtype=torch.float64), nn.BatchNorm1d(1, dtype=torch.float64)
    full(features)
    parts.momentum = corrected_momentum(0.99999999, 8)
    for part in features.split(8):
        parts(part)
    assert float(parts.running_var) < 0.01 * float(full.running_var)  # type: ignore[arg-type]
    unbiased = features.var(correction=1)
    assert float(full.running_var) == pytest.approx(float(unbiased))  # type: ignore[arg-type]
    assert unbiased > features.var(correction=0)  # "makes the running variance larger"


def test_the_listing_shrinks_its_momentum_with_every_update_and_leaves_the_gradient_alone() -> None:
    asked = question("norm-twice")
    task = digits("mlp", norm="batch")
    ends = []
    for correct in (correct_momentum, lambda model, n: 0):
        scope: dict[str, Any] = {"correct_momentum": correct}
        exec(asked.code, scope)
        model = task.build_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scope["train_epoch"](model, optimizer, split(task.train, 64)[:8], task.loss_fn, 2)
        ends.append(model)
    assert ends[0][2].momentum < 0.1 / 2**3 and ends[1][2].momentum == 0.1
    assert torch.equal(parameters(ends[0]), parameters(ends[1]))
    assert right_of("norm-twice") == {"stand-still"}


def test_the_gap_of_the_two_modes_is_that_of_the_stored_runs() -> None:
    used = summary("mlp", "batch", "shuffled")[2].mean
    as_trained = summary("mlp", "batch", "shuffled", "as_trained")[2].mean
    assert as_trained == pytest.approx(0.65, abs=0.06) and used == pytest.approx(0.9, abs=0.03)
    assert "65 %" in question("norm-gap").prompt.en and "90 %" in question("norm-gap").prompt.en


def test_a_norm_compared_with_itself_says_little_in_the_cnn() -> None:
    values = {b: cell.values for b, cell in summary("cnn", "batch", "shuffled").items()}
    assert min(values[2]) <= max(values[64]) and min(values[64]) <= max(values[2])
    assert len(values[64]) == 8  # "eight seeds each"
    assert right_of("norm-conclude") == {"here"}
    assert cosine("cnn", "batch", 2) < 0.99  # "the gradients were the same" is wrong


def test_devices_are_joined_and_time_is_not() -> None:
    asked = question("norm-sync")
    for drawn in draws(asked):
        assert asked.answer.value(drawn) == drawn["devices"] * drawn["b"]


def test_half_of_the_questions_are_worked_out() -> None:
    questions = all_banks()["05_batch_norm"].questions
    worked_out = [each for each in questions if each.kind in ("number", "predict", "code")]
    assert 12 <= len(questions) <= 16 and 2 * len(worked_out) >= len(questions)


def test_the_recipe_of_the_questions_is_the_lessons() -> None:
    assert recipe_for(2, 32).effective_batch_size == 64
