"""The reasons for a plan, in sentences with numbers."""

from collections.abc import Iterator, Sequence

from gradacc_lessons.memory.binding import WORDS, binding_moment
from gradacc_lessons.memory.forecast import Forecast, balanced
from gradacc_lessons.memory.options import Option
from gradacc_lessons.memory.profile import MemoryProfile
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.memory.trial import Measured

KNEE = 0.05
"""What is within this of the highest throughput is as fast."""


def shape(sizes: Sequence[int]) -> str:
    """The micro-batches in short: "1 of 52 and 4 of 51"."""
    return " and ".join(f"{sizes.count(size):,} of {size:,}" for size in dict.fromkeys(sizes))


def why_this_window(forecast: Forecast, target: int, budget: int, accumulation_steps: int) -> str:
    """Why so many micro-batches, and not one fewer."""
    now = f"predicted peak {readable(forecast.peak(target, accumulation_steps))} of {readable(budget)}"
    if accumulation_steps == 1:
        return f"All {target:,} examples fit at once: {now}."
    fewer = accumulation_steps - 1
    peak, size = forecast.peak(target, fewer), balanced(target, fewer)[0]
    them = f"{fewer:,} micro-batches of up to {size:,}" if fewer > 1 else f"one batch of {target:,}"
    over = f"{readable(peak - budget)} too much" if peak > budget else "and its real run took more than the budget"
    return (
        f"It takes {accumulation_steps:,} micro-batches: {shape(balanced(target, accumulation_steps))}, {now}. "
        f"With one fewer, {them} would need {readable(peak)}, {over}."
    )


def why_here(profile: MemoryProfile) -> str:
    """Which moment binds, and what is there then."""
    parts = sorted(profile.by_category.items(), key=lambda part: -part[1])
    largest = ", ".join(f"{name} {readable(size)}" for name, size in parts if size * 50 >= profile.peak_bytes)
    return f"The peak comes {WORDS[binding_moment(profile)]}. Then there are {largest}."


def what_more_costs(forecast: Forecast, target: int, accumulation_steps: int) -> str:
    """What one more example in a micro-batch costs, and what a second micro-batch does."""
    size = balanced(target, accumulation_steps)[0]
    example = f"One more example in a micro-batch costs {readable(forecast.cost_of_an_example(size))}"
    if binding_moment(forecast.profile(target, accumulation_steps)) == "update":
        example += " in forward and backward, where there is room for it now"
    second = forecast.cost_of_accumulating(size)
    if second <= 0:
        return f"{example}. Adding up over micro-batches of this size costs nothing: the update needs more anyway."
    return (
        f"{example}. Adding up over two or more micro-batches costs {readable(second)} beside one of this size: the "
        f"gradients that wait for the others."
    )


def what_was_measured(predicted: int, measured: Measured, accumulation_steps: int) -> str:
    """How a real window compares with the prediction."""
    which = "One real window" if measured.micro_batches == accumulation_steps else "One real window, cut short,"
    rest = (
        "" if measured.micro_batches == accumulation_steps else " (the third and later micro-batches repeat the second)"
    )
    side = "below" if predicted < measured.peak_bytes else "above"
    return (
        f"{which} took {readable(measured.peak_bytes)} by {measured.counter}{rest}; the prediction was "
        f"{readable(predicted)}, {abs(predicted - measured.peak_bytes) / measured.peak_bytes:.1%} {side} it."
    )


def where_throughput_stops(rates: Sequence[tuple[int, float]], largest: int) -> str:
    """What a larger micro-batch brings in speed, as measured."""
    shown = ", ".join(f"{rate:,.{0 if rate >= 10 else 2}f} at {size:,}" for size, rate in rates)
    highest = max(rate for _, rate in rates)
    knee = next(size for size, rate in rates if rate >= (1 - KNEE) * highest)
    if knee < rates[-1][0]:
        end = f"From {knee:,} on it hardly grows (less than {KNEE:.0%}): more than that buys no speed"
    elif knee < largest:
        end = f"It still grows at {knee:,}, and larger ones took too long to time"
    else:
        end = f"It still grows at {largest:,}"
    return f"Examples per second here, forward and backward: {shown}. {end}."


def why_nothing_fits(profile: MemoryProfile, budget: int, target: int, found: Sequence[Option] | None) -> str:
    """By how much, why, and, where it was asked, what would help."""
    peak = profile.peak_bytes
    return " ".join(
        [
            f"no window fits in {readable(budget)}: even one example at a time, in {target:,} micro-batches, is "
            f"predicted to take {readable(peak)}, {readable(peak - budget)} too much.",
            why_here(profile),
            *(_help(found, budget) if found is not None else []),
        ]
    )


def _help(found: Sequence[Option], budget: int) -> Iterator[str]:
    for option in found:
        yield option.sentence[:-1] + (
            ", and that fits." if option.peak_bytes <= budget else ", which is not enough alone."
        )
    if not found:
        yield "Only a smaller model, shorter examples or more memory would help."
