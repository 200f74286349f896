"""The questions that are put to a model and its loss, in order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.detective.examination import weights as weigh
from gradacc_lessons.detective.examination.additivity import ask_about_additivity
from gradacc_lessons.detective.examination.batches import are_equal
from gradacc_lessons.detective.examination.bench import Bench, LossFunction, Run
from gradacc_lessons.detective.examination.caches import Wide, caches_set_aside, leave_native, wide_tensors
from gradacc_lessons.detective.examination.case import Case
from gradacc_lessons.detective.examination.errors import ExamineError
from gradacc_lessons.detective.examination.findings import Findings
from gradacc_lessons.detective.examination.generators import SEED, same_states
from gradacc_lessons.detective.examination.gradients import Gradient
from gradacc_lessons.detective.examination.keep import versions_kept
from gradacc_lessons.detective.examination.precision import widen
from gradacc_lessons.detective.examination.reach import Reach, refuse_what_has_no_numbers
from gradacc_lessons.detective.examination.states import ask_about_state, fresh_runs
from gradacc_lessons.detective.examination.weights import FLOAT64, NATIVE, Tolerance, Weights
from gradacc_lessons.errors import words_of

Count = Callable[[Any], Any]
"""How many items of a micro-batch count in its mean: examples, or tokens that are not masked."""
CHANGED_SEEDS = 16
"""How often the whole batch is run with another seed before its random numbers are taken to change nothing."""
BUFFER_ROUNDING = 5e-4
"""Of the gradients that are added: more than this lost by adding in the parameters' own dtype is told. float32 loses
1e-7, bf16 over 1e-3."""
LAST_DIGITS = 3
"""How often the parameters are moved by their last digit, to see the rounding of a model that has no float64."""
NATIVE_ERROR = 1e-2
"""Of the gradients that were added: more than this between whole batch and micro-batches in the model's own dtype is
told, although they agree in float64."""


def investigate(
    model: nn.Module,
    loss_fn: LossFunction,
    batch: Any,
    pieces: list[tuple[int, int]],
    count: Count | None,
    tell: Callable[[str], object],
) -> Findings:
    """Ask everything. The caller's objects are put back, whatever happens. ExamineError for what cannot be run."""
    roots = {"": model, "loss_fn": loss_fn, "count": count}
    reach = Reach(roots)
    refuse_what_has_no_numbers(reach)
    before = wide_tensors()
    with versions_kept(reach), caches_set_aside(reach):
        native = Bench(model, loss_fn, batch, pieces, parameters_of(model, reach), reach)
        case = Case(native, roots, weigh.equal(len(pieces)), count is not None)
        _note_limits(case)
        try:
            if count is not None:
                case.expected = _shares(native, count)
            _ask(case, tell)
        finally:
            try:
                native.start.put_back()
                _leave_native(case, native, before)
            finally:
                native.start.put_back()
    return case.findings


def _note_limits(case: Case) -> None:
    """What stays unseen: hooks that run once a gradient was added to `.grad`, for one, as nothing here does that."""
    if case.bench.reach.ended:
        case.findings.evidence["unseen"] = True
    if are_equal(case.bench.batch):
        case.findings.evidence["equal_examples"] = True
    held = case.bench.parameters.items()
    if names := tuple(name for name, tensor in held if getattr(tensor, "_post_accumulate_grad_hooks", None)):
        case.findings.evidence["hooks_after"] = names


def _leave_native(case: Case, native: Bench, before: Wide) -> None:
    """Where no hand reaches, a cache may still hold what float64 left: its owner's next forward must not find it."""
    if not case.losses:
        return  # nothing has run in float64

    def as_at_first() -> bool:
        try:
            now = [native.run(piece, backward=False).loss for piece in case.losses]  # all: each may fill a cache
        except ExamineError:
            return False
        return now == list(case.losses.values())

    dtypes = dict.fromkeys([torch.get_default_dtype(), *(tensor.dtype for tensor in native.parameters.values())])
    if not leave_native(as_at_first, before, list(dtypes)) and not case.hidden:
        case.findings.evidence["left_wide"] = True


def _shares(bench: Bench, count: Count) -> Weights:
    """What counts in each micro-batch, of what counts in all of them. ExamineError for what is no number of items."""
    counts = []
    for k in range(len(bench.pieces)):
        try:
            counts.append(float(count(bench.micro_batch(k))))
        except Exception as error:
            where = f"micro-batch {k + 1} of {len(bench.pieces)}"
            raise ExamineError(f"count(micro_batch) fails on {where}: {words_of(error)}") from error
    if not all(0 <= number < math.inf for number in counts) or not sum(counts):
        raise ExamineError(f"count(micro_batch) must give how many items count, not {counts}")
    return tuple(number / sum(counts) for number in counts)


def _ask(case: Case, tell: Callable[[str], object]) -> None:
    native, found = case.bench, case.findings
    tell("running the whole batch and its micro-batches")
    own, free = _in_its_own_precision(case)
    tell("computing in float64")
    _widen(case)
    tell("changing the seeds")
    _ask_about_randomness(case, free)
    tell("running the micro-batches from the same state and one after the other")
    whole, pieces, after_whole, after_last = fresh_runs(case)
    carried = ask_about_state(case, pieces, after_whole, after_last)
    tell("looking for weights that fit, and for what mixes the examples")
    fit = ask_about_additivity(case, whole, pieces)
    weights = fit.weights if fit is not None and fit.kind == "sum" else case.expected
    if case.moved and found.touching:
        found.evidence["elsewhere"] = True
    _as_people_do(case, weights, whole, carried)
    if case.draws is not None and case.unmatched and (fit is None or not fit.usual):
        found.evidence["unmatched"] = True
    alike = fit is not None and fit.usual and not found.causes - {"module_state"}
    _ask_about_precision(found, list(native.parameters), *own, weights, alike)
    if not found.touching and not weigh.agree(found.rows):
        found.add("unknown")


def parameters_of(model: nn.Module, reach: Reach) -> dict[str, Tensor]:
    """What gradients are of: the model's parameters, and those that only the loss has, such as a temperature."""
    found: dict[str, Tensor] = dict(model.named_parameters())
    found = {name: parameter for name, parameter in found.items() if parameter.requires_grad}
    known = {id(parameter) for parameter in found.values()}
    for name, tensor in reach.tensors.items():
        if tensor.requires_grad and tensor.is_leaf and id(tensor) not in known and not name.endswith(".grad"):
            found[name if name not in found else f"loss: {name}"] = tensor
    if not found:
        raise ExamineError("no parameter requires a gradient: unfreeze what is to be trained, with requires_grad_()")
    return found


def _in_its_own_precision(case: Case) -> tuple[tuple[Run, list[Run]], list[Run]]:
    """The runs in the model's own dtypes, each from the same state and with the same random numbers; and free ones."""
    case.bench.find_the_way_back()
    whole = case.bench.run(None)
    if all(part is None for part in whole.gradient):
        raise ExamineError("no parameter of the model gets a gradient from this loss: there is nothing to compare")
    free = [case.bench.run(k) for k in range(case.number)]
    if not whole.moved:
        return (whole, free), free
    case.draws_per_piece = [run.draws for run in free]
    draws = case.recorder()
    whole = case.bench.run(None, draws=draws)
    return (whole, [case.bench.run(k, draws=draws) for k in range(case.number)]), free


def _widen(case: Case) -> None:
    """Go on in float64, if the model can."""
    native = case.bench
    ends = (0, case.number - 1, None)  # micro-batches may be of two sizes
    case.losses = {piece: native.run(piece, backward=False).loss for piece in ends}
    try:
        native.start.put_back()
        instead = widen(case.roots, native.reach)
        parameters = {name: instead.get(id(parameter), parameter) for name, parameter in native.parameters.items()}
        wide = replace(native, parameters=parameters, reach=Reach(case.roots), wide=True)
        wide.run(None)
        case.bench = wide
    except (ExamineError, RuntimeError, TypeError) as error:
        native.start.put_back()
        case.tolerance = _rounding(case)
        case.findings.evidence["float64"] = str(error)


def _rounding(case: Case) -> Tolerance:
    """How far rounding takes gradients apart, in a model that does not run in float64.

    The whole batch is run again with the parameters moved by their last digit: what that changes is rounding, whatever
    the model does with its rows and its random numbers. Where something is computed in 16 bits it would show too
    little; there the widest tolerance stays.
    """
    here = case.bench.run(None)
    if here.halved:
        return NATIVE
    others = []
    for seed in range(LAST_DIGITS):
        with case.elsewhere(seed, last_digit=True):
            others.append(case.bench.run(None))
    return weigh.measured_tolerance(here.gradient, [other.gradient for other in others])


def _ask_about_randomness(case: Case, free: list[Run]) -> None:
    """Whether random numbers change the gradient; if so, they are drawn once from here on."""
    first, again = case.bench.run(None), case.bench.run(None)
    if case.differ(first, again):
        case.hidden = True
        case.findings.add("randomness", unrepeated=True)
        return
    if not first.moved:
        return
    seeds = range(SEED + 1, SEED + CHANGED_SEEDS + 1)
    if not any(case.differ(first, case.bench.run(None, seed=seed)) for seed in seeds):
        case.findings.evidence["no_effect_in"] = CHANGED_SEEDS + 1
        return
    case.draws = case.recorder()
    case.unrepeatable = first.unrepeatable or not all(same_states(run.others, first.others) for run in free)
    case.findings.add("randomness")


def _as_people_do(case: Case, weights: Weights, whole: Run, carried: list[Run]) -> None:
    """The comparison that the table shows: random numbers and state go on from one micro-batch to the next."""
    pieces = carried
    if case.draws is not None or case.moved:
        whole = case.bench.run(None)
        pieces = [case.bench.run(k, fresh=k == 0, seed=None if k else SEED + 1) for k in range(case.number)]
    names = list(case.bench.parameters)
    gradients = [run.gradient for run in pieces]
    total = weigh.added(gradients, weights)
    lengths = weigh.lengths(gradients, weights)
    _show(case.findings, names, whole.gradient, total, lengths, weights, case.tolerance)


def _show(
    found: Findings,
    names: Sequence[str],
    whole: Gradient,
    total: Gradient,
    lengths: Sequence[float],
    weights: Weights,
    tolerance: Tolerance = FLOAT64,
) -> None:
    error, size = weigh.distance(total, whole), weigh.length(whole)
    found.rows = weigh.compared_sum(names, whole, total, lengths, tolerance)
    found.relative_error = error / size if size else (float("inf") if error else 0.0)
    found.weights = weights


def _ask_about_precision(
    found: Findings, names: Sequence[str], whole: Run, pieces: list[Run], weights: Weights, alike: bool
) -> None:
    """Whether adding up in the model's own dtype loses what float64 keeps.

    `alike` if whole batch and micro-batches agree in float64, so that they can be compared in the own dtype as well.
    """
    gradients = [run.gradient for run in pieces]
    exact = weigh.added(gradients, weights)
    summed = weigh.added_in_their_own_dtype(gradients, weights)
    size = sum(abs(weight) * weigh.length(part) for weight, part in zip(weights, gradients, strict=True))
    lost = weigh.distance(exact, summed) / (size or 1.0)  # not of the sum: at an optimum nothing of it is left
    apart = weigh.distance(summed, whole.gradient) / (size or 1.0)
    if "equal_examples" in found.evidence:
        alike = False  # statistics of equal numbers are nothing but rounding
    if lost > BUFFER_ROUNDING or (alike and apart > NATIVE_ERROR):
        found.add("low_precision", lost=lost)
        if found.touching == {"low_precision"}:  # the numbers in float64 would contradict it
            _show(found, names, whole.gradient, summed, [0.0] * len(names), weights)
