"""`accumulate` against the full batch in float64, and against the loop people write by hand."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from gradacc_lessons.accumulation import Batch, accumulate, split, windows
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.tasks import Task, digits

EQUAL = 1e-12  # float64 keeps 16 digits; sums of a few thousand terms lose two or three of them


@pytest.fixture(scope="module", params=["mlp", "cnn"])
def task(request: pytest.FixtureRequest) -> Task:
    return digits(request.param, dtype=torch.float64)


def first(task: Task, examples: int) -> Batch:
    return tuple(tensor[:examples] for tensor in task.train)


def full_gradient(task: Task, model: nn.Module, batch: Batch) -> Tensor:
    model.zero_grad()
    task.loss_fn(model, batch).backward()
    return gradient(model)


@pytest.mark.parametrize("cut", [[32], [8] * 4, [1] * 32, [10, 10, 10, 2], [4, 4, 2], [1, 17, 3, 11]])
def test_equal_and_ragged_cuts_give_the_full_gradient(task: Task, cut: list[int]) -> None:
    model = task.build_model()
    batch = first(task, sum(cut))
    full = full_gradient(task, model, batch)
    loss = task.loss_fn(model, batch).item()
    model.zero_grad()
    window = list(zip(*(tensor.split(cut) for tensor in batch), strict=True))
    assert accumulate(model, window, task.loss_sum, task.count) == pytest.approx(loss, abs=EQUAL)
    assert (gradient(model) - full).abs().max() <= EQUAL


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_any_cut_gives_the_full_gradient(cut: list[int], seed: int) -> None:
    task = digits("mlp", dtype=torch.float64)
    model = task.build_model(seed)
    batch = first(task, sum(cut))
    full = full_gradient(task, model, batch)
    model.zero_grad()
    accumulate(model, list(zip(*(t.split(cut) for t in batch), strict=True)), task.loss_sum, task.count)
    assert (gradient(model) - full).abs().max() <= EQUAL


def test_a_window_may_be_an_iterator(task: Task) -> None:
    model = task.build_model()
    batch = first(task, 12)
    full = full_gradient(task, model, batch)
    model.zero_grad()
    assert accumulate(model, iter(split(batch, 4)), task.loss_sum, task.count) > 0
    assert (gradient(model) - full).abs().max() <= EQUAL


def test_it_adds_to_what_grad_already_holds(task: Task) -> None:
    model = task.build_model()
    window = split(first(task, 12), 4)
    accumulate(model, window, task.loss_sum, task.count)
    once = gradient(model).clone()
    accumulate(model, window, task.loss_sum, task.count)
    assert (gradient(model) - 2 * once).abs().max() <= EQUAL


def test_a_window_in_which_nothing_counts_changes_nothing() -> None:
    task = digits("mlp", dtype=torch.float64)
    model = task.build_model()

    def masked_sum(model: nn.Module, batch: Batch) -> Tensor:
        return 0 * task.loss_sum(model, batch)

    assert accumulate(model, split(first(task, 8), 4), masked_sum, lambda batch: 0) == 0.0
    assert gradient(model).abs().max() == 0


class Operations(TorchDispatchMode):
    """The names of the operations that reach the dispatcher, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_it_runs_the_same_operations_as_the_loop_written_by_hand(task: Task) -> None:
    window = split(first(task, 32), 8)

    def by_hand(model: nn.Module) -> float:
        total = torch.zeros(())
        for batch in window:
            loss = task.loss_sum(model, batch) / 32
            loss.backward()
            total = total + loss.detach()
        return float(total)

    seen = []
    for run in (by_hand, lambda model: accumulate(model, window, task.loss_sum, task.count)):
        model = task.build_model()
        with Operations() as operations:
            run(model)
        seen.append(Counter(operations.names))
    made_a_zero = Counter({"aten.zeros.default": 1})
    assert seen[0] - made_a_zero == seen[1]
    assert seen[1]["aten.addmm.default"] > 0


@given(st.lists(st.integers(), max_size=30), st.integers(1, 8))
def test_windows_keep_order_and_lose_nothing(items: list[int], n: int) -> None:
    cut = list(windows(iter(items), n))
    assert [item for window in cut for item in window] == items
    assert all(len(window) == n for window in cut[:-1])
    assert all(1 <= len(window) <= n for window in cut)


@pytest.mark.parametrize("n", [0, -2])
def test_impossible_cuts_are_refused_in_a_sentence(n: int) -> None:
    with pytest.raises(ValueError, match="a window needs at least 1 micro-batch"):
        list(windows([1, 2], n))
    with pytest.raises(ValueError, match="a micro-batch needs at least 1 example"):
        split((torch.ones(3),), n)
    with pytest.raises(ValueError, match=r"as many examples as one another, not \[2, 3\]"):
        split((torch.ones(3), torch.ones(2)), 1)


@given(st.integers(1, 40), st.integers(1, 12))
def test_split_keeps_every_example_with_its_label(examples: int, size: int) -> None:
    batch = (torch.arange(examples).unsqueeze(1), torch.arange(examples))
    pieces = split(batch, size)
    assert [len(piece[1]) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
    assert torch.equal(torch.cat([piece[1] for piece in pieces]), batch[1])
    assert all(torch.equal(images[:, 0], labels) for images, labels in pieces)
