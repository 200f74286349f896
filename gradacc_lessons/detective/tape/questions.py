"""What a tape cannot know by itself, and asks for."""

from collections.abc import Iterator

from gradacc_lessons.detective.tape.checks_values import factors
from gradacc_lessons.detective.tape.view import View
from gradacc_lessons.detective.tape.wording import ask, numbers
from gradacc_lessons.text import Text

TOO_MUCH = 2.0**-12
"""A clipping that shortens the gradient so much may be an unscaling and a clipping in one."""


def asked(view: View) -> Iterator[Text]:
    """The questions, those first that decide about most."""
    backwards = [event for window in view.windows for event in window.of("backward")]
    if not backwards:
        yield ask("no_backward")
        return
    if view.facts.before:
        yield ask("before")
    if own := [window for window in view.windows if window.elsewhere]:
        yield ask("elsewhere", window=own[0].number)
    elif not view.updated:
        by_hand = any(window.of("parameters") for window in view.windows)
        yield ask("by_hand" if by_hand else "no_update")
    if view.n is None and view.lengths:
        yield ask("accumulation_steps", lengths=numbers(view.lengths))
    yield from _epochs(view)
    if thrown := [one for one in view.updated if one.lost and view.n and len(one.lost) >= view.n <= len(one.fresh)]:
        yield ask("lost", window=thrown[0].number, lost=len(thrown[0].lost))
    for window in view.windows:
        much = [event.factor for event in window.of("clip") if event.factor and 0 < event.factor < TOO_MUCH]
        if much:
            yield ask("scaler", window=window.number, divisor=1 / much[0])
            break
    if all(event.items is None for event in backwards):
        yield ask("no_forward")
    elif view.facts.tokens and not view.given.counted:
        yield ask("count")
    whole = [window for window in view.updated if view.n is not None and len(window.fresh) == view.n > 1]
    if whole and not view.facts.told_items and all(set(factors(window)) == {1.0} for window in whole):
        yield ask("undivided")
    short = [window for window in view.updated if view.n is not None and 0 < len(window.fresh) < view.n]
    if short and not any(factors(window) for window in short) and all(view.expected(window) for window in short):
        yield ask("scale", update=short[0].number, length=len(short[0].fresh))


def _epochs(view: View) -> Iterator[Text]:
    """About the end of an epoch."""
    ran = len(view.places)
    if view.epoch_length is not None:
        whole = view.n and view.epoch_length // view.n * view.n
        if whole and ran % view.epoch_length and ran % whole == 0 and view.windows[-1].outcome != "open":
            yield ask("not_run", ran=ran, length=view.epoch_length, left=view.epoch_length - whole)
        return
    last = view.windows[-1]
    left = len(last.fresh) if last.outcome == "open" else 0
    short = [window for window in view.updated if view.n is not None and len(window.fresh) < view.n]
    between = [window for window in view.updated if window.lost and window.fresh]
    if left or short or between:
        yield ask("epoch", left=left) if left else ask("epoch_short")
