"""Architectures: transformers, recurrent networks, mixtures of experts, and how numbers are kept."""

from typing import Any

import torch
from detective.examination.pairs import B, Parts, batch, cross_entropy, mlp, pair
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


def _language(model: Any, vocabulary: int = 20, length: int = 7) -> Parts:
    tokens = torch.randint(0, vocabulary, (B, length))
    data = {"input_ids": tokens, "labels": tokens}
    return Parts(model, lambda m, d: m(**d).loss, data)


@pair()
def gpt2() -> Parts:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=20, n_positions=8, n_embd=16, n_layer=2, n_head=2)
    return _language(GPT2LMHeadModel(config).eval())


@pair("randomness")
def gpt2_with_dropout() -> Parts:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=20, n_positions=8, n_embd=16, n_layer=2, n_head=2)
    return _language(GPT2LMHeadModel(config).train())


@pair()
def llama() -> Parts:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1,
    )  # fmt: skip
    return _language(LlamaForCausalLM(config).train())


@pair("unequal_items")
def bert_with_few_masked_tokens() -> Parts:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
    )  # fmt: skip
    tokens = torch.randint(5, 20, (4, 7))
    labels = tokens.clone()
    for k, number in enumerate((1, 2, 4, 5)):
        labels[k, number:] = -100
    data = {"input_ids": tokens, "labels": labels, "attention_mask": torch.ones_like(tokens)}
    return Parts(BertForMaskedLM(config).eval(), lambda m, d: m(**d).loss, data, 1)


@pair("randomness")
def bert_in_training() -> Parts:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
    )  # fmt: skip
    data = {"input_ids": torch.randint(5, 20, (B, 7)), "labels": torch.randint(0, 2, (B,))}
    return Parts(BertForSequenceClassification(config).train(), lambda m, d: m(**d).loss, data)


@pair()
def vision_transformer() -> Parts:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=8, patch_size=4,
        num_channels=1, num_labels=3,
    )  # fmt: skip
    data = {"pixel_values": torch.randn(B, 1, 8, 8), "labels": torch.randint(0, 3, (B,))}
    return Parts(ViTForImageClassification(config).train(), lambda m, d: m(**d).loss, data)


def _mixtral(coefficient: float) -> Parts:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, num_local_experts=3, num_experts_per_tok=1, output_router_logits=coefficient > 0,
        router_aux_loss_coef=coefficient,
    )  # fmt: skip
    return _language(MixtralForCausalLM(config).train())


@pair()
def mixtral() -> Parts:
    return _mixtral(0.0)


@pair("loss_not_additive")
def mixtral_with_a_balance_loss() -> Parts:
    return _mixtral(0.5)


class Experts(nn.Module):
    """Each row goes to one expert; at most `capacity` times its fair share of rows to each."""

    def __init__(self, capacity: float | None = None) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(8, 3), nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.capacity, self.balance = capacity, torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        share = self.router(x).softmax(1)
        best, chosen = share.max(1)
        self.balance = (share.mean(0) * F.one_hot(chosen, 3).to(x).mean(0)).sum()
        out = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            rows = (chosen == k).nonzero()[:, 0]
            if self.capacity is not None:
                rows = rows[: max(1, int(self.capacity * len(x) / 3))]
            if len(rows):
                out[rows] = expert(x[rows]) * best[rows, None]
        return x + out


@pair()
def mixture_of_experts() -> Parts:
    return Parts(mlp(Experts()), cross_entropy, batch(examples=16), 4)


@pair("loss_not_additive")
def mixture_of_experts_with_a_balance_loss() -> Parts:
    return Parts(mlp(Experts()), lambda m, d: cross_entropy(m, d) + m[1].balance, batch(examples=16), 4)


@pair("batch_statistics")
def mixture_of_experts_that_drops_rows() -> Parts:
    return Parts(mlp(Experts(capacity=1.0)), cross_entropy, batch(examples=16), 4)


class Recurrent(nn.Module):
    """The last state of a recurrent layer, classified."""

    def __init__(self, layer: type[nn.RNNBase], batch_first: bool) -> None:
        super().__init__()
        self.layer, self.out, self.first = layer(4, 5, batch_first=batch_first), nn.Linear(5, 3), batch_first

    def forward(self, x: Tensor) -> Tensor:
        steps = x.unflatten(1, (5, 4))
        states = self.layer(steps if self.first else steps.transpose(0, 1))[0]
        return self.out(states[:, -1] if self.first else states[-1])


@pair()
def lstm() -> Parts:
    return Parts(Recurrent(nn.LSTM, True), cross_entropy, batch(features=20))


@pair()
def gru_with_time_first() -> Parts:
    return Parts(Recurrent(nn.GRU, False), cross_entropy, batch(features=20), 3 - 1)


@pair()
def recurrent_cells_that_begin_with_zeros() -> Parts:
    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.out = nn.GRUCell(4, 5), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            state = torch.zeros(len(x), 5)
            for now in x.unflatten(1, (5, 4)).unbind(1):
                state = self.cell(now, state)
            return self.out(state)

    return Parts(Cells(), cross_entropy, batch(features=20))


@pair()
def tied_weights() -> Parts:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layer, self.head = nn.Embedding(12, 6), nn.Linear(6, 6), nn.Linear(6, 12, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens: Tensor) -> Tensor:
            return self.head(torch.tanh(self.layer(self.embedding(tokens))))

    tokens = torch.randint(0, 12, (B, 5))
    return Parts(Tied(), lambda m, d: F.cross_entropy(m(d[:, :-1]).flatten(0, 1), d[:, 1:].flatten()), tokens)


@pair()
def sparse_embedding() -> Parts:
    model = nn.Sequential(nn.EmbeddingBag(30, 6, sparse=True), nn.Linear(6, 3))
    return Parts(model, cross_entropy, (torch.randint(0, 30, (B, 4)), torch.randint(0, 3, (B,))))


@pair()
def transformer_encoder() -> Parts:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.out = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.layer(x.unflatten(1, (5, 4))).mean(1))

    return Parts(Encoder(), cross_entropy, batch(features=20))


class Checkpointed(nn.Module):
    """Computes its block again in backward."""

    def __init__(self, reentrant: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.reentrant = nn.Linear(6, 6), reentrant
        self.block = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Dropout(dropout), nn.Linear(6, 3))

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.block, self.first(x), use_reentrant=self.reentrant)


@pair()
def checkpointing() -> Parts:
    return Parts(Checkpointed(False), cross_entropy, batch())


@pair()
def reentrant_checkpointing() -> Parts:
    return Parts(Checkpointed(True), cross_entropy, batch())


@pair("randomness")
def checkpointing_with_dropout() -> Parts:
    return Parts(Checkpointed(False, 0.5), cross_entropy, batch())


@pair("low_precision")
def bfloat16() -> Parts:
    x, y = batch()
    return Parts(mlp().bfloat16(), cross_entropy, (x.bfloat16(), y), 1)


@pair()
def autocast() -> Parts:
    def loss(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return cross_entropy(model, data)

    return Parts(mlp(nn.Linear(8, 8)), loss, batch())


@pair()
def complex_weights() -> Parts:
    class Spectral(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.out = nn.Parameter(torch.randn(4, 4, dtype=torch.cfloat)), nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(torch.fft.irfft(torch.fft.rfft(x) @ self.weight, n=6))

    return Parts(Spectral(), cross_entropy, batch())


@pair()
def lora() -> Parts:
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=20, n_positions=8, n_embd=16, n_layer=1, n_head=2)
    model = get_peft_model(GPT2LMHeadModel(config), LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_()
    return _language(model.eval())


@pair()
def numbers_that_are_made_float32_on_the_way() -> Parts:
    class Cast(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.to(torch.float32) * torch.ones(8, dtype=torch.float32)

    return Parts(mlp(Cast()), cross_entropy, batch())


@pair("unequal_items", "low_precision")
def bfloat16_and_labels_that_do_not_count() -> Parts:
    x, y = batch()
    y[[0, 3, 4]] = -100
    return Parts(mlp().bfloat16(), cross_entropy, (x.bfloat16(), y))


@pair("batch_statistics", "module_state", "low_precision", additive=False)
def bfloat16_and_batch_norm() -> Parts:
    x, y = batch()
    return Parts(mlp(nn.BatchNorm1d(8)).bfloat16(), cross_entropy, (x.bfloat16(), y))
