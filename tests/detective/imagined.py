"""Observations of a loop that never ran: what the oracle says such a loop would leave behind."""

from itertools import product

import numpy as np

from gradacc_lessons.detective.changes import CHANGES
from gradacc_lessons.detective.oracle import Loop, predict
from gradacc_lessons.detective.scenarios import KEYWORDS, Scope, problem, scenarios
from gradacc_lessons.detective.suspects import INNOCENT, Observation, Suspicion


def together(*faults: str) -> Suspicion | None:
    """The faults in one loop, each in its first spelling that goes with the others; None where none does."""
    for changes in product(*(CHANGES[fault] for fault in faults)):
        both: Suspicion | None = INNOCENT
        for fault, change in zip(faults, changes, strict=True):
            both = both.add(fault, change) if both is not None else None
        if both is not None:
            return both
    return None


def observed(loop: Loop, scope: Scope = "items") -> list[Observation]:
    """What would be measured if `loop` ran, with every keyword accepted."""
    found = []
    for scenario in scenarios(scope, KEYWORDS):
        prediction = predict(loop, scenario)
        record = {
            "updates": list(prediction.updates),
            "backwards": prediction.backwards,
            "pushed": prediction.backwards,
            "forwards": 2 * len(scenario.sizes),
            "foreign_updates": 0,
            "foreign_forwards": 0,
            "largest_backward": max(scenario.sizes),
            "together": 1,
            "graphs": 1.0,
            "data_changed": False,
            "list_changed": False,
        }
        after = np.array(prediction.after_updates).reshape(-1, problem(scenario).start.size)
        found.append(Observation(scenario, prediction.ends, after, np.array(prediction.rates), record))
    return found
