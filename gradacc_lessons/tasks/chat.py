"""Conversations between people: answers of very different length, learned byte by byte, no download.

The text is the Chit-Chat Dataset (MIT licence). Where that package is missing, the paragraphs of Python's own
documentation take its place.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.accumulation import Batch
from gradacc_lessons.device import seeded
from gradacc_lessons.tasks.task import Task

TRAIN_EXAMPLES = 2048
TEST_EXAMPLES = 256
IGNORED = -100
"""The label of a token that does not count: padding, and what was said before the answer."""
END = 0
"""Ends what was said and ends the answer, and fills the rest; no text has this byte."""
VOCABULARY = 256
PROMPT_SHARE = 3  # at most a third of a sequence is what was said before
SHUFFLE_SEED = 0
# Nobody's address or number belongs into a lesson.
_PRIVATE = re.compile(r"\S@\S|https?:|www\.|\d{5,}")


def chat(
    *,
    length: int = 128,
    width: int = 128,
    layers: int = 4,
    heads: int = 4,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Task:
    """Continue a conversation with a small causal transformer (842,496 parameters by default).

    A batch is (tokens, labels), both (examples, length) integers: what one person said, then what the other
    answered. Only the bytes of the answer have labels; all others are IGNORED, so what counts differs from
    example to example: 2 tokens for "ok", more than 100 for a story.

    ValueError unless `length` is at least 16 and `heads` divides `width`.
    """
    if length < 16:
        raise ValueError(f"a sequence needs at least 16 tokens, not {length}")
    if width % heads:
        raise ValueError(f"{heads} heads cannot share {width} features evenly")

    def new_model(seed: int) -> nn.Module:
        with seeded(seed):
            return ChatModel(length, width, layers, heads).to(device=device, dtype=dtype)

    tokens, labels = (tensor.to(device) for tensor in _sequences(length))
    return Task(
        name="chat, transformer",
        train=(tokens[:TRAIN_EXAMPLES], labels[:TRAIN_EXAMPLES]),
        test=(tokens[TRAIN_EXAMPLES:], labels[TRAIN_EXAMPLES:]),
        new_model=new_model,
        loss_sum=token_loss_sum,
        count=count_tokens,
    )


def token_loss_sum(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of the cross-entropies of the tokens that have a label."""
    tokens, labels = batch
    logits = model(tokens)
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")


def count_tokens(batch: Batch) -> int:
    """How many tokens have a label."""
    return int((batch[1] != IGNORED).sum())


class ChatModel(nn.Module):
    """A causal transformer whose input and output share one table of embeddings (tied weights)."""

    def __init__(self, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """(examples, length) token numbers -> (examples, length, 256) logits of the token that follows."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


class Block(nn.Module):
    """Attention to what came before, then two layers for each token by itself, both with a way around."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(examples, length, width) -> the same shape."""
        q, k, v = (self._by_head(part) for part in self.attend(self.norm1(x)).chunk(3, dim=-1))
        heard = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(heard.transpose(1, 2).flatten(2))
        result: Tensor = x + self.narrow(F.gelu(self.wide(self.norm2(x))))
        return result

    def _by_head(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


@cache
def _sequences(length: int) -> tuple[Tensor, Tensor]:
    """Tokens and labels of all examples, shuffled: (examples, length) each."""
    wanted = TRAIN_EXAMPLES + TEST_EXAMPLES
    pairs = [_encoded(*pair, length) for pair in _chosen(list(_exchanges()), wanted)]
    tokens = torch.full((wanted, length), END)
    labels = torch.full((wanted, length), IGNORED)
    for row, (said, answered) in enumerate(pairs):
        text = torch.tensor([*said, *answered])
        tokens[row, : len(text) - 1] = text[:-1]
        labels[row, len(said) - 1 : len(text) - 1] = text[len(said) :]
    return tokens, labels


def _chosen(pairs: list[tuple[str, str]], wanted: int) -> list[tuple[str, str]]:
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(SHUFFLE_SEED))
    return [pairs[k] for k in order[:wanted].tolist()]


def _encoded(said: str, answered: str, length: int) -> tuple[list[int], list[int]]:
    before = [*said.encode()[-(length // PROMPT_SHARE - 1) :], END]
    return before, [*answered.encode(), END][: length + 1 - len(before)]


def _exchanges() -> Iterator[tuple[str, str]]:
    """What was said and what was answered, for each pair of turns that names nobody's address."""
    for turns in _conversations():
        for said, answered in pairwise(turns):
            if said and answered and not _PRIVATE.search(f"{said} {answered}"):
                yield said, answered


def _conversations() -> Iterator[list[str]]:
    try:
        from chitchat_dataset import Dataset
    except ImportError:
        from pydoc_data.topics import topics

        for topic in topics.values():
            yield [" ".join(paragraph.split()) for paragraph in topic.split("\n\n")]
        return
    for conversation in Dataset().values():
        yield [" ".join(message["text"] for message in turn) for turn in conversation["messages"]]
