"""Lesson 08's questions are answered again: by tensors in 16 bits, by a real GradScaler, by running the listings."""

from collections.abc import Callable
from copy import deepcopy
from itertools import permutations
from typing import Any

import pytest
import torch
from banks.course_content import draws, question
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.lessons.bf16_sum import add_up, errors_over_seeds
from gradacc_lessons.lessons.training import collect, gradient, parameters
from gradacc_lessons.quiz.grade import grade_prediction
from gradacc_lessons.reference.buffers import Float32Buffers
from gradacc_lessons.tasks import digits

BROKEN = 1e6


def right(question_id: str) -> set[str]:
    return {option.id for option in question(question_id).options if option.correct}


def distance(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


# Sums ---------------------------------------------------------------------------------------------------------------


def test_the_prediction_is_graded_by_the_run_it_describes() -> None:
    asked = question("precision-predict-sum")
    assert "2,000 random numbers" in asked.prompt.en and "512 equal pieces" in asked.prompt.en
    measured = round(100 * collect(add_up("bfloat16", "equal", 1, 512))["error"].iloc[-1])
    assert grade_prediction(asked, float(measured), measured).correct
    for wrong in (0.0, 0.2, 1.0, 5.0, 10.0, 20.0, 50.0, 90.0):
        assert not grade_prediction(asked, wrong, measured).correct


def test_the_gap_is_the_distance_to_the_next_number_and_half_of_it_is_rounded_away() -> None:
    asked = question("precision-gap")
    for drawn in draws(asked):
        low = torch.tensor(float(drawn["low"]), dtype=torch.bfloat16)
        gap = asked.answer.value(drawn)
        assert float(low + gap) == float(low) + gap and float(low + gap / 2) == float(low)
        assert asked.mistakes[0].formula.value(drawn) == gap / 2, "the largest piece that is rounded away"
        half = torch.tensor(float(drawn["low"]), dtype=torch.float16)
        gap16 = asked.mistakes[2].formula.value(drawn)
        assert float(torch.nextafter(half.float(), torch.tensor(1e9)).half()) == float(half)
        assert float(half + gap16) == float(half) + gap16 and float(half + gap16 / 2) == float(half)


def test_noise_lets_some_pieces_through_and_the_true_sum_has_the_noise_too() -> None:
    noisy, equal = (errors_over_seeds(kind, 512, range(3))["bfloat16"] for kind in ("noisy", "equal"))  # type: ignore[arg-type]
    assert all(2 * one < other for one, other in zip(noisy, equal, strict=True))
    rows = {kind: collect(add_up("bfloat16", kind, 1, 512)).iloc[-1] for kind in ("noisy", "equal")}  # type: ignore[arg-type]
    assert rows["equal"]["stuck"] == 1.0 and 0 < rows["noisy"]["stuck"] < 0.6
    assert right("precision-noisy") == {"some-large"}


def test_grad_is_float32_exactly_in_the_cases_that_are_right() -> None:
    def type_of(dtype: torch.dtype, auto: torch.dtype | None = None, scale: bool = False, cast: bool = False) -> Any:
        task = digits("mlp", dtype=dtype)
        model = task.build_model()
        with torch.autocast("cpu", dtype=auto or torch.bfloat16, enabled=auto is not None):
            loss = task.loss_fn(model, split(task.train, 8)[0])
        loss = loss.float() if cast else loss
        (GradScaler("cpu").scale(loss) if scale else loss).backward()
        (found,) = {p.grad.dtype for p in model.parameters()}  # type: ignore[union-attr]
        return found

    measured = {
        "autocast": type_of(torch.float32, torch.bfloat16),
        "scaler": type_of(torch.float32, torch.float16, scale=True),
        "converted": type_of(torch.bfloat16),
        "both": type_of(torch.bfloat16, torch.bfloat16),
        "loss": type_of(torch.bfloat16, cast=True),
    }
    assert set(measured) == {option.id for option in question("precision-grad-type").options}
    assert {name for name, found in measured.items() if found == torch.float32} == right("precision-grad-type")


def test_the_listing_is_as_far_off_as_grad_and_the_accepted_line_repairs_it() -> None:
    asked = question("precision-spot-buffer")
    task = digits("mlp", dtype=torch.bfloat16)
    model = task.build_model()
    window = [*split(task.train, 2), *split(task.train, 2)][:1000]  # N = 1,000, as asked

    def found(code: str) -> Tensor:
        names: dict[str, Any] = {"torch": torch}
        exec(code, names)
        model.zero_grad()
        return torch.cat([each.flatten() for each in names["add_up"](model, window, task.loss_fn)])

    for batch in window:
        (task.loss_fn(model, batch) / len(window)).backward()
    plain = gradient(model).float()
    (line,) = asked.line
    lines = asked.listing()
    lines[line - 1] = "    sums = [torch.zeros_like(p, dtype=torch.float32) for p in model.parameters()]"
    exact, faulty = found("\n".join(lines)), found(asked.code)
    assert torch.equal(faulty, plain)
    assert distance(faulty, exact) > 0.05 and "1,000" in asked.prompt.en
    lines[-1] = "    return sums"  # "this cast comes too late to help, and it does no harm"
    assert torch.equal(found("\n".join(lines)), exact)


def test_the_bytes_are_those_of_real_tensors() -> None:
    asked = question("precision-bytes")
    model = digits("mlp", dtype=torch.bfloat16).build_model()
    weights = sum(p.numel() for p in model.parameters())
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    before = sum(p.nbytes + p.grad.nbytes for p in model.parameters() if p.grad is not None)
    buffers = Float32Buffers(model)
    buffers.add()
    assert all(p.grad is None for p in model.parameters())
    grads = [master.grad for master in buffers.masters if master.grad is not None]
    after = sum(t.nbytes for t in (*model.parameters(), *buffers.masters, *grads))
    for drawn in draws(asked):
        assert asked.answer.value(drawn) == (after - before) // weights * drawn["millions"]
        assert asked.mistakes[2].formula.value(drawn) == after // weights * drawn["millions"], "all there is afterwards"


# The loss scale -----------------------------------------------------------------------------------------------------


def test_from_that_n_on_float16_makes_the_gradient_zero() -> None:
    asked = question("precision-vanish")
    for drawn in draws(asked):
        n = int(asked.answer.value(drawn))

        def divided(steps: int, gradient: float = drawn["g"] * 1e-7) -> float:
            return float(torch.tensor(gradient / steps, dtype=torch.float64).half())

        assert divided(n) == 0 and divided(n - 1) > 0
        assert divided(n, drawn["g"] * 1e-7 * 65536) > 0, "a loss scale lifts it above the limit"
    assert float(torch.tensor(2.97e-8).half()) == 0 < float(torch.tensor(3.01e-8).half())


class Loop:
    """The digits model in float16 with a real scaler."""

    def __init__(self, scale: float = 2.0**16) -> None:
        self.task = digits("mlp")
        self.model = self.task.build_model()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0)
        self.scaler = GradScaler("cpu", init_scale=scale)
        self.start = parameters(self.model)

    def loss(self, batch: Batch, n: int) -> Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            return self.task.loss_fn(self.model, batch) / n

    def applied(self) -> Tensor:
        return self.start - parameters(self.model)


def images(number: int, broken: tuple[int, ...] = (), size: int = 8) -> list[Batch]:
    batches = split(tuple(tensor[: number * size] for tensor in digits("mlp").train), size)
    return [(x * BROKEN, y) if k in broken else (x, y) for k, (x, y) in enumerate(batches)]


def test_without_1_over_n_a_scaled_window_is_n_times_too_long() -> None:
    found = []
    for n in (1, 8):
        loop = Loop()
        for batch in images(8):
            loop.scaler.scale(loop.loss(batch, n)).backward()
        loop.scaler.step(loop.optimizer)
        loop.scaler.update()
        found.append(loop.applied())
    assert distance(found[0], 8 * found[1]) < 0.01 and right("precision-scale-or-n") == {"goes-out"}


def wanted_update(n: int, most: float) -> Tensor:
    loop = Loop()
    for batch in images(n):
        (loop.task.loss_fn(loop.model, batch) / n).backward()
    nn.utils.clip_grad_norm_(loop.model.parameters(), most)
    return gradient(loop.model).clone()


CALLS: dict[str, Callable[[Loop], object]] = {
    "backwards": lambda loop: [loop.scaler.scale(loop.loss(batch, 4)).backward() for batch in images(4)],
    "unscale": lambda loop: loop.scaler.unscale_(loop.optimizer),
    "clip": lambda loop: nn.utils.clip_grad_norm_(loop.model.parameters(), 0.2),
    "step": lambda loop: loop.scaler.step(loop.optimizer),
    "update": lambda loop: loop.scaler.update(),
    "zero": lambda loop: loop.optimizer.zero_grad(),
}


def test_of_all_orders_those_are_right_that_are_accepted() -> None:
    """Two windows each: the update must be right both times. A clean `.grad` in the beginning hides nothing then."""
    asked = question("precision-order")
    assert {item.id for item in asked.items} == set(CALLS)
    first = wanted_update(4, 0.2)
    good = set()
    for order in permutations(CALLS):
        if order.index("backwards") > 1:  # what acts on the gradient before there is one is wrong, or an error
            continue
        loop = Loop()
        try:
            for name in order:
                CALLS[name](loop)
            once = loop.applied()
            loop.model.load_state_dict(Loop().model.state_dict())
            for name in order:
                CALLS[name](loop)
        except (RuntimeError, AssertionError):
            continue
        if distance(once, first) < 0.01 and distance(loop.applied(), first) < 0.01:
            good.add(order)
    assert good == set(asked.orders)


def test_clipping_before_unscaling_is_as_many_times_too_short() -> None:
    asked = question("precision-clip-scaled")
    for drawn in draws(asked):
        found = []
        for early in (True, False):
            model = nn.Linear(3, 1, bias=False)
            optimizer, scaler = (
                torch.optim.SGD(model.parameters(), lr=1.0),
                GradScaler("cpu", init_scale=drawn["scale"]),
            )
            start = parameters(model)
            scaler.scale((model.weight * drawn["norm"] / 3**0.5).sum()).backward()  # a gradient of that norm
            if not early:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), drawn["most"])
            scaler.step(optimizer)
            found.append(float((parameters(model) - start).norm()))
        assert found[1] == pytest.approx(drawn["norm"], rel=1e-4)
        assert found[1] / found[0] == pytest.approx(asked.answer.value(drawn), rel=1e-2)


def test_the_silenced_loop_applies_practically_the_last_micro_batch() -> None:
    asked, loop = question("precision-silenced"), Loop()
    batches = images(4)
    for k, batch in enumerate(batches):
        names = {"scaler": loop.scaler, "optimizer": loop.optimizer, "end_of_window": k == 3}
        exec(asked.code, names | {"loss": loop.loss(batch, 4)})
    alone = Loop()
    (alone.task.loss_fn(alone.model, batches[3]) / 4).backward()
    assert distance(loop.applied(), gradient(alone.model)) < 0.01 and right("precision-silenced") == {"last"}


# Overflow -----------------------------------------------------------------------------------------------------------


def test_the_scale_in_the_end_is_that_of_a_real_run() -> None:
    asked = question("precision-skipped")
    assert "N = 8" in asked.prompt.en and GradScaler("cpu").get_growth_interval() == 2000
    for drawn in draws(asked):
        loop = Loop()
        together, alone = int(drawn["together"]), int(drawn["alone"])
        for window in range(5):
            broken = tuple(range(together)) if window == 0 else (3,) if window <= alone else ()
            for batch in images(8, broken, size=1):
                loop.scaler.scale(loop.loss(batch, 8)).backward()
            loop.scaler.step(loop.optimizer)
            loop.scaler.update()
            loop.optimizer.zero_grad()
        assert loop.scaler.get_scale() == asked.answer.value(drawn)


def test_an_inf_that_stays_in_grad_ends_all_updates_and_ruins_no_weight() -> None:
    loop, updates = Loop(), []
    for window in range(6):
        before = deepcopy(parameters(loop.model))
        for batch in images(4, (2,) if window == 1 else ()):
            loop.scaler.scale(loop.loss(batch, 4)).backward()
        scale = loop.scaler.get_scale()
        loop.scaler.step(loop.optimizer)
        loop.scaler.update()
        if loop.scaler.get_scale() >= scale:
            loop.optimizer.zero_grad()
        updates.append(not torch.equal(before, parameters(loop.model)))
    assert updates == [True, False, False, False, False, False] and right("precision-poison") == {"never"}
    assert bool(parameters(loop.model).isfinite().all()) and loop.scaler.get_scale() == 2.0**11
