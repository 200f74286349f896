"""Checks on how many micro-batches a window has, and on the end of an epoch."""

from collections import Counter
from collections.abc import Iterator

from gradacc_lessons.detective.tape.checks_order import between_windows
from gradacc_lessons.detective.tape.view import Finding, View
from gradacc_lessons.detective.tape.wording import found, numbers


def lengths(view: View) -> Iterator[Finding]:
    """Windows that are longer or shorter than N, other than at the end of an epoch."""
    wrong = [window for window in view.updated if not view.expected(window)]
    if view.n is None or not wrong:
        return
    said = {"n": view.n, "lengths": numbers(view.lengths)}
    if name := _every_window(view):
        yield found(name, wrong, **said, length=view.lengths[0])
    elif name := _first_window(view):
        yield found(name, wrong, **said, first=view.lengths[0])
    elif leaked := [window for window in wrong if view.crosses(window) and len(window.fresh) > view.n]:
        first = leaked[0]
        left = sum(view.epoch(number) == view.epoch(first.fresh[0]) for number in first.fresh)
        yield found("tail_leaks", leaked, **said, update=first.number, left=left, length=len(first.fresh))
    elif any(len(window.fresh) > view.n for window in wrong) or view.epoch_length is not None:
        yield found("windows_differ", wrong, **said)


def _every_window(view: View) -> str | None:
    """The mistake of a loop whose windows all have the same wrong length; shorter ones may end an epoch."""
    n, length = view.n or 0, view.lengths[0]
    whole = view.lengths[:-1] if len(view.lengths) > 2 and view.lengths[-1] < length else view.lengths
    if length == n or len(set(whole)) > 1:
        return None
    if length == 1 and len(whole) > 1:
        within = any(event.during == "backward" for window in view.updated for event in window.of("update"))
        zeroed = [event for window in view.updated[:-1] for event in window.of("zero_grad") if event.complete]
        return "no_accumulation" if len(zeroed) >= len(whole) - 1 and not within else "step_every_micro_batch"
    if length < n and view.epoch_length is None:  # the epochs may be as short as that
        return None
    if length == view.epoch_length:
        return "one_update_per_epoch"
    if len(whole) == 1:
        return None
    return "windows_one_too_long_or_short" if abs(length - n) == 1 else "accumulation_steps_ignored"


def _first_window(view: View) -> str | None:
    n, first, rest = view.n or 0, view.lengths[0], view.lengths[1:]
    if first == n or not rest or Counter(rest).most_common(1)[0][0] != n:
        return None
    if first == n - 1 and n > 2:
        return "step_before_backward"
    return "window_off_by_one" if first in (1, n + 1) else None


def tails(view: View) -> Iterator[Finding]:
    """Micro-batches at the end of an epoch that no update applies."""
    if view.epoch_length is None or any(not view.expected(window) for window in view.updated):
        return
    dropped = [window for window in view.windows if window.lost and between_windows(view, window)]
    ended = [window for window in view.windows[-1:] if window.outcome == "open" and window.fresh]
    left = [window for window in ended if view.ends_epoch(window.fresh[-1]) and len(window.fresh) < (view.n or 0)]
    if dropped:
        yield found("tail_dropped", dropped, left=len(dropped[0].lost), times=len(dropped) + len(left))
    elif left and not any(view.crosses(window) for window in view.updated):
        yield found("tail_dropped", left, left=len(left[0].fresh), times=1)
