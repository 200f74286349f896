"""With which weights the micro-batches make the whole batch, and what stands in the way."""

from dataclasses import dataclass
from typing import Any

import torch

from gradacc_lessons.detective.examination import weights as weigh
from gradacc_lessons.detective.examination.backwards import Probe, suspect
from gradacc_lessons.detective.examination.bench import Run
from gradacc_lessons.detective.examination.case import Case
from gradacc_lessons.detective.examination.errors import ExamineError
from gradacc_lessons.detective.examination.gradients import Gradient
from gradacc_lessons.detective.examination.mixing import Bypass, Finder, Mixed
from gradacc_lessons.detective.examination.watch import NOBODY, Recorder, Trail
from gradacc_lessons.detective.examination.weights import Weights

WHOLE = 1e-6
"""Shares of what counts add up to one, but for rounding."""
ELSEWHERE = 100
"""The seed of the values of the parameters at which usual weights have to fit too."""
OTHER_POINTS = 2
"""At how many other values of the parameters unusual weights have to fit too, at least."""
MOST_POINTS = 64
"""At how many at most: with fewer parameters than micro-batches, many are needed for as many equations."""


@dataclass(frozen=True)
class Fit:
    """Weights with which micro-batches add up to the whole batch."""

    kind: str
    """ "expected", "sum" (1 each), "equal" (1/N although counts were given) or "weights" (others)."""
    weights: Weights
    """One for each micro-batch."""

    @property
    def usual(self) -> bool:
        """Whether they are what was asked for, or those of a sum."""
        return self.kind in ("expected", "sum")


def ask_about_additivity(case: Case, whole: Run, pieces: list[Run]) -> Fit | None:
    """The weights that fit, without or with modules that mix; adds the causes. None if nothing fits."""
    fit = _fit(case, [], whole, pieces)
    if fit is not None and fit.usual and not case.unmatched and not _holds_elsewhere(case, fit):
        case.moved = True  # what does not add up has no gradient here, as behind a head of zeros; it has one there
        case.go_elsewhere(ELSEWHERE)
        fit = _fit(case, [])
    if fit is None and case.hidden:
        return None  # whatever differs may be chance
    if fit is None and case.draws is None and whole.draws:
        fit = _with_rows_of_their_own(case)
    if fit is None and case.draws is not None and case.draws.ambiguous:
        fit = _in_turns(case)
    if fit is None:
        fit = _behind_what_mixes(case)
    if fit is not None and abs(sum(fit.weights) - 1) > WHOLE and not fit.usual:
        case.findings.add("loss_not_additive", scaled=fit.weights)
    elif fit is not None and not fit.usual:
        case.findings.add("unequal_items", item_weights=fit.weights)
        if case.counted:
            case.findings.evidence["count_weights"] = case.expected
    return fit


def _holds_elsewhere(case: Case, fit: Fit) -> bool:
    """Whether the weights fit at other values of the parameters too; True if there is no finite loss."""
    with case.elsewhere(ELSEWHERE):
        try:
            run, runs = _measured(case, [])
        except ExamineError:
            return True
        return weigh.fits(_all(run), [_all(other) for other in runs], fit.weights, case.tolerance)


def _with_rows_of_their_own(case: Case) -> Fit | None:
    """Code that seeds in every forward draws the same whatever the seed: the rows of all micro-batches are alike."""
    case.draws = case.recorder()
    fit = _fit(case, [])
    if fit is None:
        case.draws = None
    else:
        case.findings.add("randomness", seeded_within=True)
    return fit


def _in_turns(case: Case) -> Fit | None:
    """Random numbers for several rows of an example may lie in turns, one of each example, rather than in a block."""
    block, case.draws = case.draws, case.recorder("interleaved")
    fit = _fit(case, [])
    if fit is None:
        case.draws = block
    return fit


def _behind_what_mixes(case: Case) -> Fit | None:
    """Name what mixes the examples, and look for weights once its rows are given."""
    if _without_hooks(case) is not None:
        case.findings.add("unknown", gradient_hooks=_hooked(case))
        return None
    mixed = _mixed(case)
    modules = dict(case.bench.model.named_modules())
    own = [one.blamed for one in mixed if one.blamed in modules or _makes_rows(one)]
    fit = _fit(case, mixed) if mixed else None
    if not mixed and not case.unmatched:
        blamed = _mixing_in_backward(case)
        if blamed is not None:
            _blame(case, [blamed], backward=True)
            return None
        if any(isinstance(module, torch.jit.ScriptModule) for module in case.bench.reach.modules.values()):
            return None  # nobody can look into it: it may be the model or the loss
    if own:
        _blame(case, own)
    if len(own) < len(mixed) or (fit is None and not case.unmatched):
        case.findings.add("loss_not_additive")
    return fit


def _hooked(case: Case) -> tuple[str, ...]:
    """The parameters whose gradient goes through hooks."""
    return tuple(name for name, tensor in case.bench.parameters.items() if tensor._backward_hooks)


def _without_hooks(case: Case) -> Fit | None:
    """What fits if the hooks on the parameters' gradients are taken off for a while."""
    hooked = [case.bench.parameters[name] for name in _hooked(case)]
    if not hooked:
        return None
    kept = [tensor._backward_hooks for tensor in hooked]
    try:
        for tensor in hooked:
            tensor._backward_hooks = None
        return _fit(case, [])
    finally:
        for tensor, hooks in zip(hooked, kept, strict=True):
            tensor._backward_hooks = hooks


def _blame(case: Case, modules: list[str], **evidence: Any) -> None:
    names = tuple(dict.fromkeys(modules))
    if any(getattr(case.bench.reach.modules[name], "batch_first", True) is False for name in names):
        evidence["batch_first"] = True
    kinds = tuple(type(case.bench.reach.modules[name]).__name__ for name in names)
    case.findings.add("batch_statistics", modules=names, kinds=kinds, **evidence)


def _makes_rows(one: Mixed) -> bool:
    """Whether a module that only the loss has gives features for each row, as a projection does, and no losses."""
    return one.blamed != NOBODY and one.spot.side == "out" and one.dimensions > 1


def _fit(case: Case, mixed: list[Mixed], whole: Run | None = None, pieces: list[Run] | None = None) -> Fit | None:
    """The weights that fit here, and at other values of the parameters if they are unusual ones."""
    if whole is None or pieces is None:
        whole, pieces = _measured(case, mixed)
    point = (_all(whole), [_all(run) for run in pieces])
    usual = [("expected", case.expected), ("sum", weigh.ones(case.number))]
    if case.counted:
        usual.append(("equal", weigh.equal(case.number)))
    for kind, weights in usual:
        if weigh.fits(*point, weights, case.tolerance):
            return Fit(kind, weights)
    points = [point]
    guesses = weigh.guesses([case.bench.micro_batch(k) for k in range(case.number)])
    tried = [weights for weights in guesses.values() if weigh.fits(*point, weights, case.tolerance)]
    if not tried and weigh.none_fit(*point, case.tolerance):
        return None  # what does not fit here need not be tried elsewhere
    for seed in range(1, _other_points(case, point[0]) + 1):
        with case.elsewhere(seed):
            try:
                run, runs = _measured(case, mixed)
            except ExamineError:  # these values of the parameters give no finite loss
                continue
        points.append((_all(run), [_all(other) for other in runs]))
    for name, weights in guesses.items():
        if all(weigh.fits(*point, weights, case.tolerance) for point in points):
            case.findings.evidence["counted"] = name
            return Fit("weights", weights)
    found = weigh.fitted(points, case.tolerance)
    return None if found is None else Fit("weights", found)


def _other_points(case: Case, whole: Gradient) -> int:
    """As many as give three equations for each weight."""
    numbers = max(sum(part.numel() for part in whole if part is not None), 1)
    return min(max(OTHER_POINTS, -(-3 * case.number // numbers)), MOST_POINTS)


def _measured(case: Case, mixed: list[Mixed]) -> tuple[Run, list[Run]]:
    """Whole batch and micro-batches, each from the same state, past the spots that mix."""
    if not mixed:
        return case.run(None), [case.run(k) for k in range(case.number)]
    trail = _recorded(case, None)
    modules = case.bench.reach.modules

    def past(piece: int | None) -> Run:
        cut = None if piece is None else case.cut(piece)
        return case.run(piece, watch=Bypass(modules, trail, mixed, cut))

    return past(None), [past(k) for k in range(case.number)]


def _recorded(case: Case, piece: int | None, backward: bool = False) -> Trail:
    recorder = Recorder(case.bench.reach.modules)
    case.run(piece, watch=recorder, backward=backward)
    return recorder.trail


def _mixed(case: Case) -> list[Mixed]:
    """The spots at which examples mix, in the order of a run."""
    trail = _recorded(case, None)
    found: dict[Any, Mixed] = {}
    for k in range(case.number):
        finder = Finder(case.bench.reach.modules, trail, case.cut(k), case.drawn)
        case.run(k, watch=finder, backward=False)
        for one in finder.found:
            found.setdefault(one.spot, one)
    order = {spot: k for k, spot in enumerate(trail.tensors)}
    return sorted(found.values(), key=lambda one: order[one.spot])


def _mixing_in_backward(case: Case) -> str | None:
    """The module that does it, if there is one, and if it does so with another loss too."""
    cuts = [case.cut(k) for k in range(case.number)]
    whole = _recorded(case, None, backward=True)
    module = suspect(whole, [_recorded(case, k, backward=True) for k in range(case.number)], cuts)
    if module is None or module == NOBODY:
        return None

    def probed(piece: int | None) -> Gradient:
        return case.run(piece, watch=Probe(case.bench.reach.modules, module, whole)).gradient

    pieces = [probed(k) for k in range(case.number)]
    return None if weigh.fits(probed(None), pieces, weigh.ones(case.number), case.tolerance) else module


def _all(run: Run) -> Gradient:
    return (*run.gradient, *run.extra)
