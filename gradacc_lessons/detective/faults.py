"""The catalogue: every known mistake once, for lessons, exercises, diagnosis and tests."""

import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any

from gradacc_lessons.detective.catalogue.clipping import CLIPPING
from gradacc_lessons.detective.catalogue.divisors import DIVISORS
from gradacc_lessons.detective.catalogue.fault import Fault as Fault
from gradacc_lessons.detective.catalogue.fault import listing
from gradacc_lessons.detective.catalogue.memory import MEMORY
from gradacc_lessons.detective.catalogue.order import ORDER
from gradacc_lessons.detective.catalogue.scaling import SCALING
from gradacc_lessons.detective.catalogue.schedule import SCHEDULE
from gradacc_lessons.detective.catalogue.tails import TAILS
from gradacc_lessons.detective.catalogue.windows import WINDOWS

_ALL = (*SCALING, *DIVISORS, *ORDER, *WINDOWS, *TAILS, *CLIPPING, *SCHEDULE, *MEMORY)
FAULTS: dict[str, Fault] = {fault.id: fault for fault in _ALL}
"""All faults by id, in the order in which a diagnosis names them."""

TAUGHT_SOURCE = listing("""
    def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        optimizer.zero_grad()
        for i, batch in enumerate(micro_batches):
            loss = loss_fn(model, batch) / accumulation_steps
            loss.backward()
            if (i + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
""")
"""Right in scope "windows": what lessons 01 and 02 teach, before windows become uneven."""

REFERENCE_SOURCE = listing("""
    def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for start in range(0, len(micro_batches), accumulation_steps):
            window = micro_batches[start : start + accumulation_steps]
            examples = sum(len(batch[0]) for batch in window)
            optimizer.zero_grad()
            for batch in window:
                loss = loss_fn(model, batch) * len(batch[0]) / examples
                loss.backward()
            optimizer.step()
""")
"""Right in every scope: the listing that the catalogue's mistakes depart from."""


def fault_loop(fault_id: str) -> Callable[..., Any]:
    """The `train_epoch` of a fault; KeyError names the ids there are."""
    if fault_id not in FAULTS:
        raise KeyError(f"there is no fault {fault_id!r}; there are {', '.join(FAULTS)}")
    return compiled(FAULTS[fault_id].source, f"<fault {fault_id}>")


def compiled(source: str, name: str = "<listing>") -> Callable[..., Any]:
    """The `train_epoch` that `source` defines; errors in it show their line under `name`."""
    code: CodeType = compile(source, name, "exec")
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    # Its own __main__, so that the function travels to the checking process by value.
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(code, scope)
    function: Callable[..., Any] = scope["train_epoch"]
    return function
