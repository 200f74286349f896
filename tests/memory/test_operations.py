"""One operation after another, its gradient too: the tracker's count against the allocator's events.

Autograd writes some gradients in place, but not while anything looks on; and some kernels copy their arguments first.
"""

from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor, nn

from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.loop import one_update
from gradacc_lessons.memory.measure import measure_peak
from gradacc_lessons.memory.predict import predict_peak
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.recipe import Recipe

ROWS, COLUMNS, FLOOR = 4096, 1024, 16 * 2**20
MASK = torch.arange(ROWS) % 4 == 0
EACH = torch.arange(ROWS) % COLUMNS
OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "a mask": lambda y: y[MASK],
    "a mask of every number": lambda y: y[MASK[:, None].expand(ROWS, COLUMNS)],
    "numbered rows": lambda y: y[EACH],
    "gather": lambda y: y.gather(1, EACH[:, None]),
    "index_select": lambda y: y.index_select(0, EACH),
    "take": lambda y: y.take(EACH),
    "masked_select": lambda y: y.masked_select(MASK[:, None]),
    "masked_fill": lambda y: y.masked_fill(MASK[:, None], 0.0),
    "masked_scatter": lambda y: y.masked_scatter(MASK[:, None], torch.zeros(ROWS, COLUMNS)),
    "max along a dimension": lambda y: y.max(dim=1).values,
    "median": lambda y: y.median(dim=1).values,
    "amax": lambda y: y.amax(dim=1),
    "topk": lambda y: y.topk(4, dim=1).values,
    "sort": lambda y: y.sort(dim=1).values,
    "cummax": lambda y: y.cummax(dim=1).values,
    "a slice": lambda y: y[: ROWS // 4],
    "one row": lambda y: y[3],
    "every other": lambda y: y[:, ::2],
    "diagonal": lambda y: y.diagonal(),
    "split": lambda y: y.split(ROWS // 2)[1],
    "unfold": lambda y: y.unfold(0, 4, 4),
    "index_add": lambda y: torch.zeros(ROWS, COLUMNS).index_add(0, EACH, y),
    "scatter": lambda y: torch.zeros(ROWS, COLUMNS).scatter(1, EACH[:, None].expand(ROWS, COLUMNS), y),
    "index_copy": lambda y: torch.zeros(ROWS, COLUMNS).index_copy(0, torch.arange(ROWS), y),
    "index_put": lambda y: torch.zeros(ROWS, COLUMNS).index_put((EACH,), y, accumulate=True),
    "clamp": lambda y: y.clamp(-1, 1),
    "where": lambda y: torch.where(MASK[:, None], y, 0.0),
    "norm": lambda y: y.norm(dim=1),
    "largest norm": lambda y: torch.linalg.vector_norm(y, float("inf"), dim=1),
    "logsumexp": lambda y: y.logsumexp(dim=1),
    "standard deviation": lambda y: y.std(dim=1),
    "cumulative sum": lambda y: y.cumsum(dim=1),
    "padding": lambda y: nn.functional.pad(y, (1, 1)),
    "roll": lambda y: y.roll(1, 0),
    "repeat": lambda y: y[: ROWS // 2].repeat(2, 1),
    "repeat_interleave": lambda y: y[: ROWS // 2].repeat_interleave(2, dim=0),
    "dropout": lambda y: nn.functional.dropout(y, 0.1),
    "max pooling": lambda y: nn.functional.max_pool1d(y, 2),
    "einsum": lambda y: torch.einsum("rc,rc->r", y, y),
    "times a mask": lambda y: y * MASK[:, None],
    "times bfloat16": lambda y: y * torch.ones(ROWS, COLUMNS, dtype=torch.bfloat16),
    "how many are positive": lambda y: y * (y > 0).sum(),
    "share of positive ones": lambda y: y * (y > 0).float().mean(dim=1, keepdim=True),
    "mean in bfloat16": lambda y: y.bfloat16().mean(),
    "binary cross-entropy of all": lambda y: nn.functional.binary_cross_entropy(y.sigmoid(), torch.ones(ROWS, COLUMNS)),
    "smallest of some": lambda y: y.kthvalue(3, dim=1).values,
    "there and back": lambda y: torch.fft.irfft(torch.fft.rfft(y) * 2),
    "twice": lambda y: y + y.relu(),
    "glu": lambda y: nn.functional.glu(y),
    "smoothed labels": lambda y: nn.functional.cross_entropy(y, EACH, label_smoothing=0.1),
    "some labels": lambda y: nn.functional.cross_entropy(y, EACH.where(MASK, -100)),
    "binary labels": lambda y: nn.functional.binary_cross_entropy_with_logits(y, torch.ones(ROWS, COLUMNS)),
    "smooth l1": lambda y: nn.functional.smooth_l1_loss(y, torch.zeros(ROWS, COLUMNS)),
    "huber": lambda y: nn.functional.huber_loss(y, torch.zeros(ROWS, COLUMNS)),
    "l1": lambda y: nn.functional.l1_loss(y, torch.zeros(ROWS, COLUMNS)),
    "mse": lambda y: nn.functional.mse_loss(y, torch.zeros(ROWS, COLUMNS)),
    "binary cross-entropy": lambda y: nn.functional.binary_cross_entropy(y.sigmoid(), torch.ones(ROWS, COLUMNS)),
    "soft margin": lambda y: nn.functional.soft_margin_loss(y, torch.ones(ROWS, COLUMNS)),
    "gaussian": lambda y: nn.functional.gaussian_nll_loss(y, torch.zeros(ROWS, COLUMNS), torch.ones(ROWS, COLUMNS)),
    "poisson": lambda y: nn.functional.poisson_nll_loss(y, torch.ones(ROWS, COLUMNS)),
    "multi margin": lambda y: nn.functional.multi_margin_loss(y, EACH),
    "triplet": lambda y: nn.functional.triplet_margin_loss(y, y.roll(1, 0), y.roll(2, 0)),
    "cosine": lambda y: nn.functional.cosine_similarity(y, y.roll(1, 0)),
    "distances": lambda y: torch.cdist(y[:512], y[512:1024]),
    "normalized": lambda y: nn.functional.normalize(y, dim=1),
    "log_softmax": lambda y: y.log_softmax(1),
    "softmax": lambda y: y.softmax(0),
    "silu": nn.functional.silu,
    "softplus": nn.functional.softplus,
    "leaky relu": nn.functional.leaky_relu,
    "mish": nn.functional.mish,
    "gelu, tanh": lambda y: nn.functional.gelu(y, approximate="tanh"),
    "prelu": lambda y: nn.functional.prelu(y, torch.full((1,), 0.1)),
    "average pooling": lambda y: nn.functional.avg_pool2d(y.view(16, 64, 64, 64), 2),
    "max pooling, images": lambda y: nn.functional.max_pool2d(y.view(16, 64, 64, 64), 2),
    "adaptive pooling": lambda y: nn.functional.adaptive_avg_pool2d(y.view(16, 64, 64, 64), 1),
    "bilinear": lambda y: nn.functional.interpolate(y.view(16, 64, 64, 64), scale_factor=0.5, mode="bilinear"),
    "local response norm": lambda y: nn.functional.local_response_norm(y.view(16, 64, 64, 64), 3),
    "instance norm": lambda y: nn.functional.instance_norm(y.view(16, 64, 4096)),
    "pixel shuffle": lambda y: nn.functional.pixel_shuffle(y.view(16, 64, 64, 64), 2),
    "reflected": lambda y: nn.functional.pad(y.view(16, 64, 64, 64), (1, 1, 1, 1), mode="reflect"),
    "grid sample": lambda y: nn.functional.grid_sample(y.view(16, 64, 64, 64), torch.zeros(16, 64, 64, 2)),
    "im2col": lambda y: nn.functional.unfold(y.view(16, 64, 64, 64)[:, :8], 3),
    "alpha dropout": lambda y: nn.functional.alpha_dropout(y, 0.1, training=True),
    "batched product": lambda y: torch.bmm(y.view(16, 256, 1024), y.view(16, 256, 1024).mT),
    "outer": lambda y: torch.baddbmm(torch.zeros(16, 256, 256), y.view(16, 256, 1024), y.view(16, 256, 1024).mT),
    "fft": lambda y: torch.fft.rfft(y).abs(),
    "stacked": lambda y: torch.stack([y, y.relu()]),
    "flipped": lambda y: y.flip(1),
    "sum of powers": lambda y: (y**3 + y**2).sum(1),
    "division": lambda y: 1 / (1 + y.abs()),
    "maximum": lambda y: torch.maximum(y, y.roll(1, 0)),
    "lerp": lambda y: torch.lerp(y, y.roll(1, 0), 0.3),
    "addcmul": lambda y: torch.addcmul(y, y.sin(), y.cos()),
    "variance": lambda y: y.var(),
    "atan2": lambda y: torch.atan2(y, torch.ones(ROWS, COLUMNS)),
    "as complex": lambda y: torch.view_as_complex(y.view(ROWS, COLUMNS // 2, 2)).abs(),
    "renorm": lambda y: y.renorm(2, 0, 1.0),
    "kl": lambda y: nn.functional.kl_div(y.log_softmax(1), torch.full((ROWS, COLUMNS), 1 / COLUMNS)),
    "grouped norm": lambda y: nn.functional.group_norm(y.view(16, 256, COLUMNS), 4),
    "interpolated": lambda y: nn.functional.interpolate(y.view(16, 256, COLUMNS), scale_factor=2.0),
    "the largest": lambda y: y.max(),
    "the largest, turned": lambda y: y.t().max() - y.min(),
    "the largest in bfloat16": lambda y: y.bfloat16().max(),
    "the largest beside others": lambda y: y.max() * y.mean(),
    "amax of all": lambda y: y.amax(),
    "the largest norm": lambda y: y.norm(p=float("inf")),
    "the median of all": lambda y: y.median(),
    "the median of numbers": lambda y: y.nanmedian(),
    "sorted, all": lambda y: y.flatten().sort().values,
    "a quantile": lambda y: y[:2000].quantile(0.5),
    "chosen by or": lambda y: y * (y.detach() > 0).logical_or_(y.detach().isnan()),
}


QUICK = {
    "a mask", "a mask of every number", "gather", "take", "max along a dimension", "masked_select", "amax",
    "times a mask", "mse", "smooth l1", "soft margin", "bilinear", "as complex", "mean in bfloat16",
    "binary cross-entropy of all", "the largest", "amax of all",
}  # fmt: skip
"""One for each kind of thing that has to be known; the others run in `make test-all`."""


def each(names: Iterable[str]) -> pytest.MarkDecorator:
    marked = [pytest.param(OPERATIONS[n], id=n, marks=[] if n in QUICK else pytest.mark.long) for n in names]
    return pytest.mark.parametrize("operation", marked)


@each(OPERATIONS)
@pytest.mark.few(8)
def test_a_gradient_takes_the_room_that_it_takes_alone(operation: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(16, COLUMNS), torch.randn(ROWS, 16)

    def run() -> None:
        for _ in range(2):
            operation(model(x)).float().square().mean().backward()

    run()
    tracked = measure_peak(run, model=model, inputs=x).peak_bytes
    reported = allocator_peak(run, bytes_in_use(model, torch.optim.SGD(model.parameters()), x))
    assert reported >= FLOOR
    assert tracked == pytest.approx(reported, rel=1e-3)


NOT_FOLLOWED = {"gaussian"}  # it looks whether a variance is below zero


@each(sorted(OPERATIONS.keys() - NOT_FOLLOWED))
def test_it_is_predicted_as_it_is_counted(operation: Callable[[Tensor], Tensor]) -> None:
    recipe = Recipe(ROWS, 2, optimizer="sgd")

    def build() -> nn.Module:
        return nn.Linear(16, COLUMNS)

    def loss_fn(model: nn.Module, x: Tensor) -> Tensor:
        return operation(model(x)).float().square().mean()

    def make_batch(size: int) -> Tensor:
        return torch.ones(size, 16)

    model, window = build(), [make_batch(ROWS), make_batch(ROWS)]
    optimizer = make_optimizer(model, recipe)
    counted = measure_peak(
        lambda: one_update(model, optimizer, window, loss_fn, recipe), model=model, optimizer=optimizer, inputs=window
    )
    predicted = predict_peak(build, loss_fn, make_batch, recipe)
    assert predicted.peak_bytes == pytest.approx(counted.peak_bytes, rel=0.005)
