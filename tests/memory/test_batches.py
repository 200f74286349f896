"""Batches as people make them: in dataclasses, as images of different size, and what cannot be counted of them."""

from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.plan import plan
from gradacc_lessons.memory.predict import checked_batch, input_bytes, predict_peak
from gradacc_lessons.memory.trial import Trial
from gradacc_lessons.memory.uncounted import CannotCount
from gradacc_lessons.nested import mapped, tensors_in
from gradacc_lessons.recipe import Recipe

WIDTH, CLASSES = 256, 10
Pair = namedtuple("Pair", "x y")


@dataclass(frozen=True)
class Batch:
    x: Tensor
    y: Tensor
    name: str = "frozen"


@dataclass
class Nested:
    inner: Batch
    more: dict
    never: Tensor | None = None


def tensors(size):
    return torch.ones(size, WIDTH), torch.zeros(size, dtype=torch.long)


CONTAINERS = {
    "tuple": (tensors, lambda batch: batch),
    "list": (lambda size: list(tensors(size)), lambda batch: batch),
    "named": (lambda size: Pair(*tensors(size)), lambda batch: (batch.x, batch.y)),
    "dict": (lambda size: dict(zip("xy", tensors(size), strict=True)), lambda batch: (batch["x"], batch["y"])),
    "ordered": (lambda size: OrderedDict(zip("xy", tensors(size), strict=True)), lambda batch: batch.values()),
    "mapping": (lambda size: UserDict(zip("xy", tensors(size), strict=True)), lambda batch: (batch["x"], batch["y"])),
    "dataclass": (lambda size: Batch(*tensors(size)), lambda batch: (batch.x, batch.y)),
    "nested": (
        lambda size: Nested(Batch(*tensors(size)), {"names": ["a"] * size}),
        lambda batch: (batch.inner.x, batch.inner.y),
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_is_counted_alike(container):
    make_batch, read = CONTAINERS[container]

    def loss_fn(model, batch):
        x, y = read(batch)
        return F.cross_entropy(model(x), y)

    def build():
        return nn.Linear(WIDTH, CLASSES)

    forecast = Forecast(build, loss_fn, make_batch, Recipe(optimizer="adamw"))
    found = plan(
        build, loss_fn, make_batch, Recipe(optimizer="adamw"), target_batch_size=64, budget_bytes="1GiB", explain=False
    )
    assert found.predicted.by_category["inputs"] == sum(tensor.nbytes for tensor in tensors(64))
    assert forecast.peak(64, 4) == pytest.approx(Trial(forecast).peak((16,) * 4).peak_bytes, rel=0.005)


@pytest.mark.parametrize("container", CONTAINERS)
def test_what_is_changed_lies_in_the_same_containers_and_the_old_stays(container):
    old = CONTAINERS[container][0](3)
    new = mapped(lambda tensor: tensor + 1, old)
    assert type(new) is type(old)
    for before, after in zip(tensors_in(old), tensors_in(new), strict=True):
        assert torch.equal(after, before + 1)


def test_what_is_no_tensor_stays():
    batch = {"x": torch.ones(2), "text": ["a", "b"], "n": 3, "none": None, "type": Batch}
    assert {key: value for key, value in mapped(torch.clone, batch).items() if key != "x"} == {
        key: value for key, value in batch.items() if key != "x"
    }


def sized_images(size):
    return [torch.ones(3, 24, 16 + 8 * (k % 2)) for k in range(size)]


def of_images(model, images):
    return torch.stack([model(image).square().mean() for image in images]).mean()


IMAGES = {
    "a list beside labels": lambda size: (sized_images(size), torch.zeros(size)),
    "tuples, as zipped": lambda size: (tuple(sized_images(size)), ({"boxes": torch.ones(7, 4)},) * size),
    "nothing but a list": sized_images,
    "one dict for each": lambda size: [{"image": image, "boxes": torch.ones(5, 4)} for image in sized_images(size)],
    "pairs": lambda size: [(image, torch.ones(9)) for image in sized_images(size)],
}


def images_of(batch):
    if isinstance(batch, tuple):
        return batch[0]
    return [item["image"] if isinstance(item, dict) else item[0] if isinstance(item, tuple) else item for item in batch]


@pytest.mark.parametrize("made", IMAGES.values(), ids=IMAGES)
def test_images_of_different_size_are_counted(made):
    def loss_fn(model, batch):
        return of_images(model, images_of(batch))

    def build():
        return nn.Conv2d(3, 8, 3)

    forecast = Forecast(build, loss_fn, made, Recipe())
    for count in (2, 4):  # with two more that only wait
        window = (6,) * count
        assert forecast.peak(6 * count, count) == pytest.approx(Trial(forecast).peak(window).peak_bytes, rel=0.02)
    batch = made(6)
    distinct = sum({id(t): t.nbytes for t in tensors_in(batch)}.values())
    assert input_bytes(batch, 6, 12) >= 2 * distinct


@pytest.mark.parametrize("container", ["tuple", "list", "dict", "dataclass"])
def test_a_batch_of_another_size_is_still_refused(container):
    make_batch = CONTAINERS[container][0]
    for size in (2, 3, 8):
        with pytest.raises(ValueError, match=rf"make_batch\({size}\) must give a batch of {size} examples"):
            checked_batch(lambda _: make_batch(32), size)


def test_a_batch_without_tensors_is_a_sentence():
    class Opaque:
        x = torch.ones(4, WIDTH)

    for batch in (Opaque(), "text", None, [1, 2]):
        with pytest.raises(ValueError, match=f"must give tensors, .* it gave a {type(batch).__name__}"):
            checked_batch(lambda _, batch=batch: batch, 4)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_a_sparse_batch_is_a_sentence(layout):
    def make_batch(size):
        return torch.eye(size, WIDTH).to_sparse(layout=layout), torch.zeros(size, dtype=torch.long)

    def loss_fn(model, batch):
        return F.cross_entropy(model(batch[0].to_dense()), batch[1])

    with pytest.raises(CannotCount, match="make_batch gives a sparse tensor, whose size depends on its numbers"):
        predict_peak(lambda: nn.Linear(WIDTH, CLASSES), loss_fn, make_batch, Recipe(4, 4))


KEPT = []


def keeps_its_loss(model, batch):
    loss = F.cross_entropy(model(batch[0]), batch[1])
    KEPT.append(loss)
    return loss


def keeps_what_it_saw(model, batch):
    out = model(batch[0])
    KEPT.append({"out": out.detach()})
    return F.cross_entropy(out, batch[1])


class KeepsInItself(nn.Linear):
    """No fault: what it keeps goes with it, also where it refers to itself."""

    def forward(self, x):
        self.me, self.seen = [self], super().forward(x)
        return self.seen


@pytest.mark.parametrize("loss_fn", [keeps_its_loss, keeps_what_it_saw])
def test_tensors_that_outlive_the_run_are_a_sentence(loss_fn):
    try:
        with pytest.raises(CannotCount, match="keeps tensors in something that outlives them, such as a list"):
            predict_peak(lambda: nn.Linear(WIDTH, CLASSES), loss_fn, tensors, Recipe(4, 2))
    finally:
        KEPT.clear()


def test_what_a_model_keeps_in_itself_is_no_fault():
    def loss_fn(model, batch):
        return F.cross_entropy(model(batch[0]), batch[1])

    assert predict_peak(lambda: KeepsInItself(WIDTH, CLASSES), loss_fn, tensors, Recipe(4, 2)).peak_bytes > 0


def test_inputs_of_another_dtype_than_the_model_are_said():
    def loss_fn(model, batch):
        return model(batch[0].double()).mean()

    with pytest.raises(ValueError, match=r"of one dtype, not of torch\.float32 and torch\.float64, at line"):
        predict_peak(lambda: nn.Linear(WIDTH, CLASSES), loss_fn, tensors, Recipe(4, 2))


MASK = torch.arange(CLASSES) % 2 == 0


def test_constants_of_the_callers_own_are_no_fault():
    def loss_fn(model, batch):
        return model(batch[0])[:, MASK].mean()

    assert predict_peak(lambda: nn.Linear(WIDTH, CLASSES), loss_fn, tensors, Recipe(4, 2)).peak_bytes > 0


def test_a_tensor_that_occurs_twice_is_counted_once():
    def make_batch(size):
        x = torch.ones(size, WIDTH)
        return {"x": x, "target": x}

    def loss_fn(model, batch):
        return F.mse_loss(model(batch["x"]), batch["target"])

    recipe = Recipe(64, 4, optimizer="sgd")
    profile = predict_peak(lambda: nn.Linear(WIDTH, WIDTH), loss_fn, make_batch, recipe)
    assert profile.by_category["inputs"] == 4 * 64 * WIDTH * 4
    measured = Trial(Forecast(lambda: nn.Linear(WIDTH, WIDTH), loss_fn, make_batch, recipe)).peak([64] * 4)
    assert profile.peak_bytes == pytest.approx(measured.peak_bytes, rel=0.005)
