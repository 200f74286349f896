"""Where the course runs: which device trains, which program shows it, and how randomness is kept apart."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from threading import Lock, RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class Place(Enum):
    """The program that shows the lessons."""

    COLAB = "Google Colab"
    JUPYTER = "Jupyter"
    TERMINAL = "plain Python"


def place() -> Place:
    """Which of the three we are in, judged by what is already running."""
    if "google.colab" in sys.modules:
        return Place.COLAB
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return Place.JUPYTER if shell is not None and hasattr(shell, "kernel") else Place.TERMINAL


def best_device() -> "torch.device":
    """CUDA if there is one, else Apple's MPS, else the CPU."""
    import torch

    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


# torch's global generator belongs to the whole process; two explorers that initialise a model at once would
# otherwise take numbers from each other.
_GLOBAL_GENERATOR = RLock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run the body with torch's CPU generator set to `seed`, alone, and put it back afterwards.

    Models are initialised on the CPU, whatever device they go to; the generators of other devices are left as
    they are.
    """
    import torch

    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


class _OneThread:
    """How many workers compute on one thread now, and what the number of threads is for everybody else."""

    def __init__(self) -> None:
        self.lock, self.inside, self.usual = Lock(), 0, 1


_ONE_THREAD = _OneThread()


def keep_threads() -> None:
    """Fix the calling thread's number of threads for torch: `one_thread` elsewhere will not touch it any more.

    torch takes the number for a thread at that thread's first computation, and then keeps it.
    """
    import torch

    torch.get_num_threads()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let the calling thread, a worker, compute on one thread; the usual number comes back with the last worker.

    The lessons' models are so small that a second thread waits longer than it computes: on two busy cores it made
    the first point of a training run four to eight times as late.
    """
    import torch

    state = _ONE_THREAD
    with state.lock:
        if state.inside == 0:
            state.usual = torch.get_num_threads()
        state.inside += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with state.lock:
            state.inside -= 1
            if state.inside == 0:
                torch.set_num_threads(state.usual)
