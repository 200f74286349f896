"""What the caller has stays what it is: also what only a trained eye sees, and also when something fails."""

import copy
import gc
import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from detective.examination.caller import everything, given_gradients
from detective.examination.pairs import Parts, batch, cross_entropy, mlp
from torch import Tensor, nn

from gradacc_lessons import examine


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_a_graph_that_was_built_before_can_still_go_backward() -> None:
    model, data = mlp(nn.BatchNorm1d(8)), batch()
    loss = cross_entropy(model, data)
    wanted = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    examine(model, cross_entropy, data, 2)
    loss.backward()
    assert all(torch.equal(right, p.grad) for right, p in zip(wanted, model.parameters(), strict=True))


def test_what_waits_for_a_parameters_gradient_goes_on_waiting() -> None:
    """As DistributedDataParallel does: by a hook on the node that adds the gradient up."""
    model, data, heard = mlp(), batch(), []
    node = model[0].weight.expand_as(model[0].weight).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: heard.append(1))
    found = examine(model, cross_entropy, data, 2)
    assert found.additive and not found.causes and not heard
    cross_entropy(model, data).backward()
    assert heard == [1]


def test_an_optimizer_in_backward_makes_no_update() -> None:
    model, data = mlp(), batch()
    optimizers = {p: torch.optim.SGD([p], 0.1) for p in model.parameters()}

    def update(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    before = copy.deepcopy(model.state_dict())
    assert examine(model, cross_entropy, data, 2).additive
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    cross_entropy(model, data).backward()
    assert not torch.equal(model[0].weight, before["0.weight"])  # the hooks are still there


def test_a_loss_that_trains_leaves_no_trace_in_model_and_optimizer() -> None:
    model, data = mlp(), batch()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def loss(model: nn.Module, data: Any) -> Tensor:
        optimizer.zero_grad()
        cross_entropy(model, data).backward()
        optimizer.step()
        scheduler.step()
        return cross_entropy(model, data)

    before = everything(Parts(model, loss, data))
    found = examine(model, loss, data, 2)
    assert "module_state" in found.causes and not found.additive
    assert everything(Parts(model, loss, data)) == before
    assert not optimizer.state and optimizer.param_groups[0]["lr"] == 0.1 and scheduler.last_epoch == 0


class Loss:
    """State in attributes, in a list, in a dict, in an array, in a set and in generators of three kinds."""

    seen = 0

    def __init__(self) -> None:
        self.steps, self.log, self.best, self.names = 0, [], {"loss": 9.0}, {"a"}
        self.array, self.bank = np.zeros(3), torch.zeros(4, 3)
        self.numpy, self.python, self.torch = np.random.default_rng(1), random.Random(2), torch.Generator()

    def __call__(self, model: nn.Module, data: Any) -> Tensor:
        Loss.seen += 1
        self.steps += 1
        self.log.append(self.steps)
        self.best["loss"] = min(self.best["loss"], float(self.steps))
        self.names.add(f"step {self.steps}")
        self.array += 1
        self.bank = self.bank + 1
        noise = self.numpy.normal() + self.python.random() + float(torch.rand((), generator=self.torch))
        return cross_entropy(model, data) * (1 + 0.1 * noise)

    def state(self) -> Any:
        return (
            Loss.seen, self.steps, list(self.log), dict(self.best), set(self.names), self.array.tolist(), id(self.bank),
            self.bank.tolist(), self.numpy.bit_generator.state, self.python.getstate(), self.torch.get_state().tolist(),
        )  # fmt: skip


@pytest.mark.parametrize("given", [lambda loss: loss, lambda loss: loss.__call__, lambda loss: partial(loss)])
def test_the_state_of_a_loss_is_put_back(given: Callable[[Loss], Any]) -> None:
    loss = Loss()
    before = loss.state()
    assert "randomness" in examine(mlp(), given(loss), batch(), 2).causes
    assert loss.state() == before


COUNTED = [0]
TOTAL = 0


def test_globals_and_outer_names_of_a_loss_are_put_back() -> None:
    outer = 0

    def loss(model: nn.Module, data: Any, calls: list[int] = [0]) -> Tensor:  # noqa: B006
        global TOTAL
        nonlocal outer
        TOTAL, outer = TOTAL + 1, outer + 1
        COUNTED[0] += 1
        calls[0] += 1
        return cross_entropy(model, data)

    examine(mlp(), loss, batch(), 2)
    assert (TOTAL, outer, COUNTED, loss.__defaults__) == (0, 0, [0], ([0],))


@pytest.mark.parametrize("fails_at", [1, 3, 9, 14])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_run_that_breaks_off_is_put_back(fails_at: int, error: type[BaseException]) -> None:
    counter = iter(range(1, 1000))  # nothing can put an iterator back, which is what is wanted here

    class Breaks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if next(counter) == fails_at:
                raise error("broken off")
            return x

    parts = Parts(mlp(nn.BatchNorm1d(8), Breaks()), cross_entropy, batch())
    given_gradients(parts)
    before = everything(parts)
    with pytest.raises((ValueError, KeyboardInterrupt)):
        examine(parts.model, parts.loss_fn, parts.batch, 2)
    assert everything(parts) == before


@pytest.mark.parametrize("around", [nullcontext, torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_surroundings_do_not_matter_and_stay(around: Callable[[], AbstractContextManager[Any]]) -> None:
    model, data = mlp(nn.Dropout(0.2)), batch()
    with around():
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        assert examine(model, cross_entropy, data, 2).causes == ("randomness",)
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == modes


def test_autocast_around_the_call_is_part_of_the_run() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert examine(mlp(), cross_entropy, batch(), 2).additive
        assert torch.is_autocast_enabled("cpu")


def test_the_verdict_does_not_depend_on_the_seed_of_the_moment() -> None:
    model, data = mlp(nn.Dropout(0.3)), batch()
    tables = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        tables.append(examine(model, cross_entropy, data, 2).table)
    assert tables[0].equals(tables[1])


def test_a_batch_that_the_loss_writes_to_stays_the_callers() -> None:
    def loss(model: nn.Module, data: Any) -> Tensor:
        data[0].mul_(2)
        data[1].clamp_(max=1)
        return cross_entropy(model, data)

    data = batch()
    before = [tensor.clone() for tensor in data]
    assert examine(mlp(), loss, data, 2).additive
    assert all(map(torch.equal, before, data))


def test_tensors_that_share_memory_go_on_sharing_it() -> None:
    class Halves(nn.Module):
        """Two views of one flat buffer; the second is written through the first."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("flat", torch.zeros(6))
            self.register_buffer("part", self.flat[:3])
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            self.flat += 1
            return self.layer(x) + self.part * x[:, :3]

    model = Halves()
    found = examine(model, cross_entropy, batch(), 2)
    assert not found.additive and found.causes == ("module_state",)  # the views see it in float64 as well
    model.flat.fill_(7)
    assert model.part.tolist() == [7, 7, 7] and model.flat.dtype == torch.float32


def test_parameters_that_are_views_of_one_flat_tensor_stay_so() -> None:
    model = mlp()
    flat, start = torch.cat([p.detach().flatten() for p in model.parameters()]), 0
    for parameter in model.parameters():
        parameter.data = flat[start : start + parameter.numel()].view_as(parameter)
        start += parameter.numel()
    assert examine(model, cross_entropy, batch(), 2).additive
    flat.fill_(3)
    assert all(bool((parameter == 3).all()) for parameter in model.parameters())


@pytest.mark.parametrize("held", ["in an optimizer", "in a tuple"])
def test_a_loss_that_holds_the_parameters_itself_while_a_graph_is_alive(held: str) -> None:
    """They are exchanged for a while where they can be; else it is measured in float32, and says so."""
    model, data = mlp(), batch()
    alive = cross_entropy(model, data)
    optimizer, fixed = torch.optim.SGD(model.parameters(), 0.1), tuple(model.parameters())
    before = [id(parameter) for parameter in model.parameters()]

    def loss(model: nn.Module, data: Any) -> Tensor:
        own = fixed if held == "in a tuple" else optimizer.param_groups[0]["params"]
        return cross_entropy(model, data) + 0.1 * sum(parameter.square().sum() for parameter in own)

    if held == "in an optimizer":
        fixed = ()
    found = examine(model, loss, data, 2)
    assert found.additive and ("float64" in found.evidence) == (held == "in a tuple")
    assert [id(parameter) for parameter in model.parameters()] == before
    assert [id(parameter) for parameter in optimizer.param_groups[0]["params"]] == before
    alive.backward()


def test_nothing_stays_in_memory() -> None:
    def tensors() -> int:
        gc.collect()
        return sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())

    model, data = mlp(nn.BatchNorm1d(8), nn.Dropout(0.2)), batch()
    examine(model, cross_entropy, data, 2)
    before = tensors()
    examine(model, cross_entropy, data, 2)
    assert tensors() == before


def test_another_thread_sees_nothing_of_it() -> None:
    """Neither float64 as the default, nor gradients switched off."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(examine(mlp(nn.BatchNorm1d(8)), cross_entropy, batch(), 2)))
    thread.start()
    seen = set()
    while thread.is_alive():
        seen.add((torch.zeros(1).dtype, torch.is_grad_enabled()))
    thread.join()
    assert seen <= {(torch.float32, True)} and done[0].causes == ("batch_statistics", "module_state")
