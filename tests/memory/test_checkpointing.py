"""Checkpointed blocks: the same gradient, less kept, and which modules are blocks."""

import copy

import pytest
import torch
from torch import nn

from gradacc_lessons import measure_peak
from gradacc_lessons.memory.checkpointing import checkpoint_blocks

WIDTH, EXAMPLES = 64, 256


def block():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1))


class Tower(nn.Module):
    """Blocks in a ModuleList, with something before and after that is no block."""

    def __init__(self):
        super().__init__()
        self.first, self.blocks, self.last = (
            nn.Linear(WIDTH, WIDTH),
            nn.ModuleList(block() for _ in range(4)),
            nn.GELU(),
        )

    def forward(self, x):
        x = self.first(x)
        for part in self.blocks:
            x = x + part(x)
        return self.last(x)


def gradients(model, x):
    torch.manual_seed(7)
    model(x).square().mean().backward()
    return [parameter.grad for parameter in model.parameters()]


@pytest.fixture
def pair():
    """The same model twice; the blocks of the second are checkpointed."""
    torch.manual_seed(0)
    plain = Tower().double()
    again = copy.deepcopy(plain)
    assert checkpoint_blocks(again) == 4
    return plain, again, torch.randn(EXAMPLES, WIDTH, dtype=torch.float64)


def test_the_gradient_is_the_same_to_the_last_bit_with_dropout_too(pair):
    plain, again, x = pair
    for kept, computed_again in zip(gradients(plain, x), gradients(again, x), strict=True):
        assert torch.equal(kept, computed_again)


def test_less_is_kept(pair):
    plain, again, x = pair
    saved = [
        measure_peak(lambda model=model: gradients(model, x), model=model, inputs=x).by_category["saved activations"]
        for model in (plain, again)
    ]
    assert saved[1] < 0.5 * saved[0]


def test_the_outermost_sequence_of_blocks_counts():
    assert checkpoint_blocks(nn.Sequential(nn.Linear(WIDTH, WIDTH), block(), block())) == 2
    assert checkpoint_blocks(nn.ModuleDict({"body": nn.Sequential(block(), block()), "head": block()})) == 2


def test_a_block_may_hold_its_weights_itself():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.eye(WIDTH))

        def forward(self, x):
            return (x @ self.weight).tanh()

    assert checkpoint_blocks(nn.ModuleList(Own() for _ in range(3))) == 3
    assert checkpoint_blocks(nn.ModuleList([nn.Linear(WIDTH, WIDTH), Own()])) == 1


@pytest.mark.parametrize("model", [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.GELU())])
def test_without_blocks_one_sentence_says_what_to_do(model):
    with pytest.raises(ValueError, match=r"has no nn\.ModuleList .* leave checkpointing off"):
        checkpoint_blocks(model)


@pytest.mark.parametrize("what", ["activation", "gradient"])
def test_a_model_with_a_method_for_it_is_asked(what):
    asked = {}
    model = Tower()
    setattr(model, f"{what}_checkpointing_enable", asked.update)
    assert checkpoint_blocks(model) == 1
    assert asked == {f"{what}_checkpointing_kwargs": {"use_reentrant": False}}
    assert all("forward" not in vars(part) for part in model.blocks)
