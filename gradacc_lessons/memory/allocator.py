"""What the CPU's allocator itself reports, through torch.profiler: the yardstick for every other count here."""

from collections.abc import Callable

import torch


def allocator_peak(run: Callable[[], object], in_use: int) -> int:
    """The most bytes in use at one moment of `run`, counted by the events of PyTorch's CPU allocator.

    The events are changes, so `in_use` says how many bytes were in use before. They include what a kernel takes
    and gives back within one operation, but not what libraries below PyTorch take by themselves.
    """
    with torch.autograd.profiler.profile(profile_memory=True) as recorded:
        run()
    events = [event for event in recorded.kineto_results.events() if event.name() == "[memory]"]
    now = most = in_use
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most
