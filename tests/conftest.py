"""What all tests share: nothing of the developer's own is read or written, and nothing is left behind."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator

import pytest

# As in the lessons: their models are so small that a second thread waits longer than it computes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# `make test` has set these already; a plain `pytest` gets a progress file of its own here, which xdist's processes
# inherit.
QUICK_SEEDS = 4
"""A test that is run for seeds from 0 up (its parameter `seed` or `of_seed`) runs for so many in `make test`."""
_HOME = None
if not {"OFFLINE_BY", "PYTEST_XDIST_WORKER"} & os.environ.keys():
    _HOME = os.environ["GRADACC_HOME"] = tempfile.mkdtemp(prefix="gradacc-tests-")


def pytest_configure() -> None:
    """A shell takes SIGINT away from what it runs in its background, and so from every process that a test starts."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure() -> None:
    """Take the home away. Not at exit: a forked child's exit would take away its parent's."""
    if _HOME:
        shutil.rmtree(_HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def _import_path() -> Iterator[None]:
    """A file that a learner names brings its folder along: not into the next test, nor into the processes it starts."""
    kept = list(sys.path)
    yield
    sys.path[:] = kept


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is claimed of many seeds, or many cases, is shown for all of them by `make test-all`."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        seed = parameters.get("seed", parameters.get("of_seed", 0))
        if isinstance(seed, int) and seed >= QUICK_SEEDS:
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("few"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same in cases.values():
        wanted = same[0].get_closest_marker("few").args[0]
        shown = {k * len(same) // wanted for k in range(wanted)}  # evenly spread
        for k, item in enumerate(same):
            if k not in shown and len(same) > wanted:
                item.add_marker(pytest.mark.long)
