"""A learner's own numbers and own order of options, from a seed: the same for the same seed, on every machine."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from gradacc_lessons.quiz.formula import Number


class Choices(Protocol):
    """Anything that lists the values it can take."""

    def values(self) -> Sequence[Number]:
        """Every value that can be drawn, always in the same order."""


def key(seed: str, take: int, question_id: str) -> str:
    """What one learner's numbers for one question in one take follow from."""
    return f"{seed}\n{take}\n{question_id}"


def variables(wanted: Mapping[str, Choices], draw_key: str) -> dict[str, Number]:
    """One value for each variable."""
    drawn = {}
    for name, choices in wanted.items():
        values = choices.values()
        drawn[name] = values[_number(draw_key, name) % len(values)]
    return drawn


def order(ids: Iterable[str], draw_key: str) -> list[str]:
    """The ids, shuffled."""
    return sorted(ids, key=lambda one: _number(draw_key, "order", one))


def _number(*parts: str) -> int:
    # A hash and not `random`: its sequence is a promise of no Python version, and a teacher regrades years later.
    return int.from_bytes(hashlib.sha256("\n".join(parts).encode()).digest()[:8], "big")
