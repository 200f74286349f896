"""How lesson 10's exercises are judged: three functions are planned, a choice of window is run and measured."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from gradacc_lessons.quiz.call_in_child import call_in_child, followed_by, whole_pair
from gradacc_lessons.quiz.examine_parts import FAULTS, PLANNED_BUDGET, PLANNED_TARGET, examine
from gradacc_lessons.quiz.exercise import Exercise, did_not_return
from gradacc_lessons.quiz.grade import Grade, fill
from gradacc_lessons.quiz.sentences import joined
from gradacc_lessons.text import Text

if TYPE_CHECKING:
    from gradacc_lessons.memory.profile import MemoryProfile

SECONDS = 30.0
"""For a model to be followed and run, on a slow machine as well; `choose` may ask for predictions too."""

PLANNED = Text(
    "`plan` understands your model: within {budget} MiB, {target} examples become {shape}, with a predicted peak of "
    "{predicted} MiB.",
    "`plan` begrijpt je model: binnen {budget} MiB worden {target} voorbeelden {shape}, met een voorspelde piek van "
    "{predicted} MiB.",
)
RAN = Text("A real window took {measured} MiB.", "Een echt venster kostte {measured} MiB.")

TARGET, BUDGET_MEBIBYTES = 90, 68
"""What the second exercise asks for: examples per update, and the MiB that there are for them."""
NO_TRIPLE = Text(
    "`choose` must return three things: b and N, whole numbers of at least 1, and True or False for checkpointing.",
    "`choose` moet drie dingen teruggeven: b en N, hele getallen van minstens 1, en True of False voor checkpointing.",
)
MISSES_TARGET = Text(
    "That is another number of examples per update than asked.",
    "Dat is een ander aantal voorbeelden per update dan gevraagd.",
)
OVER_BUDGET = Text("This window takes more than the budget.", "Dit venster kost meer dan het budget.")
FORGETS_WHAT_STAYS = Text(
    "The activations alone would fit. But parameters, gradients and optimizer state are there too, whatever b is.",
    "De activaties alleen zouden passen. Maar parameters, gradients en optimizertoestand zijn er ook, hoe groot b ook "
    "is.",
)
STILL_OVER = Text(
    "Checkpointing lowers the price of an example, and it is not nothing. This window still takes more than the "
    "budget.",
    "Checkpointing verlaagt de prijs van een voorbeeld, maar niet tot nul. Dit venster kost nog steeds meer dan het "
    "budget.",
)
NOT_NEEDED = Text(
    "It fits, but it computes every forward twice. A smaller micro-batch would have made room without that.",
    "Het past, maar het rekent elke forward twee keer uit. Een kleinere micro-batch had ook ruimte gemaakt, zonder "
    "dat werk.",
)
N_TOO_LARGE = Text(
    "It fits, but N is larger than it needs to be: a larger micro-batch fits as well.",
    "Het past, maar N is groter dan nodig: een grotere micro-batch past ook.",
)
QUICKEST = Text(
    "It fits, nothing is computed twice, and there are no more micro-batches than needed.",
    "Het past, niets wordt dubbel uitgerekend, en er zijn niet meer micro-batches dan nodig.",
)


@dataclass(frozen=True)
class PartsCheck:
    """A function that returns functions: they are tried out, and planned, in the process that they live in."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        returned = call_in_child(followed_by(function, examine), [()], lambda value: value, SECONDS)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        verdict, *figures = returned.values[0]
        fault = list(FAULTS)[int(verdict) - 1] if verdict else None
        if fault is not None:
            shown = dict(zip("ab", figures, strict=False))
            seen = FAULTS[fault].seen
            return _not_yet(fault, FAULTS[fault].words, fill(seen, shown) if seen else None)
        return Grade(1.0, True, _as_planned(*figures))


def _as_planned(accumulation_steps: float, predicted: float, measured: float) -> Text:
    from gradacc_lessons.memory.forecast import balanced

    shape = " + ".join(map(str, balanced(PLANNED_TARGET, int(accumulation_steps))))
    asked = {"target": PLANNED_TARGET, "budget": PLANNED_BUDGET}
    said = fill(PLANNED, {**asked, "shape": shape, "predicted": round(predicted, 1)})
    return joined([said, fill(RAN, {"measured": round(measured, 1)})], " ") if measured else said


@dataclass(frozen=True)
class TripleCheck:
    """A function that returns b, N and whether to checkpoint; what happens with them decides."""

    verdict: Callable[[int, int, bool], Grade]
    """Tries the choice out."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        returned = call_in_child(followed_by(function, as_numbers), [()], whole_triple, SECONDS)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        (triple,) = returned.values
        if triple is None or min(triple[:2]) < 1:
            return Grade(0.0, False, NO_TRIPLE, "no_triple")
        return self.verdict(*triple)


def as_numbers(value: Any) -> Any:
    """(b, N, True) as three numbers, which can come back from the checking process; None for anything else."""
    if isinstance(value, tuple | list) and len(value) == 3 and isinstance(value[2], bool):
        return [value[0], value[1], int(value[2])]
    return None


def whole_triple(value: Any) -> tuple[int, int, bool] | None:
    """What came back, if it was b, N and a truth value."""
    pair = whole_pair(value[:2]) if isinstance(value, list) else None
    return (*pair, bool(value[2])) if pair is not None else None


def run_and_judge(micro_batch_size: int, accumulation_steps: int, checkpointing: bool) -> Grade:
    """Run a window of this b and N and compare its measured peak with the budget, and its work with what is needed.

    Time is not measured here: what takes it is what is computed, and that can be counted.
    """
    b, n = micro_batch_size, accumulation_steps
    if b * n != TARGET:
        return _not_yet("misses_target", MISSES_TARGET, Text(f"{b} x {n} = {b * n:,}.", f"{b} x {n} = {b * n}."))
    from gradacc_lessons.memory.sizes import MEBIBYTE

    profile = measured_window(b, n, checkpointing)
    over = profile.peak_bytes / MEBIBYTE - BUDGET_MEBIBYTES
    if over > 0:
        alone = profile.by_category["saved activations"] / MEBIBYTE <= BUDGET_MEBIBYTES
        fault, words = _too_much(alone, checkpointing)
        return _not_yet(fault, words, Text(f"Measured: {over:.0f} MiB too much.", f"Gemeten: {over:.0f} MiB te veel."))
    spare = Text(f"Measured: {-over:.0f} MiB to spare.", f"Gemeten: {-over:.0f} MiB over.")
    if checkpointing:
        return _not_yet("checkpointing_not_needed", NOT_NEEDED, spare)
    larger = next((size for size in range(b + 1, TARGET + 1) if TARGET % size == 0), None)
    if (
        larger is not None
        and measured_window(larger, TARGET // larger, False).peak_bytes <= BUDGET_MEBIBYTES * MEBIBYTE
    ):
        return _not_yet("n_too_large", N_TOO_LARGE, spare)
    return Grade(1.0, True, joined([QUICKEST, spare], " "))


def _too_much(activations_alone_fit: bool, checkpointing: bool) -> tuple[str, Text]:
    if checkpointing:
        return "checkpointed_and_over", STILL_OVER
    return ("forgets_what_stays", FORGETS_WHAT_STAYS) if activations_alone_fit else ("over_budget", OVER_BUDGET)


@cache
def measured_window(micro_batch_size: int, accumulation_steps: int, checkpointing: bool) -> "MemoryProfile":
    """The memory of a window of the lesson's model that really runs: its micro-batches after the second only wait.

    They do what the second does.
    """
    from gradacc_lessons.lessons.peaks import LONGEST, ONE_AT_A_TIME, Window, recipe_for
    from gradacc_lessons.memory.predict import TRACED_MICRO_BATCHES

    recipe = replace(recipe_for("adamw", micro_batch_size, accumulation_steps), checkpointing=checkpointing)
    with ONE_AT_A_TIME:
        return Window(LONGEST, recipe).profile(TRACED_MICRO_BATCHES)


def _not_yet(fault: str, words: Text, seen: Text | None) -> Grade:
    return Grade(0.0, False, joined([words, seen], " ") if seen else words, fault)
