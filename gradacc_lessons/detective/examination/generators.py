"""Random generators: those of the process, and those that a model or a loss holds."""

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor

SEED = 20_000
"""Where the generators begin in each run, so that the same question gets the same answer."""


def everybodys_generators() -> dict[str, Any]:
    """The states of the generators that belong to the process."""
    states: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return states


def put_generators_back(states: dict[str, Any]) -> None:
    """Set the generators of the process to these states."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
    if "mps" in states:
        torch.mps.set_rng_state(states["mps"])


def seed_generators(seed: int, own: list[Any]) -> None:
    """Set all of them, and those that the model or the loss holds, to a state that the seed determines."""
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed devices that nobody has used yet
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)
    for generator in own:
        if isinstance(generator, torch.Generator):
            generator.manual_seed(seed)
        elif isinstance(generator, np.random.Generator):
            generator.bit_generator.state = type(generator.bit_generator)(seed).state
        elif isinstance(generator, np.random.BitGenerator):
            generator.state = type(generator)(seed).state
        else:
            generator.seed(seed)


def states_now(own: list[Any]) -> list[Any]:
    """All generators' states, to be compared with `same_states`."""
    return [*everybodys_generators().values(), *(state_of(generator) for generator in own)]


def same_states(one: Any, other: Any) -> bool:
    """Whether two states, or lists of them, are equal."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    if type(one) is tuple and one and type(one[0]) is int:  # Python's: hundreds of numbers, in each run
        return bool(one == other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_states, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_states(one[key], other[key]) for key in one)
    return bool(one == other)


def state_of(generator: Any) -> Any:
    """The state of one generator, of torch, numpy or Python."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.BitGenerator):
        return generator.state
    return generator.get_state() if isinstance(generator, np.random.RandomState) else generator.getstate()


def set_state(generator: Any, state: Any) -> None:
    """Put one generator into a state that it had."""
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, np.random.BitGenerator):
        generator.state = state
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.setstate(state)
