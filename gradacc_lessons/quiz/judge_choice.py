"""What the exercises that choose a window for a budget have in common: their sentences, and how b is looked at."""

from typing import TYPE_CHECKING

from gradacc_lessons.quiz.grade import Grade
from gradacc_lessons.text import Text, joined

if TYPE_CHECKING:
    from gradacc_lessons.memory.profile import MemoryProfile

MISSES_TARGET = Text(
    "That is another number of examples per update than asked.",
    "Dat is een ander aantal voorbeelden per update dan gevraagd.",
)
N_TOO_LARGE = Text(
    "It fits, but N is larger than it needs to be: a larger micro-batch fits as well.",
    "Het past, maar N is groter dan nodig: een grotere micro-batch past ook.",
)
FORGETS_WHAT_STAYS = Text(
    "The activations alone would fit. But what does not grow with b is there as well: parameters, gradients and "
    "optimizer state.",
    "De activaties alleen zouden passen. Maar wat niet met b meegroeit is er ook: parameters, gradients en "
    "optimizertoestand.",
)
READABLE = 10**12
"""A larger product is not written out."""


def not_yet(fault: str, words: Text, seen: Text | None = None) -> Grade:
    """A wrong answer: what is wrong, and what was seen of it."""
    return Grade(0.0, False, joined([words, seen]) if seen else words, fault)


def missed(micro_batch_size: int, accumulation_steps: int, target: int) -> Grade | None:
    """The grade of a choice whose b x N is not the target; None if it is."""
    b, n = micro_batch_size, accumulation_steps
    if b * n == target:
        return None
    seen = Text(f"{b} x {n} = {b * n:,}.", f"{b} x {n} = {b * n}.") if b * n <= READABLE else None
    return not_yet("misses_target", MISSES_TARGET, seen)


def room(profile: "MemoryProfile", budget_bytes: int) -> Text:
    """By how much the measured peak is within the budget, or over it."""
    from gradacc_lessons.memory.sizes import MEBIBYTE

    left = (budget_bytes - profile.peak_bytes) / MEBIBYTE
    if left < 0:
        return Text(f"Measured: {-left:.0f} MiB too much.", f"Gemeten: {-left:.0f} MiB te veel.")
    return Text(f"Measured: {left:.0f} MiB to spare.", f"Gemeten: {left:.0f} MiB over.")


def over_budget(profile: "MemoryProfile", budget_bytes: int, words: Text) -> Grade:
    """The grade of a window that is too large: `words`, or that the activations alone would have fitted."""
    if profile.by_category["saved activations"] <= budget_bytes:
        return not_yet("forgets_what_stays", FORGETS_WHAT_STAYS, room(profile, budget_bytes))
    return not_yet("over_budget", words, room(profile, budget_bytes))


def next_divisor(micro_batch_size: int, target: int) -> int | None:
    """The next larger micro-batch of which a whole number makes up the target; None if there is none.

    >>> next_divisor(6, 90), next_divisor(90, 90)
    (9, None)
    """
    return next((size for size in range(micro_batch_size + 1, target + 1) if target % size == 0), None)
