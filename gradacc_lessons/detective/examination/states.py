"""What a forward leaves behind, and whether the next one depends on it."""

from typing import Any

import torch
from torch import Tensor

from gradacc_lessons.detective.examination.bench import Run
from gradacc_lessons.detective.examination.case import Case
from gradacc_lessons.detective.examination.errors import ExamineError
from gradacc_lessons.detective.examination.keep import Snapshot, dense_parts
from gradacc_lessons.detective.examination.reach import Reach
from gradacc_lessons.errors import words_of


def fresh_runs(case: Case) -> tuple[Run, list[Run], dict[str, Any], dict[str, Any]]:
    """The whole batch and every micro-batch, each from the same state; what the whole one changed, and the last one."""
    whole = case.run(None)
    after_whole = case.changes()
    pieces = [case.run(k) for k in range(case.number)]
    return whole, pieces, after_whole, case.changes()


def ask_about_state(
    case: Case, pieces: list[Run], after_whole: dict[str, Any], after_last: dict[str, Any]
) -> list[Run]:
    """Run the micro-batches one after the other, each from what the last one left, as training does."""
    if not after_whole and not after_last:
        return pieces
    carried = []
    try:
        for k in range(case.number):
            carried.append(case.run(k, fresh=k == 0))
    except ExamineError as error:
        case.findings.add("module_state", state=tuple(after_last), stops=words_of(error.__cause__ or error))
        return pieces
    after = case.changes()
    touches = any(case.differ(one, other) for one, other in zip(pieces, carried, strict=True))
    names = _moved(after_whole, after_last, after)
    own = set(_in_modules(case))
    if not touches and not _is_read(case, names, own):
        names = [name for name in names if name in own]
    if names or touches:
        case.findings.add("module_state", touches, state=tuple(names or after))
    return carried


def _moved(whole: dict[str, Any], last: dict[str, Any], carried: dict[str, Any]) -> list[str]:
    """What is different after all micro-batches than after the whole batch, and does not come from the last one."""
    return [
        name
        for name in dict.fromkeys([*whole, *carried])
        if not _alike(carried.get(name), whole.get(name)) and not _alike(carried.get(name), last.get(name))
    ]


def _in_modules(case: Case) -> list[str]:
    """The names of what modules hold as buffers, parameters, tensors and floats: it is saved, or read some day.

    A counter in an int is only one that has to be read.
    """
    reach = Reach(case.roots)
    places = [place for place in reach.places if place.in_module]
    held = {id(value) for place in places for value in place.holder.values() if isinstance(value, Tensor)}
    names = [name for name, tensor in reach.tensors.items() if id(tensor) in held]
    for place in places:
        floats = [key for key, value in place.holder.items() if isinstance(value, float)]
        names += [f"{place.name}.{key}" if place.name else key for key in floats]
    return names


def _is_read(case: Case, names: list[str], own: set[str]) -> bool:
    """Whether any run depends on what is left outside of modules: a log of losses is not read, a queue is.

    The whole batch is run after either way of coming here, in the mode in which it is and in eval mode.
    """
    if set(names) <= own:
        return True
    case.run(None)
    one = Snapshot(Reach(case.roots))
    for k in range(case.number):
        case.run(k, fresh=k == 0)
    other = Snapshot(Reach(case.roots))
    return any(_read_in_mode(case, one, other, training) for training in (True, False))


def _read_in_mode(case: Case, one: Snapshot, other: Snapshot, as_it_is: bool) -> bool:
    runs = []
    for state in (one, other):
        state.put_back()
        if not as_it_is:
            case.bench.model.eval()
        try:
            runs.append(case.run(None, fresh=False))
        except ExamineError:
            return True
        finally:
            case.bench.start.put_back()
    return case.differ(*runs) or not _alike(runs[0].loss, runs[1].loss)


def _alike(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        if one.layout != torch.strided:
            return one.layout == other.layout and all(map(_alike, dense_parts(one), dense_parts(other)))
        if not one.is_floating_point():
            return torch.equal(one, other)
        scale = float(other.abs().max()) if other.numel() else 0.0
        return bool(torch.allclose(one.double(), other.double(), rtol=1e-6, atol=1e-9 * scale, equal_nan=True))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * abs(other)
    return bool(getattr(one, "shape", ()) == getattr(other, "shape", ()) and (one == other).all())
