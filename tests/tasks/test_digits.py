"""The digits are real, split without overlap, and the loss names agree with torch's own."""

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from gradacc_lessons.tasks import digits


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
