"""Categories and phases against sums done by hand, and what is left behind: nothing."""

import pytest
import torch
from torch import Tensor, nn

from gradacc_lessons.memory.loop import one_update
from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.predict import predict_peak
from gradacc_lessons.memory.profile import MemoryProfile
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import chat

WIDTH, B = 64, 2048
WEIGHTS = 4 * (WIDTH * 4 * WIDTH + 4 * WIDTH + 4 * WIDTH * WIDTH + WIDTH)
"""Bytes of the parameters of `mlp`, in float32."""


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.Tanh(), nn.Linear(4 * WIDTH, WIDTH))


def squares(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).square().mean()


def batch(size: int) -> Tensor:
    return torch.ones(size, WIDTH)


def predicted(b: int = B, n: int = 2, **choices) -> MemoryProfile:
    return predict_peak(mlp, squares, batch, Recipe(b, n, **choices))


def really(b: int = B, n: int = 2, **choices) -> MemoryProfile:
    recipe = Recipe(b, n, **choices)
    model = mlp()
    optimizer = make_optimizer(model, recipe)
    window = [batch(b) for _ in range(n)]

    def update() -> None:
        one_update(model, optimizer, window, squares, recipe)

    update()
    return measure_peak(update, model=model, optimizer=optimizer, inputs=window)


@pytest.fixture(params=[predicted, really], ids=["predicted", "measured"])
def profile(request: pytest.FixtureRequest):
    return request.param


def test_every_category_is_the_sum_done_by_hand(profile) -> None:
    found = profile(optimizer="adam", optimizer_kernel="for-loop")
    rows = found.timeline
    assert set(rows["parameters"]) == {WEIGHTS}
    assert rows["gradients"].max() == WEIGHTS
    steps = 4 * 4  # Adam counts its updates for each of the four parameters
    assert set(rows["optimizer state"]) == {2 * WEIGHTS + steps}
    assert set(rows["inputs"]) == {2 * 4 * B * WIDTH}
    # Tanh keeps what it returned, and so does the second layer: one tensor. The square keeps the model's answer.
    turn = (rows["phase"] == "backward").idxmax()
    assert (
        rows["saved activations"][turn - 1] == 4 * B * (4 * WIDTH + WIDTH) + 3 * 4
    )  # the loss, loss / N, and backward's 1
    assert (rows.drop(columns=["phase", "total"]).sum(axis=1) == rows["total"]).all()
    assert found.peak_bytes == rows["total"].max() == sum(found.by_category.values())


def test_the_phases_come_in_their_order(profile) -> None:
    phases = profile(max_norm=1.0).timeline["phase"]
    changes = phases[phases != phases.shift()].tolist()
    assert changes == ["forward", "backward", "forward", "backward", "update"]


def test_a_second_micro_batch_costs_one_copy_of_the_gradients_and_further_ones_only_their_inputs(profile) -> None:
    inputs = 4 * B * WIDTH
    peaks = [profile(n=n).peak_bytes - n * inputs for n in (1, 2, 3, 5)]
    later = peaks[1] - peaks[0]
    # At the end of the first backward a part of the gradients is already there.
    assert 0 < later <= WEIGHTS
    assert peaks[1] == peaks[2] == peaks[3]
    kept = profile(n=1, set_to_none=False).peak_bytes - inputs
    assert kept == peaks[1]


def test_from_the_second_micro_batch_on_the_gradients_are_there_in_the_forward(profile) -> None:
    def in_forward(n: int) -> int:
        rows = profile(n=n).timeline
        return rows["gradients"][rows["phase"] == "forward"].max()

    assert in_forward(1) == 0
    assert in_forward(2) == WEIGHTS


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_kernels_differ_in_what_the_update_takes_for_a_moment(profile, optimizer: str) -> None:
    extra = {}
    for kernel in ("for-loop", "foreach", "fused"):
        rows = profile(b=1, optimizer=optimizer, optimizer_kernel=kernel).timeline
        extra[kernel] = rows["temporaries"][rows["phase"] == "update"].max()
    assert extra["fused"] == 0
    largest = 4 * 4 * WIDTH * WIDTH
    assert largest <= extra["for-loop"] <= 2.1 * largest
    assert WEIGHTS <= extra["foreach"] <= WEIGHTS + 64


def test_summed_losses_keep_every_graph_until_the_one_backward() -> None:
    model, window = mlp(), [batch(B) for _ in range(4)]

    def at_once() -> None:
        sum(squares(model, x) for x in window).backward()
        model.zero_grad()

    def one_by_one() -> None:
        for x in window:
            squares(model, x).backward()
        model.zero_grad()

    summed, single = (measure_peak(run, model=model, inputs=window) for run in (at_once, one_by_one))
    graph = 4 * B * 5 * WIDTH
    assert summed.timeline["saved activations"].max() >= 4 * graph
    assert summed.peak_bytes - single.peak_bytes > 2 * graph


def test_what_is_computed_again_is_saved_for_backward_and_less_of_it() -> None:
    task = chat(length=32, width=64, layers=4)

    def saved(again: bool) -> int:
        recipe = Recipe(8, 2, checkpointing=again)
        rows = predict_peak(task.build_model, task.loss_fn, task.make_batch, recipe).timeline
        return rows["saved activations"][rows["phase"] == "forward"].max(), rows

    (less, rows), (more, _) = saved(True), saved(False)
    assert less < more / 2
    first = (rows["phase"] == "backward").idxmax()
    again = rows["phase"][first:] == "forward"
    assert again.any()  # a block's forward, in the midst of backward
    block = 8 * 32 * 64 * 4
    assert rows["saved activations"][first:][again].max() > 4 * block


def test_the_model_is_only_looked_at() -> None:
    model = mlp().eval()
    optimizer = torch.optim.Adam(model.parameters())
    before = [p.clone() for p in model.parameters()]
    state, dtype = torch.random.get_rng_state(), torch.get_default_dtype()
    measure_peak(lambda: squares(model, batch(8)).backward(), model=model, optimizer=optimizer, inputs=[])
    assert all(map(torch.equal, before, model.parameters()))
    assert not model.training
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.get_default_dtype() is dtype
    assert torch.is_grad_enabled()
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks


def test_after_an_error_nothing_is_left_behind_and_it_can_be_measured_again() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fails() -> None:
        squares(model, batch(8)).backward()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        measure_peak(fails, model=model, optimizer=optimizer)
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert measure_peak(lambda: squares(model, batch(8)).backward(), model=model).peak_bytes > 2 * WEIGHTS


def test_one_measurement_inside_another() -> None:
    model, x, inner = mlp(), batch(8), []

    def run() -> None:
        inner.append(measure_peak(lambda: squares(model, x).backward(), model=model, inputs=x))
        model.zero_grad()

    outer = measure_peak(run, model=model, inputs=x)
    assert outer.peak_bytes == inner[0].peak_bytes


def test_a_run_that_does_nothing_is_named() -> None:
    with pytest.raises(ValueError, match="nothing ran on tensors, so there is no memory to count"):
        measure_peak(lambda: None, model=mlp())


def test_it_says_what_it_counted_and_what_it_cannot_see() -> None:
    found = really()
    assert "tensors that are alive" in found.counter
    assert "within one operation" in found.cannot_see
    assert found.reserved_bytes is None
    assert found.sentence.startswith("The peak is 7.25 MiB, in the backward phase: temporaries 4.00 MiB, ")
