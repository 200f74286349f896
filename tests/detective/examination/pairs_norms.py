"""Norms, of torch and of people's own."""

from collections.abc import Callable

import torch
from detective.examination.pairs import Parts, batch, cnn, cross_entropy, images, mlp, pair
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@pair()
def cnn_without_norm() -> Parts:
    return Parts(cnn(lambda c: nn.Identity()), cross_entropy, images())


@pair("batch_statistics", "module_state", additive=False)
def cnn_with_batch_norm() -> Parts:
    return Parts(cnn(nn.BatchNorm2d), cross_entropy, images())


@pair()
def cnn_with_group_norm() -> Parts:
    return Parts(cnn(lambda c: nn.GroupNorm(2, c)), cross_entropy, images())


@pair()
def cnn_with_layer_norm() -> Parts:
    return Parts(cnn(lambda c: nn.GroupNorm(1, c)), cross_entropy, images())


@pair()
def cnn_with_instance_norm() -> Parts:
    return Parts(cnn(nn.InstanceNorm2d), cross_entropy, images(), 1)


@pair("module_state", additive=True)
def cnn_with_instance_norm_that_tracks() -> Parts:
    return Parts(cnn(lambda c: nn.InstanceNorm2d(c, track_running_stats=True)), cross_entropy, images())


@pair()
def frozen_batch_norm() -> Parts:
    model = cnn(nn.BatchNorm2d)
    for _ in range(3):
        model(images()[0])
    for module in model:
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
    return Parts(model, cross_entropy, images(), 1)


@pair("batch_statistics")
def batch_norm_without_running_statistics() -> Parts:
    return Parts(mlp(nn.BatchNorm1d(8, track_running_stats=False)), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_that_averages_all() -> Parts:
    return Parts(mlp(nn.BatchNorm1d(8, momentum=None)), cross_entropy, batch())


class Centred(nn.Module):
    """A batch norm under another name."""

    def __init__(self, width: int, remembers: bool) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.remembers = remembers
        if remembers:
            self.register_buffer("memory", torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        if self.remembers:
            self.memory.lerp_(x.detach().mean(0), 0.1)
        return (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt() * self.scale


@pair("batch_statistics")
def home_made_batch_norm() -> Parts:
    return Parts(mlp(Centred(8, False)), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def home_made_batch_norm_with_running_mean() -> Parts:
    return Parts(mlp(Centred(8, True)), cross_entropy, batch())


class Whitened(nn.Module):
    """Mixes between its layers, in its own forward."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        return self.last(torch.tanh(hidden - hidden.mean(0, keepdim=True)))


@pair("batch_statistics")
def a_forward_that_subtracts_the_batch_mean() -> Parts:
    return Parts(Whitened(), cross_entropy, batch())


@pair("batch_statistics")
def a_mean_of_the_batch_at_the_end() -> Parts:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            logits = self.layer(x)
            return logits - logits.mean(0)

    return Parts(Last(), cross_entropy, batch())


@pair("batch_statistics")
def softmax_over_the_batch() -> Parts:
    return Parts(mlp(nn.Softmax(dim=0)), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def many_batch_norms() -> Parts:
    blocks = [nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh()) for _ in range(6)]
    return Parts(nn.Sequential(*blocks, nn.Linear(6, 3)), cross_entropy, batch(examples=16), 4)


@pair("batch_statistics", "unequal_items", "module_state", additive=False)
def batch_norm_and_a_smaller_tail() -> Parts:
    return Parts(mlp(nn.BatchNorm1d(8)), cross_entropy, batch(examples=10), 4)


@pair("batch_statistics", "randomness", "module_state", additive=False)
def batch_norm_and_dropout() -> Parts:
    return Parts(mlp(nn.BatchNorm1d(8), nn.Dropout(0.3)), cross_entropy, batch())


@pair("module_state", additive=False)
def spectral_norm() -> Parts:
    model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 3))
    return Parts(model, cross_entropy, batch())


@pair()
def weight_norm() -> Parts:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(6, 8)), nn.Tanh(), nn.Linear(8, 3))
    return Parts(model, cross_entropy, batch())


class Backwards(torch.autograd.Function):
    """The identity, whose gradient is divided by its mean over the batch."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / (gradient.norm() + 1e-6)


class Clean(torch.autograd.Function):
    """A ReLU written out."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x > 0)


class Applied(nn.Module):
    """A layer that is an autograd function."""

    def __init__(self, function: type[torch.autograd.Function]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function.apply(x)


@pair()
def own_autograd_function() -> Parts:
    return Parts(mlp(Applied(Clean)), cross_entropy, batch())


@pair("batch_statistics")
def autograd_function_that_mixes_in_backward() -> Parts:
    return Parts(mlp(Applied(Backwards)), cross_entropy, batch())


@pair("batch_statistics")
def squeeze_over_the_batch() -> Parts:
    class Gate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return x * torch.sigmoid(self.gate(x.mean(0, keepdim=True)))

    return Parts(mlp(Gate()), cross_entropy, batch())


class Middle(nn.Module):
    """A batch norm between two layers, as the function makes it of its input."""

    def __init__(self, through: Callable[[nn.Module, Tensor], Tensor], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 6), norm or nn.BatchNorm1d(6), nn.Linear(6, 3)
        self.through = through

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.through(self.norm, self.first(x)))


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_whose_forward_is_called_directly() -> Parts:
    return Parts(Middle(lambda norm, x: norm.forward(x)), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_in_a_checkpoint() -> Parts:
    return Parts(Middle(lambda norm, x: checkpoint(norm, x, use_reentrant=False)), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_in_a_reentrant_checkpoint() -> Parts:
    return Parts(Middle(lambda norm, x: checkpoint(norm, x, use_reentrant=True)), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_over_time_first() -> Parts:
    def flat(norm: nn.Module, x: Tensor) -> Tensor:
        steps = torch.stack([x, 2 * x, x.square()])  # time, example, feature
        return norm(steps.flatten(0, 1)).view(steps.shape).mean(0)

    return Parts(Middle(flat), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_as_a_function() -> Parts:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 3))
            self.register_buffer("mean", torch.zeros(3))
            self.register_buffer("variance", torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return F.batch_norm(x @ self.weight, self.mean, self.variance, training=self.training)

    return Parts(Functional(), cross_entropy, batch())


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_and_a_sum_with_a_smaller_tail() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(data[0]), data[1], reduction="sum")

    return Parts(mlp(nn.BatchNorm1d(8)), loss, batch(examples=10), 4)


@pair("batch_statistics")
def batch_norm_over_two_views_at_once() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        one, other = F.normalize(model(torch.cat([data[0], data[0] + 0.1])), dim=1).chunk(2)
        return (one - other).square().sum(1).mean()

    return Parts(mlp(nn.BatchNorm1d(8, track_running_stats=False)), loss, batch())


@pair("module_state", additive=True)
def a_running_mean_in_new_memory() -> Parts:
    class Swaps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x: Tensor) -> Tensor:
            self.mean.data = 0.9 * self.mean.data + 0.1 * x.detach().mean(0)
            return x

    return Parts(mlp(Swaps()), cross_entropy, batch())


@pair("module_state", additive=False)
def a_weight_that_is_replaced_in_forward() -> Parts:
    class Replaced(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            out = self.layer(x)
            self.layer.weight = nn.Parameter(0.9 * self.layer.weight.detach())
            return out

    return Parts(mlp(Replaced()), cross_entropy, batch())


class Ghosts(nn.Module):
    """A batch norm over four examples at a time, whatever comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.norm(part) for part in x.split(4)])


@pair()
def ghost_batch_norm_of_the_micro_batchs_size() -> Parts:
    return Parts(mlp(Ghosts()), cross_entropy, batch(examples=16), 4)


@pair("batch_statistics", "module_state", additive=False)
def ghost_batch_norm_of_another_size() -> Parts:
    return Parts(mlp(Ghosts()), cross_entropy, batch(examples=16), 2)


class Sequences(nn.Module):
    """A layer that takes (time, example, feature), and is given (example, time, feature)."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        steps = x.unflatten(1, (5, 4))
        arguments = (steps, steps, steps) if isinstance(self.layer, nn.MultiheadAttention) else (steps,)
        return self.out(self.layer(*arguments)[0].mean(1))


@pair("batch_statistics")
def attention_across_the_batch() -> Parts:
    return Parts(Sequences(nn.MultiheadAttention(4, 2)), cross_entropy, batch(features=20))


@pair("batch_statistics")
def recurrence_across_the_batch() -> Parts:
    return Parts(Sequences(nn.GRU(4, 4)), cross_entropy, batch(features=20))


@pair("batch_statistics", "module_state", additive=False)
def batch_norm_in_a_head_that_the_loss_holds() -> Parts:
    head = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(head(model(data[0])), data[1])

    return Parts(mlp(), loss, batch(), others=(head,))
