"""Checks on the order of backward, zero_grad and update."""

from collections.abc import Iterator

from gradacc_lessons.detective.tape.view import Finding, View
from gradacc_lessons.detective.tape.windows import Window
from gradacc_lessons.detective.tape.wording import found


def without_gradient(view: View) -> Iterator[Finding]:
    """Updates that apply nothing."""
    applied = [window for window in view.updated if any(event.complete for event in window.of("update"))]
    empty = [window for window in view.updated if not window.micro_batches and window not in applied]
    if erased := [window for window in empty if window.lost]:
        yield found("zero_grad_before_step", erased, update=erased[0].number, lost=len(erased[0].lost))
    if never := [window for window in empty if not window.lost]:
        yield found("update_without_gradient", never, update=never[0].number, count=len(never))


def repeated(view: View) -> Iterator[Finding]:
    """Updates that apply again what an earlier update has applied."""
    stale = [window for window in view.updated if len(window.fresh) < len(window.micro_batches)]
    twice = [window for window in stale if not window.of("backward")]
    if twice:
        yield found("updated_twice", twice, update=twice[0].number, count=len(twice))
    again = [window for window in stale if window not in twice]
    if not again or ((view.n or 0) > 1 and set(view.lengths) == {1}):  # the updates are too many: said elsewhere
        return
    first = again[0]
    old = len(first.micro_batches) - len(first.fresh)
    zeroed = any(event.complete for window in view.windows[1:] for event in window.of("zero_grad"))
    name = "applied_again" if zeroed else "never_zero_grad"
    yield found(name, again, update=first.number, old=old, fresh=len(first.fresh))


def lost(view: View) -> Iterator[Finding]:
    """Micro-batches that are zeroed in the middle of a window."""
    if inside := inside_windows(view):
        first = inside[0]
        ran = len(first.lost) + len(first.fresh)
        yield found("zero_grad_every_micro_batch", inside, update=first.number, lost=len(first.lost), ran=ran)


def unused(view: View) -> Iterator[Finding]:
    """Forwards of a whole window, and a backward for the last of them only."""
    if view.n is None or view.n < 2:
        return
    idle = [
        window for window in view.updated
        if len(window.fresh) == 1 and sum(event.micro_batch is None for event in window.of("forward")) == view.n - 1
    ]  # fmt: skip
    if idle and 2 * len(idle) > len(view.updated):
        yield found("backward_once_per_window", idle, update=idle[0].number, forwards=view.n)


def inside_windows(view: View) -> list[Window]:
    """Windows in which micro-batches were zeroed that belonged to them."""
    return [window for window in view.updated if window.lost and window.fresh and not between_windows(view, window)]


def between_windows(view: View, window: Window) -> bool:
    """What was lost may be the end of an epoch, or a window that a GradScaler skipped: what is applied is whole."""
    lost, fresh = len(window.lost), len(window.fresh)
    if view.epoch_length is not None and view.ends_epoch(window.lost[-1]) and lost < view.epoch_length:
        return True
    if view.n is not None and view.n > 1:
        return fresh >= view.n
    others = [one for one in view.updated if one is not window]
    return lost <= fresh and any(not one.lost for one in others)


def graphs(view: View) -> Iterator[Finding]:
    """Graphs that stay alive over micro-batches."""
    together = [
        window for window in view.updated
        if view.n is not None and view.n > 1 and [event.forwards for event in window.of("backward")] == [view.n]
    ]  # fmt: skip
    if together and len(together) * 2 > len(view.updated):
        yield found("sum_then_backward", together, update=together[0].number, forwards=view.n)
        return
    kept = [window for window in view.windows if any(event.graphs > 1 for event in window.of("forward", "update"))]
    if kept:
        most = max(event.graphs for window in kept for event in window.of("forward", "update"))
        yield found("graphs_kept_alive", kept, most=most)
