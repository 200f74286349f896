"""The reasons for a plan, in sentences with numbers."""

from collections.abc import Iterator, Mapping, Sequence

from gradacc_lessons.memory.binding import binding_moment, moment_in_words
from gradacc_lessons.memory.forecast import Forecast, balanced
from gradacc_lessons.memory.options import Option
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.memory.trial import Measured

KNEE = 0.05
"""What is within this of the highest throughput is as fast."""
ABOUT = 0.02
"""Two sizes that differ by less than this share are told as one."""
HARDLY = 0.1
"""A smaller micro-batch is worth something if all examples of one make up this share of the peak."""


def shape(sizes: Sequence[int]) -> str:
    """The micro-batches in short: "1 of 52 and 4 of 51"."""
    return " and ".join(f"{sizes.count(size):,} of {size:,}" for size in dict.fromkeys(sizes))


def why_this_window(
    forecast: Forecast, target: int, budget: int, accumulation_steps: int, runs: Mapping[int, Measured]
) -> str:
    """Why so many micro-batches, and not one fewer. `runs` are the real windows, by their N."""
    now = f"predicted peak {readable(forecast.peak(target, accumulation_steps))} of {readable(budget)}"
    if accumulation_steps == 1:
        return f"All {target:,} examples fit at once: {now}."
    fewer = accumulation_steps - 1
    size = balanced(target, fewer)[0]
    them = f"{fewer:,} micro-batches of up to {size:,}" if fewer > 1 else f"one batch of {target:,}"
    peak = runs[fewer].peak_bytes if fewer in runs else forecast.peak(target, fewer)
    need = "really took" if fewer in runs else "would need"
    return (
        f"It takes {accumulation_steps:,} micro-batches: {shape(balanced(target, accumulation_steps))}, {now}. "
        f"With one fewer, {them} {need} {readable(peak)}, {readable(peak - budget)} too much."
    )


def why_here(forecast: Forecast, target: int, accumulation_steps: int) -> str:
    """Which moment binds, whether a smaller micro-batch would help, and what is there then."""
    profile, size = forecast.profile(target, accumulation_steps), balanced(target, accumulation_steps)[0]
    lower = ""
    if size > 1 and binding_moment(profile) == "update":
        lower = ": a smaller micro-batch would not lower it"
    elif size > 1:
        examples = size * forecast.cost_of_an_example(size)
        lower = f"; a smaller micro-batch {'lowers' if examples >= HARDLY * profile.peak_bytes else 'hardly lowers'} it"
    parts = sorted(profile.by_category.items(), key=lambda part: -part[1])
    largest = ", ".join(f"{name} {readable(size)}" for name, size in parts if size * 50 >= profile.peak_bytes)
    moment = moment_in_words(profile, forecast.recipe.checkpointing)
    return f"The peak comes {moment}{lower}. Then there are {largest}."


def what_more_costs(forecast: Forecast, target: int, accumulation_steps: int) -> str:
    """What one more example in a micro-batch costs, and what a second micro-batch does."""
    size = balanced(target, accumulation_steps)[0]
    example = f"One more example in a micro-batch costs {readable(forecast.cost_of_an_example(size))}"
    if binding_moment(forecast.profile(target, accumulation_steps)) == "update":
        example += " in forward and backward, where there is room for it now"
    return f"{example}. {_what_adding_up_costs(forecast, size)}"


def _what_adding_up_costs(forecast: Forecast, size: int) -> str:
    """What a second micro-batch of this size does to the peak of one, inputs apart, and why it is not more."""
    more, alone = forecast.cost_of_accumulating(size), forecast.profile(size, 1)
    gradients = int(forecast.profile(2 * size, 2).timeline["gradients"].max())
    words = f"Adding up over two or more micro-batches of this size costs {readable(more) if more > 0 else 'nothing'}"
    waiting = f"the gradients that wait for the others take {readable(gradients)}"
    if not forecast.recipe.set_to_none:
        return f"{words}: with set_to_none=False the gradients are in memory all the time."
    if more <= 0:
        there = "in the update" if binding_moment(alone) == "update" else "at the peak of one alone"
        return f"{words}: {waiting}, but {there} all of them are there anyway, and that needs more."
    if abs(more - gradients) <= ABOUT * gradients:
        return f"{words} more than one alone: the gradients that wait for the others."
    if binding_moment(alone) == "update":
        return f"{words} more than one alone: {waiting}, but one alone has its peak in the update, with all of them."
    if alone.by_category["gradients"] > ABOUT * gradients:
        own = readable(alone.by_category["gradients"])
        return f"{words} more than one alone: {waiting}, but one alone has {own} of gradients at its peak as well."
    return f"{words} more than one alone: {waiting}, but the peak moves to another moment."


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


def what_was_timed(rates: Sequence[tuple[int, float]], largest: int) -> str:
    """How fast micro-batches were, and what a larger one brought among those that were timed.

    `rates` are (micro-batch size, examples per second), the smallest first; `largest` is the planned size.
    """
    if not rates:
        return "No micro-batch was timed: this model refuses the small ones, and larger ones take too long."
    shown = ", ".join(f"{_rate(rate)} at {size:,}" for size, rate in rates)
    words = f"Examples per second here, forward and backward: {shown}."
    if len(rates) > 1:
        words += f" {_growth(rates)}."
    if rates[-1][0] < largest:
        words += f" Larger ones, up to the planned {largest:,}, were not timed: that would have taken too long."
    return words


def _growth(rates: Sequence[tuple[int, float]]) -> str:
    """Where examples per second stopped growing, where they fell, or that they did neither, as timed."""
    (best, highest), (last, rate) = max(rates, key=lambda timed: timed[1]), rates[-1]
    knee = next(size for size, rate in rates if rate >= (1 - KNEE) * highest)
    if knee == last:
        return f"It still grew at {last:,}"
    if rate < (1 - KNEE) * highest:
        return f"It was highest at {best:,}, and fell by {1 - rate / highest:.0%} up to {last:,}"
    if all(other >= (1 - KNEE) * highest for size, other in rates if size >= knee):
        return f"From {knee:,} to {last:,} it hardly changed (by less than {KNEE:.0%}): that bought no speed"
    return f"It went up and down, with no clear gain from {knee:,} to {last:,}"


def _rate(rate: float) -> str:
    return f"{rate:,.{0 if rate >= 10 else 2}f}"


def for_which_device(device: str) -> str:
    """For which kind of device the plan counts, and what must have room beside it there."""
    if device == "cuda":
        return (
            "This counts for training on CUDA, and counts tensors only: leave room on the card beside it for the CUDA "
            "context, fragmentation and other processes."
        )
    if device == "mps":
        return "This counts for training on MPS, and counts tensors only: other programs share that memory."
    return "This counts for training on the CPU: for a GPU, plan with the device cuda or mps."


def what_batch_norm_does(target: int) -> str:
    """Why the window of a model with BatchNorm is not one batch."""
    return (
        "BatchNorm in this model normalises each micro-batch by itself, so the window does not give the gradient of "
        f"one batch of {target:,}."
    )


def why_nothing_fits(forecast: Forecast, budget: int, target: int, found: Sequence[Option] | None) -> str:
    """By how much, why, and, where it was asked, what would help."""
    peak = forecast.peak(target, target)
    return " ".join(
        [
            f"no window fits in {readable(budget)}: even one example at a time, in {target:,} micro-batches, is "
            f"predicted to take {readable(peak)}, {readable(peak - budget)} too much.",
            why_here(forecast, target, target),
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
