"""What the observations of a run say, in rows and in sentences. Nothing here guesses at a cause."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradacc_lessons.detective.scenarios import EPOCHS, Scenario, gradient, problem
from gradacc_lessons.detective.suspects import TOLERANCE, Observation
from gradacc_lessons.detective.wire import Array
from gradacc_lessons.detective.wording import PLACES, say
from gradacc_lessons.text import Text, joined

PARALLEL = 1e-6
"""1 - |cosine| below this counts as the same direction: the square of a relative error of 1e-3."""


def evidence(observations: list[Observation]) -> dict[str, Any]:
    """The counts and the trace of the situation in which the trace first differs from that of a right loop; where it
    never does, of the one in which the loop first differs, else of the strictest one."""
    wrong = [o for o in observations if not o.right]
    traced = [o for o in wrong if o.scenario.kind == "tracer"]
    level = (traced or wrong or observations[-1:])[0].scenario.scope
    tracer = next(o for o in observations if o.scenario.scope == level and o.scenario.kind == "tracer")
    plain = next(o for o in observations if o.scenario.scope == level)
    return {
        "measured_in": level,
        "updates": sum(plain.record["updates"]),
        "updates_expected": EPOCHS * len(plain.scenario.windows),
        "forwards": plain.record["forwards"],
        "backwards": plain.record["backwards"],
        "micro_batches": EPOCHS * len(plain.scenario.sizes),
        "graphs_alive": round(observations[0].record["graphs"], 2),
        "trace": trace(tracer),
    }


def trace(tracer: Observation) -> list[dict[str, Any]]:
    """One row per update: with what weight each micro-batch went into it, and their sum."""
    return [
        {
            "epoch": epoch + 1,
            "update": update + 1,
            "gradient": round(float(weights.sum()), 6),
            "weights": [round(float(weight), 6) for weight in weights],
        }
        for epoch, update, weights, _ in applied(tracer)
    ]


def applied(observation: Observation) -> Iterator[tuple[int, int, Array, Array | None]]:
    """Epoch, update in that epoch, the gradient that was applied (plain SGD), and the right one at those parameters,
    per unit of gain; None where no window is left for the update."""
    scenario, before, number = observation.scenario, problem(observation.scenario).start, 0
    for epoch, made in enumerate(observation.record["updates"]):
        for update in range(min(made, len(observation.after_updates) - number)):
            after, rate = observation.after_updates[number], observation.rates[number]
            yield (
                epoch,
                update,
                (before - after) / (rate * scenario.gain) if rate else np.zeros_like(after),
                right_gradient(scenario, before, update),
            )
            before, number = after, number + 1


def right_gradient(scenario: Scenario, parameters: Array, update: int) -> Array | None:
    """The mean gradient of the window of `update`, per unit of gain."""
    if update >= len(scenario.windows):
        return None
    window, data = scenario.windows[update], problem(scenario)
    items = sum(data.counts[index] for index in window)
    total = sum(data.counts[index] * gradient(scenario, parameters, index) for index in window)
    result: Array = np.asarray(total) / (items * scenario.gain)
    return result


def differences(observations: list[Observation]) -> Text:
    """What was measured to differ, in the first situation in which something does."""
    wrong = next(o for o in observations if not o.right)
    tracer = next(
        (o for o in observations if o.scenario.scope == wrong.scenario.scope and o.scenario.kind == "tracer"),
        wrong,
    )
    said = []
    wanted = EPOCHS * len(wrong.scenario.windows)
    if (made := sum(wrong.record["updates"])) != wanted:
        said.append(say("updates", made=made, wanted=wanted))
    plain = wrong.scenario.optimizer == "sgd" and wrong.scenario.needs is None
    if plain and (story := _first_difference(tracer if _tells(tracer, wrong) else wrong)):
        said.append(story)
    return joined(said or [say("parameters")])


def place(observation: Observation) -> Text:
    """Where an observation was made, in words."""
    return PLACES[observation.scenario.name]


def _tells(tracer: Observation, network: Observation) -> bool:
    """Whether the weights of the first update explain what the network's first update applied."""
    traced, seen = next(applied(tracer), None), next(applied(network), None)
    if tracer.right or traced is None or seen is None:
        return False
    start, scenario = problem(network.scenario).start, network.scenario
    told = sum(w * gradient(scenario, start, k) for k, w in enumerate(traced[2])) / scenario.gain
    return bool(np.abs(told - seen[2]).max() <= PARALLEL * float(np.linalg.norm(seen[2])))


def _first_difference(observation: Observation) -> Text | None:
    for epoch, update, got, right in applied(observation):
        if right is None or not np.isfinite(got).all():
            return None
        length, other = float(np.linalg.norm(right)), float(np.linalg.norm(got))
        if np.abs(got - right).max() <= TOLERANCE * length * 10:
            continue
        where = {"epoch": epoch + 1, "update": update + 1}
        if not other:
            return say("nothing", **where)
        cosine = float(got @ right) / (length * other)
        if 1 - abs(cosine) < PARALLEL:
            name = "ratio" if cosine > 0 else "opposite"
            return say(name, ratio=other / length, **where)
        if observation.scenario.kind == "tracer":
            return _micro_batch(got, right, where)
        return say("direction", cosine=cosine, **where)
    return None


def _micro_batch(got: Array, right: Array, where: dict[str, int]) -> Text:
    index = int(np.flatnonzero(np.abs(got - right) > TOLERANCE)[0])
    name = "foreign" if right[index] == 0 else "skipped" if got[index] == 0 else "weight"
    ratio = got[index] / right[index] if right[index] else 0.0
    return say(name, micro_batch=index + 1, ratio=ratio, **where)
