"""A tape changes nothing in what it watches, and leaves nothing behind."""

import copy
import gc
import io
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from detective.tape.bench import LENGTH, N, batches, cuts, lengths, net, taped
from torch import nn
from torch.nn import functional as F
from torch.optim import optimizer as torch_optimizer

from gradacc_lessons import trace
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.tasks import chat, digits

BUILDERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "sgd": lambda model: torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
    "adamw": lambda model: torch.optim.AdamW(model.parameters(), 1e-3),
    "fused": lambda model: torch.optim.AdamW(model.parameters(), 1e-3, fused=True),
}


def _state(model: nn.Module) -> dict[str, object]:
    """All hooks that hang on a model, its parameters and torch."""
    modules = {name: {key: len(value) for key, value in vars(module).items() if "hook" in key and value is not None}
               for name, module in model.named_modules()}  # fmt: skip
    leaves = {
        name: (bool(parameter._backward_hooks), bool(parameter._post_accumulate_grad_hooks))
        for name, parameter in model.named_parameters()
    }
    torchs = len(torch_optimizer._global_optimizer_pre_hooks), len(torch_optimizer._global_optimizer_post_hooks)
    return {"modules": modules, "leaves": leaves, "torch": torchs}


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, data=None) -> None:  # type: ignore[no-untyped-def]
    data = data or batches()
    for i, window, last in cuts():
        (F.cross_entropy(model(data[i][0]), data[i][1]) / window).backward()
        if last:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()


@pytest.mark.parametrize("optimizer", BUILDERS)
@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_the_parameters_are_bit_equal(kind: str, optimizer: str) -> None:
    task = digits(kind)
    data = [(task.train[0][4 * k : 4 * k + 4], task.train[1][4 * k : 4 * k + 4]) for k in range(LENGTH)]
    plain, watched = task.build_model(), task.build_model()
    _train(plain, BUILDERS[optimizer](plain), data)
    with taped(watched):
        _train(watched, BUILDERS[optimizer](watched), data)
    assert torch.equal(parameters(plain), parameters(watched))
    assert not torch.equal(parameters(plain), parameters(task.build_model()))


def test_the_chat_model_too() -> None:
    task = chat(length=16, width=16, layers=2, heads=2)
    models = []
    for tape in (False, True):
        model = task.build_model()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        with trace(model) if tape else torch.enable_grad():
            for k in range(4):
                task.loss_fn(model, (task.train[0][2 * k : 2 * k + 2], task.train[1][2 * k : 2 * k + 2])).backward()
            optimizer.step()
        models.append(parameters(model))
    assert torch.equal(*models)


@pytest.mark.parametrize("ends", [None, KeyboardInterrupt, ValueError])
def test_all_hooks_are_gone(ends: type[BaseException] | None) -> None:
    model = net()
    before = _state(model)
    tape = trace(model, accumulation_steps=N)
    try:
        with tape:
            assert _state(model) != before
            _train(model, torch.optim.SGD(model.parameters(), 0.1))
            if ends is not None:
                raise ends
    except BaseException as error:
        assert ends is not None and isinstance(error, ends)
    assert _state(model) == before
    assert lengths(tape) == [4, 4, 2]
    seen = len(tape.events)
    _train(model, torch.optim.SGD(model.parameters(), 0.1))
    assert len(tape.events) == seen


def test_an_error_in_the_middle_of_a_forward_or_a_step_leaves_the_tape_usable() -> None:
    model, data = net(), batches()

    class Fails(torch.optim.SGD):
        fails = True

        def step(self, closure=None):  # type: ignore[no-untyped-def, override]
            if self.fails:
                raise ArithmeticError
            return super().step(closure)

    optimizer = Fails(model.parameters(), 0.1)
    with trace(model, accumulation_steps=N, micro_batches_per_epoch=LENGTH) as tape:
        with pytest.raises(RuntimeError):
            model(torch.zeros(2, 7))
        F.cross_entropy(model(data[0][0]), data[0][1]).backward()
        with pytest.raises(ArithmeticError):
            optimizer.step()
        optimizer.zero_grad()
        optimizer.fails = False
        _train(model, optimizer)
    assert lengths(tape) == [4, 4, 2]


def test_tapes_nest_and_see_the_same() -> None:
    model = net()
    with taped(model) as outer:
        _train(model, torch.optim.SGD(model.parameters(), 0.1))
        with taped(model) as inner:
            _train(model, torch.optim.SGD(model.parameters(), 0.1))
    told = [(event.kind, event.items, event.factor) for event in outer.events]
    assert told[len(told) // 2 :] == [(event.kind, event.items, event.factor) for event in inner.events]
    assert lengths(outer) == 2 * lengths(inner) == [4, 4, 2] * 2


def test_a_model_that_is_copied_or_saved_under_a_tape_does_not_know_of_it() -> None:
    model, file = net(), io.BytesIO()
    with trace(model) as tape:
        copied = copy.deepcopy(model)
        torch.save(model, file)
        pickled = pickle.dumps(model)
        _train(copied, torch.optim.SGD(copied.parameters(), 0.1))
    assert tape.events == []
    file.seek(0)
    for other in (torch.load(file, weights_only=False), pickle.loads(pickled)):
        assert torch.equal(parameters(other), parameters(model))
        _train(other, torch.optim.SGD(other.parameters(), 0.1))
    assert b"gradacc_lessons" not in pickle.dumps(torch.nn.Sequential(*model.body)) + pickled


def test_a_tape_that_is_done_keeps_no_model_alive() -> None:
    model = net()
    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1))
    gone = [weakref.ref(model), *(weakref.ref(parameter) for parameter in model.parameters())]
    del model
    gc.collect()
    assert all(reference() is None for reference in gone)
    assert tape.findings == [] and lengths(tape) == [4, 4, 2] and str(tape)


def test_the_activations_of_a_window_do_not_outlive_it() -> None:
    model, kept = net(), []
    model.body.register_forward_hook(lambda module, args, output: kept.append(weakref.ref(output)))
    with taped(model):
        _train(model, torch.optim.SGD(model.parameters(), 0.1))
        gc.collect()
        assert len(kept) == LENGTH and all(reference() is None for reference in kept)


def test_it_can_be_read_while_it_runs_and_used_once() -> None:
    model = net()
    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1))
        assert lengths(tape) == [4, 4, 2]
    with pytest.raises(RuntimeError, match="used once"), tape:
        pass


def test_what_happens_before_it_begins_is_not_on_it() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    tape = trace(model, optimizer, accumulation_steps=N, micro_batches_per_epoch=LENGTH)
    _train(model, optimizer)
    optimizer.param_groups[0]["lr"] = 0.05
    with tape:
        _train(model, optimizer)
    assert tape.events[0].kind == "forward" and lengths(tape) == [4, 4, 2] and tape.findings == []
    assert {event.kind for event in tape.events} == {"forward", "backward", "clip", "update", "zero_grad"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"accumulation_steps": 0}, "accumulation_steps must be a whole number of at least 1; it is 0"),
        ({"micro_batches_per_epoch": 2.5}, "micro_batches_per_epoch must be a whole number"),
        ({"language": "fr"}, "the language 'fr' is not one of en, nl"),
        ({"count": 5}, "count must be a function, not int"),
        ({"watch": nn.ReLU()}, "watch must be a list of torch modules, not ReLU"),
        ({"watch": ["ema"]}, "watch must be a list of torch modules; there is str in it"),
    ],
)
def test_what_cannot_be_asked_is_answered_in_a_sentence(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        trace(net(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ((nn.Linear,), "the model must be a torch.nn.Module, not the class Linear"),
        ((None,), "the model must be a torch.nn.Module, not NoneType"),
        ((net(), torch.optim.SGD), "the optimizer must be a torch optimizer, not the class SGD"),
        ((net(), None, "cosine"), "the scheduler must be a torch learning-rate scheduler, not str"),
        ((net(), None, torch.optim.SGD(net().parameters(), 0.1)), "learning-rate scheduler, not SGD"),
    ],
)
def test_objects_of_another_kind_are_refused_in_a_sentence(objects: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        trace(*objects)


@pytest.mark.parametrize("scaler", [2.0, torch.amp.GradScaler, net()])
def test_so_is_a_scaler(scaler: Any) -> None:
    with pytest.raises(ValueError, match=r"^the scaler must be a torch\.amp\.GradScaler, not "):
        trace(net(), scaler=scaler)


def test_a_model_without_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameters"):
        trace(nn.ReLU())


def test_tracing_loads_neither_pandas_nor_matplotlib() -> None:
    check = (
        "import sys; from gradacc_lessons import trace; sys.exit(bool({'pandas', 'matplotlib'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
