"""The JSON Schema of a bank, for editors. Made from the shape that banks are validated with, so that it cannot lag."""

import json
from typing import Any

from gradacc_lessons.quiz.questions import Bank

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""What pydantic writes."""


def bank_schema() -> dict[str, Any]:
    """The schema of a bank as it is written. What only shows across fields is for `gradacc quiz check` to find."""
    return {"$schema": DIALECT, **Bank.model_json_schema()}


def as_json() -> str:
    """The same as text."""
    return json.dumps(bank_schema(), indent=2)
