"""Scenarios as a request describes them, and observations out of the answer."""

from dataclasses import asdict
from typing import Any

import numpy as np

from gradacc_lessons.detective.scenarios import (
    CLASSES,
    EPOCHS,
    HIDDEN,
    KEYWORDS,
    Scenario,
    Scope,
    problem,
    scenarios,
)
from gradacc_lessons.detective.suspects import Observation
from gradacc_lessons.detective.wire import Array

SENT = (
    "name",
    "kind",
    "optimizer",
    "learning_rate",
    "accumulation_steps",
    "gain",
    "max_norm",
    "decay",
    "needs",
    "unless",
)
"""What a request says of a scenario, beside its numbers. The right answers stay here."""
COUNTS = (
    "forwards",
    "backwards",
    "pushed",
    "foreign_forwards",
    "largest_backward",
    "together",
    "foreign_updates",
    "graphs",
    "data_changed",
    "list_changed",
)
"""What a record holds beside its name and the updates of each epoch: numbers and truth values."""


def described(tried: list[Scenario]) -> tuple[list[dict[str, Any]], dict[str, Array]]:
    """The specs and the arrays with which a request describes these scenarios."""
    specs: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for scenario in tried:
        data, name = problem(scenario), scenario.name
        arrays |= {f"{name}/inputs/{k}": x for k, x in enumerate(data.inputs)}
        arrays |= {f"{name}/labels/{k}": y.astype(np.float64) for k, y in enumerate(data.labels)}
        arrays[f"{name}/start"] = data.start
        spec = {key: value for key, value in asdict(scenario).items() if key in SENT}
        sizes = {"micro_batches": len(data.inputs), "epochs": EPOCHS, "hidden": HIDDEN, "classes": CLASSES}
        specs.append(spec | sizes)
    return specs, arrays


def read_observations(header: dict[str, Any], arrays: dict[str, Array], scope: Scope) -> list[Observation]:
    """The observations in an answer, in the order of the scenarios; KeyError, TypeError or ValueError when it is not
    what an honest run sends."""
    records = {record["name"]: record for record in header["records"]}
    observations = []
    for scenario in scenarios(scope, set(header["accepted"]) & set(KEYWORDS)):
        record, name = records[scenario.name], scenario.name
        ends, after, rates = (arrays[f"{name}/{key}"] for key in ("ends", "after_updates", "rates"))
        width = problem(scenario).start.size
        numbers = [*(record[key] for key in COUNTS), *record["updates"]]
        if ends.shape != (EPOCHS, width) or after.shape[1:] != (width,) or rates.shape != after.shape[:1]:
            raise ValueError(f"shapes in {name}")
        if len(record["updates"]) != EPOCHS or not all(isinstance(number, (int, float)) for number in numbers):
            raise ValueError(f"counts in {name}")
        observations.append(Observation(scenario, ends, after, rates, record))
    return observations
