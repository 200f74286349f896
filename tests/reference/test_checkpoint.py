"""A run that was saved between two windows and resumed is the run that never stopped, bit for bit."""

import os
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gradacc_lessons.lessons.training import add_gradient, parameters, training_windows
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference import checkpoint
from gradacc_lessons.reference.ema import EMA
from gradacc_lessons.reference.schedule import warmup_then_cosine
from gradacc_lessons.tasks import Task, digits

RECIPE = Recipe(16, 4, seed=1)
END = 40
"""Updates; 24 make an epoch, so the data are shuffled anew in between."""


class Runs:
    """One way to train: a model with dropout and BatchNorm, an optimizer, a schedule, an average."""

    def __init__(self, optimizer: str, dtype: torch.dtype, device: str = "cpu") -> None:
        self.task: Task = digits("mlp", norm="batch", dtype=dtype, device=device)
        self.optimizer = optimizer

    def new(self) -> dict[str, Any]:
        """Everything as it is before the first update."""
        model = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), *self.task.build_model(RECIPE.seed))
        made: torch.optim.Optimizer
        if self.optimizer == "adam":
            made = torch.optim.Adam(model.parameters(), lr=0.01)
        else:
            made = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return {
            "model": model,
            "optimizer": made,
            "scheduler": warmup_then_cosine(made, 5, END),
            "ema": EMA(model, 0.9),
        }

    def train(self, run: dict[str, Any], begin: int, end: int) -> None:
        """The updates from `begin` up to `end`."""
        for window in islice(training_windows(self.task, RECIPE), begin, end):
            add_gradient(run["model"], window, self.task, RECIPE)
            run["optimizer"].step()
            run["optimizer"].zero_grad()
            run["scheduler"].step()
            run["ema"].update()


def everything(run: dict[str, Any]) -> list[torch.Tensor]:
    """All numbers of a run: weights, buffers, the optimizer's state, the average, the learning rate."""
    held = [value for state in run["optimizer"].state.values() for value in state.values() if value is not None]
    models = [*run["model"].state_dict().values(), *run["ema"].average.state_dict().values()]
    return [*models, *map(torch.as_tensor, held), torch.tensor(run["optimizer"].param_groups[0]["lr"])]


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA here"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("optimizer", "dtype"), [("adam", torch.float32), ("sgd", torch.float64)])
@pytest.mark.parametrize("at", [1, 13, 24, 30])
def test_saved_between_windows_nothing_is_lost(
    tmp_path: Path, at: int, optimizer: str, dtype: torch.dtype, device: str
) -> None:
    runs = Runs(optimizer, dtype, device)
    torch.manual_seed(7)
    whole = runs.new()
    runs.train(whole, 0, END)
    torch.manual_seed(7)
    stopped = runs.new()
    runs.train(stopped, 0, at)
    checkpoint.save(tmp_path / "run.pt", update=at, **stopped)
    torch.manual_seed(1234)  # somebody else has drawn in the meantime
    resumed = runs.new()
    assert checkpoint.load(tmp_path / "run.pt", **resumed) == at
    runs.train(resumed, at, END)
    assert len(everything(whole)) == len(everything(resumed)) > 20
    assert all(torch.equal(a, b) for a, b in zip(everything(whole), everything(resumed), strict=True))


@pytest.mark.parametrize("missing", ["optimizer", "scheduler", "random", "place"])
def test_what_it_holds_is_needed(tmp_path: Path, missing: str) -> None:
    """Without the optimizer, the schedule, the random state or the place in the data the resumed run is another one."""
    runs, ends = Runs("adam", torch.float64), []
    whole = runs.new()
    runs.train(whole, 0, 20)
    checkpoint.save(tmp_path / "run.pt", update=20, **whole)
    for left_out in ("", missing):
        run = runs.new()
        begin = checkpoint.load(tmp_path / "run.pt", **run)
        match left_out:
            case "optimizer":
                run["optimizer"].state.clear()
            case "scheduler":
                run["scheduler"] = warmup_then_cosine(run["optimizer"], 5, END)
            case "random":
                torch.manual_seed(5)
            case "place":
                begin = 0
        runs.train(run, begin, begin + 3)
        ends.append(parameters(run["model"]))
    assert not torch.equal(*ends)


def test_in_mid_window_it_refuses_and_nothing_is_written(tmp_path: Path) -> None:
    runs = Runs("sgd", torch.float64)
    run = runs.new()
    window = next(training_windows(runs.task, RECIPE))
    add_gradient(run["model"], window[:2], runs.task, RECIPE)
    with pytest.raises(ValueError, match=r"Save after optimizer\.step\(\) and optimizer\.zero_grad\(\)"):
        checkpoint.save(tmp_path / "run.pt", update=0, **run)
    assert list(tmp_path.iterdir()) == []
    run["optimizer"].zero_grad(set_to_none=False)  # zeros are no gradients
    checkpoint.save(tmp_path / "run.pt", update=0, **run)


def test_half_a_window_is_lost_by_who_saves_there() -> None:
    """The update after it lacks what had been added up, and the run is another one from there on."""
    task = digits("mlp", dtype=torch.float64)
    recipe = Recipe(8, 8)
    window = next(training_windows(task, recipe))
    models = [task.build_model() for _ in range(2)]
    for model, seen in zip(models, (window, window[4:]), strict=True):
        for batch in seen:
            (task.loss_fn(model, batch) / 8).backward()
    whole, half = (torch.cat([p.grad.flatten() for p in model.parameters()]) for model in models)  # type: ignore[union-attr]
    lost = task.build_model()
    for batch in window[:4]:
        (task.loss_fn(lost, batch) / 8).backward()
    missing = torch.cat([p.grad.flatten() for p in lost.parameters()])  # type: ignore[union-attr]
    assert float((whole - half - missing).norm() / whole.norm()) < 1e-12
    assert 0.4 < float(half.norm() / whole.norm()) < 0.8


def test_a_crash_while_it_writes_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs("sgd", torch.float64)
    run = runs.new()
    checkpoint.save(tmp_path / "run.pt", update=3, **run)

    def full_disk(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        checkpoint.save(tmp_path / "run.pt", update=4, **run)
    monkeypatch.undo()
    assert checkpoint.load(tmp_path / "run.pt", **runs.new()) == 3


def test_other_parts_than_it_holds_are_refused_in_a_sentence(tmp_path: Path) -> None:
    run = Runs("sgd", torch.float64).new()
    checkpoint.save(tmp_path / "run.pt", run["model"], 1, optimizer=run["optimizer"])
    with pytest.raises(ValueError, match="holds model, optimizer; it was asked for model, scheduler"):
        checkpoint.load(tmp_path / "run.pt", run["model"], scheduler=run["scheduler"])


@pytest.mark.parametrize("held", [{"weight": torch.zeros(2)}, torch.zeros(2)], ids=["state", "tensor"])
def test_what_it_did_not_write_is_refused_in_a_sentence(tmp_path: Path, held: Any) -> None:
    torch.save(held, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"other\.pt was not written by checkpoint\.save"):
        checkpoint.load(tmp_path / "other.pt", nn.Linear(2, 1))


def test_it_never_runs_code_from_the_file(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "boom"),)

    torch.save({"update": 1, "states": Bomb(), "random": {}}, tmp_path / "run.pt")
    with pytest.raises(Exception, match=r"weights_only|Weights only"):
        checkpoint.load(tmp_path / "run.pt", Runs("sgd", torch.float64).new()["model"])
    assert not (tmp_path / "boom").exists()
