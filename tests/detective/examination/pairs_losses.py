"""Losses: sums over examples, and others."""

import torch
from detective.examination.pairs import B, Parts, batch, cnn, cross_entropy, images, mlp, pair
from torch import Tensor, nn
from torch.nn import functional as F


@pair()
def mean_cross_entropy() -> Parts:
    return Parts(mlp(), cross_entropy, batch())


@pair()
def sum_cross_entropy() -> Parts:
    return Parts(mlp(), lambda m, d: F.cross_entropy(m(d[0]), d[1], reduction="sum"), batch(examples=10), 4)


@pair("unequal_items")
def mean_with_a_smaller_tail() -> Parts:
    return Parts(mlp(), cross_entropy, batch(examples=10), 4)


@pair()
def a_smaller_tail_that_is_counted() -> Parts:
    return Parts(mlp(), cross_entropy, batch(examples=10), 4, {"count": lambda data: len(data[1])})


@pair("unequal_items")
def a_count_that_does_not_belong() -> Parts:
    return Parts(mlp(), cross_entropy, batch(), 2, {"count": lambda data: int(data[1].sum()) + 1})


@pair()
def label_smoothing() -> Parts:
    return Parts(mlp(), lambda m, d: F.cross_entropy(m(d[0]), d[1], label_smoothing=0.1), batch())


@pair("unequal_items")
def weighted_classes() -> Parts:
    weight = torch.tensor([1.0, 2.0, 5.0])
    data = batch()[0], torch.tensor([0, 1, 2, 2, 0, 0, 1, 1])
    return Parts(mlp(), lambda m, d: F.cross_entropy(m(d[0]), d[1], weight=weight), data)


@pair()
def weighted_classes_that_are_counted() -> Parts:
    weight = torch.tensor([1.0, 2.0, 5.0])
    data = batch()[0], torch.tensor([0, 1, 2, 2, 0, 0, 1, 1])
    options = {"count": lambda d: weight[d[1]].sum()}
    return Parts(mlp(), lambda m, d: F.cross_entropy(m(d[0]), d[1], weight=weight), data, 2, options)


@pair()
def focal() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        each = F.cross_entropy(model(data[0]), data[1], reduction="none")
        return ((1 - torch.exp(-each)) ** 2 * each).mean()

    return Parts(mlp(), loss, batch(), 1)


@pair()
def mean_with_a_penalty() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return cross_entropy(model, data) + 0.1 * sum(p.square().sum() for p in model.parameters())

    return Parts(mlp(), loss, batch())


@pair("loss_not_additive")
def sum_with_a_penalty() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        penalty = 0.1 * sum(p.square().sum() for p in model.parameters())
        return F.cross_entropy(model(data[0]), data[1], reduction="sum") + penalty

    return Parts(mlp(), loss, batch())


def _tokens() -> tuple[Tensor, Tensor]:
    """Four sequences with 1, 3, 10 and 50 tokens that count."""
    x, labels = torch.randn(4, 50, 6), torch.randint(0, 3, (4, 50))
    for k, length in enumerate((1, 3, 10, 50)):
        labels[k, length:] = -100
    return x, labels


def _token_mean(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
    return F.cross_entropy(model(data[0]).flatten(0, 1), data[1].flatten(), ignore_index=-100)


@pair("unequal_items")
def ragged_tokens() -> Parts:
    return Parts(mlp(), _token_mean, _tokens(), 1)


@pair()
def ragged_tokens_that_are_counted() -> Parts:
    return Parts(mlp(), _token_mean, _tokens(), 1, {"count": lambda data: (data[1] >= 0).sum()})


@pair()
def ctc() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        logits = model(data[0]).log_softmax(-1).transpose(0, 1)
        lengths = torch.full((len(data[0]),), 9), torch.full((len(data[0]),), 3)
        return F.ctc_loss(logits, data[1], *lengths)

    return Parts(mlp(), loss, (torch.randn(4, 9, 6), torch.randint(1, 3, (4, 3))), 1)


@pair("loss_not_additive")
def root_mean_square() -> Parts:
    return Parts(mlp(), lambda m, d: F.mse_loss(m(d[0])[:, 0], d[0][:, 0]).sqrt(), batch())


def _embedded(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    return F.normalize(model(x), dim=1), F.normalize(model(x + 0.3), dim=1)


def _info_nce(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
    one, other = _embedded(model, data[0])
    return F.cross_entropy(one @ other.T / 0.2, torch.arange(len(one)))


@pair("loss_not_additive")
def info_nce() -> Parts:
    return Parts(mlp(), _info_nce, batch())


@pair("loss_not_additive")
def info_nce_by_single_examples() -> Parts:
    return Parts(mlp(), _info_nce, batch(), 1)


@pair("batch_statistics", "loss_not_additive", "module_state", additive=False)
def info_nce_behind_batch_norm() -> Parts:
    return Parts(mlp(nn.BatchNorm1d(8)), _info_nce, batch())


@pair("loss_not_additive")
def clip_with_a_temperature() -> Parts:
    class Clip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image, self.text, self.scale = nn.Linear(6, 4), nn.Linear(6, 4), nn.Parameter(torch.tensor(2.0))

        def forward(self, image: Tensor, text: Tensor) -> Tensor:
            one, other = (F.normalize(each, dim=1) for each in (self.image(image), self.text(text)))
            logits = self.scale.exp() * one @ other.T
            target = torch.arange(len(logits))
            return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2

    data = {"image": torch.randn(B, 6), "text": torch.randn(B, 6)}
    return Parts(Clip(), lambda m, d: m(**d), data)


@pair("loss_not_additive")
def simclr() -> Parts:
    def loss(model: nn.Module, data: Tensor) -> Tensor:
        views = F.normalize(model(torch.cat([data, data + 0.1])), dim=1)
        likeness = (views @ views.T / 0.5).masked_fill(torch.eye(len(views), dtype=torch.bool), -1e9)
        return F.cross_entropy(likeness, torch.arange(len(views)).roll(len(data)))

    return Parts(mlp(), loss, torch.randn(B, 6))


@pair("loss_not_additive")
def vicreg() -> Parts:
    def loss(model: nn.Module, data: Tensor) -> Tensor:
        one, other = model(data), model(data + 0.1)
        spread = sum(F.relu(1 - each.std(0)).mean() for each in (one, other))
        return F.mse_loss(one, other) + spread

    return Parts(mlp(), loss, torch.randn(B, 6), 4)


@pair("loss_not_additive")
def barlow_twins() -> Parts:
    def loss(model: nn.Module, data: Tensor) -> Tensor:
        one, other = ((each - each.mean(0)) / each.std(0) for each in (model(data), model(data + 0.1)))
        cross = one.T @ other / len(data)
        return (cross - torch.eye(3)).square().sum()

    return Parts(mlp(), loss, torch.randn(B, 6), 4)


@pair("loss_not_additive")
def triplets_of_a_miner() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        x, y = data
        apart = torch.cdist(model(x), model(x) + 1e-3)
        same = y[:, None] == y[None]
        hardest = apart.masked_fill(~same, -1).max(1).values - apart.masked_fill(same, 1e9).min(1).values
        return F.relu(hardest + 5).mean()

    data = torch.randn(B, 6), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    return Parts(mlp(), loss, data, 4)


@pair()
def triplets_that_are_given() -> Parts:
    def loss(model: nn.Module, data: dict[str, Tensor]) -> Tensor:
        return F.triplet_margin_loss(model(data["a"]), model(data["p"]), model(data["n"]))

    return Parts(mlp(), loss, {key: torch.randn(B, 6) for key in "apn"})


def _overlap(dims: tuple[int, ...]):
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        found = torch.sigmoid(model(data[0]))
        both, either = (found * data[1]).sum(dims), (found + data[1]).sum(dims)
        return (1 - (2 * both + 1) / (either + 1)).mean()

    return loss


def _masks() -> tuple[Tensor, Tensor]:
    return torch.randn(B, 1, 8, 8), (torch.rand(B, 1, 8, 8) > 0.6).float()


@pair("loss_not_additive")
def dice_of_the_batch() -> Parts:
    return Parts(nn.Conv2d(1, 1, 3, padding=1), _overlap((0, 1, 2, 3)), _masks())


@pair()
def dice_of_each_sample() -> Parts:
    return Parts(nn.Conv2d(1, 1, 3, padding=1), _overlap((1, 2, 3)), _masks())


class Centres(nn.Module):
    """A loss with parameters of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(3, 3))

    def forward(self, found: Tensor, y: Tensor) -> Tensor:
        return (found - self.centres[y]).square().sum(1).mean()


@pair()
def centre_loss() -> Parts:
    centres = Centres()
    return Parts(mlp(), lambda m, d: cross_entropy(m, d) + 0.1 * centres(m(d[0]), d[1]), batch(), others=(centres,))


@pair("loss_not_additive")
def correlation() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return -torch.corrcoef(torch.stack([model(data[0])[:, 0], data[0][:, 0]]))[0, 1]

    return Parts(mlp(), loss, batch(), 4)


@pair("loss_not_additive")
def pairs_of_scores() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        score = model(data[0])[:, 0]
        return F.softplus(score[:, None] - score[None]).mul(data[0][:, :1] < data[0][:, 0][None]).mean()

    return Parts(mlp(), loss, batch())


@pair("loss_not_additive")
def a_criterion_that_is_a_module() -> Parts:
    class Criterion(nn.Module):
        def forward(self, one: Tensor, other: Tensor) -> Tensor:
            return F.cross_entropy(one @ other.T / 0.2, torch.arange(len(one)), reduction="none")

    criterion = Criterion()
    return Parts(mlp(), lambda m, d: criterion(*_embedded(m, d[0])).mean(), batch())


@pair()
def gradient_penalty() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        x = data[0].requires_grad_()
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean()

    return Parts(mlp(), loss, batch())


@pair()
def a_model_of_convolutions_with_single_images() -> Parts:
    return Parts(cnn(lambda c: nn.GroupNorm(1, c)), cross_entropy, images(), 1)


@pair("loss_not_additive")
def fewer_parameters_than_micro_batches() -> Parts:
    model = nn.Linear(1, 1, bias=False)
    return Parts(model, lambda m, d: (m(d) - 1).square().mean().sqrt(), torch.randn(16, 1), 2)


@pair("unequal_items")
def few_parameters_and_unequal_items() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return ((model(data[0]).square() * data[1]).sum()) / data[1].sum()

    mask = torch.ones(12, 1)
    mask[[1, 2, 5, 9]] = 0
    return Parts(nn.Linear(1, 1), loss, (torch.randn(12, 1), mask), 3)


@pair("loss_not_additive")
def a_mean_and_a_sum() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        each = F.cross_entropy(model(data[0]), data[1], reduction="none")
        return each.mean() + each.sum()

    return Parts(mlp(), loss, batch())


@pair("loss_not_additive")
def advantages_that_are_normalised() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        advantage = (data[2] - data[2].mean()) / data[2].std()
        return -(model(data[0])[:, 0] * advantage).mean()

    return Parts(mlp(), loss, (*batch(), torch.randn(B)), 4)


@pair()
def a_sum_divided_by_a_constant() -> Parts:
    return Parts(mlp(), lambda m, d: F.cross_entropy(m(d[0]), d[1], reduction="sum") / 8, batch())


@pair()
def a_loss_that_freezes_a_layer() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        model[0].requires_grad_(False)
        return cross_entropy(model, data)

    return Parts(mlp(), loss, batch())


@pair()
def clusters_of_classes() -> Parts:
    class Adaptive(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.loss = nn.Linear(6, 8), nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6])

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.loss(self.layer(x), y).loss

    return Parts(Adaptive(), lambda m, d: m(*d), (torch.randn(B, 6), torch.randint(0, 10, (B,))))
