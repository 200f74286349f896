"""What `gradacc plan` does: find the model, plan it, and say the plan."""

from json import dumps
from pathlib import Path
from typing import Any

from gradacc_lessons.memory.config import parts_of_config
from gradacc_lessons.memory.paste import TITLES
from gradacc_lessons.memory.plan import Plan, plan
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.user_file import in_a_sentence, load

CONTRACT = "it must return (build_model, loss_fn, make_batch)"


def planned_file(target: str, recipe: Recipe, **wishes: Any) -> Plan:
    """The plan for what FILE:FUNCTION returns. The file runs in this process. `wishes` are arguments of `plan`.

    ValueError, in one sentence, for whatever goes wrong in it.
    """
    path, function = load(target)
    with in_a_sentence(path):
        parts = function()
        if not isinstance(parts, tuple) or len(parts) != 3 or not all(map(callable, parts)):
            name = target.rpartition(":")[2]
            raise ValueError(f"{name}() in {path} does not give what is planned: {CONTRACT}, three functions")
        return plan(*parts, recipe, **wishes)


def planned_config(file: Path, sequence: int, recipe: Recipe, **wishes: Any) -> Plan:
    """The plan for the language model that a configuration file describes. `wishes` are arguments of `plan`.

    ValueError, in one sentence, for what cannot be planned, and where transformers is missing.
    """
    try:
        parts = parts_of_config(file, sequence)
    except ImportError as error:
        raise ValueError(str(error)) from error
    return plan(*parts, recipe, **wishes)


def as_text(found: Plan) -> str:
    """The plan, and the lines to paste."""
    pieces = [str(found)]
    size, count = found.equal
    peak = f", predicted peak {readable(found.equal_peak_bytes)}" if found.equal_peak_bytes is not None else ""
    for framework, title in TITLES.items():
        what = "" if framework == "loop" else f": {count:,} x {size:,}{peak}"
        pieces += ["", f"# {title}{what}", found.lines(framework)]
    return "\n".join(pieces)


def as_json(found: Plan) -> str:
    """The plan and the lines to paste, for programs."""
    lines = {framework: found.lines(framework) for framework in TITLES}
    return dumps({**found.as_dict(), "lines": lines}, indent=2)
