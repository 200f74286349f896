"""What `gradacc examine` does: find the model with its loss and batch, examine them, and say the verdict."""

import math
from collections.abc import Callable
from json import dumps
from typing import Any

from gradacc_lessons.detective.examine import Examination, examine
from gradacc_lessons.text import Language
from gradacc_lessons.user_file import in_a_sentence, load

CONTRACT = "it must return (model, loss_fn, batch), or (model, loss_fn, batch, count)"


def examined_file(
    target: str, micro_batch_size: int, *, language: Language, tell: Callable[[str], object]
) -> Examination:
    """The verdict on what FILE:FUNCTION returns. The file runs in this process.

    ValueError, in one sentence, for whatever goes wrong in it.
    """
    path, function = load(target)
    with in_a_sentence(path):
        parts = function()
        if not isinstance(parts, tuple) or len(parts) not in (3, 4):
            name = target.rpartition(":")[2]
            raise ValueError(f"{name}() in {path} does not give what is examined: {CONTRACT}")
        model, loss_fn, batch = parts[:3]
        count = parts[3] if len(parts) == 4 else None
        return examine(model, loss_fn, batch, micro_batch_size, count=count, language=language, tell=tell)


def as_json(found: Examination) -> str:
    """The verdict for programs. Numbers that are not finite are null."""
    rows = [{str(key): _plain(value) for key, value in row.items()} for row in found.table.to_dict("records")]
    return dumps(
        {
            "additive": found.additive,
            "causes": found.causes,
            "relative_error": _plain(found.relative_error),
            "weights": found.weights,
            "evidence": found.evidence,
            "message": found.message,
            "remedies": [remedy.to(found.language) for remedy in found.remedies],
            "table": rows,
        },
        indent=2,
    )


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
