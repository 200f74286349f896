"""What all tests share: nothing of the developer's own is read or written."""

import os
import tempfile

# As in the lessons: their models are so small that a second thread waits longer than it computes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# `make test` has set these already; a plain `pytest` gets a progress file of its own here.
if "OFFLINE_BY" not in os.environ:
    os.environ["GRADACC_HOME"] = tempfile.mkdtemp(prefix="gradacc-tests-")
