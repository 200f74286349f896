"""The questions that are put to a model and its loss, in order, and what the answers mean."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.detective.examination import weights as weigh
from gradacc_lessons.detective.examination.bench import SEED, Bench, LossFunction, Run
from gradacc_lessons.detective.examination.draws import Draws
from gradacc_lessons.detective.examination.errors import ExamineError
from gradacc_lessons.detective.examination.keep import same_states
from gradacc_lessons.detective.examination.mixing import Bypass, Finder, Mixed, Recorder, Trail
from gradacc_lessons.detective.examination.precision import widen
from gradacc_lessons.detective.examination.reach import Reach
from gradacc_lessons.detective.examination.weights import FLOAT64, NATIVE, Compared, Tolerance, Weights

CAUSES = (
    "batch_statistics", "randomness", "loss_not_additive", "unequal_items", "module_state", "low_precision", "unknown",
)  # fmt: skip
"""In the order in which they are told."""
CHANGED_SEEDS = 16
"""How often the whole batch is run with another seed before its random numbers are taken to change nothing."""
OTHER_POINTS = 2
"""At how many other values of the parameters weights have to fit too."""
BUFFER_ROUNDING = 5e-4
"""Of the gradient: more than this lost by adding in the parameters' own dtype is told. float32 loses 1e-7, bf16 over
1e-3."""
NATIVE_ERROR = 1e-2
"""Of the gradients that were added: more than this between whole batch and micro-batches in the model's own dtype is
told, although they agree in float64."""


@dataclass
class Findings:
    """What the examination found."""

    causes: set[str] = field(default_factory=set)
    """Ids."""
    touching: set[str] = field(default_factory=set)
    """Those of them that change the gradient."""
    rows: list[Compared] = field(default_factory=list)
    """The gradient as people accumulate it, against the whole batch's, parameter by parameter."""
    relative_error: float = 0.0
    """Of all parameters together."""
    weights: Weights = ()
    """With which the micro-batches' gradients were added up for `rows`."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """What was seen."""

    def add(self, cause: str, touches: bool = True, **evidence: Any) -> None:
        """One more cause, with what was seen of it."""
        self.causes.add(cause)
        if touches:
            self.touching.add(cause)
        self.evidence.update(evidence)


@dataclass(frozen=True)
class Fit:
    """With which weights micro-batches add up to the whole batch."""

    kind: str
    """"expected", "sum" (1 each), "equal" (1/N although counts were given) or "weights" (others)."""
    weights: Weights
    """One for each micro-batch."""


class Investigation:
    """One model with its loss and batch under examination."""

    def __init__(
        self,
        model: nn.Module,
        loss_fn: LossFunction,
        batch: Any,
        pieces: list[tuple[int, int]],
        counts: Sequence[float] | None,
        tell: Callable[[str], object],
    ) -> None:
        self._roots = {"": model, "loss_fn": loss_fn}
        reach = Reach(self._roots)
        self._tell = tell
        self.findings = Findings()
        self.native = Bench(model, loss_fn, batch, pieces, parameters_of(model, reach), reach)
        self.bench = self.native
        self.number = len(pieces)
        total = sum(counts) if counts is not None else 0
        self.expected = weigh.equal(self.number) if counts is None else tuple(count / total for count in counts)
        self.counted = counts is not None
        self.draws: Draws | None = None
        self.unmatched = False

    def run(self) -> Findings:
        """Ask everything. The caller's objects are put back, whatever happens."""
        try:
            self._ask()
        finally:
            self.native.start.put_back()
        return self.findings

    def _ask(self) -> None:
        self._tell("running the whole batch and its micro-batches")
        own = self._in_its_own_precision()
        self._widen()
        self._tell("changing the seeds")
        self._randomness()
        whole, pieces = self._fresh_runs()
        self._tell("looking for state")
        carried = self._state(whole, pieces)
        self._tell("looking for the weights that fit")
        fit = self._additivity(whole, pieces)
        weights = self.expected if fit is None or fit.kind != "sum" else fit.weights
        self._as_people_do(weights, whole, carried)
        if fit is not None and fit.kind in ("expected", "sum") and "low_precision" not in self.findings.causes:
            self._precision(*own, weights)
        if not weigh.agree(self.findings.rows) and not self.findings.touching:
            self.findings.add("unknown")

    # --- each question ------------------------------------------------------------------------------------

    def _in_its_own_precision(self) -> tuple[Run, list[Run]]:
        """The runs in the model's own dtypes, each from the same state, with the same random numbers."""
        first = self.native.run(None)
        if all(part is None for part in first.gradient):
            raise ExamineError(
                "no parameter of the model gets a gradient from this loss, so there is nothing to compare"
            )
        self._free = free = [self.native.run(k) for k in range(self.number)]
        if not first.moved:
            return first, free
        draws = self._recorder()
        return self.native.run(None, draws=draws), [self.native.run(k, draws=draws) for k in range(self.number)]

    def _recorder(self) -> Draws:
        draws = Draws(self.native.pieces)
        for k, run in enumerate(self._free):
            draws.counted(k, run.draws)
        return draws

    def _widen(self) -> None:
        """Go on in float64, if the model can."""
        self.tolerance: Tolerance = FLOAT64
        try:
            widen(self.native.reach)
            bench = Bench(
                self.native.model, self.native.loss_fn, self.native.batch, self.native.pieces, self.native.parameters,
                Reach(self._roots), wide=True,
            )  # fmt: skip
            bench.run(None)
            self.bench = bench
        except (ExamineError, RuntimeError, TypeError) as error:
            self.native.start.put_back()
            self.tolerance = NATIVE
            self.findings.evidence["float64"] = str(error)

    def _randomness(self) -> None:
        """Whether random numbers change the gradient; if so, they are drawn once from here on."""
        first, again = self.bench.run(None), self.bench.run(None)
        if self._differ(first, again):
            self.findings.add("randomness", repeats=False)
            return
        if not first.moved:
            return
        for other in range(1, CHANGED_SEEDS + 1):
            if self._differ(first, self.bench.run(None, seed=SEED + other)):
                break
        else:
            return
        self.draws = self._recorder()
        ends = [run.others for run in self._free]
        self.unmatched = first.unrepeatable or not all(same_states(end, first.others) for end in ends)
        self.findings.add("randomness")

    def _differ(self, one: Run, other: Run) -> bool:
        """Whether two runs of the same examples give other gradients, beyond rounding."""
        allowed = self.tolerance.relative * weigh.length(one.gradient)
        return weigh.distance(one.gradient, other.gradient) > allowed

    def _fresh_runs(self) -> tuple[Run, list[Run]]:
        """The whole batch and every micro-batch, each from the same state."""
        whole = self.bench.run(None, draws=self.draws)
        self._after_whole = self._changes()
        pieces = []
        for k in range(self.number):
            pieces.append(self.bench.run(k, draws=self.draws))
        self._after_last = self._changes()
        self.unmatched = self.unmatched or (self.draws is not None and self.draws.unmatched)
        return whole, pieces

    def _changes(self) -> dict[str, Any]:
        return self.bench.start.changes(Reach(self._roots))

    def _state(self, whole: Run, pieces: list[Run]) -> list[Run]:
        """Run the micro-batches one after the other, each from what the last one left, as training does."""
        if not self._after_whole and not self._after_last:
            return pieces
        carried = []
        try:
            for k in range(self.number):
                carried.append(self.bench.run(k, fresh=k == 0, draws=self.draws))
        except ExamineError as error:
            self.findings.add("module_state", state=tuple(self._after_last), stops=str(error))
            return pieces
        after = self._changes()
        touches = any(self._differ(one, other) for one, other in zip(pieces, carried, strict=True))
        names = moved(self._after_whole, self._after_last, after)
        if names or touches:
            self.findings.add("module_state", touches, state=tuple(names or after))
        return carried

    def _additivity(self, whole: Run, pieces: list[Run]) -> Fit | None:
        """With which weights the micro-batches make the whole batch, and what is in the way."""
        fit = self._fit([], whole, pieces)
        if fit is None:
            mixed = self._mixed()
            in_model = [one for one in mixed if self._belongs_to_the_model(one)]
            if in_model:
                self.findings.add("batch_statistics", modules=tuple(dict.fromkeys(one.blamed for one in in_model)))
            if mixed:
                fit = self._fit(mixed)
            if len(in_model) < len(mixed) or (fit is None and self._certain()):
                self.findings.add("loss_not_additive")
        if fit is not None and fit.kind not in ("expected", "sum"):
            self.findings.add("unequal_items", item_weights=fit.weights)
        return None if "batch_statistics" in self.findings.causes else fit

    def _certain(self) -> bool:
        """Whether what does not fit can be the loss's doing: not if random numbers could not be given again."""
        return not self.unmatched

    def _belongs_to_the_model(self, one: Mixed) -> bool:
        return one.blamed in dict(self.bench.model.named_modules())

    def _as_people_do(self, weights: Weights, whole: Run, carried: list[Run]) -> None:
        """The comparison that the table shows: random numbers and state go on from one micro-batch to the next."""
        pieces = carried
        if self.draws is not None:
            whole = self.bench.run(None)
            pieces = [self.bench.run(k, fresh=k == 0, seed=None if k else SEED + 1) for k in range(self.number)]
        self._show(whole, pieces, weights, self.tolerance)

    def _show(self, whole: Run, pieces: list[Run], weights: Weights, tolerance: Tolerance) -> None:
        names = list(self.bench.parameters)
        gradients = [run.gradient for run in pieces]
        self.findings.rows = weigh.compared(names, whole.gradient, gradients, weights, tolerance)
        error = weigh.distance(weigh.added(gradients, weights), whole.gradient)
        size = weigh.length(whole.gradient)
        self.findings.relative_error = error / size if size else (0.0 if not error else float("inf"))
        self.findings.weights = weights

    def _precision(self, whole: Run, pieces: list[Run], weights: Weights) -> None:
        """Whether adding up in the model's own dtype loses what float64 keeps."""
        gradients = [run.gradient for run in pieces]
        exact = weigh.added(gradients, weights)
        summed = added_in_their_own_dtype(gradients, weights)
        size = sum(abs(w) * weigh.length(g) for w, g in zip(weights, gradients, strict=True))
        lost = weigh.distance(exact, summed) / max(weigh.length(exact), 1e-300)
        apart = weigh.distance(summed, whole.gradient) / max(size, 1e-300)
        if lost > BUFFER_ROUNDING or apart > NATIVE_ERROR:
            self.findings.add("low_precision", lost=lost)
            if self.findings.causes == {"low_precision"}:
                names = list(self.native.parameters)
                lengths = [0.0] * len(names)
                self.findings.rows = weigh.compared_sum(names, whole.gradient, summed, lengths, FLOAT64)
                self.findings.relative_error = weigh.distance(summed, whole.gradient) / weigh.length(whole.gradient)

    # --- how they are asked -------------------------------------------------------------------------------

    def _fit(self, mixed: list[Mixed], whole: Run | None = None, pieces: list[Run] | None = None) -> Fit | None:
        """The weights that fit here, and at other values of the parameters if they are unusual ones."""
        if whole is None or pieces is None:
            whole, pieces = self._measured(mixed)
        point = (_all(whole), [_all(run) for run in pieces])
        usual = [("expected", self.expected), ("sum", weigh.ones(self.number))]
        if self.counted:
            usual.append(("equal", weigh.equal(self.number)))
        for kind, weights in usual:
            if weigh.fits(*point, weights, self.tolerance):
                return Fit(kind, weights)
        points = [point]
        for seed in range(1, OTHER_POINTS + 1):
            with self._elsewhere(seed):
                try:
                    run, runs = self._measured(mixed)
                except ExamineError:  # these values of the parameters give no finite loss
                    continue
            points.append((_all(run), [_all(other) for other in runs]))
        weights_found = weigh.fitted(points, self.tolerance)
        return None if weights_found is None else Fit("weights", weights_found)

    def _measured(self, mixed: list[Mixed]) -> tuple[Run, list[Run]]:
        """Whole batch and micro-batches, each from the same state, past the spots that mix."""
        if not mixed:
            whole = self.bench.run(None, draws=self.draws)
            return whole, [self.bench.run(k, draws=self.draws) for k in range(self.number)]
        trail = self._trail()
        modules = self.bench.reach.modules

        def past(piece: int | None) -> Run:
            rows = None if piece is None else self.bench.pieces[piece]
            bypass = Bypass(modules, trail, mixed, rows)
            return self.bench.run(piece, draws=self.draws, watch=bypass.gated())

        return past(None), [past(k) for k in range(self.number)]

    def _trail(self) -> Trail:
        recorder = Recorder(self.bench.reach.modules, self.bench.examples)
        self.bench.run(None, draws=self.draws, watch=recorder.hooked())
        return recorder.trail

    def _mixed(self) -> list[Mixed]:
        """The spots at which examples mix, in the order of a run."""
        trail = self._trail()
        found: dict[Any, Mixed] = {}
        for k, piece in enumerate(self.bench.pieces):
            finder = Finder(self.bench.reach.modules, trail, piece)
            self.bench.run(k, draws=self.draws, watch=finder.hooked())
            for one in finder.found:
                found.setdefault(one.spot, one)
        order = {spot: k for k, spot in enumerate(trail.tensors)}
        return sorted(found.values(), key=lambda one: order[one.spot])

    @contextmanager
    def _elsewhere(self, seed: int) -> Iterator[None]:
        """Other values of the parameters, near these."""
        here = self.bench.start
        here.put_back()
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.bench.parameters.values():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter.data)
            parameter.data.add_(noise * (0.1 * parameter.data.square().mean().sqrt() + 0.01))
        self.bench.start = type(here)(self.bench.reach)
        try:
            yield
        finally:
            self.bench.start = here
            here.put_back()


def parameters_of(model: nn.Module, reach: Reach) -> dict[str, Tensor]:
    """What gradients are of: the model's parameters, and those that only the loss has, such as a temperature."""
    found: dict[str, Tensor] = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    known = {id(parameter) for parameter in found.values()}
    for name, tensor in reach.tensors.items():
        if tensor.requires_grad and tensor.is_leaf and id(tensor) not in known and not name.endswith(".grad"):
            found[name if name not in found else f"loss: {name}"] = tensor
    return found


def moved(whole: dict[str, Any], last: dict[str, Any], carried: dict[str, Any]) -> list[str]:
    """What is different after all micro-batches than after the whole batch, and does not come from the last one."""
    names = dict.fromkeys([*whole, *carried])
    return [
        name for name in names
        if not _alike(carried.get(name), whole.get(name)) and not _alike(carried.get(name), last.get(name))
    ]  # fmt: skip


def added_in_their_own_dtype(gradients: Sequence[Any], weights: Sequence[float]) -> Any:
    """As `.grad` does: each weighted gradient is rounded, and so is each sum."""
    total: list[Tensor | None] = [None] * len(gradients[0])
    for weight, gradient in zip(weights, gradients, strict=True):
        for k, part in enumerate(gradient):
            if part is not None:
                now, piece = total[k], part * weight
                total[k] = piece if now is None else now + piece
    return tuple(total)


def _all(run: Run) -> Any:
    return (*run.gradient, *run.extra)


def _alike(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape:
            return False
        if not one.is_floating_point():
            return torch.equal(one, other)
        scale = float(other.abs().max()) if other.numel() else 0.0
        return bool(torch.allclose(one.double(), other.double(), rtol=1e-6, atol=1e-9 * scale, equal_nan=True))
    return bool(abs(one - other) <= 1e-9 * abs(other)) if isinstance(one, float) else bool((one == other).all())
