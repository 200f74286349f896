"""The digits are real, split without overlap, and the loss names agree with torch's own."""

from typing import get_args

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from gradacc_lessons.tasks import digits
from gradacc_lessons.tasks.digits import NORM_NAMES, DigitsModel, DigitsNorm


def test_every_image_is_used_once_and_no_image_is_in_both_halves() -> None:
    from sklearn.datasets import load_digits

    task = digits()
    images = torch.cat([task.train[0], task.test[0]]).reshape(-1, 64)
    original = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    assert sorted(map(tuple, images.tolist())) == sorted(map(tuple, original.tolist()))
    assert len(task.train[1]) == task.examples == 1536
    assert task.train[1].bincount().min() > 100  # every digit is in the training half


@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_losses_agree_with_torch(model: str) -> None:
    task = digits(model, dtype=torch.float64)  # type: ignore[arg-type]
    net = task.build_model()
    images, labels = task.test
    assert torch.allclose(task.loss_fn(net, task.test), F.cross_entropy(net(images), labels), atol=1e-14)
    assert torch.allclose(task.loss_sum(net, task.test), F.cross_entropy(net(images), labels) * 261, atol=1e-10)
    assert task.count(task.test) == 261


def test_the_same_seed_gives_the_same_model() -> None:
    task = digits("cnn")
    first, again, other = (next(task.build_model(seed).parameters()) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


class MetaTypes(TorchDispatchMode):
    """The dtypes of all tensors that reach the meta device, which stands here for a device without float64."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device.type == "meta":
            self.seen.add(result.dtype)
        return result


def test_images_are_cast_before_they_reach_a_device_that_may_have_no_float64() -> None:
    with MetaTypes() as meta:
        digits("mlp", device="meta").build_model()
    assert torch.float32 in meta.seen
    assert torch.float64 not in meta.seen


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(ValueError, match="one of mlp, cnn; it is 'resnet'"):
        digits("resnet")  # type: ignore[arg-type]


NORMS = get_args(DigitsNorm)
EQUAL = 1e-12
"""Float64 sums in another order differ in the last digits."""


def test_a_norm_alone_means_the_cnn_and_changes_no_other_initial_weight() -> None:
    default = digits("cnn").build_model(3)
    for norm in NORMS:
        model = digits(norm=norm).build_model(3)
        assert [type(each) for each in model][::7] == [nn.Conv2d, nn.Linear]
        for mine, theirs in zip(model, default, strict=True):
            if not isinstance(theirs, nn.GroupNorm):
                assert all(torch.equal(p, q) for p, q in zip(mine.parameters(), theirs.parameters(), strict=True))
        assert digits("cnn", norm=norm).name == digits(norm=norm).name == f"digits, CNN, {NORM_NAMES[norm]}"


def test_a_norm_in_the_mlp_changes_no_other_initial_weight() -> None:
    plain = digits("mlp").build_model(3)
    for norm in NORMS:
        task = digits("mlp", norm=norm)
        model = task.build_model(3)
        for at, mine in ((1, model[1]), (3, model[4])):
            assert all(torch.equal(p, q) for p, q in zip(mine.parameters(), plain[at].parameters(), strict=True))
        assert sum(p.numel() for p in model[2].parameters()) == (0 if norm == "none" else 2 * 64)
        assert task.name == f"digits, MLP, {NORM_NAMES[norm]}"


@pytest.mark.parametrize("norm", NORMS[1:])
@pytest.mark.parametrize("model", ["cnn", "mlp"])
def test_only_batchnorm_looks_at_who_else_is_in_the_batch(model: DigitsModel, norm: DigitsNorm) -> None:
    """And BatchNorm does."""
    images = digits(dtype=torch.float64).train[0][:8]
    other, batch = (digits(model, norm=each, dtype=torch.float64).build_model() for each in (norm, "batch"))
    assert (other(images)[:2] - other(images[:2])).abs().max() < EQUAL
    assert (batch(images)[:2] - batch(images[:2])).abs().max() > 0.01


def test_without_a_norm_everything_is_as_it_was() -> None:
    assert [digits().name, digits("mlp").name, digits("cnn").name] == ["digits, MLP", "digits, MLP", "digits, CNN"]
    assert isinstance(digits().build_model()[1], nn.Linear)
    norms = [each for each in digits("cnn").build_model() if isinstance(each, nn.GroupNorm)]
    assert [(each.num_groups, each.num_channels) for each in norms] == [(4, 16), (4, 32)]
    assert sum(p.numel() for p in digits("cnn").build_model().parameters()) == 10_026


@pytest.mark.parametrize("norm", NORMS)
def test_each_norm_is_what_its_name_says(norm: DigitsNorm) -> None:
    """Every norm's first layer against the formula, on images whose statistics differ."""
    task = digits(norm=norm, dtype=torch.float64)
    model = task.build_model()
    seen = model[0](task.train[0][:8])
    dims = {"batch": (0, 2, 3), "group": (2, 3, 4), "layer": (1, 2, 3)}
    parts = seen.reshape(8, 4, 4, 8, 8) if norm == "group" else seen
    if norm == "none":
        expected = seen
    elif norm == "frozen batch":
        every = model[0](task.train[0])
        mean, variance = every.mean((0, 2, 3), keepdim=True), every.var((0, 2, 3), keepdim=True)
        expected = (seen - mean) / (variance + 1e-5).sqrt()
    else:
        variance = parts.var(dims[norm], keepdim=True, correction=0)
        expected = (parts - parts.mean(dims[norm], keepdim=True)) / (variance + 1e-5).sqrt()
    near = 1e-4 if norm == "frozen batch" else EQUAL  # its statistics were taken in float32
    assert (model[1](seen) - expected.reshape(seen.shape)).abs().max() < near


def test_frozen_statistics_stay_as_they_are_and_scale_and_shift_learn() -> None:
    task = digits(norm="frozen batch")
    model = task.build_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    task.loss_fn(model, tuple(tensor[:32] for tensor in task.train)).backward()
    optimizer.step()
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {name for name, _ in model.named_parameters()}
    assert {name for name, _ in model[1].named_parameters()} == {"weight", "bias"}
    for module in model.modules():
        module.train()  # one by one: no mode unfreezes it
    task.loss_fn(model, task.test)
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before.keys() - changed)


def test_frozen_statistics_are_those_of_batchnorm_after_one_forward_of_all_training_images() -> None:
    task = digits(norm="batch")
    model = task.build_model(2)
    for layer in (model[1], model[4]):
        layer.momentum = 1.0
    model(task.train[0])
    frozen = digits(norm="frozen batch").build_model(2)
    for at in (1, 4):
        assert torch.allclose(frozen[at].running_mean, model[at].running_mean, atol=1e-6)
        assert torch.allclose(frozen[at].running_var, model[at].running_var, rtol=1e-5)


def test_impossible_norms_are_named() -> None:
    with pytest.raises(ValueError, match="norm must be one of batch, group, layer, frozen batch, none; it is 'spam'"):
        digits(norm="spam")  # type: ignore[arg-type]
