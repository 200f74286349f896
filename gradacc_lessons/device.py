"""Where the course runs: which device trains, which program shows it, and how randomness is kept apart."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from threading import RLock
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
    they are. What the body draws from Python's or numpy's own generator is put back too.
    """
    import numpy as np
    import torch

    with _GLOBAL_GENERATOR, torch.random.fork_rng(devices=[]):
        own, numpys = random.getstate(), np.random.get_state()
        torch.default_generator.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(own)
            np.random.set_state(numpys)
