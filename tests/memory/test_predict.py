"""Predictions against runs that really happened, and a sentence for what cannot be followed."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.memory_cases import Case, cases, measured, predicted
from benchmarks.memory_models import SUBJECTS, TOKENS, VOCABULARY
from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.predict import predict_peak
from gradacc_lessons.memory.trial import Trial
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import digits

WORST, MEAN, TOO_LOW = 0.02, 0.005, 0.005
"""How far predictions may lie from the allocator's own events: at most, on average, and below them."""
ALL = list(cases())
QUICK = [next(c for c in ALL if c.model == name and c.recipe.precision == "float32") for name in SUBJECTS]


def error(case: Case) -> float:
    """How far the prediction lies above the measured peak, as a share of it."""
    pytest.importorskip("transformers")
    pytest.importorskip("peft")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        subject = SUBJECTS[case.model]()
        return predicted(subject, case.recipe) / measured(subject, case.recipe) - 1


@pytest.mark.few(6)
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_a_prediction_is_what_the_allocator_reports(case: Case) -> None:
    assert -TOO_LOW <= error(case) <= WORST


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_all_models_with_all_recipes() -> None:
    found = {str(case): error(case) for case in ALL}
    assert sum(map(abs, found.values())) / len(found) <= MEAN
    assert {name: off for name, off in found.items() if not -TOO_LOW <= off <= WORST} == {}


def test_every_choice_meets_every_model() -> None:
    assert len(ALL) == 80 and len(set(map(str, ALL))) >= 78
    for name in SUBJECTS:
        recipes = [case.recipe for case in ALL if case.model == name]
        assert {r.optimizer for r in recipes} == {"sgd", "momentum", "adam", "adamw", "adafactor"}
        assert {r.precision for r in recipes} == {"float32", "autocast", "bfloat16"}
        assert {r.accumulation_steps for r in recipes} == {1, 2, 3, 4}
        assert {r.micro_batch_size == 1 for r in recipes} == {True, False}


def test_the_same_layers_copied_and_a_model_copied() -> None:
    # torch's own encoder makes its layers by copy.deepcopy, and so does who keeps one model and copies it.
    import copy

    kept = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))
    recipe = Recipe(64, 2)
    copied = predict_peak(lambda: copy.deepcopy(kept), squares, numbers, recipe)
    new = predict_peak(lambda: nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)), squares, numbers, recipe)
    assert copied.peak_bytes == new.peak_bytes
    assert copied.by_category == new.by_category
    assert all(type(p) is nn.Parameter and p.grad is None for p in kept.parameters())


def test_another_device_is_an_uncalibrated_count() -> None:
    task = digits()
    here = predict_peak(task.build_model, task.loss_fn, task.make_batch, Recipe(8, 2))
    there = predict_peak(task.build_model, task.loss_fn, task.make_batch, Recipe(8, 2), device="cuda")
    assert there.counter.startswith("an uncalibrated prediction for CUDA: a count of the CPU's kernels")
    assert "uncalibrated" not in here.counter
    assert here.peak_bytes == there.peak_bytes


def test_the_default_kernel_of_an_optimizer_is_the_devices() -> None:
    """On a card all tensors are updated at once, which takes about one more copy of the parameters."""
    peaks = {
        kernel: predict_peak(
            lambda: nn.Sequential(*(nn.Linear(64, 64) for _ in range(8))),
            squares,
            numbers,
            Recipe(1, 2, optimizer="adamw", optimizer_kernel=kernel),
            device="cuda",
        ).peak_bytes
        for kernel in ("default", "foreach", "for-loop")
    }
    assert peaks["default"] == peaks["foreach"] > peaks["for-loop"]


def test_the_callers_randomness_and_settings_stay() -> None:
    task = digits("cnn")
    before, dtype = torch.random.get_rng_state(), torch.get_default_dtype()
    predict_peak(task.build_model, task.loss_fn, task.make_batch, Recipe(8, 2, precision="bfloat16"))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_default_dtype() is dtype
    assert type(nn.Linear(2, 2).to(torch.float64).weight.data) is Tensor
    assert Tensor.__deepcopy__.__module__ == "torch._tensor"


def numbers(size: int) -> Tensor:
    return torch.ones(size, 64)


def squares(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).square().mean()


class Chosen(nn.Linear):
    """Its control flow depends on what it computes."""

    def __init__(self) -> None:
        super().__init__(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y if y.sum() > 0 else -y


class Picked(Chosen):
    """Its sizes depend on what it computes."""

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight)
        return y[y > 0]


@torch.library.custom_op("gradacc_tests::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    """An operation without a size rule."""
    return 2 * x


twice.register_autograd(lambda ctx, grad: 2 * grad)


class Custom(Chosen):
    def forward(self, x: Tensor) -> Tensor:
        return twice(F.linear(x, self.weight))


KEPT = nn.Linear(64, 64)
NOT_FOLLOWED = r"this model cannot be followed without numbers: .* [Mm]easure it with `measure_peak`"
WRONG: dict[str, tuple[Callable[[], nn.Module], Any, Any, str]] = {
    "control flow": (Chosen, squares, numbers, NOT_FOLLOWED),
    "sizes": (Picked, squares, numbers, NOT_FOLLOWED),
    "an operation of somebody's own": (
        Custom,
        squares,
        numbers,
        r"without a size rule.*gradacc_tests::twice.*easure it with `measure_peak`",
    ),
    "no scalar": (
        lambda: nn.Linear(64, 64),
        lambda model, x: model(x),
        numbers,
        r"the loss must be one number, as a scalar tensor; loss_fn returned a tensor of shape \(8, 64\)",
    ),
    "a number": (lambda: nn.Linear(64, 64), lambda model, x: 1.0, numbers, "loss_fn returned a float"),
    "no gradient": (
        lambda: nn.Linear(64, 64),
        lambda model, x: squares(model, x).detach(),
        numbers,
        "the loss does not depend on any parameter that is trained",
    ),
    "a batch of its own size": (
        lambda: nn.Linear(64, 64),
        squares,
        lambda size: torch.ones(32, 64),
        r"make_batch\(8\) must give a batch of 8 examples along dimension 0; its tensors have 32",
    ),
    "nothing to train": (
        lambda: nn.Linear(64, 64).requires_grad_(False),
        squares,
        numbers,
        "Linear has no parameter that is trained",
    ),
    "no new model": (lambda: KEPT, squares, numbers, "build_model must make a new model each time"),
    "no blocks": (
        lambda: nn.Linear(64, 64),
        squares,
        numbers,
        "Linear has no nn.ModuleList or nn.Sequential of blocks",
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_cannot_be_followed_is_said_in_one_sentence(wrong: tuple[Any, Any, Any, str]) -> None:
    build, loss_fn, make_batch, said = wrong
    with pytest.raises(ValueError, match=said) as caught:
        predict_peak(build, loss_fn, make_batch, Recipe(8, 2, checkpointing="of blocks" in said))
    assert "\n" not in str(caught.value)
    assert not isinstance(KEPT.weight, torch._subclasses.FakeTensor) and KEPT.weight.grad is None


def test_a_mixture_that_picks_experts_by_their_numbers_is_followed_or_says_why_not() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.MixtralConfig(vocab_size=VOCABULARY, num_key_value_heads=2, **sizes)

    def tokens(size: int) -> dict[str, Tensor]:
        ids = torch.zeros(size, TOKENS, dtype=torch.long)
        return {"input_ids": ids, "labels": ids}

    def loss_fn(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return model(**batch).loss

    try:
        found = predict_peak(lambda: transformers.MixtralForCausalLM(config), loss_fn, tokens, Recipe(2, 2))
    except ValueError as error:
        assert re.fullmatch(NOT_FOLLOWED, str(error))
    else:
        assert found.by_category["parameters"] > 0


@pytest.mark.parametrize(("precision", "dtype"), [("bfloat16", torch.bfloat16), ("float64", torch.float64)])
def test_the_batch_takes_the_dtype_that_the_recipe_asks_for(precision, dtype):
    seen = []

    def loss_fn(model, batch):
        seen.append((batch[0].dtype, batch[1].dtype))
        return F.cross_entropy(model(batch[0]), batch[1])

    def make_batch(size):
        return torch.zeros(size, 6), torch.zeros(size, dtype=torch.long)

    recipe = Recipe(4, 2, optimizer="sgd", precision=precision)
    profile = predict_peak(lambda: nn.Linear(6, 3), loss_fn, make_batch, recipe)
    stubborn = predict_peak(lambda: nn.Linear(6, 3, dtype=torch.float32), loss_fn, make_batch, recipe)
    assert stubborn.by_category == profile.by_category
    assert set(seen) == {(dtype, torch.long)}
    assert profile.by_category["inputs"] == 2 * 4 * (6 * dtype.itemsize + 8)
    forecast = Forecast(lambda: nn.Linear(6, 3), loss_fn, make_batch, recipe)
    assert forecast.profile(8, 2).by_category["inputs"] == profile.by_category["inputs"]
    seen.clear()
    Trial(forecast).peak([4, 4])
    assert set(seen) == {(dtype, torch.long)}
