"""The exercises of lesson 03: a loop that keeps its graphs, and a choice of b and N that a measurement judges."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradacc_lessons.quiz.call_in_child import call_in_child, whole_pair
from gradacc_lessons.quiz.exercise import Exercise, LoopCheck, WrongAnswer, did_not_return
from gradacc_lessons.quiz.grade import Grade
from gradacc_lessons.quiz.judge_choice import (
    FORGETS_WHAT_STAYS,
    MISSES_TARGET,
    N_TOO_LARGE,
    missed,
    next_divisor,
    not_yet,
    over_budget,
    room,
)
from gradacc_lessons.text import Text, joined

_SIGNATURE = "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):\n"
_FOR = "    optimizer.zero_grad()\n    for index, batch in enumerate(micro_batches):\n"
_UPDATE = "            optimizer.step()\n            optimizer.zero_grad()\n"
_END = "        if (index + 1) % accumulation_steps == 0:\n" + _UPDATE
_COLLECT = (
    _SIGNATURE
    + "    optimizer.zero_grad()\n    losses = []\n    for batch in micro_batches:\n"
    + "        losses.append(loss_fn(model, batch))\n        if len(losses) == accumulation_steps:\n"
)
_UPDATE_AND_EMPTY = _UPDATE + "            losses = []\n"

FIND_LEAK = Exercise(
    key="find_leak",
    function="train_epoch",
    statement=Text(
        "Somebody raised N in this loop and lowered b to match, and its memory stayed the same. The gradient is right. "
        "Repair it, so that it takes the memory of one micro-batch. Every window is full and every micro-batch has the "
        "same size.",
        "Iemand verhoogde N in deze lus en verlaagde b evenredig, en het geheugen bleef gelijk. De gradient klopt. "
        "Repareer de lus, zodat die het geheugen van één micro-batch kost. Elk venster is vol en elke micro-batch "
        "heeft dezelfde grootte.",
    ),
    starter=_COLLECT
    + "            mean = sum(losses) / accumulation_steps\n            mean.backward()\n"
    + _UPDATE_AND_EMPTY,
    hints=(
        Text(
            "How many graphs are alive just before the backward?",
            "Hoeveel grafen bestaan er vlak voor de backward?",
        ),
        Text(
            "A graph goes when its loss has been through backward. How early can that be?",
            "Een graaf verdwijnt als zijn loss door backward is gegaan. Hoe vroeg kan dat?",
        ),
        Text(
            "The mean of the losses is a sum of shares. Each share can go backward by itself.",
            "Het gemiddelde van de losses is een som van aandelen. Elk aandeel kan apart backward gaan.",
        ),
    ),
    solution=_SIGNATURE
    + _FOR
    + "        loss = loss_fn(model, batch) / accumulation_steps\n        loss.backward()\n"
    + _END,
    wrong=(
        WrongAnswer(
            _COLLECT
            + "            for loss in losses:\n                (loss / accumulation_steps).backward()\n"
            + _UPDATE_AND_EMPTY,
            "sum_then_backward",
        ),
        WrongAnswer(
            _SIGNATURE
            + "    losses = []\n"
            + _FOR
            + "        loss = loss_fn(model, batch) / accumulation_steps\n"
            + "        loss.backward(retain_graph=True)\n        losses.append(loss)\n"
            + _END,
            "graphs_kept_alive",
        ),
        WrongAnswer(_SIGNATURE + _FOR + "        loss_fn(model, batch).backward()\n" + _END, "missing_scale"),
        WrongAnswer(
            "import torch\n\n\n"
            + _SIGNATURE
            + "    for start in range(0, len(micro_batches), accumulation_steps):\n"
            + "        parts = micro_batches[start : start + accumulation_steps]\n"
            + "        full_batch = tuple(torch.cat(tensors) for tensors in zip(*parts))\n"
            + "        optimizer.zero_grad()\n        loss_fn(model, full_batch).backward()\n"
            + "        optimizer.step()\n",
            "window_in_one_batch",
        ),
        WrongAnswer(
            _SIGNATURE
            + "    for batch in micro_batches:\n        optimizer.zero_grad()\n"
            + "        loss_fn(model, batch).backward()\n        optimizer.step()\n",
            "no_accumulation",
        ),
    ),
    judge=LoopCheck("windows"),
)


@dataclass(frozen=True)
class PairCheck:
    """A function that returns two whole numbers; what happens with them decides."""

    verdict: Callable[[int, int], Grade]
    """Tries the two numbers out."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        returned = call_in_child(function, [()], whole_pair)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        (pair,) = returned.values
        if pair is None or min(pair) < 1:
            return Grade(0.0, False, NO_PAIR, "no_pair")
        return self.verdict(*pair)


NO_PAIR = Text(
    "`choose` must return two whole numbers of at least 1: first b, then N.",
    "`choose` moet twee hele getallen van minstens 1 teruggeven: eerst b, dan N.",
)
TARGET, BUDGET_MEBIBYTES = 48, 72
"""What the exercise asks for: examples per update, and the MiB that there are for them."""
OVER_BUDGET = Text("This micro-batch is too large for the budget.", "Deze micro-batch is te groot voor het budget.")
FITS = Text(
    "It fits, with as few micro-batches as the budget allows.",
    "Het past, met zo weinig micro-batches als het budget toelaat.",
)


def run_and_judge(micro_batch_size: int, accumulation_steps: int) -> Grade:
    """Run the window of this b and N and compare its measured peak with the budget."""
    from gradacc_lessons.lessons.peaks import LONGEST, measured, predicted, recipe_for
    from gradacc_lessons.memory.sizes import MEBIBYTE

    b, n, budget = micro_batch_size, accumulation_steps, BUDGET_MEBIBYTES * MEBIBYTE
    if (grade := missed(b, n, TARGET)) is not None:
        return grade
    profile = measured(LONGEST, recipe_for("adamw", b, n))
    if profile.peak_bytes > budget:
        return over_budget(profile, budget, OVER_BUDGET)
    larger = next_divisor(b, TARGET)
    if larger is not None:
        next_peak = predicted(LONGEST, recipe_for("adamw", larger, TARGET // larger)).peak_bytes
        if next_peak <= budget:
            return not_yet("n_too_large", N_TOO_LARGE, room(profile, budget))
    return Grade(1.0, True, joined([FITS, room(profile, budget)]))


def _choice(body: str, fault: str, message: Text) -> WrongAnswer:
    return WrongAnswer(f"def choose():\n{body}", fault, message)


CHOOSE_FOR_BUDGET = Exercise(
    key="choose_for_budget",
    function="choose",
    statement=Text(
        f"Write `choose()`: it returns b and N for {TARGET} examples per update in equal micro-batches, within "
        f"{BUDGET_MEBIBYTES} MiB, with as few micro-batches as the budget allows. The model is the lesson's, with "
        "AdamW and T = 128. Your window is run and measured.",
        f"Schrijf `choose()`: geef b en N terug voor {TARGET} voorbeelden per update in gelijke micro-batches, binnen "
        f"{BUDGET_MEBIBYTES} MiB, met zo weinig micro-batches als het budget toelaat. Het model is dat van de les, met "
        "AdamW en T = 128. Je venster wordt gedraaid en gemeten.",
    ),
    starter='def choose():\n    """b and N for 48 examples per update within 72 MiB."""\n    # return b, N\n'
    "    raise NotImplementedError\n",
    hints=(
        Text(
            "Take the two peaks that you measured. How much does one more example cost, and how much stays if you "
            "take all examples away?",
            "Neem de twee pieken die je gemeten hebt. Hoeveel kost één voorbeeld meer, en hoeveel blijft er over als "
            "je alle voorbeelden weghaalt?",
        ),
        Text(
            "What stays comes off the budget first. How many examples does the rest pay for?",
            "Wat blijft gaat eerst van het budget af. Hoeveel voorbeelden kun je met de rest betalen?",
        ),
        Text(
            "That many need not divide the target. Go down to the next b that does.",
            "Zoveel hoeft geen deler van het doel te zijn. Ga omlaag naar de eerste b die dat wel is.",
        ),
    ),
    solution="def choose():\n    return 12, 4\n",
    wrong=(
        _choice("    return 16, 3\n", "forgets_what_stays", FORGETS_WHAT_STAYS),
        _choice("    return 24, 2\n", "over_budget", OVER_BUDGET),
        _choice("    b = 13\n    return b, 48 // b\n", "misses_target", MISSES_TARGET),
        _choice("    return 4, 12\n", "n_too_large", N_TOO_LARGE),
        _choice("    print(12, 4)\n", "no_pair", NO_PAIR),
    ),
    judge=PairCheck(run_and_judge),
)
