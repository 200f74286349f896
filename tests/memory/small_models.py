"""Eight models of different build, quick to follow, each with a recipe of its own: what plans are tried on."""

import json
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from gradacc_lessons.recipe import Recipe
from gradacc_lessons.tasks import chat

WORDS, TOKENS, WIDTH = 1024, 32, 128


class MixtureOfExperts(nn.Module):
    """Every expert answers every token, and a router weighs the answers."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.router = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(4))

    def forward(self, tokens):
        x = self.embed(tokens)
        answers = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return self.head((answers * self.router(x).softmax(-1).unsqueeze(-2)).sum(-1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.gru, self.head = nn.Embedding(WORDS, WIDTH), nn.GRU(WIDTH, WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.gru(self.embed(tokens))[0])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.norm, self.head = nn.GroupNorm(4, 32), nn.Conv2d(48, 4, 1)

    def forward(self, x):
        seen = F.silu(self.down(x))
        deep = F.silu(self.norm(self.deep(F.max_pool2d(seen, 2))))
        return self.head(torch.cat([seen, F.interpolate(deep, scale_factor=2.0)], dim=1))


def classes(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def next_word(model, batch):
    return F.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def mlp():
    """For each of 16 places, so that the update binds for few examples and the activations for many."""
    layers = nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    return nn.Sequential(*layers, nn.Flatten())


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2, groups=32),
        nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def vectors(size):
    return torch.zeros(size, 16, 256), torch.zeros(size, dtype=torch.long)


def images(size):
    return torch.zeros(size, 3, 32, 32), torch.zeros(size, dtype=torch.long)


def masks(size):
    return torch.zeros(size, 3, 32, 32), torch.zeros(size, 32, 32, dtype=torch.long)


def words(size):
    return torch.zeros(size, TOKENS, dtype=torch.long), torch.zeros(size, TOKENS, dtype=torch.long)


def few_words(size):
    return torch.zeros(size, 8, dtype=torch.long), torch.zeros(size, 8, dtype=torch.long)


def config_file(folder: Path, name: str) -> Path:
    """A configuration file of transformers' for a small "llama" or "bert"."""
    sizes = {"hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 1, "num_attention_heads": 4}
    architecture = {"llama": "LlamaForCausalLM", "bert": "BertForMaskedLM"}[name]
    file = folder / f"{name}.json"
    file.write_text(
        json.dumps({"model_type": name, "architectures": [architecture], "vocab_size": WORDS, **sizes}),
        encoding="utf-8",
    )
    return file


def model(name: str, folder: Path):
    """(build_model, loss_fn, make_batch, recipe) of one of the eight. Configuration files go into `folder`."""
    if name in ("Llama", "BERT"):
        from gradacc_lessons.memory.config import parts_of_config

        optimizer = {"Llama": "adamw", "BERT": "sgd"}[name]
        return *parts_of_config(config_file(folder, name.lower()), TOKENS), Recipe(optimizer=optimizer)
    if name == "GPT, tied":
        task = chat(length=32, width=128, layers=1)
        return task.build_model, task.loss_fn, task.make_batch, Recipe(optimizer="adamw", checkpointing=True)
    return {
        "MLP": (mlp, classes, vectors, Recipe(optimizer="adamw")),
        "CNN with BatchNorm": (cnn, classes, images, Recipe(optimizer="momentum", set_to_none=False)),
        "U-Net": (UNet, classes, masks, Recipe(optimizer="adam", max_norm=1.0)),
        "GRU": (Recurrent, next_word, few_words, Recipe(optimizer="sgd")),
        "mixture of experts": (MixtureOfExperts, next_word, words, Recipe(optimizer="adafactor")),
    }[name]


NAMES = ("MLP", "CNN with BatchNorm", "U-Net", "GPT, tied", "GRU", "mixture of experts", "Llama", "BERT")
