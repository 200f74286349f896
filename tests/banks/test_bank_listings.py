"""The listings of the questions are run: each has exactly the mistake that is claimed, on the accepted lines."""

import weakref

import pytest
import torch
from banks.course_content import (
    EQUAL,
    all_banks,
    compiled,
    digits_epoch,
    is_right,
    mlp_task,
    question,
    unit_gradients,
)
from torch import Tensor

from gradacc_lessons import diagnose
from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.training import gradient

# What one would write in place of an accepted line, and nothing else, to make the listing right.
REPAIRS = {
    ("acc-spot-zero", 3): "        if (k - 1) % accumulation_steps == 0: optimizer.zero_grad()",
    ("acc-spot-first-window", 2): "    for k, batch in enumerate(micro_batches, start=1):",
    ("acc-spot-first-window", 5): "        if (k + 1) % accumulation_steps == 0:",
    ("scale-loop-framework", 6): "        framework_backward(loss)",
    ("scale-loop-running", 4): "        loss = loss_fn(model, batch) / accumulation_steps",
    ("scale-loop-inside", 5): "        for parameter in model.parameters() if k % accumulation_steps == 0 else ():",
    ("scale-loop-inside", 6): "            parameter.grad /= accumulation_steps if k % accumulation_steps == 0 else 1",
    ("mem-spot-log", 6): "        report = report + loss.detach() * accumulation_steps",
}
FAULTS = {
    "acc-spot-zero": "zero_grad_every_micro_batch",
    "acc-spot-first-window": "window_off_by_one",
    "scale-loop-framework": "double_scale",
    "scale-loop-running": "running_scale",
    "scale-loop-inside": "grad_divided_every_micro_batch",
    "scale-loop-log": "missing_scale",
    "scale-loop-batch-size": "divided_by_micro_batch_size",
}
MEMORY_FAULTS = {"mem-spot-log": "graphs_kept_alive"}
"""Listings with the right gradient, and the memory of the full batch."""
ELSEWHERE = {"norm-twice", "once-spot-schedule"}
"""Run by test_norm_figures and test_once_figures: these need BatchNorm, and a schedule."""
SPOTS = [
    each
    for bank in all_banks().values()
    for each in bank.questions
    if each.kind == "spot" and "def train_epoch" in each.code and each.id not in ELSEWHERE
]
"""Those that are a whole loop; test_fit_figures runs the one of a single window."""
CUTS = [(8, 4), (4, 2), (2, 8)]


def test_every_listing_that_is_a_whole_loop_is_covered() -> None:
    with_loops = {
        each.id
        for bank in all_banks().values()
        for each in bank.questions
        if "def train_epoch" in (getattr(each, "code", None) or "")
    }
    assert with_loops == {*FAULTS, *MEMORY_FAULTS, *ELSEWHERE, "scale-loop-after"}
    assert {each.id for each in SPOTS} == {question_id for question_id, _ in REPAIRS}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("question_id", FAULTS)
def test_a_faulty_listing_is_wrong(question_id: str, cut: tuple[int, int]) -> None:
    assert not is_right(*digits_epoch(compiled(question(question_id).code), *cut))


@pytest.mark.parametrize("spot", SPOTS, ids=lambda each: each.id)
def test_the_accepted_lines_are_those_that_can_be_repaired_alone(spot) -> None:  # type: ignore[no-untyped-def]
    assert {line for question_id, line in REPAIRS if question_id == spot.id} == set(spot.line)
    for line in spot.line:
        lines = spot.listing()
        lines[line - 1] = REPAIRS[spot.id, line]
        for cut in CUTS:
            assert is_right(*digits_epoch(compiled("\n".join(lines)), *cut)), line


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("question_id", MEMORY_FAULTS)
def test_a_listing_that_only_wastes_memory_has_the_right_gradient(question_id: str, cut: tuple[int, int]) -> None:
    assert is_right(*digits_epoch(compiled(question(question_id).code), *cut))


@pytest.mark.parametrize("question_id", [*FAULTS, *MEMORY_FAULTS])
def test_the_diagnosis_names_the_mistake_of_the_listing(question_id: str) -> None:
    diagnosis = diagnose(compiled(question(question_id).code), scope="windows")
    assert diagnosis.outcome.name == "WRONG"
    assert list(diagnosis.faults) == [(FAULTS | MEMORY_FAULTS)[question_id]]


@pytest.mark.parametrize("question_id", MEMORY_FAULTS)
def test_the_repaired_line_frees_the_memory(question_id: str) -> None:
    spot = question(question_id)
    (line,) = spot.line
    lines = spot.listing()
    lines[line - 1] = REPAIRS[question_id, line]
    assert diagnose(compiled("\n".join(lines)), scope="windows").outcome.name == "CORRECT"


def test_the_loop_that_divides_after_the_window_is_right() -> None:
    after = question("scale-loop-after")
    assert all(is_right(*digits_epoch(compiled(after.code), *cut)) for cut in CUTS)
    assert [option.id for option in after.options if option.correct] == ["right"]
    assert diagnose(compiled(after.code), scope="windows").outcome.name == "CORRECT"


def length_ratio(question_id: str, b: int, n: int) -> float:
    recorder, full = digits_epoch(compiled(question(question_id).code), b, n)
    return float(recorder.used[0].norm() / full[0].norm())


def test_the_loop_that_divides_only_its_log_divides_by_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert length_ratio("scale-loop-log", 8, 4) == pytest.approx(4, rel=EQUAL)
    task = mlp_task()
    window = tuple(tensor[:32] for tensor in task.train)
    printed = float(capsys.readouterr().out.splitlines()[0].removeprefix("loss "))
    # What it prints is indeed sensible: the mean loss of the window.
    assert printed == pytest.approx(float(task.loss_fn(task.build_model(), window).detach()), rel=EQUAL)


def test_the_loop_that_divides_by_the_micro_batch_size_is_off_by_n_over_b() -> None:
    for b, n, ratio in ((8, 4, 1 / 2), (4, 8, 2), (4, 4, 1)):
        assert length_ratio("scale-loop-batch-size", b, n) == pytest.approx(ratio, rel=EQUAL)


def test_dividing_under_a_framework_makes_it_n_times_too_short() -> None:
    assert length_ratio("scale-loop-framework", 8, 4) == pytest.approx(1 / 4, rel=EQUAL)


def test_the_running_divisor_makes_it_longer_and_turns_it() -> None:
    recorder, full = digits_epoch(compiled(question("scale-loop-running").code), 8, 4)
    cosine = torch.nn.functional.cosine_similarity(recorder.used[0], full[0], dim=0)
    assert recorder.used[0].norm() > full[0].norm()
    assert cosine < 0.99


def test_dividing_grad_after_every_backward_leaves_a_third() -> None:
    asked = question("scale-loop-inside")
    assert "0.33" in asked.prompt.en
    used = unit_gradients(compiled(asked.code), micro_batches=8, n=4)
    assert used == pytest.approx([1 / 4 + 1 / 16 + 1 / 64 + 1 / 256] * 2)
    assert round(used[0], 2) == 0.33


def test_clearing_before_every_backward_leaves_a_share_of_the_last_micro_batch() -> None:
    recorder, full = digits_epoch(compiled(question("acc-spot-zero").code), 8, 4)
    task = mlp_task()
    model = task.build_model()
    task.loss_fn(model, tuple(tensor[24:32] for tensor in task.train)).backward()
    assert (recorder.used[0] - gradient(model) / 4).abs().max() <= EQUAL
    assert recorder.used[0].norm() < full[0].norm()  # "they are small"


def test_counting_from_zero_updates_after_one_micro_batch_and_leaves_three_waiting() -> None:
    recorder, _ = digits_epoch(compiled(question("acc-spot-first-window").code), 8, 4, windows=3)
    assert recorder.after == [1, 5, 9]  # of 12 micro-batches


def test_summing_the_losses_gives_the_right_gradient_and_keeps_every_activation() -> None:
    code = question("acc-sum-then-backward").code
    task = mlp_task()
    batch = tuple(tensor[:32] for tensor in task.train)
    window = split(batch, 8)
    summed, summed_kept = run_window(code, window)
    accumulated, accumulated_kept = run_window(
        "for batch in window:\n    (loss_fn(model, batch) / len(window)).backward()", window
    )
    full, full_kept = run_window("loss_fn(model, window[0]).backward()", [batch])
    assert (summed - full).abs().max() <= EQUAL
    assert (accumulated - full).abs().max() <= EQUAL
    assert summed_kept >= full_kept
    assert accumulated_kept <= full_kept / 3


def run_window(code: str, window: list[tuple[Tensor, ...]]) -> tuple[Tensor, int]:
    """(gradient that the update uses, largest number of bytes of activations alive at once)."""
    task = mlp_task()
    model = task.build_model()
    weights = {parameter.data_ptr() for parameter in model.parameters()}
    alive: dict[int, int] = {}
    peak = 0

    class Held:
        def __init__(self, tensor: Tensor) -> None:
            self.tensor = tensor

    def keep(tensor: Tensor) -> Held:
        nonlocal peak
        held = Held(tensor)
        if tensor.data_ptr() not in weights:
            alive[id(held)] = tensor.nbytes
            weakref.finalize(held, alive.pop, id(held))
        peak = max(peak, sum(alive.values()))
        return held

    used: list[Tensor] = []

    class Optimizer:
        def step(self) -> None:
            used.append(gradient(model).clone())

        def zero_grad(self) -> None:
            model.zero_grad()

    names = {"window": window, "model": model, "loss_fn": task.loss_fn, "optimizer": Optimizer()}
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda held: held.tensor):
        exec(code, names)
    return (used or [gradient(model)])[0], peak
