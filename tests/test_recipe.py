"""The arithmetic of batches, against counting; and sentences for what is impossible."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons import Recipe
from gradacc_lessons.accumulation import windows


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 20))
def test_updates_per_epoch_is_what_counting_gives(examples: int, b: int, n: int) -> None:
    recipe = Recipe(b, n)
    micro_batches = list(windows(range(examples), b))
    assert recipe.micro_batches_per_epoch(examples) == len(micro_batches)
    assert recipe.updates_per_epoch(examples) == len(list(windows(micro_batches, n)))
    assert recipe.effective_batch_size == b * n


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"micro_batch_size": 0}, "micro-batch size must be a whole number of at least 1"),
        ({"micro_batch_size": 2.5}, "micro-batch size must be a whole number"),
        ({"micro_batch_size": True}, "micro-batch size must be a whole number"),
        ({"accumulation_steps": 0}, "accumulation steps N must be a whole number of at least 1"),
        ({"accumulation_steps": -3}, "it is -3"),
        ({"loss_scaling": "median"}, "one of mean, none, twice, running"),
        ({"optimizer": "lion"}, "one of sgd, momentum, adam, adamw"),
        ({"precision": "int8"}, "one of float32, float64"),
        ({"learning_rate": float("nan")}, "learning rate must be a finite number"),
        ({"learning_rate": -0.1}, "at least 0"),
        ({"weight_decay": float("inf")}, "weight decay must be a finite number"),
        ({"max_norm": 0.0}, "clipping norm must be a number above 0"),
        ({"max_norm": float("nan")}, "clipping norm must be a number above 0"),
        ({"max_norm": float("inf")}, "clipping norm must be a number above 0"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"max_norm": "a"}, "it is 'a'"),
        ({"learning_rate": 10**400}, "learning rate must be a finite number"),
        ({"checkpointing": "yes"}, "checkpointing must be True or False; it is 'yes'"),
        ({"set_to_none": 3}, "set_to_none must be True or False"),
        ({"optimizer_kernel": "triton"}, "one of default, for-loop, foreach, fused"),
        ({"optimizer": "adafactor", "optimizer_kernel": "fused"}, "adafactor has no fused kernel"),
        ({"learning_rate": "x"}, "learning rate must be a finite number of at least 0; it is 'x'"),
        ({"weight_decay": None}, "weight decay must be a finite number"),
    ],
)
def test_an_impossible_recipe_is_refused_in_a_sentence(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Recipe(**wrong)


def test_numpy_s_numbers_are_numbers() -> None:
    assert Recipe(np.int64(8), np.int32(4), learning_rate=np.float32(0.5)).effective_batch_size == 32


def test_a_window_larger_than_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match="micro-batch of 50 is larger than the data, which has 40 examples"):
        Recipe(50, 1).check_fits(40)
    with pytest.raises(ValueError, match="8 x 6 = 48 examples per update, but the data has 40"):
        Recipe(8, 6).check_fits(40)
    Recipe(8, 5).check_fits(40)


@pytest.mark.parametrize(
    ("scaling", "divisors"), [("mean", [4, 4, 4]), ("none", [1, 1, 1]), ("twice", [16, 16, 16]), ("running", [1, 2, 3])]
)
def test_divisors(scaling: Any, divisors: list[int]) -> None:
    recipe = Recipe(accumulation_steps=4, loss_scaling=scaling)
    assert [recipe.divisor(position) for position in range(3)] == divisors
