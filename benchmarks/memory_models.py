"""Ten models of different build, small enough for any machine: what memory is predicted and measured for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.tasks.chat import chat

VOCABULARY, TOKENS, WIDTH = 4096, 64, 256


@dataclass(frozen=True)
class Subject:
    """A model with its loss and its batches, as `predict_peak` takes them."""

    build_model: Callable[[], nn.Module]
    """A fresh model, in the default dtype of the moment."""
    loss_fn: Callable[[nn.Module, Any], Tensor]
    """Its mean loss."""
    make_batch: Callable[[int], Any]
    """A batch of so many examples."""
    large: int
    """A batch size whose activations outweigh the parameters."""
    blocks: bool = True
    """Whether it has blocks that can be checkpointed."""


def mlp() -> Subject:
    """Linear layers of 1,024 features."""

    def build() -> nn.Module:
        blocks = [nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(3)]
        return nn.Sequential(*blocks, nn.Linear(1024, 10))

    return Subject(build, _classes, lambda size: (torch.randn(size, 1024), torch.randint(10, (size,))), 512)


def cnn() -> Subject:
    """Convolutions with BatchNorm, and a residual in each block."""

    def build() -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 96, 3, stride=2, padding=1), *(_Residual(96) for _ in range(4)),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10),
        )  # fmt: skip

    return Subject(build, _classes, lambda size: (torch.randn(size, 3, 64, 64), torch.randint(10, (size,))), 8)


def u_net() -> Subject:
    """Down and up again, with what was seen on the way down kept for the way up."""

    def batch(size: int) -> tuple[Tensor, Tensor]:
        return torch.randn(size, 3, 64, 64), torch.randint(4, (size, 64, 64))

    return Subject(_UNet, _classes, batch, 4)


def chat_gpt() -> Subject:
    """The course's own causal transformer, its embeddings tied to its output."""
    task = chat()
    return Subject(lambda: task.build_model().to(torch.get_default_dtype()), task.loss_fn, task.make_batch, 8)


def llama() -> Subject:
    """A small Llama, with fewer heads for keys than for queries."""
    return Subject(_llama, _language, _tokens, 4)


def lora() -> Subject:
    """The same Llama frozen, with LoRA beside its attention (peft)."""

    def build() -> nn.Module:
        from peft import LoraConfig, get_peft_model

        adapted = LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.1, task_type="CAUSAL_LM")
        model: nn.Module = get_peft_model(_llama(), adapted, autocast_adapter_dtype=False)
        return model

    return Subject(build, _language, _tokens, 4, blocks=False)


def bert() -> Subject:
    """A small BERT that fills in masked words, with padding."""

    def build() -> nn.Module:
        from transformers import BertConfig, BertForMaskedLM

        sizes = {"hidden_size": WIDTH, "intermediate_size": 4 * WIDTH, "num_hidden_layers": 3, "num_attention_heads": 4}
        return BertForMaskedLM(BertConfig(vocab_size=VOCABULARY, **sizes))

    def batch(size: int) -> dict[str, Tensor]:
        lengths = TOKENS - 8 * (torch.arange(size) % 4)  # the first is the longest
        return _tokens(size) | {"attention_mask": (torch.arange(TOKENS) < lengths[:, None]).long()}

    return Subject(build, _language, batch, 4)


def mixture_of_experts() -> Subject:
    """Every expert answers every token, and a router weighs the answers."""
    return Subject(_Mixture, _next_token, _pairs, 4)


def gru() -> Subject:
    """A recurrent language model."""
    return Subject(
        _Recurrent, _next_token, lambda size: tuple(t[:, :24].clone() for t in _pairs(size)), 8, blocks=False
    )


def encoder() -> Subject:
    """torch's own transformer layers, with dropout."""
    return Subject(_Encoder, _next_token, _pairs, 8)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "MLP": mlp, "CNN with BatchNorm": cnn, "U-Net": u_net, "chat GPT, tied": chat_gpt, "Llama": llama,
    "Llama with LoRA": lora, "BERT": bert, "mixture of experts": mixture_of_experts, "GRU": gru, "encoder": encoder,
}  # fmt: skip


def _classes(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch[0]), batch[1])


def _next_token(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def _language(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    loss: Tensor = model(**batch).loss
    return loss


def _pairs(size: int) -> tuple[Tensor, Tensor]:
    return torch.randint(VOCABULARY, (size, TOKENS)), torch.randint(VOCABULARY, (size, TOKENS))


def _tokens(size: int) -> dict[str, Tensor]:
    tokens, labels = _pairs(size)
    return {"input_ids": tokens, "labels": labels}


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": WIDTH, "intermediate_size": 688, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, use_cache=False, **sizes, **heads))


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.conv2, self.norm2 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class _UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(_double(a, b) for a, b in ((3, 32), (32, 64), (64, 128)))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in ((128, 64), (64, 32)))
        self.join = nn.ModuleList(_double(a, b) for a, b in ((128, 64), (64, 32)))
        self.head = nn.Conv2d(32, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        for block in self.down:
            x = block(F.max_pool2d(x, 2) if seen else x)
            seen.append(x)
        for up, join, before in zip(self.up, self.join, seen[-2::-1], strict=True):
            x = join(torch.cat([up(x), before], dim=1))
        out: Tensor = self.head(x)
        return out


def _double(before: int, after: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.SiLU(),
        nn.Conv2d(after, after, 3, padding=1), nn.GroupNorm(8, after), nn.SiLU(),
    )  # fmt: skip


class _Words(nn.Module):
    """Embedded tokens through a body of some kind, then scores for the next token."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.embed, self.body, self.head = nn.Embedding(VOCABULARY, WIDTH), body, nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.body(self.embed(tokens))
        scores: Tensor = self.head(x[0] if isinstance(x, tuple) else x)
        return scores


class _Recurrent(_Words):
    def __init__(self) -> None:
        super().__init__(nn.GRU(WIDTH, WIDTH, num_layers=2, batch_first=True))


class _Encoder(_Words):
    def __init__(self) -> None:
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
        super().__init__(nn.TransformerEncoder(layer, 3, enable_nested_tensor=False))


class _Mixture(_Words):
    def __init__(self) -> None:
        super().__init__(nn.Sequential(_Experts(), _Experts()))


class _Experts(nn.Module):
    def __init__(self, experts: int = 4) -> None:
        super().__init__()
        self.route = nn.Linear(WIDTH, experts)
        self.wide = nn.Parameter(torch.randn(experts, WIDTH, 2 * WIDTH) / WIDTH**0.5)
        self.narrow = nn.Parameter(torch.randn(experts, 2 * WIDTH, WIDTH) / WIDTH**0.5)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.route(x).softmax(dim=-1)
        hidden = F.gelu(torch.einsum("btd,edh->bteh", self.norm(x), self.wide))
        answers = torch.einsum("bteh,ehd->bted", hidden, self.narrow)
        return x + torch.einsum("bted,bte->btd", answers, weights)
