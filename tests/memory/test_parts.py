"""A mistake in build_model, loss_fn or make_batch is said with its line, and is no fault of following."""

import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.plan import plan
from gradacc_lessons.memory.predict import predict_peak
from gradacc_lessons.recipe import Recipe

WIDTH = 16


def build():
    return nn.Linear(WIDTH, 10)


def loss_fn(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def make_batch(size):
    return torch.ones(size, WIDTH), torch.zeros(size, dtype=torch.long)


class Mismatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.head = nn.Linear(WIDTH, 32), nn.Linear(31, 10)

    def forward(self, x):
        return self.head(self.wide(x))  # MISTAKE


def without_a_name():
    return nn.Linear(WIDTH, classes)  # noqa: F821  # MISTAKE


def without_an_argument(model, batch):
    return F.cross_entropy(model(batch[0]))  # MISTAKE


def another_key(model, batch):
    return model(batch["ids"]).mean()  # MISTAKE


def no_such_attribute(model, batch):
    return model.head(batch[0]).mean()  # MISTAKE


def another_device():
    return build().to("cuda")  # MISTAKE


def backwards(size):
    return torch.ones(-size, WIDTH)  # MISTAKE


def as_numpy(model, batch):
    return loss_fn(model, batch) * model(batch[0]).detach().numpy().mean()  # MISTAKE


def printed(model, batch):
    loss = loss_fn(model, batch)
    print(f"{loss:.3f}")  # MISTAKE
    return loss


def kept_as_a_number(model, batch):
    loss = loss_fn(model, batch)
    loss.item()  # MISTAKE
    return loss


def chosen(model, batch):
    out = model(batch[0])
    return out[out > 0].mean()  # MISTAKE


def line_in(function):
    """ ", at line 12 of test_parts.py, in forward", going by the comment."""
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if line.endswith("# MISTAKE\n"))


def said(build=build, loss_fn=loss_fn, make_batch=make_batch, **around):
    with pytest.raises(ValueError, match=r".") as refused:
        predict_peak(build, loss_fn, make_batch, Recipe(4, 2))
    assert "\n" not in str(refused.value)
    return str(refused.value)


MISTAKES = [
    ({"build": Mismatch}, Mismatch.forward, "loss_fn failed with RuntimeError: "),
    ({"build": without_a_name}, without_a_name, "build_model failed with NameError: name 'classes' is not defined"),
    ({"loss_fn": without_an_argument}, without_an_argument, "loss_fn failed with TypeError: "),
    ({"loss_fn": another_key}, another_key, "loss_fn failed with TypeError: tuple indices must be integers"),
    ({"loss_fn": no_such_attribute}, no_such_attribute, "loss_fn failed with AttributeError: "),
    ({"make_batch": backwards}, backwards, "make_batch failed with RuntimeError: "),
]


@pytest.mark.parametrize(("asked", "function", "words"), MISTAKES, ids=lambda value: getattr(value, "__name__", None))
def test_a_mistake_is_said_with_its_line(asked, function, words):
    found = said(**asked)
    place = f", at line {line_in(function)} of test_parts.py, in {function.__name__}"
    assert found.startswith(words) and found.endswith(place) and "followed" not in found


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is here")
def test_a_device_that_is_not_here_is_said_with_its_line():
    assert said(build=another_device).startswith("build_model failed with ")
    assert f"at line {line_in(another_device)} of test_parts.py, in another_device" in said(build=another_device)


@pytest.mark.parametrize(
    ("asks", "words"),
    [
        (printed, "it asks what a tensor holds"),
        (kept_as_a_number, "it asks what a tensor holds"),
        (chosen, "its sizes depend on what a tensor holds"),
        (as_numpy, "loss_fn failed (RuntimeError: .numpy() is not supported for tensor subclasses)"),
    ],
)
def test_what_needs_numbers_is_said_with_its_line(asks, words):
    found = said(loss_fn=asks)
    assert found.startswith(f"this model cannot be followed without numbers: {words}")
    assert f", at line {line_in(asks)} of test_parts.py, in {asks.__name__}." in found
    assert found.endswith("measure it with `measure_peak`")


def test_a_cell_has_no_name_of_a_file():
    names = {}
    exec(compile("def asks(model, batch):\n    return nothing\n", "/nowhere/1234.py", "exec"), names)
    assert said(loss_fn=names["asks"]).endswith("NameError: name 'nothing' is not defined, at line 2, in asks")


def test_an_error_without_words_is_named():
    def refuses(model, batch):
        raise AssertionError

    assert said(loss_fn=refuses).startswith("loss_fn failed with AssertionError, at line ")


def test_a_value_error_keeps_its_own_words():
    assert said(build=lambda: nn.Sequential(build(), nn.Dropout(3.0))) == (
        "dropout probability has to be between 0 and 1, but got 3.0"
    )


def test_a_mistake_of_the_real_run_only_is_said_too():
    def tells(model, batch):
        if type(batch[0]) is torch.Tensor:
            raise KeyError("only for real")
        return loss_fn(model, batch)

    with pytest.raises(ValueError, match=r"^loss_fn failed with KeyError: 'only for real', at line \d+ of"):
        plan(build, tells, make_batch, Recipe(), target_batch_size=4, budget_bytes="1GiB")


@pytest.mark.parametrize("lazy", [lambda: nn.LazyLinear(10), lambda: nn.Sequential(nn.LazyBatchNorm1d(), build())])
def test_a_lazy_layer_is_said(lazy):
    assert said(build=lazy).startswith("this model has a lazy layer, whose size is known only after its first batch")


def test_a_lazy_layer_is_measured_once_it_has_its_size():
    model, batch = nn.LazyLinear(10), make_batch(4)

    def run():
        loss_fn(model, batch).backward()

    with pytest.raises(ValueError, match="this model has a lazy layer"):
        measure_peak(run, model=model, inputs=batch)
    model(batch[0])
    found = measure_peak(run, model=model, inputs=batch)
    assert found.by_category["parameters"] == sum(p.nbytes for p in model.parameters())


def test_what_is_replaced_meanwhile_is_there_again():
    before = nn.LazyLinear(10).weight, format(torch.ones(()), ".1f")
    said(build=lambda: nn.LazyLinear(10))
    assert type(nn.LazyLinear(10).weight) is type(before[0]) and format(torch.ones(()), ".1f") == before[1]
    assert "__format__" not in vars(torch._subclasses.FakeTensor)
