"""The bench on which a loop runs, in the child process: a torch model, an optimizer, and what they record.

Nothing here knows the right answer. It only builds what the request describes, calls the loop for two epochs, and
writes down what happened.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from gradacc_lessons.detective.sending import MisuseError
from gradacc_lessons.detective.wire import Array

Batch = tuple[Tensor, ...]
KEPT_UPDATES = 64
"""Parameters are kept for this many updates of a scenario; a right loop makes at most six."""


def build_model(spec: dict[str, Any], start: Array, width: int) -> nn.Module:
    """The network or tracer of scenarios.py, float64, with `start` as its parameters."""
    hidden, classes = spec["hidden"], spec["classes"]
    model: nn.Module = (
        nn.Linear(width, 1, bias=False)
        if spec["kind"] == "tracer"
        else nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, classes))
    )
    model = model.double()
    with torch.no_grad():
        nn.utils.vector_to_parameters(torch.tensor(start), model.parameters())
    return model


def build_optimizer(spec: dict[str, Any], model: nn.Module) -> Optimizer:
    """SGD, SGD with momentum 0.9, or Adam."""
    rate = spec["learning_rate"]
    if spec["optimizer"] == "adam":
        return torch.optim.Adam(model.parameters(), lr=rate)
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9 if spec["optimizer"] == "momentum" else 0.0)


class GraphMeter:
    """Counts the bytes that graphs keep for their backward, parameters excluded."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = {parameter.data_ptr() for parameter in model.parameters()}
        self.alive = self.peak = 0

    def watch(self) -> AbstractContextManager[Any]:
        """Counts while it is entered."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, _Saved.unpack)

    def _pack(self, tensor: Tensor) -> "_Saved":
        size = 0 if tensor.data_ptr() in self.parameters else tensor.numel() * tensor.element_size()
        self.alive += size
        self.peak = max(self.peak, self.alive)
        return _Saved(tensor.detach(), size, self)


class _Saved:
    """A tensor kept for backward; the meter hears when it goes."""

    def __init__(self, tensor: Tensor, size: int, meter: GraphMeter) -> None:
        self.tensor, self.size, self.meter = tensor, size, meter

    def unpack(self) -> Tensor:
        return self.tensor

    def __del__(self) -> None:
        self.meter.alive -= self.size


class Bench:
    """One scenario: builds the parts, runs the loop, records."""

    def __init__(self, spec: dict[str, Any], inputs: list[Array], labels: list[Array], start: Array) -> None:
        self.spec = spec
        self.batches: list[Batch] = [
            (torch.tensor(x), torch.tensor(y, dtype=torch.int64)) for x, y in zip(inputs, labels, strict=True)
        ]
        self.model = build_model(spec, start, inputs[0].shape[1])
        self.optimizer = build_optimizer(spec, self.model)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda tick: spec["decay"] ** tick)
        self.meter = GraphMeter(self.model)
        self.after_updates: list[Array] = []
        self.ends: list[Array] = []
        self.rates: list[float] = []
        self.record: dict[str, Any] = {
            "name": spec["name"],
            "updates": [],
            "foreign_updates": 0,
            "forwards": 0,
            "backwards": 0,
            "pushed": 0,
            "foreign_forwards": 0,
            "largest_backward": 0,
            "together": 0,
            "data_changed": False,
            "list_changed": False,
        }
        self.made = 0
        self.forwards: list[_Forward] = []

    def run(self, loop: Callable[..., Any], accepted: list[str], *, metered: bool = True) -> None:
        """Two epochs of `loop`, with the keywords it accepts. `metered`: the bytes that graphs keep are counted."""
        keywords = {"count": count, "max_norm": self.spec["max_norm"], "scheduler": self.scheduler}
        keywords = {name: keywords[name] for name in accepted}
        one_graph = self._graph_of_one_micro_batch() if metered else 1.0
        hooks = [
            register_optimizer_step_pre_hook(self._before_any_update),
            self.optimizer.register_step_post_hook(self._after_update),
            # Not on the model itself: a loop may copy or save it, and our hooks are no part of it.
            register_module_forward_hook(self._after_forward),
        ]
        try:
            for _ in range(self.spec["epochs"]):
                with self.meter.watch() if metered else nullcontext():
                    self._epoch(loop, keywords)
        finally:
            for hook in hooks:
                hook.remove()
        self.record["graphs"] = self.meter.peak / one_graph
        self.record["together"] = together(self.forwards)

    def _epoch(self, loop: Callable[..., Any], keywords: dict[str, Any]) -> None:
        before, given = self.made, list(self.batches)
        copies = [tuple(tensor.clone() for tensor in batch) for batch in given]
        loop(self.model, self.optimizer, given, self.loss, self.spec["accumulation_steps"], **keywords)
        self.record["updates"].append(self.made - before)
        self.ends.append(self._parameters())
        same = len(given) == len(self.batches) and all(a is b for a, b in zip(given, self.batches, strict=True))
        self.record["list_changed"] |= not same
        self.record["data_changed"] |= not all(
            torch.equal(old, new)
            for copy, batch in zip(copies, self.batches, strict=True)
            for old, new in zip(copy, batch, strict=True)
        )
        self.batches = given

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss of a batch: what the loop gets as `loss_fn`."""
        if not callable(model) or isinstance(model, Tensor):
            raise MisuseError
        inputs, labels = batch
        outputs = model(inputs)
        mean = outputs.mean() if self.spec["kind"] == "tracer" else functional.cross_entropy(outputs, labels)
        return mean * float(self.spec["gain"])

    def arrays(self) -> dict[str, Array]:
        """Parameters at the ends of epochs and after updates, and the learning rates."""
        width = self._parameters().size
        return {
            "ends": np.array(self.ends),
            "after_updates": np.array(self.after_updates).reshape(-1, width),
            "rates": np.array(self.rates),
        }

    def _parameters(self) -> Array:
        # Converted, as the loop may have changed the model's precision, and numpy does not know all of them.
        return nn.utils.parameters_to_vector(self.model.parameters()).detach().double().numpy().copy()

    def _graph_of_one_micro_batch(self) -> float:
        meter = GraphMeter(self.model)
        with meter.watch():
            self.loss(self.model, self.batches[0])
        return float(max(meter.peak, 1))

    def _before_any_update(self, optimizer: Optimizer, *_: Any) -> None:
        if optimizer is not self.optimizer:
            self.record["foreign_updates"] += 1

    def _after_update(self, *_: Any) -> None:
        self.made += 1
        if len(self.after_updates) < KEPT_UPDATES:
            self.rates.append(float(self.optimizer.param_groups[0]["lr"]))
            self.after_updates.append(self._parameters())

    def _after_forward(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if module is not self.model:
            self.record["foreign_forwards"] += type(module) is type(self.model)
            return
        self.record["forwards"] += 1
        if isinstance(output, Tensor) and output.requires_grad:
            forward = _Forward(len(inputs[0]), self.record["backwards"])
            self.forwards.append(forward)
            output.register_hook(lambda gradient: self._after_backward(forward, gradient))

    def _after_backward(self, forward: "_Forward", gradient: Tensor) -> None:
        if forward.backward is None:
            forward.backward = self.record["backwards"]
            self.record["largest_backward"] = max(self.record["largest_backward"], forward.examples)
        self.record["backwards"] += 1
        self.record["pushed"] += bool(gradient.any())


@dataclass
class _Forward:
    """One forward of the model, with a graph."""

    examples: int
    """How many went through the model at once."""
    made: int
    """The backwards there had been before it."""
    backward: int | None = None
    """The backwards there had been before its own; None while it has not gone backward."""


def together(forwards: list[_Forward]) -> int:
    """The most forwards that waited for their backward at the same time; those that never go backward do not count."""
    gone = [(one.made, one.backward) for one in forwards if one.backward is not None]
    return max((sum(made <= moment <= backward for made, backward in gone) for _, moment in gone), default=0)


def count(batch: Batch) -> int:
    """How many labels of a batch count: what the loop gets as `count`."""
    return int((batch[1] != -100).sum())


def run_all(
    specs: list[dict[str, Any]],
    arrays: dict[str, Array],
    loop: Callable[..., Any],
    accepted: list[str],
    fetch: Callable[[], Callable[..., Any]] | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Array], float]:
    """Run `loop` in every scenario: the records, the arrays, and the seconds it took.

    `fetch` gives the loop anew for each scenario but the first, since a loop may keep something from one epoch to the
    next, and a scenario is another training run; without it, all have the same. Graphs are metered in the first one;
    where a loop cannot run under the meter, in none."""
    began = time.perf_counter()
    records: list[dict[str, Any]] = []
    out: dict[str, Array] = {}
    for number, spec in enumerate(specs):
        try:
            bench = _run(spec, arrays, fetch() if fetch and number else loop, accepted, metered=number == 0)
        except RuntimeError as error:
            if number or "saved tensor hooks" not in str(error):
                raise
            bench = _run(spec, arrays, fetch() if fetch else loop, accepted, metered=False)
        records.append(bench.record)
        out |= {f"{spec['name']}/{key}": array for key, array in bench.arrays().items()}
    return records, out, time.perf_counter() - began


def _run(
    spec: dict[str, Any], arrays: dict[str, Array], loop: Callable[..., Any], accepted: list[str], *, metered: bool
) -> Bench:
    name, length = spec["name"], spec["micro_batches"]
    bench = Bench(
        spec,
        [arrays[f"{name}/inputs/{k}"] for k in range(length)],
        [arrays[f"{name}/labels/{k}"] for k in range(length)],
        arrays[f"{name}/start"],
    )
    bench.run(loop, accepted, metered=metered)
    return bench
