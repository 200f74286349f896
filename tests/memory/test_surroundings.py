"""What surrounds a measurement or a prediction, and what the caller's parts are made of."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.loop import one_update
from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.plan import plan
from gradacc_lessons.memory.predict import predict_peak
from gradacc_lessons.memory.uncounted import CannotCount
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe

WIDTH = 128


def build():
    return nn.Sequential(nn.Linear(WIDTH, 512), nn.ReLU(), nn.Linear(512, 10))


def loss_fn(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def make_batch(size):
    return torch.ones(size, WIDTH), torch.zeros(size, dtype=torch.long)


ASKED = (build, loss_fn, make_batch, Recipe(64, 2, optimizer="adamw"))


def test_a_batch_that_is_a_slice_of_the_data_counts_with_its_own_bytes():
    data, labels = torch.ones(20_000, WIDTH), torch.zeros(20_000, dtype=torch.long)
    wishes = {"target_batch_size": 512, "budget_bytes": "6MiB", "explain": False}
    of_slices = plan(build, loss_fn, lambda size: (data[:size], labels[:size]), ASKED[-1], **wishes)
    assert of_slices.measured.peak_bytes == plan(*ASKED, **wishes).measured.peak_bytes
    assert of_slices.trials == 1


def test_what_is_loaded_during_a_run_counts_only_while_it_is_there():
    model, data = build(), np.ones((20_000, WIDTH), dtype=np.float32)

    def epoch():
        for start in range(0, len(data), 500):
            model(torch.from_numpy(data[start : start + 500].copy())).mean().backward()
            model.zero_grad()

    found = measure_peak(epoch, model=model)
    assert found.timeline["inputs"].max() < 3 * data[:500].nbytes


@pytest.mark.parametrize("shared", ["trained", "frozen", "all"])
def test_a_model_that_shares_parameters_with_the_callers_is_refused_and_left_alone(shared):
    trunk = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)).requires_grad_(shared != "frozen").eval()
    whole = nn.Sequential(trunk, nn.Linear(WIDTH, 10))
    before = copy.deepcopy(whole.state_dict())
    new = (lambda: whole) if shared == "all" else lambda: nn.Sequential(trunk, nn.Linear(WIDTH, 10))
    which = "it returned one" if shared == "all" else "4 of its parameters are of one"
    for checkpointing in (False, True):
        with pytest.raises(ValueError, match=f"{which} that was there before"):
            plan(
                new, loss_fn, make_batch, Recipe(checkpointing=checkpointing), target_batch_size=8, budget_bytes="1GiB"
            )
    assert not trunk.training and "forward" not in vars(trunk) and "forward" not in vars(trunk[0])
    assert all(torch.equal(value, before[name]) for name, value in whole.state_dict().items())
    mine = plan(lambda: copy.deepcopy(whole), *ASKED[1:], target_batch_size=8, budget_bytes="1GiB", explain=False)
    assert mine.trials == 1


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode, torch.autograd.detect_anomaly])
def test_what_is_switched_on_around_changes_nothing(around):
    alone = predict_peak(*ASKED).peak_bytes
    with pytest.warns() if around is torch.autograd.detect_anomaly else around(), around():
        assert predict_peak(*ASKED).peak_bytes == alone
        assert plan(*ASKED, target_batch_size=64, budget_bytes="1GiB", explain=False).trials == 1


@pytest.mark.parametrize("recipe", [ASKED[-1], Recipe(64, 2, precision="float64"), Recipe(64, 2, precision="autocast")])
def test_the_callers_default_dtype_changes_nothing(recipe):
    def loss_fn(model, batch):
        return F.cross_entropy(model(batch[0].to(next(model.parameters()).dtype)), batch[1]) + torch.zeros(())

    alone = predict_peak(build, loss_fn, make_batch, recipe).peak_bytes
    for dtype in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(dtype)
        try:
            found = predict_peak(build, loss_fn, make_batch, recipe).peak_bytes
            ran = plan(build, loss_fn, make_batch, recipe, target_batch_size=64, budget_bytes="1GiB", explain=False)
            assert torch.get_default_dtype() == dtype
        finally:
            torch.set_default_dtype(torch.float32)
        # Batches in the dtype of the model where that is the caller's own.
        assert found == alone or (recipe.precision == "float64" and dtype == torch.float64)
        assert ran.predicted.peak_bytes == pytest.approx(ran.measured.peak_bytes, rel=0.005)


@pytest.mark.parametrize("elsewhere", ["meta", "cpu"])
def test_the_callers_default_device_changes_nothing(elsewhere):
    alone = predict_peak(*ASKED).peak_bytes
    with torch.device(elsewhere):
        assert predict_peak(*ASKED).peak_bytes == alone
        found = plan(*ASKED, target_batch_size=64, budget_bytes="1GiB", explain=False)
        assert torch.get_default_device().type == elsewhere
    assert found.trials == 1 and found.measured.peak_bytes > 0


def test_a_model_with_two_optimizers_is_measured():
    model, batch = build(), make_batch(64)
    halves = [torch.optim.AdamW(layer.parameters()) for layer in (model[0], model[2])]

    def run():
        for _ in range(2):
            loss_fn(model, batch).backward()
            for optimizer in halves:
                optimizer.step()
                optimizer.zero_grad()

    for optimizers in (halves, tuple(halves)):
        found = measure_peak(run, model=model, optimizer=optimizers, inputs=batch)
        assert found.timeline["optimizer state"].max() >= 2 * found.by_category["parameters"]
        assert set(found.timeline["phase"]) == {"forward", "backward", "update"}
    real = allocator_peak(run, bytes_in_use(model, halves, batch))
    assert found.peak_bytes == pytest.approx(real, rel=1e-3)


@pytest.mark.parametrize("wrong", ["adamw", [torch.optim.SGD], {"g": 1}])
def test_what_is_no_optimizer_is_a_sentence(wrong):
    with pytest.raises(ValueError, match=r"one of torch's, or a list of them; this is a (str|type|dict)"):
        measure_peak(lambda: None, model=build(), optimizer=wrong)


def test_inside_a_profiler_it_is_said_and_the_profile_goes_on():
    with torch.profiler.profile() as profile:
        with pytest.raises(RuntimeError, match=r"torch\.profiler is running"):
            allocator_peak(lambda: torch.ones(10), 0)
        torch.ones(20)
    assert any("ones" in event.name for event in profile.events())


def test_a_bilinear_layer_is_refused():
    with pytest.raises(CannotCount, match=r"has a Bilinear layer: .* Use torch\.einsum"):
        predict_peak(
            lambda: nn.Bilinear(WIDTH, WIDTH, 4), lambda model, batch: model(batch[0], batch[0]).mean(), *ASKED[2:]
        )


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.norm, self.head = nn.Linear(WIDTH, 2048), nn.BatchNorm1d(2048), nn.Linear(2048, 10)

    def forward(self, x):
        return self.head(self.norm(self.wide(x)))


class TurnedGelu(nn.Module):
    """The gradient of GELU comes in another layout than its argument."""

    def __init__(self):
        super().__init__()
        self.wide, self.head = nn.Linear(WIDTH, 256), nn.Linear(16, 10)

    def forward(self, x):
        y = F.gelu(self.wide(x[:, None].expand(-1, 16, -1)))
        return self.head(y.transpose(1, 2).contiguous().mean(1))


class Pointwise(nn.Module):
    """Convolutions with 1 x 1 weights, which one thread computes otherwise from 16 examples on."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2, 32, 1), nn.ReLU(), nn.Conv2d(32, 10, 1), nn.AdaptiveAvgPool2d(1))

    def forward(self, x):
        return self.layers(x.view(-1, 2, 8, 8).repeat(1, 1, 4, 4)).flatten(1)


@pytest.mark.parametrize(("new", "size"), [(Norms, 1024), (TurnedGelu, 512), (Pointwise, 64)])
def test_kernels_that_copy_are_predicted(new, size):
    recipe = Recipe(size, 2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = new()
        optimizer, window = make_optimizer(model, recipe), [make_batch(size), make_batch(size)]
        real = allocator_peak(
            lambda: one_update(model, optimizer, window, loss_fn, recipe), bytes_in_use(model, optimizer, window)
        )
        assert real >= 16 * 2**20
        assert predict_peak(new, loss_fn, make_batch, recipe).peak_bytes == pytest.approx(real, rel=0.005)
    finally:
        torch.set_num_threads(threads)
