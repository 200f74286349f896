"""What was written into gradients, told from what they were and what they are."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from gradacc_lessons.detective.tape.gradients import PROBES, GradientWatch
from gradacc_lessons.detective.tape.reading import Reader, Written


def _parameters(dtype: torch.dtype = torch.float32, scale: float = 1.0) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    found = [nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in ((4, 3), (4,), (2, 4), (2,))]
    for parameter in found:
        parameter.grad = (torch.randn(parameter.shape, generator=generator) * scale).to(dtype)
    return found


def _read(parameters: list[nn.Parameter], write: Callable[[], object], scale: float | None = None) -> list[Written]:
    watch, reader = GradientWatch(parameters), Reader()
    reader.accumulated(set(range(len(parameters))), synchronised=False)
    write()
    change = watch.look(norm=True, scale=scale)
    assert change is not None
    return list(reader.read(change))


def _each(parameters: list[nn.Parameter], does: Callable[[Tensor], object]) -> Callable[[], None]:
    def write() -> None:
        for parameter in parameters:
            assert parameter.grad is not None
            does(parameter.grad)

    return write


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("foreach", [True, False])
def test_clipping(dtype: torch.dtype, foreach: bool) -> None:
    parameters = _parameters(dtype)
    (written,) = _read(parameters, lambda: clip_grad_norm_(parameters, 0.5, foreach=foreach))
    assert written.what == "clip" and written.tensors == 4
    assert written.norm == pytest.approx(0.5, rel=1e-2)
    assert 0 < (written.factor or 0) < 1


def test_clipping_that_shortens_nothing() -> None:
    parameters = _parameters()
    (written,) = _read(parameters, lambda: clip_grad_norm_(parameters, 1e9))
    assert (written.what, written.factor) == ("clip", 1.0)


def test_clipping_by_value() -> None:
    parameters = _parameters()
    (written,) = _read(parameters, lambda: clip_grad_value_(parameters, 0.2))
    assert (written.what, written.factor) == ("clip", None)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zeroing(set_to_none: bool) -> None:
    parameters = _parameters()
    (written,) = _read(parameters, lambda: torch.optim.SGD(parameters, 0.1).zero_grad(set_to_none=set_to_none))
    assert (written.what, written.tensors, written.complete, written.finite) == ("zero_grad", 4, True, True)


def test_zeroing_what_is_not_finite_says_so() -> None:
    parameters = _parameters(scale=torch.inf)
    (written,) = _read(parameters, lambda: torch.optim.SGD(parameters, 0.1).zero_grad())
    assert written.complete and not written.finite


def test_zeroing_a_part() -> None:
    parameters = _parameters()
    (written,) = _read(parameters, lambda: torch.optim.SGD(parameters[:2], 0.1).zero_grad())
    assert (written.what, written.tensors, written.complete) == ("zero_grad", 2, False)


def test_a_grad_scaler_moves_no_version_and_is_seen() -> None:
    parameters = _parameters(scale=65536.0)
    optimizer, scaler = torch.optim.SGD(parameters, 0.1), torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(()))
    (written,) = _read(parameters, lambda: scaler.unscale_(optimizer))
    assert (written.what, written.factor) == ("unscale", 2**-16)


@pytest.mark.parametrize("norm", [0.5, 1.0, 2.5, 0.7654321])
def test_unscaling_and_clipping_in_either_order(norm: float) -> None:
    for clip_first in (False, True):
        parameters = _parameters(scale=65536.0)
        optimizer, scaler = torch.optim.SGD(parameters, 0.1), torch.amp.GradScaler("cpu")
        scaler.scale(torch.ones(()))

        def unscale(optimizer=optimizer, scaler=scaler) -> None:  # type: ignore[no-untyped-def]
            scaler.unscale_(optimizer)

        def clip(parameters=parameters) -> None:  # type: ignore[no-untyped-def]
            clip_grad_norm_(parameters, norm)

        def both(order=(clip, unscale) if clip_first else (unscale, clip)) -> None:  # type: ignore[no-untyped-def]
            for does in order:
                does()

        written = _read(parameters, both, scale=65536.0)
        if clip_first and norm != 0.7654321:  # an odd norm does not give the order away
            assert [one.what for one in written] == ["clip", "unscale"]
            assert (written[0].norm, written[0].scaled) == (pytest.approx(norm, rel=1e-4), 65536.0)
        else:
            assert [one.what for one in written] == ["unscale", "clip"]
            assert written[1].scaled is None


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 1000))
def test_a_division_by_a_whole_number_is_no_clipping(divisor: int) -> None:
    parameters = _parameters(torch.float64)
    (written,) = _read(parameters, _each(parameters, lambda gradient: gradient.div_(divisor)))
    power = divisor >= 64 and divisor & (divisor - 1) == 0
    assert written.what == ("unscale" if power else "gradient")
    assert written.factor == pytest.approx(1 / divisor)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 0.99), st.sampled_from([torch.float64, torch.float32]))
def test_a_factor_below_one_is_told(factor: float, dtype: torch.dtype) -> None:
    parameters = _parameters(dtype)
    (written,) = _read(parameters, _each(parameters, lambda gradient: gradient.mul_(factor)))
    assert written.factor == pytest.approx(factor, rel=1e-5)
    assert written.what in ("clip", "gradient", "unscale")


def test_noise_is_a_write_of_its_own_kind() -> None:
    parameters = _parameters()
    (written,) = _read(parameters, _each(parameters, lambda gradient: gradient.add_(torch.randn_like(gradient))))
    assert (written.what, written.factor) == ("gradient", None)


def test_a_gradient_that_somebody_puts_there() -> None:
    parameters = [nn.Parameter(torch.zeros(3))]
    watch, reader = GradientWatch(parameters), Reader()
    parameters[0].grad = torch.ones(3)
    change = watch.look()
    assert change is not None
    assert [(one.what, one.complete) for one in reader.read(change)] == [("gradient", True)]


def test_nothing_was_done() -> None:
    parameters = _parameters()
    assert _read(parameters, lambda: None) == []
    watch = GradientWatch(parameters)
    assert watch.look(closely=False) is None


def test_few_parameters_are_looked_into_and_vectors_first() -> None:
    parameters = [nn.Parameter(torch.zeros(3, 3) if k % 2 else torch.zeros(3)) for k in range(100)]
    watch = GradientWatch(parameters)
    assert len(watch.probed) == PROBES and all(parameters[index].dim() == 1 for index in watch.probed)
    assert len(GradientWatch([nn.Parameter(torch.zeros(2, 2))]).probed) == 1


def test_sparse_gradients_are_not_looked_into() -> None:
    table = nn.Embedding(5, 3, sparse=True)
    table(torch.tensor([1, 2])).sum().backward()
    watch, reader = GradientWatch([table.weight]), Reader()
    reader.accumulated({0}, synchronised=False)
    table.weight.grad = None
    change = watch.look()
    assert change is not None
    assert [(one.what, one.complete) for one in reader.read(change)] == [("zero_grad", True)]
