"""All that is wrong with a loop, from the events of its tape."""

from collections.abc import Callable, Iterator, Sequence

from gradacc_lessons.detective.tape.checks_lengths import lengths, tails
from gradacc_lessons.detective.tape.checks_once import all_reduces, averages, clips, schedule, spoiled, unscales
from gradacc_lessons.detective.tape.checks_order import graphs, lost, repeated, unused, without_gradient
from gradacc_lessons.detective.tape.checks_values import never_reached, precision, scale
from gradacc_lessons.detective.tape.questions import asked
from gradacc_lessons.detective.tape.view import Facts, Finding, Given, View
from gradacc_lessons.detective.tape.windows import Window
from gradacc_lessons.text import Text

CHECKS: tuple[Callable[[View], Iterator[Finding]], ...] = (
    without_gradient, repeated, lost, unused, graphs, lengths, tails, scale, spoiled, clips, unscales, schedule,
    averages, all_reduces, never_reached, precision,
)  # fmt: skip
"""In the order in which their findings are told."""
EXPLAINS_LENGTHS = {
    "zero_grad_every_micro_batch", "zero_grad_before_step", "backward_once_per_window", "sum_then_backward",
}  # fmt: skip
"""Where one of these is found, windows look short that are not."""


def findings_of(windows: Sequence[Window], facts: Facts, given: Given) -> list[Finding]:
    """What is wrong, each mistake once."""
    view = View(windows, facts, given)
    found: dict[str, Finding] = {}
    for check in CHECKS:
        if check in (lengths, tails) and found.keys() & EXPLAINS_LENGTHS:
            continue
        for finding in check(view):
            found.setdefault(finding.id, finding)
    return list(found.values())


def questions_of(windows: Sequence[Window], facts: Facts, given: Given) -> list[Text]:
    """What would have to be known to say more."""
    return list(asked(View(windows, facts, given)))
