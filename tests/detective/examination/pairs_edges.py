"""What lies at the edge: batches that are more than tensors, kernels without float64, odd values of the parameters."""

import torch
from detective.examination.pairs import Parts, batch, cross_entropy, mlp, pair
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F


def _at_the_lengths(model: nn.Module, data: dict) -> Tensor:
    rows = zip(model(data["x"]), data["lengths"], strict=True)
    return torch.stack([row[:length].square().mean() for row, length in rows]).mean()


@pair()
def lengths_in_a_list() -> Parts:
    return Parts(nn.Linear(6, 3), _at_the_lengths, {"x": torch.randn(8, 5, 6), "lengths": [5, 3, 2, 1, 4, 5, 2, 3]})


@pair()
def lengths_in_an_array() -> Parts:
    lengths = torch.tensor([5, 3, 2, 1, 4, 5, 2, 3]).numpy()
    return Parts(nn.Linear(6, 3), _at_the_lengths, {"x": torch.randn(8, 5, 6), "lengths": lengths})


@pair()
def divided_by_the_number_of_names() -> Parts:
    def loss(model: nn.Module, data: tuple) -> Tensor:
        return F.cross_entropy(model(data[0]), data[1], reduction="sum") / len(data[2])

    return Parts(mlp(), loss, (*batch(), tuple(f"utterance {k}" for k in range(8))))


class Attributes(dict):
    """Entries that are attributes too."""

    __getattr__ = dict.__getitem__


class Two(tuple):
    """A tuple that is made of two things."""

    def __new__(cls, x: Tensor, y: Tensor) -> "Two":
        return super().__new__(cls, (x, y))


@pair()
def a_dict_whose_entries_are_attributes() -> Parts:
    x, y = batch()
    return Parts(mlp(), lambda m, d: F.cross_entropy(m(d.x), d.y), Attributes(x=x, y=y))


@pair()
def a_tuple_that_is_made_of_two() -> Parts:
    return Parts(mlp(), cross_entropy, Two(*batch()))


@pair("loss_not_additive")
def an_output_whose_entries_are_attributes() -> Parts:
    class Output(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Attributes:
            return Attributes(z=self.layer(x))

    def loss(model: nn.Module, data: tuple) -> Tensor:
        z = model(data[0]).z
        return F.cross_entropy(z @ z.T, torch.arange(len(z)))

    return Parts(Output(), loss, batch())


@pair()
def a_model_at_its_optimum() -> Parts:
    x, y = torch.randn(64, 6), torch.randn(64, 1)
    model = nn.Linear(6, 1, bias=False)
    model.weight.data = torch.linalg.lstsq(x.double(), y.double()).solution.T.float()
    return Parts(model, lambda m, d: F.mse_loss(m(d[0]), d[1]), (x, y), 16)


@pair("module_state", additive=True)
def batch_norm_of_examples_that_are_equal() -> Parts:
    return Parts(mlp(nn.BatchNorm1d(8)), cross_entropy, (torch.ones(8, 6), torch.tensor([0, 1] * 4)))


class Float32(nn.Module):
    """Stands for a kernel that has no float64."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype != torch.float32:
            raise RuntimeError("float32 only")
        return x


@pair()
def without_float64() -> Parts:
    return Parts(mlp(Float32()), cross_entropy, batch())


@pair("unequal_items")
def one_token_of_400_without_float64() -> Parts:
    x, y = torch.randn(8, 50, 6), torch.randint(0, 3, (8, 50))
    y[0, 0] = -100
    return Parts(mlp(Float32()), lambda m, d: F.cross_entropy(m(d[0]).flatten(0, 1), d[1].flatten()), (x, y))


@pair("loss_not_additive")
def a_small_covariance_without_float64() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        z = model(data[0])
        return F.cross_entropy(z, data[1]) + 1e-2 * z.T.cov().square().sum()

    return Parts(mlp(Float32()), loss, batch(), 4)


@pair("loss_not_additive")
def experts_with_the_usual_balance_loss() -> Parts:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, num_local_experts=4, output_router_logits=True,
    )  # fmt: skip
    tokens = torch.randint(0, 20, (8, 7))
    data = {"input_ids": tokens, "labels": tokens}
    return Parts(MixtralForCausalLM(config), lambda m, d: m(**d).loss, data)


@pair("loss_not_additive")
def a_head_of_zeros_before_the_mean_prediction() -> Parts:
    model = mlp()
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        mean = model(data[0]).softmax(1).mean(0)
        return cross_entropy(model, data) + (mean * mean.log()).sum()

    return Parts(model, loss, batch())


@pair()
def a_head_of_zeros() -> Parts:
    model = mlp()
    nn.init.zeros_(model[-1].weight)
    return Parts(model, cross_entropy, batch())


@pair("loss_not_additive")
def weights_that_depend_on_the_batch() -> Parts:
    """MAML: one update of its own before the loss is taken."""

    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        now = dict(model.named_parameters())
        slopes = torch.autograd.grad(cross_entropy(model, data), list(now.values()), create_graph=True)
        moved = {name: value - 0.5 * slope for (name, value), slope in zip(now.items(), slopes, strict=True)}
        return F.cross_entropy(functional_call(model, moved, (data[0],)), data[1])

    return Parts(mlp(), loss, batch())


@pair("unknown")
def hooks_that_clip_each_gradient() -> Parts:
    model = mlp()
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    return Parts(model, cross_entropy, batch())


@pair("batch_statistics")
def batch_first_forgotten() -> Parts:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.out = nn.LSTM(6, 6), nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.encoder(x)[0].mean(1))

    return Parts(Model(), cross_entropy, (torch.randn(8, 5, 6), torch.randint(0, 3, (8,))))


@pair()
def a_frozen_base_made_in_inference_mode() -> Parts:
    with torch.inference_mode():
        base = mlp()

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base, self.layer = [base], nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                known = self.base[0](x)
            return self.layer(x) + known.clone()

    return Parts(Model(), cross_entropy, batch())


@pair()
def draws_that_almost_never_matter() -> Parts:
    return Parts(mlp(nn.Dropout(1e-5)), cross_entropy, batch())
