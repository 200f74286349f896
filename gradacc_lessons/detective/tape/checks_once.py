"""Checks on what belongs once to a window: clipping, unscaling, the schedule, the average of the weights."""

from collections.abc import Iterator
from itertools import pairwise

from gradacc_lessons.detective.tape.events import Kind
from gradacc_lessons.detective.tape.view import Finding, View
from gradacc_lessons.detective.tape.windows import Window
from gradacc_lessons.detective.tape.wording import found


def spoiled(view: View) -> Iterator[Finding]:
    """Gradients that are not finite, and stay in place after whoever clips or unscales has seen them."""
    if kept := [window for window in view.windows if _spoiled(window)]:
        seen = next(event for event in kept[0].of("clip", "unscale") if not event.finite)
        yield found("not_finite_kept", kept, window=kept[0].number, micro_batch=seen.micro_batch)


def clips(view: View) -> Iterator[Finding]:
    """Clipping before the window is complete, or after its update."""
    if inside := [one for one in view.windows if _before_another_backward(one, "clip") and not _spoiled(one)]:
        first = inside[0]
        yield found("clip_every_micro_batch", inside, window=first.number, clips=len(first.of("clip")))
        return
    divided = [window for window in view.windows if _before_another_backward(window, "gradient")]
    if divided and all(_divisor(window) for window in divided):
        yield found("grad_divided_every_micro_batch", divided, window=divided[0].number, divisor=_divisor(divided[0]))
    late = [window for window in view.updated if _after_update(window, "clip")]
    if late and len(late) == sum(bool(window.of("clip")) for window in view.updated):
        yield found("clip_too_late", late, update=late[0].number)


def unscales(view: View) -> Iterator[Finding]:
    """Clipping before unscaling; unscaling twice, or before the window is complete."""
    early = [(window, event) for window in view.windows for event in window.of("clip") if event.scaled]
    if early:
        window, clip = early[0]
        norm, scale = clip.norm or 0.0, clip.scaled or 1.0
        said = {"window": window.number, "norm": norm, "scale": scale, "small": norm / scale}
        yield found("clip_scaled_gradients", [window for window, _ in early], **said)
    if inside := [one for one in view.windows if _before_another_backward(one, "unscale") and not _spoiled(one)]:
        yield found("unscale_inside_window", inside, window=inside[0].number)
    elif twice := [window for window in view.windows if len(window.of("unscale")) > 1]:
        first = twice[0]
        yield found("unscale_twice", twice, window=first.number, times=len(first.of("unscale")))


def schedule(view: View) -> Iterator[Finding]:
    """A schedule that moves more often than the optimizer updates, or before it."""
    often = [window for window in view.updated if _places(window, "schedule") > 1]
    if often:
        moved = sum(event.moves for event in often[0].of("schedule"))
        yield found("scheduler_every_micro_batch", often, update=often[0].number, moves=moved)
        return
    moving = [window for window in view.updated if window.of("schedule") and window.fresh]
    early = [window for window in moving if _before_update(window, "schedule")]
    if early and len(early) == len(moving):
        yield found("scheduler_before_update", early, update=early[0].number)


def all_reduces(view: View) -> Iterator[Finding]:
    """Gradients that are sent to the other processes before the window is complete."""
    often = [window for window in view.updated if _places(window, "all_reduce") > 1]
    if often:
        times = _places(often[0], "all_reduce")
        yield found("all_reduce_every_micro_batch", often, update=often[0].number, times=times)


def averages(view: View) -> Iterator[Finding]:
    """An average of the weights that moves more often than the weights."""
    often = [window for window in view.updated if _places(window, "watched") > 1]
    if often:
        yield found("ema_every_micro_batch", often, update=often[0].number, times=_places(often[0], "watched"))


def _places(window: Window, kind: Kind) -> int:
    """After how many different micro-batches of the window it happened, what follows the update left out."""
    return len({event.micro_batch for event in window.of(kind)})


def _spoiled(window: Window) -> bool:
    """Whether it was seen that its gradient is not finite, and backward added to it all the same."""
    return any(_before_another_backward(window, kind, finite=False) for kind in ("clip", "unscale"))


def _before_another_backward(window: Window, kind: Kind, finite: bool | None = None) -> bool:
    """Whether it happened to a gradient to which this window added afterwards: any, or one that is finite or not."""
    seen = False
    for event in window.events:
        if event.kind == kind and event.micro_batch in window.fresh and finite in (None, event.finite):
            seen = True
        elif event.kind == "zero_grad" and event.complete:
            seen = False
        elif event.kind == "backward" and seen and event.micro_batch in window.micro_batches:
            return True
    return False


def _divisor(window: Window) -> int:
    """The whole number by which the gradient was divided each time; 0 if there is none."""
    divisors = {round(1 / (event.factor or 1), 6) for event in window.of("gradient")}
    divisor = divisors.pop()
    return int(divisor) if not divisors and divisor > 1 and divisor.is_integer() else 0


def _after_update(window: Window, kind: Kind) -> bool:
    kinds = [event.kind for event in window.events]
    return kind in kinds and "update" in kinds and kinds.index(kind) > kinds.index("update")


def _before_update(window: Window, kind: Kind) -> bool:
    """Whether it happened between the last backward and the update."""
    kinds = [event.kind for event in window.events if event.kind in (kind, "backward", "update")]
    return any(pair in ((kind, "update"),) and "backward" in kinds[: at + 1] for at, pair in enumerate(pairwise(kinds)))
