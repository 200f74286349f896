"""The tracker's count against the events of PyTorch's own allocator, kind of layer by kind of layer."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.uncounted import CannotCount

SHARE = 1e-3
"""How far the two may lie apart; or one weight tensor of the largest convolution, if that is more."""
FLOOR = 16 * 2**20
RANDOM, EXAMPLES = torch.randn, 8


class First(nn.Module):
    """The first of what a layer returns: recurrent ones and attention return more."""

    def __init__(self, layer: nn.Module, **options: Any) -> None:
        super().__init__()
        self.layer, self.options = layer, options

    def forward(self, x: Tensor) -> Tensor:
        given = (x,) * (3 if isinstance(self.layer, nn.MultiheadAttention) else 1)
        return self.layer(*given, **self.options)[0]


def attention(**options: Any) -> nn.Module:
    return First(nn.MultiheadAttention(256, 4, batch_first=True), **options)


def squares(model: nn.Module, x: Tensor) -> Tensor:
    return model(x).float().square().mean()


def words(model: nn.Module, x: Tensor) -> Tensor:
    labels = torch.arange(x[..., 0].numel()) % 32_000
    return F.cross_entropy(model(x).flatten(0, -2), labels)


Case = tuple[Callable[[], nn.Module], Callable[[], Tensor], Callable[[nn.Module, Tensor], Tensor]]
IMAGES = lambda channels=32, side=64: RANDOM(EXAMPLES, channels, side, side)  # noqa: E731
QUICK: dict[str, Case] = {
    "linear": (lambda: nn.Sequential(nn.Linear(256, 1024), nn.GELU()), lambda: RANDOM(1024, 256), squares),
    "convolution": (lambda: nn.Conv2d(16, 64, 3, padding=1), lambda: IMAGES(16), squares),
    "strided": (lambda: nn.Conv2d(8, 256, 7, 2, 3), lambda: IMAGES(8), squares),
    "transposed": (lambda: nn.ConvTranspose2d(64, 32, 2, 2), lambda: IMAGES(64, 32), squares),
    "depthwise": (
        lambda: nn.Sequential(nn.Conv2d(64, 64, 3, padding=1, groups=64), nn.Conv2d(64, 64, 1)),
        lambda: IMAGES(64, 48),
        squares,
    ),
    "channels last": (
        lambda: nn.Conv2d(16, 64, 3, padding=1).to(memory_format=torch.channels_last),
        lambda: IMAGES(16).to(memory_format=torch.channels_last),
        squares,
    ),
    "gru": (lambda: First(nn.GRU(128, 256, batch_first=True)), lambda: RANDOM(96, 12, 128), squares),
    "attention": (lambda: attention(need_weights=False), lambda: RANDOM(8, 192, 256), squares),
    "attention with weights": (attention, lambda: RANDOM(6, 192, 256), squares),
    "encoder": (lambda: nn.TransformerEncoderLayer(128, 4, 512, batch_first=True), lambda: RANDOM(8, 96, 128), squares),
    "batch norm": (lambda: nn.BatchNorm2d(32), IMAGES, squares),
    "layer norm": (lambda: nn.LayerNorm(512), lambda: RANDOM(16, 128, 512), squares),
    "group norm": (lambda: nn.GroupNorm(8, 32), IMAGES, squares),
    "rms norm": (lambda: nn.RMSNorm(512), lambda: RANDOM(16, 128, 512), squares),
    "bfloat16 linear": (
        lambda: nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 8)).bfloat16(),
        lambda: RANDOM(49_152, 8).bfloat16(),
        squares,
    ),
    "embedding": (lambda: nn.Embedding(20_000, 128), lambda: torch.randint(20_000, (16, 128)), squares),
    "32k classes": (lambda: nn.Linear(32, 32_000), lambda: RANDOM(2, 48, 32), words),
}
LONG: dict[str, Case] = {
    "large weights": (lambda: nn.Conv2d(256, 512, 3, padding=1), lambda: RANDOM(4, 256, 16, 16), squares),
    "in three dimensions": (lambda: nn.Conv3d(4, 16, 3, padding=1), lambda: RANDOM(4, 4, 16, 32, 32), squares),
    "dilated": (lambda: nn.Conv2d(32, 32, 3, padding=2, dilation=2), IMAGES, squares),
    "bfloat16 convolution": (
        lambda: nn.Conv2d(8, 32, 3, padding=1).bfloat16(),
        lambda: IMAGES(8).bfloat16(),
        squares,
    ),
    "gru both ways": (
        lambda: First(nn.GRU(128, 128, 2, batch_first=True, bidirectional=True)),
        lambda: RANDOM(16, 64, 128),
        squares,
    ),
    "wide encoder": (
        lambda: nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True),
        lambda: RANDOM(16, 128, 256),
        squares,
    ),
    "long attention": (lambda: attention(need_weights=False), lambda: RANDOM(2, 1024, 256), squares),
}
THREADS = torch.get_num_threads()


def both(case: Case) -> tuple[int, int, int]:
    """The tracker's peak of two windows, the allocator's, and the bytes of the largest convolution's weight."""
    torch.manual_seed(0)
    model, inputs, loss = case[0](), case[1](), case[2]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def run() -> None:
        for _ in range(2):
            for _ in range(2):
                loss(model, inputs).backward()
            optimizer.step()
            optimizer.zero_grad()

    run()
    tracked = measure_peak(run, model=model, optimizer=optimizer, inputs=inputs).peak_bytes
    convolutions = (p.nbytes for p in model.parameters() if p.dim() > 3)
    return tracked, allocator_peak(run, bytes_in_use(model, optimizer, inputs)), max(convolutions, default=0)


@pytest.mark.few(8)
@pytest.mark.parametrize(
    "case",
    [*(pytest.param(c, id=n) for n, c in QUICK.items())]
    + [pytest.param(c, id=n, marks=pytest.mark.long) for n, c in LONG.items()],
)
def test_the_count_is_what_the_allocator_reports(case: Case) -> None:
    tracked, reported, weight = both(case)
    assert reported >= FLOOR, f"{reported / 2**20:.1f} MiB is too small to say much"
    assert abs(tracked - reported) <= max(SHARE * reported, weight)


@pytest.mark.long
@pytest.mark.parametrize("case", QUICK.values(), ids=QUICK)
def test_so_it_is_with_two_threads(case: Case) -> None:
    torch.set_num_threads(2)
    try:
        tracked, reported, weight = both(case)
    finally:
        torch.set_num_threads(THREADS)
    assert abs(tracked - reported) <= max(SHARE * reported, weight)


def test_an_lstm_cannot_be_counted() -> None:
    with pytest.raises(CannotCount, match=r"has an LSTM: .* Use a GRU, or measure it with `allocator_peak`"):
        both((lambda: First(nn.LSTM(16, 16)), lambda: RANDOM(4, 8, 16), squares))


@pytest.mark.parametrize("product", [lambda x: x.prod(dim=1), lambda x: x.cumprod(dim=1)], ids=["prod", "cumprod"])
def test_nor_can_the_gradient_of_a_product(product: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(CannotCount, match=r"the gradient of a product .* Use the sum of logarithms"):
        both((lambda: nn.Linear(16, 16), lambda: RANDOM(4, 16), lambda model, x: product(model(x)).sum()))
    model = nn.Linear(16, 16)
    with torch.no_grad():
        assert measure_peak(lambda: product(model(RANDOM(4, 16))), model=model).peak_bytes > 0


def test_nor_can_an_embedding_bag_be_counted() -> None:
    bags = torch.arange(12).reshape(4, 3)
    with pytest.raises(CannotCount, match=r"has an EmbeddingBag: .* Use an Embedding and a mean"):
        both((lambda: nn.EmbeddingBag(50, 16), lambda: bags, lambda model, x: model(x).square().mean()))


def test_a_sparse_gradient_is_counted_by_its_parts() -> None:
    model = nn.Embedding(1000, 64, sparse=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    words = torch.arange(50)

    def run() -> None:
        for _ in range(2):
            model(words).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    found = measure_peak(run, model=model, optimizer=optimizer, inputs=words)
    assert found.by_category["parameters"] == 1000 * 64 * 4
    assert found.peak_bytes < 1.5 * found.by_category["parameters"]  # a dense gradient would be as large as the weights


def test_a_layout_that_cannot_be_looked_at_is_one_sentence() -> None:
    model = nn.Linear(4, 4)
    with pytest.raises(CannotCount, match="a sparse_csr tensor, whose memory cannot be looked at"):
        measure_peak(lambda: torch.eye(4).to_sparse_csr(), model=model)


def test_a_model_that_is_tried_out_after_an_update_is_in_forward() -> None:
    model, x = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 1)), RANDOM(4096, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def run() -> None:
        model(x[:8]).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        with torch.no_grad():
            model(x)

    found = measure_peak(run, model=model, optimizer=optimizer, inputs=x)
    assert found.phase == "forward"
    order = found.timeline["phase"]
    assert list(order[order != order.shift()]) == ["forward", "backward", "update", "forward"]


def test_a_gradient_is_added_into_another_but_not_into_a_view() -> None:
    # Tied weights: the output's gradient comes as a view, so the embedding's cannot be added into it.
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(16_000, 64), nn.Linear(64, 16_000)
            self.head.weight = self.words.weight

        def forward(self, tokens: Tensor) -> Tensor:
            x = self.words(tokens)
            return self.head(x + x.relu())

    tracked, reported, _ = both((Tied, lambda: torch.randint(16_000, (2, 16)), squares))
    assert reported >= FLOOR
    assert abs(tracked - reported) <= SHARE * reported


def test_what_the_profiler_prints_is_kept_off_and_what_others_print_is_not(capfd: pytest.CaptureFixture[str]) -> None:
    import os

    assert allocator_peak(lambda: (torch.zeros(1000), os.write(2, b"mine\n")), 5) == 4005
    assert capfd.readouterr().err == "mine\n"


def test_the_profiler_is_off_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        allocator_peak(lambda: 1 / 0, 0)
    assert allocator_peak(lambda: torch.zeros(1000), 0) == 4000
