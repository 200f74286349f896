"""Conversations: what counts, what is the longest, and training that learns and accumulates rightly."""

import re
import sys

import pytest
import torch
from torch.nn import functional as F

from gradacc_lessons.accumulation import accumulate, split
from gradacc_lessons.tasks import chat as chat_package
from gradacc_lessons.tasks.chat import END, IGNORED, TRAIN_EXAMPLES, _exchanges, _sequences, chat

EQUAL = 1e-12
"""Float64 sums in another order differ in the last digits."""


@pytest.fixture(scope="module")
def task():
    return chat()


@pytest.fixture
def without_conversations(monkeypatch: pytest.MonkeyPatch):
    """As if the package with the conversations were not installed."""
    monkeypatch.setitem(sys.modules, "chitchat_dataset", None)
    _sequences.cache_clear()
    yield
    _sequences.cache_clear()


def answers(task) -> torch.Tensor:
    return (task.train[1] != IGNORED).sum(dim=1)


def check_masks(task) -> None:
    tokens, labels = task.train
    counted = labels != IGNORED
    assert tokens.shape == labels.shape == (TRAIN_EXAMPLES, 128)
    # One stretch of labels for each example; within it, a label is the token that comes next.
    assert ((counted[:, 1:].int() - counted[:, :-1].int()) == 1).sum(dim=1).max() <= 1
    following = counted[:, :-1] & counted[:, 1:]
    assert torch.equal(labels[:, :-1][following], tokens[:, 1:][following])
    for row in range(0, TRAIN_EXAMPLES, 97):
        first, last = (counted[row].nonzero()[k].item() for k in (0, -1))
        assert tokens[row, first] == END  # the answer begins after the end of what was said
        assert labels[row, last] == END or last == 127  # and ends itself, unless it was cut off
        assert (tokens[row, last + 1 :] == END).all()
        assert END not in labels[row, first:last]


def test_only_the_answer_has_labels(task) -> None:
    check_masks(task)
    assert task.count(task.train) == answers(task).sum()


def test_the_lengths_spread_from_a_word_to_a_whole_sequence(task) -> None:
    counts = answers(task)
    assert counts.min() <= 6
    assert counts.max() >= 100
    assert counts.float().std() > 15


def test_no_private_strings(task) -> None:
    private = re.compile(r"\S+@\S+|https?:|www\.|\d{5,}")
    assert not any(private.search(f"{said} {answered}") for said, answered in _exchanges())
    for tokens in task.train[0]:
        assert not private.search(bytes(tokens.tolist()).replace(b"\0", b" ").decode(errors="replace"))


def test_make_batch_gives_the_longest(task) -> None:
    longest = answers(task).sort(descending=True).values
    for size in (1, 8):
        batch = task.make_batch(size)
        assert len(batch[0]) == size
        assert task.count(batch) == longest[:size].sum()
    assert len(task.make_batch(TRAIN_EXAMPLES + 3)[0]) == TRAIN_EXAMPLES + 3


def test_the_loss_is_torchs_own(task) -> None:
    model, batch = task.build_model(), task.make_batch(4)
    logits = model(batch[0])
    assert torch.allclose(task.loss_fn(model, batch), F.cross_entropy(logits.flatten(0, 1), batch[1].flatten()))


def test_what_comes_later_changes_nothing_before_it(task) -> None:
    model, (tokens, _) = task.build_model(), task.make_batch(1)
    changed = tokens.clone()
    changed[:, 60:] = 65
    assert torch.allclose(model(tokens)[:, :60], model(changed)[:, :60], atol=1e-5)
    assert model.head.weight is model.tokens.weight


def test_a_few_updates_lower_the_loss() -> None:
    small = chat(length=32, width=32, layers=1)
    model = small.build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    batches = split(small.train, 32)
    before = small.loss_fn(model, small.test).item()
    for batch in batches[:20]:
        small.loss_fn(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert small.loss_fn(model, small.test).item() < 0.8 * before


@pytest.mark.parametrize("size", [1, 3, 5])
def test_ragged_answers_accumulate_to_the_full_batch(size: int) -> None:
    small = chat(length=32, width=32, layers=1, dtype=torch.float64)
    batch = tuple(tensor[:8] for tensor in small.train)
    assert len({small.count(tuple(t[k : k + 1] for t in batch)) for k in range(8)}) > 3
    whole, parts = small.build_model(), small.build_model()
    small.loss_fn(whole, batch).backward()
    loss = accumulate(parts, split(batch, size), small.loss_sum, small.count)
    assert abs(loss - small.loss_fn(whole, batch).item()) <= EQUAL
    for p, q in zip(whole.parameters(), parts.parameters(), strict=True):
        assert (p.grad - q.grad).abs().max() <= EQUAL


def test_without_the_conversations_pythons_own_words_take_their_place(without_conversations: None) -> None:
    task = chat()
    check_masks(task)
    assert answers(task).float().std() > 15
    assert b"Python" in bytes(task.train[0].flatten().tolist())


def test_the_conversations_are_the_real_ones_where_they_are_installed(task) -> None:
    pytest.importorskip("chitchat_dataset")
    assert bytes(task.train[0].flatten().tolist()).count(b"Python") < 5


def test_sizes_that_cannot_be_are_named() -> None:
    with pytest.raises(ValueError, match="a sequence needs at least 16 tokens, not 8"):
        chat_package(length=8)
    with pytest.raises(ValueError, match="3 heads cannot share 128 features evenly"):
        chat(heads=3)
