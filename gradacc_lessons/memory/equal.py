"""Micro-batches of one size, as frameworks take them, instead of a plan's two."""

from collections.abc import Iterator, Sequence

from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.sizes import readable


def largest_divisor(target: int, at_most: int) -> int:
    """The largest number up to `at_most` by which `target` can be divided."""
    return next(size for size in range(min(at_most, target), 0, -1) if target % size == 0)


def equal_peak(forecast: Forecast, sizes: Sequence[int]) -> int | None:
    """The predicted peak, in bytes, of a plan's equal micro-batches; None if the model refuses such small ones."""
    target = sum(sizes)
    try:
        return forecast.peak(target, target // largest_divisor(target, sizes[0]))
    except ValueError:
        return None


def what_equal_sizes_cost(forecast: Forecast, sizes: Sequence[int], room_bytes: int) -> str:
    """What frameworks make of a plan, and which target would suit them; empty if they lose nothing.

    `room_bytes` is what a window for another target may be predicted to take.
    """
    target, count = sum(sizes), len(sizes)
    size = largest_divisor(target, sizes[0])
    instead = target // size
    if instead == count:
        return ""
    forecast.tell("what frameworks need, whose micro-batches are all of one size")
    peak = equal_peak(forecast, sizes)
    words = f"Frameworks take micro-batches of one size. The largest that divides {target:,} and fits is {size:,}"
    if peak is None:
        words += ", and this model refuses such small ones."
    else:
        words += (
            f": {instead:,} forwards and backwards for each update instead of {count:,}, predicted peak "
            f"{readable(peak)}."
        )
    turns, each = next(
        (turns, each)
        for turns, each in _nearby(target, sizes)
        # Smaller ones than the plan's fit; more of the larger ones may not.
        if each * turns == count * sizes[-1] or forecast.peak(turns * each, turns) <= room_bytes
    )
    return f"{words} A target of {turns * each:,} = {turns:,} x {each:,} would need no more than {count:,}."


def _nearby(target: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(count, size) of windows with no more micro-batches and none larger, the nearest to the target first.

    A size below the plan's two is farther off, however many there are.
    """
    count, larger = len(sizes), sizes[0]
    below = target // larger
    found = {(count, sizes[-1]), (below, larger), (min(below + 1, count), larger)}
    yield from sorted(found, key=lambda window: (abs(window[0] * window[1] - target), window[0] * window[1]))
