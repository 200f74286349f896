"""How the automatic batch-size tuners of other tools search: their rules, on a curve of what fits.

Only the rules, as their sources have them: Accelerate 1.15 `find_executable_batch_size`, Composer 0.3x
`device_train_microbatch_size="auto"`, Lightning 2.6 `BatchSizeFinder`. Each trial of theirs is a real run.

The rules that leave N alone are taken as they are in a script that does not accumulate: N = 1, before and after.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

Fits = Callable[[int, int], bool]
"""Whether a window fits: of micro-batches of this size, and so many (N) of them; the last may be smaller."""
ALONE = 1
"""The N of a script that does not accumulate."""
LIGHTNING_START = 2
LIGHTNING_TRIALS = 25
LIGHTNING_LARGEST = 8192
LIGHTNING_MARGIN = 0.05
LIGHTNING_BATCHES_PER_TRIAL = 3
"""`steps_per_trial`: every trial of Lightning's trains on so many batches."""


@dataclass(frozen=True)
class Tuning:
    """What a search came to."""

    rule: str
    """Whose rule it is."""
    micro_batch_size: int
    """What it settled on; 0 if it gave up."""
    batch_reached: int
    """The effective batch that comes out with the N that it leaves, where the target was wanted."""
    trials: int
    """How many runs it took."""
    failed: int
    """How many of them ran out of memory."""
    batches_per_trial: int = 1
    """How many batches a trial that fits runs through before it counts as one."""

    @property
    def batches(self) -> int:
        """How many batches ran through in all trials that fitted."""
        return (self.trials - self.failed) * self.batches_per_trial


def accelerate(target: int, fits: Fits) -> Tuning:
    """Start at the whole batch; after each failure, nine tenths. N is left alone, so the batch shrinks with it."""
    size, trials = target, 0
    while size > 0:
        trials += 1
        if fits(size, ALONE):
            break
        size = int(size * 0.9)
    return Tuning("Accelerate", size, size, trials, trials - (size > 0))


def composer(target: int, fits: Fits) -> Tuning:
    """Start at the whole batch; after each failure, half of it. The batch stays, in more micro-batches: N goes up."""
    size, trials = target, 1
    while not fits(size, math.ceil(target / size)):
        if size == 1:
            return Tuning("Composer", 0, 0, trials, trials)
        size = max(size // 2, 1)
        trials += 1
    return Tuning("Composer", size, target, trials, trials - 1)


def lightning_power(target: int, fits: Fits) -> Tuning:
    """Start at 2 and double until it fails; then half. It does not know the target, and leaves N alone."""
    size, trials, failed = LIGHTNING_START, 0, 0
    while trials < LIGHTNING_TRIALS and 0 < size < LIGHTNING_LARGEST:
        trials += 1
        if not fits(size, ALONE):
            size //= 2
            failed += 1
            if trials > failed:
                break
        elif trials < LIGHTNING_TRIALS:
            size *= 2
    return Tuning("Lightning power", size, size, trials, failed, LIGHTNING_BATCHES_PER_TRIAL)


def lightning_binary_search(target: int, fits: Fits) -> Tuning:
    """Start at 2, double until it fails, then halve the interval; at the end take 5 % off. N is left alone."""
    size, low, high, trials, failed = LIGHTNING_START, 1, 0, 0, 0
    while size < LIGHTNING_LARGEST:
        trials += 1
        if fits(size, ALONE):
            low = size
            if trials - failed >= LIGHTNING_TRIALS or (high and high - low <= 1):
                break
            new = (high + low) // 2 if high else 2 * size
            if new == size:
                break
            size = new
        else:
            failed += 1
            high, size = size, (size + low) // 2
            if high - low <= 1:
                break
    size = max(1, int(size * (1 - LIGHTNING_MARGIN)))
    return Tuning("Lightning binary search", size, size, trials, failed, LIGHTNING_BATCHES_PER_TRIAL)


RULES = (accelerate, composer, lightning_power, lightning_binary_search)
