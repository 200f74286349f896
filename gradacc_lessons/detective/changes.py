"""What each fault of the catalogue makes of the reference loop, in every way in which it is written."""

from typing import Any

Change = dict[str, Any]
_DIVISORS: tuple[Change, ...] = ({"divisor": "configured"}, {})
_MORE = ("no", "window")
_STARTS = ("keep", "clear")
_LEFT_OVER: tuple[Change, ...] = (
    *({"tail": tail, "start": start} for tail in ("none", "rest") for start in _STARTS),
    {"tail": "update"},
    {"tail": "always"},
)
"""What may become of the micro-batches that a shifted window leaves over when the epoch ends."""
_EXTRA: tuple[Change, ...] = ({}, {"tail": "rest"}, {"tail": "always"})
"""One more update when the epoch ends, by a loop that has made one for every micro-batch already."""
CHANGES: dict[str, tuple[Change, ...]] = {
    "missing_scale": ({"weight": "one"},),
    # Dividing by N as well leaves it a sum.
    "sum_never_divided": tuple(
        {"weight": weight, "twice": "no"} | by
        for weight in ("size", "count")
        for by in ({"divisor": "window"}, {"divisor": "configured"})
    ),
    "double_scale": ({"twice": "window"}, {"twice": "configured"}),
    # Whoever divides by these is not helped by another division; that one is no mistake of its own.
    "running_scale": tuple({"weight": by, "twice": more} for by in ("running", "running_epoch") for more in _MORE),
    "divided_by_micro_batch_size": ({"weight": "micro_batch_size", "twice": "no"},),
    "divided_by_examples_again": (
        *({"weight": weight, "twice": "no"} for weight in ("window_examples", "window_items")),
        *(
            {"weight": weight, "twice": "no"} | by
            for weight in ("micro_batch_examples", "first_size")
            for by in _DIVISORS
        ),
    ),
    "divided_by_epoch_length": tuple(
        {"weight": by, "twice": more} for by in ("epoch", "epoch_examples") for more in _MORE
    ),
    "grad_divided_every_micro_batch": ({"backward": "rescaled", "weight": "one"},),
    "running_total_backward": ({"backward": "running_total"},),
    "mean_of_means": ({"weight": "equal"},),
    "examples_not_items": ({"weight": "examples"},),
    "zero_grad_every_micro_batch": (
        {"zero": "micro_batch"},
        {"zero": "micro_batch", "tail": "always"},
        {"zero": "last"},
    ),
    # What that one loss is divided by is no mistake of its own: there is nothing to add it to.
    "backward_once_per_window": tuple(
        {"backward": which} | scale
        for which in ("last", "first")
        for scale in ({}, {"weight": "one"}, {"weight": "equal", "divisor": "configured"})
    ),
    "never_zero_grad": (
        {"zero": "never"},
        {"zero": "epoch"},
        {"zero": "never", "tail": "always"},
        {"zero": "epoch", "tail": "always"},
    ),
    "zero_grad_before_step": ({"zero": "before_update"},),
    "updated_twice": ({"update": "twice"},),
    "step_every_micro_batch": tuple({"update": "micro_batch"} | extra for extra in _EXTRA),
    # Who divides by N all the same has made one mistake, not two. Where windows end no longer matters.
    "no_accumulation": tuple(
        {"update": "micro_batch", "zero": "micro_batch", "boundary": "last"} | scale | extra
        for scale in ({"weight": "one"}, {}, {"weight": "equal", "divisor": "configured"})
        for extra in _EXTRA
    ),
    "step_before_backward": (
        *({"update": "before_backward", "tail": "none", "start": start} | by for start in _STARTS for by in _DIVISORS),
        # A test that is true one micro-batch early does the same, whatever the order of the lines.
        *({"boundary": "early"} | left | by for left in _LEFT_OVER for by in _DIVISORS),
    ),
    "window_off_by_one": tuple(
        {"boundary": boundary} | left | by for boundary in ("first", "late") for left in _LEFT_OVER for by in _DIVISORS
    ),
    # A counter that starts again with every window, and is compared with the wrong number every time.
    "windows_one_too_long_or_short": tuple(
        {"longer": longer, "boundary": "last"} | left | by
        for longer in (1, -1)
        for left in ({}, {"tail": "none", "start": "keep"}, {"tail": "none"})
        for by in _DIVISORS
    ),
    # The divisor is part of the same mistake: it belongs to windows that are not there.
    "one_update_per_epoch": tuple(
        {"boundary": "epoch", "update": "window"} | scale
        for scale in (
            {},
            {"divisor": "configured"},
            {"weight": "equal"},
            {"weight": "equal", "divisor": "configured"},
            {"weight": "one"},
            {"weight": "epoch"},
            {"weight": "epoch_examples"},
        )
    ),
    # With another N a full window may be a short one already; what becomes of that is seen in every scope.
    "accumulation_steps_ignored": tuple(
        {"length": length} | by | left
        for length in (4, 2, 3, 5)
        for by in ({}, {"divisor": "configured"})
        for left in ({}, {"tail": "none", "start": "keep"}, {"tail": "none"})
    ),
    "stops_after_first_window": ({"stop": True},),
    "tail_dropped": ({"tail": "none"},),
    # Who lets the short window leak has usually divided by N all along; then that is no mistake of its own.
    "tail_leaks": (
        {"tail": "none", "start": "keep", "divisor": "configured"},
        {"tail": "none", "start": "keep"},
    ),
    "tail_underscaled": ({"divisor": "configured"},),
    "tail_unscaled": ({"divisor": "full"},),
    "tail_updated_differently": ({"clip": "full"}, {"schedule": "full"}, {"clip": "full", "schedule": "full"}),
    "clip_every_micro_batch": ({"clip": "micro_batch"},),
    "clip_too_late": ({"clip": "late"},),
    "clip_before_scaling": ({"clip": "sum_of_means"}, {"clip": "sum_of_items"}),
    "max_norm_ignored": tuple({"own_clip": ("norm", bound)} for bound in (1.0, 0.1, 0.25, 0.5, 2.0, 5.0, 10.0)),
    "scheduler_every_micro_batch": ({"schedule": "micro_batch"}, {"schedule": "before_micro_batch"}),
    "scheduler_once_per_epoch": ({"schedule": "epoch"},),
    "scheduler_twice": ({"schedule": "update_and_epoch"},),
    "scheduler_never": ({"schedule": "never"},),
    "scheduler_before_update": ({"schedule": "before_update"},),
}
"""The switches of the parametric loop that each fault turns, one entry per way of writing it."""
