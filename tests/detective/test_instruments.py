"""What we measure with does not get in the way of what a right loop may do."""

import copy
import io
import pickle

import pytest
import torch
from detective.correct_loops import slices
from torch.func import functional_call, grad

from gradacc_lessons import diagnose
from gradacc_lessons.detective.diagnose import Outcome


def functional(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """torch.func refuses to work where saved tensors are watched."""
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start : start + accumulation_steps]
        examples = sum(len(batch[0]) for batch in window)
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        sums = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
        for batch in window:

            def loss(values, batch=batch):
                return loss_fn(lambda inputs: functional_call(model, values, (inputs,)), batch)

            for name, gradient in grad(loss)(parameters).items():
                sums[name] += gradient * len(batch[0]) / examples
        for name, parameter in model.named_parameters():
            parameter.grad = sums[name]
        optimizer.step()


def saves_and_copies(*arguments):
    model, optimizer = arguments[:2]
    slices(*arguments)
    torch.save(model, io.BytesIO())
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
    pickle.dumps(model)
    copy.deepcopy(model)


def scripted(model, *others):
    slices(torch.jit.script(model), *others)


def rate_as_a_tensor(model, optimizer, *others):
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"])
    slices(model, optimizer, *others)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("loop", [functional, saves_and_copies, scripted, rate_as_a_tensor])
def test_right_loops_run_under_our_instruments(loop):
    found = diagnose(loop)
    assert found.correct, found.message


def in_bfloat16(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    model.bfloat16()
    slices(model, optimizer, [(x.bfloat16(), y) for x, y in micro_batches], loss_fn, accumulation_steps)


def test_another_precision_is_measured_not_a_crash():
    found = diagnose(in_bfloat16, "windows")
    assert found.outcome is Outcome.WRONG
    assert found.evidence["updates"] == 4
    assert [row["gradient"] for row in found.evidence["trace"]] == pytest.approx([1] * 4, abs=0.02)


def trains_a_copy(model, *others):
    slices(copy.deepcopy(model), *others)


def test_training_a_copy_is_called_that():
    found = diagnose(trains_a_copy)
    assert found.outcome is Outcome.WRONG and found.faults == ()
    assert "is never trained: the forwards go through a copy" in found.to("en")
    assert "wordt nooit getraind" in found.to("nl")
