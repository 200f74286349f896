"""Randomness is kept apart, also between threads."""

import random
import sys
import types
from threading import Thread

import numpy as np
import pytest
import torch

from gradacc_lessons.device import Place, best_device, place, seeded
from gradacc_lessons.tasks import digits


def test_seeded_gives_the_same_numbers_and_leaves_the_generator_alone() -> None:
    before = torch.get_rng_state()
    with seeded(3):
        first = torch.rand(4)
    with seeded(3):
        second = torch.rand(4)
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_other_generators_are_put_back_too() -> None:
    before, numpys = random.getstate(), np.random.get_state()
    with seeded(3):
        random.random()
        np.random.rand()
    assert random.getstate() == before
    assert all(map(np.array_equal, np.random.get_state(), numpys))


def test_models_built_in_many_threads_at_once_are_those_of_their_seeds() -> None:
    task = digits("mlp")
    alone = [next(task.build_model(seed).parameters()).detach().clone() for seed in range(8)]
    together: dict[int, torch.Tensor] = {}

    def build(seed: int) -> None:
        together[seed] = next(task.build_model(seed).parameters()).detach()

    threads = [Thread(target=build, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(together[seed], alone[seed]) for seed in range(8))


def test_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert place() is Place.TERMINAL
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    assert place() is Place.COLAB


def test_best_device_can_hold_a_tensor() -> None:
    assert torch.ones(1, device=best_device()).item() == 1
