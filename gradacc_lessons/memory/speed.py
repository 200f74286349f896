"""How fast a planned micro-batch is, measured on the machine that planned it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.options import Option
from gradacc_lessons.memory.trial import Trial, fits_here

Rates = tuple[tuple[int, float], ...]
"""(micro-batch size, examples per second), the smallest first."""
SECONDS_FOR_TIMES = 2.0
"""Throughput is measured for about so long."""
LONGEST_BACKWARD = 2.0
"""Where one forward and backward takes more seconds than this, checkpointing is not timed."""


def throughput(trial: Trial, largest: int) -> Rates:
    """(micro-batch size, examples per second) at 1, 2, 4 … and the largest, as far as the time for it goes."""
    sizes = [2**k for k in range(largest.bit_length()) if 2**k < largest] + [largest]
    rates: list[tuple[int, float]] = []
    left = SECONDS_FOR_TIMES
    for size in sizes:
        start = perf_counter()
        with suppress(ValueError):  # BatchNorm refuses a single example
            rates.append((size, size / trial.seconds(size)))
        spent = perf_counter() - start
        left -= spent
        if left < 2 * spent:
            break
    return tuple(rates)


def checkpointing_slows(found: Iterable[Option], forecast: Forecast, trial: Trial, size: int) -> tuple[Option, ...]:
    """The options with the price of checkpointing as measured here: how much longer a micro-batch of `size` takes."""
    return tuple(
        _priced(option, forecast, trial, size) if "checkpointing" in option.changes else option for option in found
    )


def _priced(option: Option, forecast: Forecast, trial: Trial, size: int) -> Option:
    if not fits_here(2 * forecast.peak(size, 1), forecast.device):
        return replace(option, price=f"{option.price}; not timed here, as two models at once have no room")
    plain = trial.seconds(size, times=1)
    if plain > LONGEST_BACKWARD:
        why = f"one micro-batch takes more than {LONGEST_BACKWARD:.0f} seconds"
        return replace(option, price=f"{option.price}; not timed here, as {why}")
    other = Trial(forecast.variant(**option.changes))
    pairs = [(trial.seconds(size, times=1), other.seconds(size, times=1)) for _ in range(5)]
    ratio = min(slow for _, slow in pairs) / min(quick for quick, _ in pairs)
    return replace(option, price=f"{option.price}; here forward and backward took {ratio:.2f} times as long")
