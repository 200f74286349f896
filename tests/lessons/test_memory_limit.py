"""The limit refuses a batch and lets the same examples through in micro-batches; its count is exact."""

import pytest
import torch
from torch import nn

from gradacc_lessons.accumulation import accumulate, split
from gradacc_lessons.lessons.memory_limit import MemoryLimit
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.tasks import digits


def test_a_refused_batch_fits_in_four_parts_with_the_same_gradient() -> None:
    task = digits("cnn", dtype=torch.float64)
    model = task.build_model()
    batch = tuple(tensor[:512] for tensor in task.train)
    task.loss_fn(model, batch).backward()
    full = gradient(model)
    with pytest.raises(MemoryError, match="more than 8 MiB"), MemoryLimit(model, 8):
        task.loss_fn(model, batch)
    model.zero_grad()
    with MemoryLimit(model, 8) as limit:
        accumulate(model, split(batch, 128), task.loss_sum, task.count)
    assert 0 < limit.peak_mebibytes <= 8
    assert (gradient(model) - full).abs().max() <= 1e-12


def test_the_count_is_the_bytes_that_a_linear_layer_keeps() -> None:
    layer = nn.Linear(100, 3)
    batch = torch.ones(50, 100)
    with MemoryLimit(layer, 1) as limit:
        loss = layer(batch).sum()
        assert limit.kept_bytes == 50 * 100 * 4  # its input, for the weight's gradient; not the weight
        loss.backward()
    assert limit.kept_bytes == 0
    assert limit.peak_bytes == 50 * 100 * 4


def test_what_two_operations_keep_is_counted_once() -> None:
    model = nn.ParameterList([torch.ones(1000), torch.ones(1000)])
    batch = torch.ones(1000)
    with MemoryLimit(model, 1) as limit:
        kept = model[0] * batch + model[1] * batch
        assert limit.kept_bytes == 4000
        del kept
        assert limit.kept_bytes == 0


def test_the_limit_ends_with_its_block() -> None:
    model = nn.Linear(1000, 1000)
    with MemoryLimit(model, 0.001):
        pass
    model(torch.ones(1000, 1000)).sum().backward()  # keeps 4 MB, and is not refused
