"""How lesson 10's exercises are judged: three functions are planned, a choice of window is run and measured."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from gradacc_lessons.quiz.call_in_child import Returned, call_in_child, followed_by, number, whole_pair
from gradacc_lessons.quiz.examine_parts import FAULTS, PLANNED_BUDGET, PLANNED_TARGET, examine
from gradacc_lessons.quiz.exercise import Exercise, did_not_return
from gradacc_lessons.quiz.grade import Grade, fill
from gradacc_lessons.quiz.judge_choice import N_TOO_LARGE, missed, next_divisor, not_yet, over_budget, room
from gradacc_lessons.text import Text, joined

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
OVER_BUDGET = Text("This window takes more than the budget.", "Dit venster kost meer dan het budget.")
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
FITS_WITHOUT = Text(
    "It fits, but it computes every forward twice, and the same micro-batch fits without that.",
    "Het past, maar het rekent elke forward twee keer uit, en dezelfde micro-batch past ook zonder dat werk.",
)
QUICKEST = Text(
    "It fits, nothing is computed twice, and there are no more micro-batches than needed.",
    "Het past, niets wordt dubbel uitgerekend, en er zijn niet meer micro-batches dan nodig.",
)


@dataclass(frozen=True)
class PartsCheck:
    """A function that returns functions: they are tried out, and planned, in the process that they live in."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        returned = call_in_child(followed_by(function, examine), [()], _examined, SECONDS)
        if returned.problem is None and returned.values == [None]:
            returned = Returned([], "ended", "it answered in place of its check")
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        verdict, *figures = returned.values[0]
        fault = list(FAULTS)[verdict - 1] if verdict else None
        if fault is not None:
            shown = dict(zip("ab", figures, strict=False))
            seen = FAULTS[fault].seen
            return not_yet(fault, FAULTS[fault].words, fill(seen, shown) if seen else None)
        return Grade(1.0, True, _as_planned(*figures))


def _examined(value: Any) -> list[Any] | None:
    """What came back, if `examine` may have said it: N decides how much is written about a plan."""
    if not isinstance(value, list) or not value or any(number(each) is None for each in value):
        return None
    verdict, *figures = value
    if verdict not in range(len(FAULTS) + 1) or not all(map(isfinite, map(float, figures))):
        return None
    if verdict == 0 and (len(figures) != 3 or figures[0] not in range(1, PLANNED_TARGET + 1)):
        return None
    return [int(verdict), *figures]


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
    from gradacc_lessons.memory.sizes import MEBIBYTE

    b, n, budget = micro_batch_size, accumulation_steps, BUDGET_MEBIBYTES * MEBIBYTE
    if (grade := missed(b, n, TARGET)) is not None:
        return grade
    profile = measured_window(b, n, checkpointing)
    seen = room(profile, budget)
    if profile.peak_bytes > budget:
        if checkpointing:
            return not_yet("checkpointed_and_over", STILL_OVER, seen)
        return over_budget(profile, budget, OVER_BUDGET)
    if checkpointing:
        if measured_window(b, n, False).peak_bytes <= budget:
            return not_yet("checkpointing_for_nothing", FITS_WITHOUT, seen)
        return not_yet("checkpointing_not_needed", NOT_NEEDED, seen)
    larger = next_divisor(b, TARGET)
    if larger is not None and measured_window(larger, TARGET // larger, False).peak_bytes <= budget:
        return not_yet("n_too_large", N_TOO_LARGE, seen)
    return Grade(1.0, True, joined([QUICKEST, seen]))


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
