"""Which cell runs, in a real shell and in a real kernel; and what its earlier run showed is retired."""

from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

from gradacc_lessons import cell

SHOW = "supersede('panel', retire)"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    shell = InteractiveShell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr(cell, "_SHOWN", {})
    shell.user_ns["supersede"] = cell.supersede
    return shell


def shows(shell: InteractiveShell, code: str, retire: Callable[[], None]) -> None:
    shell.user_ns["retire"] = retire
    shell.run_cell(code, store_history=True).raise_error()


def test_outside_a_notebook_there_is_no_cell() -> None:
    assert cell.running_cell() is None


def test_what_a_cell_showed_is_retired_when_it_runs_again_and_only_then(shell: InteractiveShell) -> None:
    retired: list[int] = []
    shows(shell, SHOW, lambda: retired.append(1))
    shows(shell, f"{SHOW}  # another cell", lambda: retired.append(2))
    shows(shell, "supersede('other', retire)", lambda: retired.append(3))
    assert retired == []
    shows(shell, SHOW, lambda: retired.append(4))
    assert retired == [1]
    shows(shell, SHOW, lambda: retired.append(5))
    assert retired == [1, 4]


def test_what_is_shown_in_two_cells_is_retired_when_both_show_another(shell: InteractiveShell) -> None:
    retired: list[str] = []

    def once() -> None:
        retired.append("once")

    for code in (SHOW, f"{SHOW}  # below", SHOW):
        shows(shell, code, once)
    shows(shell, SHOW, lambda: None)
    assert retired == []
    shows(shell, f"{SHOW}  # below", lambda: None)
    assert retired == ["once"]


def test_a_kernel_tells_cells_apart_by_their_ids() -> None:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        code = "from gradacc_lessons.cell import running_cell; answer = running_cell()"
        found = []
        for cell_id in ("first", "second", None):
            asked = {"code": code, "silent": False, "user_expressions": {"a": "answer"}}  # older kernels want `silent`
            message = client.session.msg("execute_request", asked)
            message["metadata"] = {} if cell_id is None else {"cellId": cell_id}
            client.shell_channel.send(message)
            reply: dict[str, Any] = client.get_shell_msg(timeout=60)
            while reply["msg_type"] != "execute_reply":
                reply = client.get_shell_msg(timeout=60)
            found.append(reply["content"]["user_expressions"]["a"]["data"]["text/plain"])
        assert found == ["'first'", "'second'", repr(code)]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
