"""What all tests share: nothing of the developer's own is read or written, and nothing is left behind."""

import os
import shutil
import tempfile

# As in the lessons: their models are so small that a second thread waits longer than it computes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# `make test` has set these already; a plain `pytest` gets a progress file of its own here, which xdist's processes
# inherit.
_HOME = None
if not {"OFFLINE_BY", "PYTEST_XDIST_WORKER"} & os.environ.keys():
    _HOME = os.environ["GRADACC_HOME"] = tempfile.mkdtemp(prefix="gradacc-tests-")


def pytest_unconfigure() -> None:
    """Take the home away. Not at exit: a forked child's exit would take away its parent's."""
    if _HOME:
        shutil.rmtree(_HOME, ignore_errors=True)
