"""Checks on what the gradients are: who gets one, in which precision, at which scale."""

from collections.abc import Iterator
from math import isclose, prod

from gradacc_lessons.detective.tape.view import Finding, View
from gradacc_lessons.detective.tape.windows import Window
from gradacc_lessons.detective.tape.wording import found, names

LONG = {"bfloat16": 64, "float16": 1024}
"""From so many micro-batches on a buffer of this type loses what is added: bf16 has 8 significant bits and is some
per cent off from about 128 equal pieces on; fp16 has 11 bits."""
CLOSE = 1e-4


def never_reached(view: View) -> Iterator[Finding]:
    """Trainable parameters that never get a gradient."""
    if view.facts.never and len(view.facts.never) < view.facts.trainable:
        yield found("no_gradient", (), names=names(view.facts.never), count=len(view.facts.never))


def precision(view: View) -> Iterator[Finding]:
    """Gradients of 16 bits that many micro-batches are added to."""
    longest = max((len(window.micro_batches) for window in view.windows), default=0)
    for dtype in view.facts.low_precision:
        if longest >= LONG[dtype]:
            yield found("low_precision_buffer", (), dtype=dtype, longest=longest)


def scale(view: View) -> Iterator[Finding]:
    """What losses that the model returns are multiplied by."""
    if view.n is None or view.n < 2:
        return
    whole = [window for window in view.updated if len(window.fresh) == view.n and factors(window)]
    short = [window for window in view.updated if 0 < len(window.fresh) < view.n and factors(window)]
    if whole and all(_running(factors(window)) for window in whole):
        yield found("running_scale", whole)
        return
    same = {round(factor * view.n, 6) for window in whole for factor in factors(window)}
    if same == {round(1 / view.n, 6)} and all(window.items != view.n**2 for window in whole):
        yield found("double_scale", whole, n=view.n)
    under = [window for window in short if all(isclose(one * view.n, 1, rel_tol=CLOSE) for one in factors(window))]
    if under and whole and same == {1.0}:
        first = under[0]
        yield found("tail_underscaled", under, update=first.number, length=len(first.fresh), n=view.n)


def factors(window: Window) -> list[float]:
    """What each loss of the window was multiplied by in the end; empty where that is not known."""
    backwards = [event for event in window.of("backward") if event.micro_batch in window.fresh and not event.again]
    undone = prod(event.factor or 1.0 for event in window.of("unscale"))
    if len(backwards) != len(window.fresh) or any(event.factor is None for event in backwards):
        return []
    return [(event.factor or 0.0) * undone for event in backwards]


def _running(values: list[float]) -> bool:
    return all(isclose(value, 1 / (place + 1), rel_tol=CLOSE) for place, value in enumerate(values))
