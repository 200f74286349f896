"""Which cell of a notebook runs, and what an earlier run of it left behind, which is on the page no longer."""

import sys
from collections.abc import Callable, Hashable
from threading import current_thread, main_thread
from typing import Any

_SHOWN: dict[tuple[str | None, Hashable], Callable[[], None]] = {}
"""By cell and what it shows: how that is retired."""


def running_cell() -> str | None:
    """What tells the running cell from others: its id, or its text where the notebook's program sends no id.

    None outside a notebook.
    """
    from IPython import get_ipython

    shell: Any = get_ipython()
    if shell is None:
        return None
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return str(parent.get("metadata", {}).get("cellId") or shell.history_manager.input_hist_raw[-1])


def number_of_cell() -> int | None:
    """The number of the cell that runs; None where none does: outside a notebook, in a callback, in another thread."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it; a terminal need not
    shell: Any = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "get_parent") or current_thread() is not main_thread():
        return None
    asked_for = shell.get_parent().get("header", {}).get("msg_type")
    return int(shell.execution_count) if asked_for == "execute_request" else None


def supersede(what: Hashable, retire: Callable[[], None]) -> None:
    """Say that the running cell shows `what`, and how to retire it. What the cell showed before under that name is
    retired now, unless another cell shows it too."""
    key = (running_cell(), what)
    earlier = _SHOWN.get(key)
    _SHOWN[key] = retire
    if earlier is not None and earlier not in _SHOWN.values():
        earlier()
