"""The hooks that a tape hangs on a model, its parameters and all optimizers, and what they write down."""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradacc_lessons.detective.tape.log import Pass, Raw
from gradacc_lessons.detective.tape.looks import Looks
from gradacc_lessons.detective.tape.modules import ForwardHook, called_children, synchronises, tensors
from gradacc_lessons.detective.tape.view import Facts

Count = Callable[[Any], int]
_graph_task: Callable[[], int] = torch._C._current_graph_task_id
"""The backward that is running here, or -1. torch.utils.checkpoint asks the same way; there is no public name."""


class Recorder:
    """Watches one model while its loop runs. `attach` and `detach` leave no trace in model, optimizer or torch."""

    def __init__(self, model: nn.Module, looks: Looks, count: Count | None) -> None:
        self.model, self.looks, self.count = model, looks, count
        self.ours = {id(parameter) for parameter in looks.parameters}
        self.trained: list[str] = []
        self.tokens = self.told_items = False
        self._unhooked = dict(enumerate(looks.parameters))
        self._handles: list[Any] = []
        self._depth = 0
        self._passes: list[Pass] = []
        self._seen_forward = False
        self._task, self._backward = -1, None  # the backward that is running, or ran last
        self._reached: list[Pass] = []
        self._scales: list[Tensor] = []
        self._steps: list[Optimizer] = []
        self._optimizers: list[int] = []
        self._before_update = 0
        self._found_inf: Tensor | None = None
        self._before_tape = False

    _backward: Raw | None

    def attach(self) -> None:
        """Hang up the hooks."""
        self.looks.begin()
        self._before_tape = any(one.grad is not None and bool(one.grad.any()) for one in self.looks.parameters)
        for module in (self.model, *called_children(self.model)):
            before, after = ForwardHook(self._before_forward), ForwardHook(self._after_forward)
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            self._handles.append(module.register_forward_hook(after, with_kwargs=True, always_call=True))
        self._hook_parameters()
        self._handles.append(register_optimizer_step_pre_hook(self._before_step))
        self._handles.append(register_optimizer_step_post_hook(self._after_step))

    @property
    def attached(self) -> bool:
        """Whether the hooks hang."""
        return bool(self._handles)

    def detach(self) -> None:
        """Take them down, and look for the last time."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.looks.stepping = False
        self.looks.everything(closely=True)
        self.looks.log.settle(everything=True)

    def facts(self) -> Facts:
        """What is known beside the events."""
        reached = {self.looks.names[index] for index in self.looks.log.received}
        never = tuple(name for name in self.trained if name not in reached)
        low = tuple(sorted(self.looks.low))
        never = never if self.looks.micro_batch else ()
        return Facts(never, len(self.trained), low, self.tokens, self._before_tape, self.told_items)

    def _hook_parameters(self) -> None:
        """Also those that are frozen when the tape begins, and are trained later."""
        for index in [index for index, parameter in self._unhooked.items() if parameter.requires_grad]:
            parameter = self._unhooked.pop(index)
            self.trained.append(self.looks.names[index])
            if index in self.looks.gradients.outer:
                self._handles.append(parameter.register_hook(self._gradient_comes))
            self._handles.append(parameter.register_post_accumulate_grad_hook(self._gradient_came(index)))

    # -- forward -----------------------------------------------------------------------------------------------

    def _before_forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        if _graph_task() != -1:  # checkpointing computes it again
            return
        self._depth += 1
        if self._depth == 1:
            self._hook_parameters()
            self.looks.everything()
            self._passes = [one for one in self._passes if one.alive()]

    def _after_forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        if _graph_task() != -1:
            return
        self._depth -= 1
        if self._depth or output is None:
            return
        self.told_items |= "num_items_in_batch" in kwargs
        inputs = list(tensors((args, kwargs)))
        outputs = [tensor for tensor in tensors(output) if tensor.grad_fn is not None]
        items, through = self._items(args, kwargs, inputs), any(tensor.grad_fn is not None for tensor in inputs)
        if not outputs:
            self.looks.at_others(during="forward")
            self.looks.write("evaluation", items=items, through=through)
            return
        kept = {one.micro_batch for one in self._passes if one.kept and one.micro_batch != self.looks.micro_batch}
        one = Pass(items, module is self.model, through, synchronises(module))
        self.looks.at_others(during="forward", one_pass=one)
        self.looks.write("forward", items=items, through=through, graphs=len(kept), one_pass=one)
        self._passes.append(one)
        self._seen_forward = True
        for tensor in outputs:
            arrival = _Arrival(self, one, is_loss=tensor.dim() == 0)
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

    def arrived(self, one: Pass, gradient: Tensor, *, is_loss: bool) -> None:
        """A gradient has arrived at an output of the model."""
        self._gradient_comes(gradient)
        if one not in self._reached:
            self._reached.append(one)
            if self._backward is not None:
                _join(self._backward, one)
        one.kept = _keeps_graph()
        if is_loss:
            self._scales.append(gradient.detach().clone())

    def _gradient_comes(self, gradient: Tensor) -> None:
        if self._task != (task := _graph_task()):
            self._task, self._backward, self._reached, self._scales = task, None, [], []
            self.looks.at_gradients()

    def _gradient_came(self, index: int) -> Callable[[Tensor], None]:
        """What runs when a parameter has got its gradient: as often as there are parameters, so it does little."""
        gradients, state, task_now = self.looks.gradients, self.looks.gradients.state, _graph_task
        probed = index in gradients.probed

        def came(parameter: Tensor) -> None:
            if (gradient := parameter.grad) is None:
                state[index] = None  # another hook has used it up
            elif probed:
                gradients.accumulated(index, gradient)
            else:
                state[index] = (id(gradient), gradient._version)
            if self._task != task_now():
                self._gradient_comes(parameter)
            if (backward := self._backward) is None:
                backward = self._backward = self._begin()
            backward.received.add(index)

        return came

    def _begin(self) -> Raw:
        """A backward that reaches parameters is a micro-batch, unless all it came through had been one before."""
        looks, reached = self.looks, self._reached
        fresh = not self._seen_forward or not looks.micro_batch or any(one.micro_batch is None for one in reached)
        looks.micro_batch += fresh
        backward = looks.write("backward", scales=self._scales, again=not fresh)
        backward.synchronised = any(one.synchronises for one in reached)
        for one in reached:
            _join(backward, one)
        return backward

    # -- update ------------------------------------------------------------------------------------------------

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not any(id(one) in self.ours for group in optimizer.param_groups for one in group["params"]):
            return
        if optimizer in self._steps:  # its last step ended in an error
            self._steps.clear()
        if not self._steps:
            self._found_inf = None
        if not self._steps and _graph_task() != -1:  # the step is itself a hook of the backward
            self._gradient_comes(torch.empty(0))
            if self._backward is None:
                self._backward = self._begin()
        elif not self._steps:
            self.looks.stepping = False
            self.looks.everything(closely=True, norm=True)
            self.looks.stepping, self._before_update = True, self.looks.micro_batch
            # A fused optimizer unscales while it updates; GradScaler hands it the scale, and whether to skip.
            self._found_inf = getattr(optimizer, "found_inf", None)
            if (scale := getattr(optimizer, "grad_scale", None)) is not None:
                self.looks.write("unscale", scales=[scale.detach().clone()], during="update")
        self._steps.append(optimizer)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if optimizer not in self._steps:
            return
        del self._steps[self._steps.index(optimizer) :]
        if self._steps:  # an optimizer that steps another one makes one update with it
            return
        looks, within = self.looks, _graph_task() != -1
        closure = not within and looks.micro_batch > self._before_update
        if not within:
            looks.everything(closely=closure)
        looks.stepping = False
        if id(optimizer) not in self._optimizers:
            self._optimizers.append(id(optimizer))
        waiting = sum(one.micro_batch is None and one.alive() for one in self._passes)
        number = self._optimizers.index(id(optimizer)) + 1
        raw = looks.write("update", during="backward" if within else "loop", graphs=waiting)
        raw.rate, raw.optimizer, raw.closure = looks.rates.of(optimizer), number, closure
        if self._found_inf is not None:
            raw.scales.append(self._found_inf.detach().clone())
        looks.updated()


class _Arrival:
    """Hangs in the graph of one output, hears its gradient, and is gone when the graph is."""

    def __init__(self, recorder: Recorder, one: Pass, *, is_loss: bool) -> None:
        # Weakly, as a graph may outlive the tape.
        self._recorder, self._one, self._is_loss = weakref.ref(recorder), one, is_loss

    def __call__(self, gradient: Tensor) -> None:
        recorder = self._recorder()
        if recorder is not None and recorder.attached:
            recorder.arrived(self._one, gradient, is_loss=self._is_loss)


def _join(backward: Raw, one: Pass) -> None:
    if one.micro_batch is None:
        one.micro_batch = backward.micro_batch
        backward.passes.append(one)


def _keeps_graph() -> bool:
    """Whether the backward that is running was told to keep its graph."""
    asked: Callable[[], bool] | None = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return asked is not None and bool(asked())
