"""Tries out the test that a learner writes in lesson 09, in the checking process, on loops that are sent to it.

Which of them are right, and how many, is not told here: the parent knows.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any
from zlib import crc32

REFUSED, ACCEPTED, NO_VERDICT = 0.0, 1.0, 2.0


def tried(holds: Callable[..., Any]) -> Callable[[str], float]:
    """For calls (source of a loop,): what the test says of it; a failed `assert` refuses it too."""

    @wraps(holds)  # it travels, and its lines are named, as the learner's own
    def said(source: str) -> float:
        import torch

        torch.manual_seed(crc32(source.encode()))  # of the checking process: a test that draws says the same each time
        scope: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(source, "<listing>", "exec"), scope)
        try:
            verdict = holds(scope["train_epoch"])
        except AssertionError:
            return REFUSED
        if isinstance(verdict, torch.Tensor) and verdict.numel() == 1:
            verdict = verdict.item()
        return float(bool(verdict)) if type(verdict).__name__ in ("bool", "bool_") else NO_VERDICT

    return said
