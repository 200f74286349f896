"""Putting things in order: reading an answer, how much of it is right, and what in it is first out of place."""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from gradacc_lessons.quiz import draw
from gradacc_lessons.quiz.questions import OrderQuestion

Order = tuple[str, ...]
"""The ids of things, first to last."""
NOTHING = ""
"""What stands at a place that has nothing yet: ids are never empty."""


def as_order(value: Any) -> Order | None:
    """The ids in an answer: a list of them, or a text such as "forward, backward"; None if it is neither."""
    if isinstance(value, str):
        return tuple(each for each in re.split(r"[\s,;>]+", value) if each)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return None


def share_in_order(order: Order, accepted: Sequence[Order]) -> float:
    """What an order is worth, 0 to 1: (pairs in the right order - pairs in the wrong order) / pairs, not below 0.

    Each pair of things is one claim, "this comes before that", and wrong claims cost as much as right ones earn, as
    with the picks of a `multiple` question; so that an order drawn by lot is worth nothing on average, and of two
    answers the one that needs fewer swaps of neighbours to be right is worth more. Where several orders are accepted
    the nearest decides. Only an accepted order is worth 1.
    """
    places = {one: place for place, one in enumerate(order)}
    return max(0.0, *(_pairs(right, places) for right in accepted))


def _pairs(right: Order, places: dict[str, int]) -> float:
    held = [places[before] < places[after] for before, after in combinations(right, 2)]
    return (2 * sum(held) - len(held)) / len(held)


def first_out_of_place(order: Order, accepted: Sequence[Order]) -> int | None:
    """The first place, from 0, up to which no accepted order begins as this one does; None if it is accepted."""
    for place in range(len(order)):
        begun = order[: place + 1]
        if not any(right[: place + 1] == begun for right in accepted):
            return place
    return None


def shuffled(question: OrderQuestion, draw_key: str) -> Order:
    """The things in an order of the learner's own, which is not an accepted one if that can be."""
    ids = tuple(draw.order([item.id for item in question.items], draw_key))
    turned = [ids[place:] + ids[:place] for place in range(len(ids))]
    return next((each for each in turned if each not in question.orders), ids)
