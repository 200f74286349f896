"""What a device's own counters say; the tests of a device run where there is one."""

import pytest
import torch
from torch import nn

from gradacc_lessons import measure_peak
from gradacc_lessons.memory.device_peak import _AfterEach, device_peak

MEBIBYTE = 2**20
DEVICES = [
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")),
    pytest.param("mps", marks=pytest.mark.skipif(not torch.backends.mps.is_available(), reason="no MPS device here")),
]


def test_the_cpu_has_no_counters_and_the_run_still_happens_once():
    runs = []
    assert device_peak(lambda: runs.append(1), torch.device("cpu")) is None
    assert runs == [1]


def test_a_counter_without_a_peak_is_read_after_each_operation():
    lives = []

    def in_use():
        return sum(tensor.nbytes for tensor in lives)

    with _AfterEach(in_use, lambda: 7) as asked:
        for size in (4, 16, 8):
            lives.append(torch.ones(size))
            torch.ones(1)  # the operation after which it is seen
            lives.clear()
    assert asked.most == (4 * 16, 7)


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_counts_what_its_tensors_take(device):
    before = device_peak(lambda: None, torch.device(device))
    found = device_peak(lambda: torch.ones(64 * MEBIBYTE // 4, device=device).add(1), torch.device(device))
    assert found.allocated_bytes - before.allocated_bytes == pytest.approx(128 * MEBIBYTE, rel=0.01)
    assert found.reserved_bytes >= found.allocated_bytes
    assert found.counter and found.cannot_see


@pytest.mark.parametrize("device", DEVICES)
def test_measuring_on_a_device_says_who_counted(device):
    model = nn.Linear(512, 512).to(device)
    inputs = torch.ones(256, 512, device=device)
    found = measure_peak(lambda: model(inputs).sum().backward(), model=model, inputs=inputs)
    assert device.upper() in found.counter
    assert found.reserved_bytes >= found.peak_bytes >= sum(p.nbytes for p in model.parameters())
    assert "watched" in found.cannot_see
