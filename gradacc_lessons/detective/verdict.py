"""From what was measured to a diagnosis. Runs in the learner's own process, where the right answer is."""

from typing import Any

import numpy as np

from gradacc_lessons.detective.catalogue.memory import MEMORY
from gradacc_lessons.detective.diagnosis import Diagnosis, Outcome
from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.detective.measure import differences, evidence, place
from gradacc_lessons.detective.oracle import Loop, predict
from gradacc_lessons.detective.scenarios import SCENARIOS, SCOPES, Scope, problem
from gradacc_lessons.detective.suspects import Observation, explain, likeliest
from gradacc_lessons.detective.wording import say
from gradacc_lessons.text import Language, Text, joined

MEMORY_ONLY = {fault.id for fault in MEMORY}
"""They say nothing about the gradient."""
RATE_TOLERANCE = 1e-6
"""Relative; a learning rate that goes through float32 comes back within 1e-7."""
WHOLE_WINDOW = 0.9
"""A loop that keeps this part of a window's graphs at once has the memory of the full batch."""

TOTALS = ("forwards", "backwards", "foreign_updates", "foreign_forwards")
"""Counts of a record that are added up over the scenarios."""


def judge(observations: list[Observation], scope: Scope, language: Language) -> Diagnosis:
    """The diagnosis of a loop that ran to its end everywhere."""
    measured = evidence(observations)
    misconduct = _misconduct(observations)
    if misconduct is not None:
        name, values = misconduct
        return Diagnosis(Outcome.WRONG, say(name, **values), (), measured, language)
    held, broken = explain(observations)
    innocent = broken is None and any(not suspicion.faults for suspicion in held)
    sets = [] if innocent or not held else likeliest(held, lambda loop: _pushes(loop) == _pushed(observations))
    certain = set(frozenset.intersection(*sets)) if sets else set()
    if _pushed(observations) == 0:  # no update can have lost what never came
        certain -= {"zero_grad_before_step"}
    found = _in_order(certain | _memory(observations, certain))
    if innocent and not found:
        message = joined((say("correct"), say(f"correct_{scope}")))
        return Diagnosis(Outcome.CORRECT, message, (), measured, language)
    message = _message(found, observations, broken, sets, innocent=innocent)
    return Diagnosis(Outcome.WRONG, message, found, measured, language)


def _message(
    found: tuple[str, ...],
    observations: list[Observation],
    broken: Observation | None,
    sets: list[frozenset[str]],
    *,
    innocent: bool,
) -> Text:
    """One line for each mistake that was found, and one for what could not be named."""
    lines = [say("fault", title=FAULTS[name].title, message=FAULTS[name].message) for name in found]
    lines[1:] = [say("also" if number == 1 else "another", line=line) for number, line in enumerate(lines[1:], 1)]
    if innocent:
        lines.append(say("right_gradient"))
    elif MEMORY_ONLY.issuperset(found):  # nothing is said about the gradient yet
        lines.append(_of_the_gradient(bool(found), observations, len(sets) > 1))
    if broken is not None and any(sets):
        lines.append(say("more", where=place(broken)))
    elif len(sets) > 1 and not MEMORY_ONLY.issuperset(found):
        lines.append(say("ambiguous"))
    return joined(lines, between="\n")


def _of_the_gradient(beside: bool, observations: list[Observation], several: bool) -> Text:
    """What was measured of it, where no mistake of the catalogue is the only explanation."""
    first = next(o for o in observations if not o.right)
    opening = ("several" if several else "unknown") + ("_beside" if beside else "")
    return joined((say(opening, where=place(first)), differences(observations)))


def _misconduct(observations: list[Observation]) -> tuple[str, dict[str, Any]] | None:
    """What a loop does to things that are not its own, or leaves undone altogether."""
    total = {key: sum(o.record[key] for o in observations) for key in TOTALS}
    updates = sum(sum(o.record["updates"]) for o in observations)
    moved = any(not np.array_equal(end, problem(o.scenario).start) for o in observations for end in o.ends)
    checks = {
        "own_optimizer": total["foreign_updates"] > 0 and not all(o.right for o in observations),
        "no_optimizer": updates == 0 and moved,
        "list_changed": any(o.record["list_changed"] for o in observations),
        "data_changed": any(o.record["data_changed"] for o in observations),
        "copy_trained": not moved and total["forwards"] == 0 and total["foreign_forwards"] > 0,
        "no_forward": not moved and total["forwards"] == 0,
        "no_backward": not moved and total["backwards"] == 0,
        "no_update": not moved and updates == 0,
    }
    if name := next((name for name, true in checks.items() if true), None):
        return name, {}
    return _learning_rate(observations)


def _learning_rate(observations: list[Observation]) -> tuple[str, dict[str, Any]] | None:
    for o in observations:
        wanted = o.scenario.learning_rate
        wrong = np.flatnonzero(np.abs(o.rates - wanted) > RATE_TOLERANCE * wanted)
        if wrong.size and o.scenario.needs != "scheduler":
            update = int(wrong[0])
            return "learning_rate", {"wanted": wanted, "update": update + 1, "found": float(o.rates[update])}
    return None


def _memory(observations: list[Observation], known: set[str]) -> set[str]:
    """Whole windows alive at once, and by whose doing. A running total that goes backward keeps them too, and is
    named already."""
    first = observations[0]
    window = first.scenario.windows[0]
    if first.record["graphs"] < WHOLE_WINDOW * len(window) or "running_total_backward" in known:
        return set()
    whole = sum(first.scenario.sizes[index] for index in window)
    if first.record["largest_backward"] >= whole:
        return {"window_in_one_batch"}
    return {"sum_then_backward" if first.record["together"] >= len(window) else "graphs_kept_alive"}


def _pushes(loop: Loop) -> int:
    return predict(loop, SCENARIOS[0]).backwards


def _pushed(observations: list[Observation]) -> int:
    return int(observations[0].record["pushed"])


def _in_order(names: set[str]) -> tuple[str, ...]:
    """What shows in the weakest scope first: it is the coarser mistake."""
    return tuple(sorted((n for n in FAULTS if n in names), key=lambda name: SCOPES.index(FAULTS[name].scope)))
