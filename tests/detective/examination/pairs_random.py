"""Models and losses that draw random numbers."""

import random

import numpy as np
import torch
from detective.examination.pairs import Parts, batch, cnn, cross_entropy, images, mlp, pair
from torch import Tensor, nn


@pair("randomness")
def one_dropout() -> Parts:
    return Parts(nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 3)), cross_entropy, batch())


@pair("randomness")
def two_dropouts() -> Parts:
    return Parts(mlp(nn.Dropout(0.2), nn.Linear(8, 8), nn.Dropout(0.2)), cross_entropy, batch(), 4)


@pair()
def dropout_in_eval_mode() -> Parts:
    return Parts(mlp(nn.Dropout(0.5)).eval(), cross_entropy, batch())


@pair()
def dropout_of_nothing() -> Parts:
    return Parts(mlp(nn.Dropout(0.0)), cross_entropy, batch())


@pair("randomness")
def dropout_of_channels() -> Parts:
    return Parts(cnn(lambda c: nn.Dropout2d(0.4)), cross_entropy, images())


@pair()
def a_draw_that_changes_nothing() -> Parts:
    class Idle(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 0 * torch.rand_like(x)

    return Parts(mlp(Idle()), cross_entropy, batch())


class Attention(nn.Module):
    """Attention of torch's own, with dropout in it."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.project, self.out, self.dropout = nn.Linear(4, 12), nn.Linear(4, 3), dropout

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x.unflatten(1, (-1, 4))).chunk(3, -1)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        return self.out(seen.mean(1))


@pair("randomness")
def dropout_in_attention() -> Parts:
    return Parts(Attention(0.5), cross_entropy, batch(features=20))


@pair()
def attention() -> Parts:
    return Parts(Attention(0.0), cross_entropy, batch(features=20))


class Skipped(nn.Module):
    """Stochastic depth."""

    def __init__(self, by_row: bool) -> None:
        super().__init__()
        self.layer, self.by_row = nn.Linear(8, 8), by_row

    def forward(self, x: Tensor) -> Tensor:
        shape = (len(x), 1) if self.by_row else (1,)
        return x + self.layer(x) * torch.bernoulli(torch.full(shape, 0.5, device=x.device))


@pair("randomness")
def stochastic_depth_by_row() -> Parts:
    return Parts(mlp(Skipped(True), Skipped(True)), cross_entropy, batch())


@pair("randomness")
def stochastic_depth_by_batch() -> Parts:
    return Parts(mlp(Skipped(False), Skipped(False)), cross_entropy, batch())


@pair("randomness")
def layers_dropped_by_pythons_random() -> Parts:
    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return x if random.random() < 0.5 else self.layer(x)

    return Parts(mlp(Dropped(), Dropped(), Dropped()), cross_entropy, batch())


@pair("randomness")
def noise_of_numpy() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        x, y = data
        return cross_entropy(model, (x + torch.as_tensor(np.random.randn(*x.shape), dtype=x.dtype), y))

    return Parts(mlp(), loss, batch())


@pair("randomness")
def noise_of_a_generator_of_its_own() -> Parts:
    generator = torch.Generator().manual_seed(3)

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        x, y = data
        return cross_entropy(model, (x + torch.randn(x.shape, generator=generator, dtype=x.dtype), y))

    return Parts(mlp(), loss, batch())


@pair("randomness")
def variational_autoencoder() -> Parts:
    class Autoencoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = nn.Linear(6, 4), nn.Linear(2, 6)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, log_variance = self.encoder(x).chunk(2, 1)
            noise = torch.randn_like(mean)
            return self.decoder(mean + noise * (0.5 * log_variance).exp()), mean, log_variance

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        again, mean, log_variance = model(data[0])
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        return nn.functional.mse_loss(again, data[0]) + divergence

    return Parts(Autoencoder(), loss, batch())


@pair("randomness")
def mixup() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        x, y = data
        share = float(np.random.beta(0.4, 0.4))
        other = torch.randperm(len(x))
        logits = model(share * x + (1 - share) * x[other])
        mine, theirs = (nn.functional.cross_entropy(logits, labels) for labels in (y, y[other]))
        return share * mine + (1 - share) * theirs

    return Parts(mlp(), loss, batch())


@pair("randomness", "loss_not_additive")
def dropout_and_a_loss_that_is_no_sum() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return nn.functional.mse_loss(model(data[0])[:, 0], data[0][:, 0]).sqrt()

    return Parts(mlp(nn.Dropout(0.3)), loss, batch())


@pair("randomness")
def dropout_with_time_first() -> Parts:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.drop, self.out = nn.GRU(4, 5), nn.Dropout(0.4), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            steps = self.rnn(x.unflatten(1, (5, 4)).transpose(0, 1))[0]
            flat = self.drop(steps.reshape(-1, 5))  # time by time, not example by example
            return self.out(flat).view(5, len(x), 3).mean(0)

    return Parts(Recurrent(), cross_entropy, batch(features=20))


@pair("randomness")
def noise_example_by_example() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        rows = [model(x[None] + torch.randn(1, 6)) for x in data[0]]
        return nn.functional.cross_entropy(torch.cat(rows), data[1])

    return Parts(mlp(), loss, batch())


@pair("randomness")
def a_relu_with_random_slopes() -> Parts:
    return Parts(mlp(nn.RReLU()), cross_entropy, batch())


@pair("randomness")
def alpha_dropout() -> Parts:
    return Parts(mlp(nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.2)), cross_entropy, batch())


@pair("randomness")
def negatives_out_of_the_batch() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        found = model(data[0])
        other = torch.randint(0, len(found), (len(found),))
        return nn.functional.softplus((found * found[other]).sum(1)).mean()

    return Parts(mlp(), loss, batch())


@pair("randomness")
def gumbel_softmax() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        found = model(data[0])
        return nn.functional.cross_entropy(found + nn.functional.gumbel_softmax(found, hard=True), data[1])

    return Parts(mlp(), loss, batch())


@pair("randomness")
def samples_of_a_distribution() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        found = model(data[0]).exp()
        sample = torch.distributions.Beta(found[:, 0], found[:, 1]).rsample()
        action = torch.distributions.Categorical(found).sample()
        return (sample - 0.3).square().mean() + found.gather(1, action[:, None]).log().mean()

    return Parts(mlp(), loss, batch())


@pair("randomness")
def two_views_with_dropout() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        one, other = nn.functional.normalize(model(torch.cat([data[0], data[0]])), dim=1).chunk(2)
        return (one - other).square().sum(1).mean()

    return Parts(mlp(nn.Dropout(0.3)), loss, batch())


@pair()
def a_permutation_that_is_undone() -> Parts:
    class Shuffled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            order = torch.randperm(len(x))
            return x[order][order.argsort()]

    return Parts(mlp(Shuffled()), cross_entropy, batch())


@pair("randomness")
def a_seed_in_every_forward() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        torch.manual_seed(1)
        return cross_entropy(model, data)

    return Parts(mlp(nn.Dropout(0.4)), loss, batch())


@pair("randomness")
def dropout_between_recurrent_layers() -> Parts:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.out = nn.LSTM(3, 4, 2, batch_first=True, dropout=0.5), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.rnn(x.unflatten(1, (2, 3)))[0][:, -1])

    return Parts(Deep(), cross_entropy, batch())


@pair("batch_statistics", "randomness", "module_state", additive=False)
def noise_of_numpy_and_batch_norm() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        noise = torch.as_tensor(np.random.randn(*data[0].shape), dtype=data[0].dtype)
        return cross_entropy(model, (data[0] + noise, data[1]))

    return Parts(mlp(nn.BatchNorm1d(8)), loss, batch())


@pair("randomness", "unequal_items")
def dropout_and_labels_that_do_not_count() -> Parts:
    x, y = batch()
    y[[0, 3, 4]] = -100
    return Parts(mlp(nn.Dropout(0.3)), cross_entropy, (x, y))
