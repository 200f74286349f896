"""How the test that a learner writes in lesson 09 is judged: by the loops that it accepts and those that it refuses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from gradacc_lessons.detective.faults import FAULTS, REFERENCE_SOURCE
from gradacc_lessons.quiz.call_in_child import call_in_child
from gradacc_lessons.quiz.exercise import Exercise, did_not_return
from gradacc_lessons.quiz.grade import Grade
from gradacc_lessons.quiz.try_museum import ACCEPTED, REFUSED, tried
from gradacc_lessons.text import Text, joined

SECONDS = 30.0
"""For one run of the test on each loop, on a slow machine as well."""

_SUM_THEN_DIVIDE = """
def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    seen = 0
    for index, batch in enumerate(micro_batches):
        (loss_fn(model, batch) * len(batch[0])).backward()
        seen += len(batch[0])
        if (index + 1) % accumulation_steps == 0 or index + 1 == len(micro_batches):
            for parameter in model.parameters():
                parameter.grad /= seen
            optimizer.step()
            optimizer.zero_grad()
            seen = 0
"""
_LAST_TO_FIRST = REFERENCE_SOURCE.replace("in window:\n            loss ", "in reversed(window):\n            loss ")
RIGHT = (REFERENCE_SOURCE, _SUM_THEN_DIVIDE, _LAST_TO_FIRST)
"""Right in every scope, and different in the last digits."""
LENGTHS, ORDERS, TAILS = (
    ("missing_scale", "double_scale"),
    ("zero_grad_every_micro_batch", "step_every_micro_batch", "window_off_by_one"),
    ("tail_dropped", "tail_leaks", "tail_underscaled"),
)
"""Bugs of the catalogue that public projects had: in the length of a gradient, in its place, and at an epoch's end."""
BUGS = (*LENGTHS, *ORDERS, *TAILS)
SOURCES = (*RIGHT, *(FAULTS[bug].source for bug in BUGS))

SLIPPED = Text("These pass your test: {loops}.", "Deze komen door je test: {loops}.")
ALL_FOUND = Text(
    f"Your test accepts all {len(RIGHT)} right loops and refuses all {len(BUGS)} with a bug. Such a test would have "
    "kept them out of a release.",
    f"Je test keurt alle {len(RIGHT)} goede lussen goed en alle {len(BUGS)} lussen met een fout af. Zo'n test had ze "
    "uit een release gehouden.",
)
OTHER = Text(
    "No right loop is refused, and some bugs are found.",
    "Geen goede lus wordt afgekeurd, en een deel van de fouten wordt gevonden.",
)


@dataclass(frozen=True)
class Verdicts:
    """What a test says of the loops."""

    undecided: int
    """Of how many loops it said neither yes nor no."""
    refused: int
    """How many right loops it refuses."""
    missed: tuple[str, ...]
    """The bugs (ids of the catalogue) that it accepts."""

    @property
    def mistake(self) -> str | None:
        """The kind of what is wrong with the test; None if that is nothing, or nothing foreseen."""
        missed = set(self.missed)
        kinds = {
            "no_verdict": self.undecided > 0,
            "refuses_all": self.refused == len(RIGHT) and not missed,
            "refuses_right": self.refused > 0,
            "accepts_all": missed == set(BUGS),
            "counts_only": missed >= {*LENGTHS, "zero_grad_every_micro_batch"},
            "length_unseen": missed >= set(LENGTHS),
            "only_full_windows": missed >= set(TAILS),
            "size_of_the_last": missed == {"tail_underscaled"},
        }
        return next((kind for kind, found in kinds.items() if found), None)


def verdicts(values: Sequence[float | None]) -> Verdicts:
    """Read what came back, a value for each of SOURCES."""
    right, wrong = values[: len(RIGHT)], values[len(RIGHT) :]
    return Verdicts(
        sum(value not in (REFUSED, ACCEPTED) for value in values),
        sum(value == REFUSED for value in right),
        tuple(bug for bug, value in zip(BUGS, wrong, strict=True) if value == ACCEPTED),
    )


@dataclass(frozen=True)
class TestCheck:
    """A test for loops: it must accept the right ones and refuse those with a bug."""

    __test__ = False  # nothing for pytest to collect

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        mixed = sorted(SOURCES, key=lambda source: crc32(source.encode()))  # the right ones not first, nor last
        returned = call_in_child(tried(function), [(source,) for source in mixed], time_limit=SECONDS)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        said = dict(zip(mixed, returned.values, strict=True))
        found = verdicts([said[source] for source in SOURCES])
        words = next((wrong.message for wrong in exercise.wrong if wrong.fault == found.mistake), None)
        if words is None and not found.missed:
            return Grade(1.0, True, ALL_FOUND)
        shown = [words or OTHER]
        if found.missed and found.mistake not in ("no_verdict", "refuses_right", "accepts_all"):
            shown.append(_slipped(found.missed))
        return Grade(0.0, False, joined(shown), found.mistake)


def _slipped(missed: Sequence[str]) -> Text:
    titles = [FAULTS[bug].title for bug in missed]
    english, dutch = ("; ".join(f'"{title.to(language)}"' for title in titles) for language in ("en", "nl"))
    return Text(SLIPPED.en.format(loops=english), SLIPPED.nl.format(loops=dutch))
