"""The yardstick: what the allocator reports, and nothing of what happened before."""

import gc

import torch

from gradacc_lessons.memory.allocator import allocator_peak


def test_the_peak_of_tensors_of_known_size() -> None:
    def run() -> None:
        first = torch.zeros(1000)
        second = torch.zeros(500)
        del first
        second.clone()

    assert allocator_peak(run, 100) == 100 + 4 * 1500


def test_garbage_of_earlier_runs_is_not_freed_on_this_ones_account() -> None:
    class Ring:
        def __init__(self) -> None:
            self.itself, self.tensor = self, torch.zeros(10_000)

    gc.collect()
    allocator_peak(Ring, 0)  # unreachable afterwards, but not gone before a collection

    def run() -> None:
        many = [[] for _ in range(200_000)]  # enough objects for a collection
        many.append(torch.zeros(1000))

    assert allocator_peak(run, 0) == 4 * 1000
    assert gc.isenabled()
