"""Where real windows are run, and at which one they end."""

import pytest
import torch
from memory.plans import SMALL, examples, planned, small
from memory.small_models import classes, model
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional as F

from gradacc_lessons.memory import trial
from gradacc_lessons.memory.forecast import Forecast, balanced
from gradacc_lessons.memory.plan import NothingFits
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.memory.trial import Measured, Trial, fits_here, free_bytes
from gradacc_lessons.recipe import Recipe


def test_what_this_machine_has_no_room_for_is_predicted_only(monkeypatch):
    monkeypatch.setattr("gradacc_lessons.memory.trial.free_bytes", lambda device: 1000)
    found = planned(verify=True)
    assert found.measured is None and "this machine has not enough free memory" in found.why


def test_where_free_memory_is_unknown_only_what_is_small_is_run(monkeypatch):
    assert free_bytes(torch.device("cpu")) > 0
    monkeypatch.setattr("gradacc_lessons.memory.trial.free_bytes", lambda device: None)
    assert fits_here(2**30, "cpu") and not fits_here(2**30 + 1, "cpu")


def test_a_run_that_takes_more_than_predicted_lowers_the_micro_batch():
    """A loss that uses three times its memory, but only where it is real."""

    def greedy(model, batch):
        hidden = model(batch[0])
        if not isinstance(hidden, FakeTensor):
            hidden = hidden + torch.zeros(len(hidden), 4096).sum(1, keepdim=True)
        return F.cross_entropy(hidden, batch[1])

    forecast = Forecast(small, greedy, examples, SMALL)
    budget = forecast.peak(512, 2)
    found = planned(loss_fn=greedy, target=512, budget=budget, verify=True, forecast=forecast)
    assert found.accumulation_steps > 2 and found.trials > 1
    assert found.measured.peak_bytes <= budget and found.measured.peak_bytes > found.predicted.peak_bytes
    last = found.accumulation_steps - 1
    really = Trial(forecast).peak(balanced(512, last)).peak_bytes
    assert really > budget and f"With one fewer, {last} micro-batches of up to " in found.why
    assert f" really took {readable(really)}, {readable(really - budget)} too much." in found.why
    with pytest.raises(NothingFits, match="but a real window took more than the budget"):
        planned(loss_fn=greedy, target=4, budget=forecast.peak(4, 4), verify=True, forecast=forecast)


@pytest.mark.parametrize("beyond", [lambda n: 3, lambda n: 1 + 60 / n, lambda n: 1 + (n < 61) * 2])
def test_real_runs_end_at_the_fewest_micro_batches_that_fit(beyond, monkeypatch):
    """However the real peaks lie above the predicted ones, the window with one micro-batch fewer was run as well."""
    forecast = Forecast(small, classes, examples, SMALL)

    def real(sizes):
        predicted = forecast.peak(2000, len(sizes))
        return int((predicted - forecast.peak(2000, 2000)) * beyond(len(sizes))) + forecast.peak(2000, 2000)

    monkeypatch.setattr(Trial, "peak", lambda self, sizes: Measured(real(sizes), "a curve", 2))
    budget = forecast.peak(2000, 23)
    found = planned(target=2000, budget=budget, verify=True, forecast=forecast)
    n = found.accumulation_steps
    assert n > 23 and real(balanced(2000, n)) <= budget < real(balanced(2000, n - 1))
    assert f"With one fewer, {n - 1} micro-batches of up to {-(-2000 // (n - 1))} really took " in found.why
    assert found.trials <= 10


@pytest.mark.parametrize(
    ("device", "words"),
    [("cuda", "CUDA"), ("cuda:1", "CUDA:1"), ("mps", "MPS")],
)
def test_a_device_that_is_not_here_is_predicted_for_only(device, words, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    found = planned(device=device, verify=True)
    assert found.measured is None and f"This is a prediction only: there is no {words} device here." in found.why


@pytest.mark.parametrize("device", ["tpu", "meta", "xpu:0"])
def test_a_device_that_nothing_is_planned_for_is_refused(device):
    with pytest.raises(ValueError, match=f"plans are made for cpu, cuda, mps; not for the device '{device}'"):
        planned(device=device)


def test_memory_that_only_keeps_files_counts_as_free(tmp_path, monkeypatch):
    machine = tmp_path / "meminfo"
    machine.write_text("MemTotal: 4000 kB\nMemFree: 100 kB\nMemAvailable: 3000 kB\n")
    monkeypatch.setattr(trial, "MEMORY_OF_THE_MACHINE", machine)
    monkeypatch.setattr(trial, "GROUP", tmp_path)
    cpu = torch.device("cpu")
    assert free_bytes(cpu) == 3000 * 1024
    for name, content in (("max", "1000000"), ("current", "900000"), ("stat", "anon 5\ninactive_file 300000\n")):
        (tmp_path / f"memory.{name}").write_text(content)
    assert free_bytes(cpu) == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(cpu) == 3000 * 1024
    machine.unlink()
    monkeypatch.setattr("os.sysconf", {"SC_AVPHYS_PAGES": 7, "SC_PAGE_SIZE": 4096}.get, raising=False)
    assert free_bytes(cpu) == 7 * 4096


@pytest.mark.parametrize("norm", ["CNN with BatchNorm", "BatchNorm1d"])
def test_batch_norm_under_autocast_takes_what_was_predicted(norm):
    """Its weights and what it keeps for backward are in float32 there, and its inputs in bfloat16."""

    def with_norm():
        return nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 10))

    parts = model(norm, None)[:3] if norm != "BatchNorm1d" else (with_norm, classes, examples)
    forecast = Forecast(*parts, Recipe(optimizer="sgd", precision="autocast"))
    for size in (4, 32):
        measured = Trial(forecast).peak([size, size]).peak_bytes
        assert forecast.peak(2 * size, 2) == pytest.approx(measured, rel=0.003)
