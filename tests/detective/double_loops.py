"""Loops with two mistakes at once, as learners write them, and what a diagnosis owes them in scope "tail"."""

from torch.nn.utils import clip_grad_norm_


def no_scale_and_no_flush(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """Probably the most copied loop of all."""
    for i, batch in enumerate(micro_batches):
        loss = loss_fn(model, batch)
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


def no_scale_and_shifted(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for i, batch in enumerate(micro_batches):
        loss_fn(model, batch).backward()
        if i % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


def zeroes_at_the_top_and_no_scale(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for i, batch in enumerate(micro_batches):
        optimizer.zero_grad()
        loss_fn(model, batch).backward()
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(micro_batches):
            optimizer.step()


def plain_loop_with_a_scale(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for batch in micro_batches:
        optimizer.zero_grad()
        (loss_fn(model, batch) / accumulation_steps).backward()
        optimizer.step()


def plain_loop_that_zeroes_last(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for batch in micro_batches:
        (loss_fn(model, batch) / accumulation_steps).backward()
        optimizer.step()
        optimizer.zero_grad()


def shifted_and_cleared_when_the_epoch_begins(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    for k, batch in enumerate(micro_batches):
        (loss_fn(model, batch) / accumulation_steps).backward()
        if k % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


def never_scaled_never_zeroed_always_updated(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for batch in micro_batches:
        loss_fn(model, batch).backward()
        optimizer.step()


def sums_and_forgets_to_divide(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    total = 0
    for i, batch in enumerate(micro_batches):
        total = total + loss_fn(model, batch)
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(micro_batches):
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            total = 0


def divides_twice_and_drops(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    full = len(micro_batches) // accumulation_steps * accumulation_steps
    for i, batch in enumerate(micro_batches[:full]):
        loss = loss_fn(model, batch) / accumulation_steps
        (loss / accumulation_steps).backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()


def never_zeroes_and_divides_the_tail_by_n(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for i, batch in enumerate(micro_batches):
        (loss_fn(model, batch) / accumulation_steps).backward()
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(micro_batches):
            optimizer.step()


def clips_and_schedules_inside(
    model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm=1.0, scheduler=None
):
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start : start + accumulation_steps]
        optimizer.zero_grad()
        for batch in window:
            (loss_fn(model, batch) / len(window)).backward()
            clip_grad_norm_(model.parameters(), max_norm)
            if scheduler is not None:
                scheduler.step()
        optimizer.step()


def clips_inside_and_divides_the_tail_by_n(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm=1.0):
    for i, batch in enumerate(micro_batches):
        (loss_fn(model, batch) / accumulation_steps).backward()
        clip_grad_norm_(model.parameters(), max_norm)
        if (i + 1) % accumulation_steps == 0 or i + 1 == len(micro_batches):
            optimizer.step()
            optimizer.zero_grad()


NAMED_IN_EVERY_SCOPE = {
    plain_loop_that_zeroes_last: {"no_accumulation"},
    plain_loop_with_a_scale: {"no_accumulation"},
    shifted_and_cleared_when_the_epoch_begins: {"window_off_by_one"},
    never_scaled_never_zeroed_always_updated: {"missing_scale", "never_zero_grad", "step_every_micro_batch"},
}
"""Common loops, and the mistakes that a diagnosis names in whatever scope; in the widest, a mean of means beside."""

DOUBLE = {
    no_scale_and_no_flush: {"missing_scale", "tail_leaks"},
    no_scale_and_shifted: {"missing_scale", "window_off_by_one"},
    zeroes_at_the_top_and_no_scale: {"missing_scale", "zero_grad_every_micro_batch"},
    plain_loop_with_a_scale: {"no_accumulation"},
    sums_and_forgets_to_divide: {"missing_scale", "sum_then_backward"},
    divides_twice_and_drops: {"double_scale", "tail_dropped"},
    never_zeroes_and_divides_the_tail_by_n: {"never_zero_grad", "tail_underscaled"},
    clips_and_schedules_inside: {"clip_every_micro_batch", "scheduler_every_micro_batch"},
    clips_inside_and_divides_the_tail_by_n: {"clip_every_micro_batch", "tail_underscaled"},
}
