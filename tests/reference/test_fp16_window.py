"""The window in float16, beside float64 on the same weights, with and without something that overflows."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from gradacc_lessons.accumulation import Batch, accumulate, split, windows
from gradacc_lessons.detective.trace import trace
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.reference.fp16_window import fp16_window
from gradacc_lessons.tasks import Task, chat, digits

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")),
]
NEAR = 5e-3
"""float16 has 11 bits; what is said of a gradient of many sums is that it agrees to two digits and more."""
LEARNING_RATE = 0.1
TASKS: dict[str, Callable[..., Task]] = {
    "digits": lambda dtype, device: digits("mlp", dtype=dtype, device=device),
    "chat": lambda dtype, device: chat(length=16, width=16, layers=1, heads=2, dtype=dtype, device=device),
}


class Run:
    """A model in float32 that `fp16_window` trains, and its windows."""

    def __init__(self, name: str, device: str, micro_batch_size: int, n: int, number: int = 3) -> None:
        self.task, self.exact = (TASKS[name](dtype, device) for dtype in (torch.float32, torch.float64))
        self.model = self.task.build_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.scaler = GradScaler(device)
        rows = slice(0, micro_batch_size * n * number - 1)  # the last micro-batch is smaller
        self.windows = [list(w) for w in windows(split(self._rows(self.task, rows), micro_batch_size), n)]

    @staticmethod
    def _rows(task: Task, rows: slice) -> Batch:
        return tuple(tensor[rows].clone() for tensor in task.train)

    def window(self, window: list[Batch], max_norm: float = float("inf")) -> tuple[float, bool]:
        task = self.task
        return fp16_window(self.model, self.optimizer, self.scaler, window, task.loss_sum, task.count, max_norm)

    def wanted(self, window: list[Batch], max_norm: float = float("inf")) -> tuple[float, torch.Tensor]:
        """The loss, and the weights after a float64 update from where the model stands."""
        model = deepcopy(self.model).double()
        window = [tuple(t.double() if t.is_floating_point() else t for t in batch) for batch in window]
        loss = accumulate(model, window, self.exact.loss_sum, self.exact.count)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        torch.optim.SGD(model.parameters(), lr=LEARNING_RATE).step()
        return loss, parameters(model)


def off(run: Run, before: torch.Tensor, wanted: torch.Tensor) -> float:
    """How far the update is from the wanted one, over that one's length."""
    return float((parameters(run.model).double() - wanted).norm() / (wanted - before.double()).norm())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "b", "n", "max_norm"),
    [("digits", 8, 4, float("inf")), ("digits", 1, 16, 0.2), ("digits", 8, 4, 0.2), ("chat", 2, 4, float("inf"))],
)
def test_a_window_is_the_float64_update_to_what_float16_keeps(
    device: str, name: str, b: int, n: int, max_norm: float
) -> None:
    run = Run(name, device, b, n)
    for window in run.windows:
        before = parameters(run.model)
        loss, wanted = run.wanted(window, max_norm)
        found, updated = run.window(window, max_norm)
        assert updated and found == pytest.approx(loss, rel=NEAR)
        assert off(run, before, wanted) < NEAR
        assert all(p.grad is None for p in run.model.parameters())
        if max_norm < 1:
            assert float((parameters(run.model) - before).norm()) / LEARNING_RATE == pytest.approx(max_norm, rel=1e-2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_an_inf_in_one_micro_batch_skips_the_window_halves_the_scale_and_the_next_is_right(
    device: str, at: int, optimizer: Callable[..., torch.optim.Optimizer]
) -> None:
    run = Run("digits", device, 8, 4)
    run.optimizer = optimizer(run.model.parameters(), lr=LEARNING_RATE)
    first, second, third = run.windows
    run.window(first)
    images, labels = second[at]
    second[at] = (images * 1e6, labels)  # beyond what float16 holds
    before, state = parameters(run.model), deepcopy(run.optimizer.state_dict())
    _, updated = run.window(second)
    assert not updated and torch.equal(parameters(run.model), before)
    assert str(run.optimizer.state_dict()) == str(state), "nor does the optimizer remember anything of it"
    assert run.scaler.get_scale() == GradScaler(device).get_scale() / 2 == 2.0**15
    if optimizer is torch.optim.SGD:
        _, wanted = run.wanted(third)
        assert run.window(third)[1] and off(run, before, wanted) < NEAR
    else:
        assert run.window(third)[1] and bool(parameters(run.model).isfinite().all())


@pytest.mark.parametrize("device", DEVICES)
def test_a_gradient_that_overflows_only_because_of_the_scale_is_tried_again_with_half(device: str) -> None:
    run = Run("digits", device, 8, 4)
    run.scaler = GradScaler(device, init_scale=2.0**24)
    skipped = 0
    while not run.window(run.windows[0])[1]:
        skipped += 1
        assert skipped < 20
    assert skipped > 0 and run.scaler.get_scale() == 2.0 ** (24 - skipped)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_and_gradients_stay_float32_and_the_forward_is_float16(device: str) -> None:
    run = Run("digits", device, 8, 4)
    seen: list[torch.dtype] = []
    handles = [run.model.register_forward_hook(lambda *given: seen.append(given[2].dtype))]
    handles += [
        p.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.dtype)) for p in run.model.parameters()
    ]
    run.window(run.windows[0])
    assert seen.count(torch.float16) == 4 and seen.count(torch.float32) == 4 * len(handles[1:])
    assert {p.dtype for p in run.model.parameters()} == {torch.float32}


def test_a_tape_finds_nothing_wrong_with_it() -> None:
    run = Run("digits", "cpu", 8, 4)
    with trace(run.model, run.optimizer, scaler=run.scaler, accumulation_steps=4) as tape:
        for window in run.windows:
            run.window(window, 0.2)
    assert tape.findings == []
    kinds = [event.kind for event in tape.windows[0].events]
    assert [kinds.count(kind) for kind in ("backward", "unscale", "clip", "update", "zero_grad")] == [4, 1, 1, 1, 1]


def test_a_window_in_which_nothing_counts_is_an_update_of_zero() -> None:
    run = Run("chat", "cpu", 2, 2)
    before = parameters(run.model)
    silent = [(tokens, torch.full_like(labels, -100)) for tokens, labels in run.windows[0]]
    assert run.window(silent) == (0.0, True)
    assert torch.equal(parameters(run.model), before)


def test_a_window_of_nothing_is_refused_in_a_sentence() -> None:
    model = torch.nn.Linear(1, 1)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), GradScaler("cpu")
    with pytest.raises(ValueError, match="a window needs at least 1 micro-batch"):
        fp16_window(model, optimizer, scaler, [], lambda *_: torch.zeros(()), lambda _: 1)
