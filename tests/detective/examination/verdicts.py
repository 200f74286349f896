"""What is asked of every pair: the right verdict, and nothing of the caller's changed."""

import time

import torch
from detective.examination.caller import everything, given_gradients
from detective.examination.pairs import Pair

from gradacc_lessons import Examination, examine

SECONDS = 5.0
"""On two cores, for small models. Processor time: other processes do not count."""


def examined(one: Pair) -> Examination:
    """The verdict on a pair, which is right and leaves no trace."""
    torch.manual_seed(0)
    parts = one.build()
    given_gradients(parts)
    before, begun = everything(parts), time.process_time()
    found = examine(parts.model, parts.loss_fn, parts.batch, parts.micro_batch_size, **parts.options)
    spent = time.process_time() - begun
    after = everything(parts)
    assert {name for name in before | after if before.get(name) != after.get(name)} == set()
    assert (found.causes, found.additive) == (one.causes, one.additive), str(found)
    assert spent < SECONDS
    _consistent(found)
    return found


def _consistent(found: Examination) -> None:
    """Words, table and numbers say the same as the verdict."""
    assert len(found.remedies) == len(found.causes)
    assert list(found.table) == ["parameter", "relative_error", "cosine", "ratio"] and len(found.table)
    assert found.to("nl") != found.to("en")
    assert ("It adds up" in found.to("en"), "Het telt op" in found.to("nl")) == (found.additive, found.additive)
    if found.additive:
        assert found.relative_error < 1e-6
