"""What the CPU's allocator itself reports, through torch.profiler: the yardstick for every other count here."""

import gc
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

import torch
from torch import nn

from gradacc_lessons.memory.walk import Optimizers, optimizers_in
from gradacc_lessons.nested import tensors_in

_ONE_AT_A_TIME = RLock()
_CHATTER = re.compile(rb"[A-Z]+:.*profiler_(start|stop)\r?\n?")
"""What some versions of the profiler write to the process's error stream."""


def allocator_peak(run: Callable[[], object], in_use: int) -> int:
    """The most bytes in use at one moment of `run`, counted by the events of PyTorch's CPU allocator.

    The events are changes, so `in_use` says how many bytes were in use before. They include what a kernel takes
    and gives back within one operation, but not what libraries below PyTorch take by themselves. Python's garbage
    collector rests meanwhile: what it frees of earlier runs would be counted against this one. What was there before
    must stay to the end of the run: when it is freed earlier, there is no event.

    RuntimeError inside `torch.profiler`, which cannot run twice at once.
    """
    if torch._C._autograd._profiler_enabled():
        raise RuntimeError(
            "torch.profiler is running, and memory is counted with it: measure, predict and plan outside of it"
        )
    with _ONE_AT_A_TIME, _no_collection():
        recorded: Any = torch.autograd.profiler.profile(profile_memory=True)
        with _quiet():
            recorded.__enter__()
        try:
            run()
        finally:
            with _quiet():
                recorded.__exit__(*sys.exc_info())
    events = [event for event in recorded.kineto_results.events() if event.name() == "[memory]"]
    now = most = in_use
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def bytes_in_use(model: nn.Module, optimizer: Optimizers, inputs: Any) -> int:
    """The bytes of a model with its gradients, its optimizer's state and its inputs; what is shared counts once."""
    parameters = list(model.parameters())
    state = [list(each.state.values()) for each in optimizers_in(optimizer)]
    there = (parameters, [p.grad for p in parameters], list(model.buffers()), state, inputs)
    storages = {s._cdata: s.nbytes() for s in (tensor.untyped_storage() for tensor in tensors_in(there))}
    return sum(storages.values())


@contextmanager
def _no_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the profiler's own lines off the error stream. Whatever else is written meanwhile is passed on."""
    with tempfile.TemporaryFile() as caught:
        try:
            stream = os.dup(2)
        except OSError:  # no error stream, so nothing to keep clean
            yield
            return
        try:
            os.dup2(caught.fileno(), 2)
            try:
                yield
            finally:
                os.dup2(stream, 2)
                caught.seek(0)
                if other := _CHATTER.sub(b"", caught.read()):
                    with suppress(OSError):
                        os.write(2, other)
        finally:
            os.close(stream)
