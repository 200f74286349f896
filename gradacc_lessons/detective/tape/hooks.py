"""The hooks that a tape hangs on a model, its parameters and all optimizers, and what they write down."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradacc_lessons.detective.tape.events import During, Kind
from gradacc_lessons.detective.tape.gradients import GradientWatch
from gradacc_lessons.detective.tape.log import Log, Pass, Raw
from gradacc_lessons.detective.tape.others import Rates, Writes
from gradacc_lessons.detective.tape.view import Facts

Count = Callable[[Any], int]
LOW = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
"""Types in which adding up loses what is small."""


class Recorder:
    """Watches one model while its loop runs. `attach` and `detach` leave no trace in model, optimizer or torch."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | None,
        scheduler: LRScheduler | None,
        watch: Sequence[nn.Module],
        count: Count | None,
    ) -> None:
        self.model, self.count = model, count
        self.names, self.parameters = zip(*model.named_parameters(), strict=True)
        self.low: set[str] = set()
        self.tokens = False
        self.places = {id(parameter): index for index, parameter in enumerate(self.parameters)}
        self.gradients = GradientWatch(self.parameters)
        self.trained = Writes([parameter for parameter in self.parameters if parameter.requires_grad])
        self.written: dict[Kind, Writes] = {
            "buffers": Writes(list(model.buffers())),
            "watched": Writes(list(_watched(model, watch))),
        }
        self.rates = Rates(optimizer, scheduler)
        self.log = Log()
        self.optimizers: list[int] = []
        self.steps: list[Optimizer] = []
        self.unhooked = set(range(len(self.parameters)))
        self.handles: list[Any] = []
        self.depth = self.micro_batch = self.update = 0
        self.task = -1
        self.backward: Raw | None = None
        self.reached: list[Pass] = []
        self.scales: list[Tensor] = []
        self.passes: list[Pass] = []
        self.seen_forward = False
        self.began = time.perf_counter()

    # -- hanging them up and taking them down ------------------------------------------------------------------

    def attach(self) -> None:
        """Hang up the hooks."""
        for module in (self.model, *_called_children(self.model)):
            before, after = _Hook(self._before_forward), _Hook(self._after_forward)
            self.handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            self.handles.append(module.register_forward_hook(after, with_kwargs=True, always_call=True))
        self._hook_parameters()
        self.handles.append(register_optimizer_step_pre_hook(self._before_step))
        self.handles.append(register_optimizer_step_post_hook(self._after_step))

    def detach(self) -> None:
        """Take them down, and look for the last time."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        self._look()
        self.log.settle(everything=True)

    def _hook_parameters(self) -> None:
        for index in [index for index in self.unhooked if self.parameters[index].requires_grad]:
            parameter = self.parameters[index]
            self.unhooked.remove(index)
            self.handles.append(parameter.register_hook(self._gradient_comes))
            self.handles.append(parameter.register_post_accumulate_grad_hook(self._gradient_came))

    # -- what every hook does first ----------------------------------------------------------------------------

    def _look(self, during: During | None = None) -> None:
        """Write down what was done since the last hook."""
        during = during or ("update" if self.steps else "loop")
        change = self.gradients.look()
        self._write("gradient", during=during, change=change)
        if not self.steps and (tensors := self.trained.moved()):
            self._write("parameters", during=during, tensors=tensors)
        self._others(during)
        if moves := self.rates.moves():
            self._write("schedule", during=during, moves=moves, rate=self.rates.rate)

    def _others(self, during: During) -> None:
        for kind, writes in self.written.items():
            if tensors := writes.moved():
                self._write(kind, during=during, tensors=tensors)

    def _write(self, kind: Kind, **fields: Any) -> Raw:
        during: During = fields.pop("during", "update" if self.steps else "loop")
        seconds = time.perf_counter() - self.began
        raw = Raw(kind, self.micro_batch, self.update, seconds, during, **fields)
        self.log.append(raw)
        return raw

    # -- forward -----------------------------------------------------------------------------------------------

    def _before_forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        if _graph_task() != -1:  # checkpointing computes it again
            return
        self.depth += 1
        if self.depth > 1:
            return
        self._hook_parameters()
        self._look()
        self.passes = [one for one in self.passes if one.alive()]

    def _after_forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        if _graph_task() != -1:
            return
        self.depth -= 1
        if self.depth or output is None:
            return
        self._others("forward")
        inputs = list(_tensors((args, kwargs)))
        outputs = [tensor for tensor in _tensors(output) if tensor.grad_fn is not None]
        kept = len({one.micro_batch for one in self.passes if one.kept and one.micro_batch != self.micro_batch})
        raw = self._write("forward" if outputs else "evaluation", items=self._items(args, kwargs, inputs), graphs=kept)
        raw.through = any(tensor.grad_fn is not None for tensor in inputs)
        if not outputs:
            return
        self.seen_forward = True
        raw.one_pass = one = Pass(raw.items, module is self.model, raw.through)
        raw.micro_batch = None
        self.passes.append(one)
        for tensor in outputs:
            arrival = _Arrival(self, one, tensor.dim() == 0)
            one.watch(arrival)
            tensor.register_hook(arrival)

    def _items(self, args: Any, kwargs: dict[str, Any], inputs: list[Tensor]) -> int | None:
        if self.count is not None:
            return int(self.count(kwargs if not args else args[0] if len(args) == 1 and not kwargs else args))
        first = next((tensor for tensor in inputs if tensor.dim()), None)
        if first is None:
            return None
        self.tokens |= first.dim() == 2 and not first.is_floating_point()
        return len(first)

    # -- backward ----------------------------------------------------------------------------------------------

    def arrived(self, one: Pass, gradient: Tensor, is_loss: bool) -> None:
        """A gradient has arrived at an output of the model."""
        self._begin()
        if one not in self.reached:
            self.reached.append(one)
            if self.backward is not None:
                self._attach(one)
        one.kept = _keeps_graph()
        if is_loss:
            self.scales.append(gradient.detach().clone())

    def _gradient_comes(self, gradient: Tensor) -> None:
        self._begin()

    def _begin(self) -> None:
        if self.task != (task := _graph_task()):
            self.task, self.backward, self.reached, self.scales = task, None, [], []
            self._look()

    def _gradient_came(self, parameter: Tensor) -> None:
        index = self.places[id(parameter)]
        self.gradients.accumulated(index)
        if self.backward is None:
            self._commit()
        assert self.backward is not None
        self.backward.received.add(index)

    def _commit(self) -> None:
        """A backward that reaches parameters is a micro-batch, unless all it came through had been one before."""
        fresh = not self.seen_forward or not self.micro_batch or any(one.micro_batch is None for one in self.reached)
        self.micro_batch += fresh
        self.backward = self._write("backward", scales=self.scales, again=not fresh)
        for one in self.reached:
            self._attach(one)

    def _attach(self, one: Pass) -> None:
        assert self.backward is not None
        if one.micro_batch is None:
            one.micro_batch = self.micro_batch
            self.backward.passes.append(one)

    # -- update ------------------------------------------------------------------------------------------------

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not self._ours(optimizer):
            return
        if optimizer in self.steps:  # its last step ended in an error
            self.steps.clear()
        self._look()
        self.steps.append(optimizer)
        if len(self.steps) == 1:
            self.micro_batch_before = self.micro_batch

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if optimizer not in self.steps:
            return
        inner = self.steps.index(optimizer) > 0
        if not inner:
            self._look("update")
        del self.steps[self.steps.index(optimizer) :]
        if inner:  # an optimizer that steps another one makes one update
            return
        if id(optimizer) not in self.optimizers:
            self.optimizers.append(id(optimizer))
        waiting = sum(one.micro_batch is None and one.alive() for one in self.passes)
        raw = self._write("update", during="loop", graphs=waiting, rate=self.rates.of(optimizer))
        raw.optimizer = self.optimizers.index(id(optimizer)) + 1
        raw.closure = self.micro_batch > self.micro_batch_before
        self.update += 1
        self.low |= {LOW[p.grad.dtype] for p in self.parameters if p.grad is not None and p.grad.dtype in LOW}
        self.trained.moved()

    def facts(self) -> Facts:
        """What is known beside the events."""
        self.log.settle()
        trained = [index for index in range(len(self.parameters)) if index not in self.unhooked]
        never = [self.names[index] for index in trained if index not in self.log.received]
        return Facts(tuple(never) if self.micro_batch else (), len(trained), tuple(sorted(self.low)), self.tokens)

    def _ours(self, optimizer: Optimizer) -> bool:
        return any(id(parameter) in self.places for group in optimizer.param_groups for parameter in group["params"])


class _Hook:
    """A forward hook; what a copied or saved model has in its place does nothing, and needs nothing of ours."""

    def __init__(self, does: Callable[..., None]) -> None:
        self.does = does

    def __call__(self, *arguments: Any) -> None:
        self.does(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (nullcontext(), "__exit__")


class _Arrival:
    """Hangs in the graph of one output, hears its gradient, and is gone when the graph is."""

    def __init__(self, recorder: Recorder, one: Pass, is_loss: bool) -> None:
        self.recorder, self.one, self.is_loss = recorder, one, is_loss

    def __call__(self, gradient: Tensor) -> None:
        self.recorder.arrived(self.one, gradient, self.is_loss)


def _graph_task() -> int:
    """The backward that is running here, or -1; torch.utils.checkpoint asks the same way, there is no public name."""
    return int(torch._C._current_graph_task_id())


def _keeps_graph() -> bool:
    """Whether the backward that is running was told to keep its graph."""
    asked: Callable[[], bool] | None = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return asked is not None and bool(asked())


def _called_children(module: nn.Module) -> Iterator[nn.Module]:
    """The modules that a loop calls if it does not call the model itself; lists and dicts of modules are not called."""
    for child in module.children():
        if isinstance(child, nn.ModuleList | nn.ModuleDict):
            yield from _called_children(child)
        else:
            yield child


def _watched(model: nn.Module, watch: Sequence[nn.Module]) -> Iterator[Tensor]:
    yield from (parameter for parameter in model.parameters() if not parameter.requires_grad)
    for module in watch:
        yield from module.parameters()
        yield from module.buffers()


def _tensors(found: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists, dicts and dataclasses."""
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, dict):
        for value in found.values():
            yield from _tensors(value)
    elif isinstance(found, tuple | list):
        for value in found:
            yield from _tensors(value)
