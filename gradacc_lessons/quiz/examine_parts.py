"""Tries out the three functions that `plan` needs, where they live: in the checking process.

What comes out are numbers, because functions cannot travel back: what is wrong first, and what was seen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradacc_lessons.text import Text

if TYPE_CHECKING:
    from torch import Tensor, nn

LONGEST_TEXT = 96
"""Tokens of the longest text that the exercise describes."""
NUMBERS_OF_THE_MODEL = 132_228
"""Parameters of the exercise's own model."""
PLANNED_TARGET, PLANNED_BUDGET = 40, 31
"""What a right answer is planned for: examples per update, and MiB."""
TRIED_SIZES = (1, 3, 6)
"""Sizes of batch that `make_batch` is asked for."""
DRAWS = 8
"""How often it is asked for the last of them, to see whether the length is always the same."""
EQUAL = 1e-3
"""Losses of float32 that differ by less, relatively, are the same."""


@dataclass(frozen=True)
class Fault:
    """A mistake in one of the three functions."""

    words: Text
    """What is wrong, and why it matters to a plan."""
    seen: Text | None = None
    """What was seen, with {a} and {b} for its figures; None if there is nothing to add."""


FAULTS = {
    "no_parts": Fault(
        Text(
            "`setup` must return three functions, in this order: build_model, loss_fn, make_batch. Return them without "
            "calling them: `plan` calls each one as often as it needs.",
            "`setup` moet drie functies teruggeven, in deze volgorde: build_model, loss_fn, make_batch. Geef ze terug "
            "zonder ze aan te roepen: `plan` roept ze zo vaak aan als nodig is.",
        ),
    ),
    "size_ignored": Fault(
        Text(
            "`make_batch` must give as many texts as it is asked for; `plan` finds the largest micro-batch by asking "
            "for other sizes.",
            "`make_batch` moet zoveel teksten geven als er gevraagd worden; `plan` vindt de grootste micro-batch door "
            "naar andere groottes te vragen.",
        ),
        Text("Asked for {a}, it gave {b}.", "Er werden er {a} gevraagd, en het gaf er {b}."),
    ),
    "length_by_chance": Fault(
        Text(
            "The texts of `make_batch` are longer one time than the next. A plan made on a lucky draw breaks on an "
            "unlucky batch.",
            "De teksten van `make_batch` zijn de ene keer langer dan de andere. Een plan dat op een gunstige trekking "
            "berust, gaat mis bij een ongunstige batch.",
        ),
        Text("Among the lengths were {a} and {b}.", "Onder de lengtes waren {a} en {b}."),
    ),
    "not_longest": Fault(
        Text(
            "`make_batch` gives texts of another length than the longest that can come, and it is that one that "
            "decides whether training survives.",
            "`make_batch` geeft teksten van een andere lengte dan de langste die kan komen, en juist die bepaalt of "
            "de training het haalt.",
        ),
        Text("Their length is {a}.", "Hun lengte is {a}."),
    ),
    "no_model": Fault(
        Text(
            "`build_model()` must return a model, and what it returns is none. A class is not a model yet.",
            "`build_model()` moet een model teruggeven, en wat er terugkomt is er geen. Een klasse is nog geen model.",
        ),
    ),
    "same_model": Fault(
        Text(
            "`build_model` returns the same model each time. `plan` needs a new one per call: it follows one without "
            "memory and trains another.",
            "`build_model` geeft elke keer hetzelfde model terug. `plan` heeft per aanroep een nieuw model nodig: het "
            "ene wordt zonder geheugen gevolgd, het andere echt getraind.",
        ),
    ),
    "shares_parts": Fault(
        Text(
            "Two models from `build_model` share weights, so that training one moves the other. Each must have all of "
            "its own.",
            "Twee modellen van `build_model` delen gewichten, dus wie het ene traint verandert het andere. Elk model "
            "moet al zijn gewichten voor zichzelf hebben.",
        ),
        Text("Shared: {a} of {b} tensors.", "Gedeeld: {a} van de {b} tensors."),
    ),
    "another_model": Fault(
        Text(
            "The model of `build_model` is not the `Classifier` that was given: it does not have as many parameters.",
            "Het model van `build_model` is niet de `Classifier` die je kreeg: het heeft niet zoveel parameters.",
        ),
        Text("It has {a}.", "Het heeft er {a}."),
    ),
    "no_graph": Fault(
        Text(
            "The loss of `loss_fn` has lost its graph: it is a plain number, or a tensor that no backward can start "
            "from.",
            "De loss van `loss_fn` is zijn graaf kwijt: het is een gewoon getal, of een tensor waar geen backward kan "
            "beginnen.",
        ),
    ),
    "not_scalar": Fault(
        Text(
            "`loss_fn` must return one number for the whole batch; backward starts from a single one.",
            "`loss_fn` moet één getal voor de hele batch teruggeven; backward begint bij één getal.",
        ),
        Text("It returned {a}.", "Het gaf er {a}."),
    ),
    "other_model": Fault(
        Text(
            "No parameter of the model that `loss_fn` was given gets a gradient. Does it use another model than its "
            "argument?",
            "Geen enkele parameter van het model dat `loss_fn` kreeg, krijgt een gradient. Gebruikt de functie een "
            "ander model dan ze meekrijgt?",
        ),
    ),
    "sum_not_mean": Fault(
        Text(
            "The loss adds up its examples. `plan` weighs each micro-batch's loss by its share of the examples; with "
            "sums a large micro-batch would count twice over.",
            "De loss telt de voorbeelden bij elkaar op. `plan` weegt de loss van elke micro-batch naar zijn aandeel in "
            "de voorbeelden; bij een som zou een grote micro-batch dan dubbel meetellen.",
        ),
    ),
    "not_the_mean": Fault(
        Text(
            "The loss of a batch is not the mean over its examples: two parts of a batch, each weighed by its share, "
            "do not give the whole batch's loss.",
            "De loss van een batch is niet het gemiddelde over zijn voorbeelden: twee delen van een batch, elk gewogen "
            "naar het eigen aandeel, geven niet de loss van de hele batch.",
        ),
    ),
    "other_loss": Fault(
        Text(
            "Your loss is a mean, but not the one that is asked for. A plan for another loss is a plan for another "
            "run.",
            "Je loss is een gemiddelde, maar niet dat waar om gevraagd wordt. Een plan bij een andere loss is een plan "
            "voor een andere run.",
        ),
        Text("For one example it gave {a} instead of {b}.", "Bij één voorbeeld gaf hij {a} in plaats van {b}."),
    ),
}
"""Every mistake that is looked for, in the order in which it is."""


class _Found(Exception):
    """A mistake, with the figures that show it."""


def examine(parts: Any) -> list[float]:
    """[which of FAULTS it is (from 1), its figures …], or [0, N of the plan, predicted MiB, measured MiB].

    The last is 0 where no window could be run.

    Whatever the functions raise is the learner's to see.
    """
    import torch

    torch.manual_seed(0)  # of the checking process, which ends after this: the same functions hear the same each time
    if (found := first_fault(parts)) is not None:
        fault, *figures = found
        return [list(FAULTS).index(fault) + 1, *figures]
    return [0, *_planned(*parts)]


def first_fault(parts: Any) -> tuple[Any, ...] | None:
    """(which of FAULTS it is, its figures …), or None if the three functions are as they should be."""
    from torch import nn

    try:
        if not isinstance(parts, tuple | list) or len(parts) != 3 or not all(map(callable, parts)):
            raise _Found("no_parts")
        if any(isinstance(part, nn.Module) for part in parts):  # a model can be called as well
            raise _Found("no_parts")
        build_model, loss_fn, make_batch = parts
        _look_at_batches(make_batch)
        _look_at_models(build_model)
        _look_at_losses(build_model(), loss_fn, make_batch(TRIED_SIZES[-1]))
    except _Found as found:
        return found.args
    return None


def _look_at_batches(make_batch: Callable[[int], Any]) -> None:
    from gradacc_lessons.nested import tensors_in

    for size in TRIED_SIZES:
        given = {len(tensor) for tensor in tensors_in(make_batch(size)) if tensor.dim()}
        if given != {size}:
            raise _Found("size_ignored", size, min(given - {size}, default=0))
    lengths = {_length(tensors_in(make_batch(TRIED_SIZES[-1]))) for _ in range(DRAWS)}
    if len(lengths) > 1:
        raise _Found("length_by_chance", min(lengths), max(lengths))
    if lengths != {LONGEST_TEXT}:
        raise _Found("not_longest", *lengths)


def _length(tensors: list["Tensor"]) -> int:
    return max((tensor.shape[1] for tensor in tensors if tensor.dim() > 1), default=0)


def _look_at_models(build_model: Callable[[], Any]) -> None:
    from torch import nn

    first, second = build_model(), build_model()
    if not isinstance(first, nn.Module) or not isinstance(second, nn.Module):
        raise _Found("no_model")
    if first is second:
        raise _Found("same_model")
    places = {parameter.data_ptr() for parameter in first.parameters()}
    shared = sum(parameter.data_ptr() in places for parameter in second.parameters())
    if shared:
        raise _Found("shares_parts", shared, len(places))
    numbers = sum(parameter.numel() for parameter in first.parameters())
    if numbers != NUMBERS_OF_THE_MODEL:
        raise _Found("another_model", numbers)


def _look_at_losses(model: "nn.Module", loss_fn: Callable[[Any, Any], Any], batch: Any) -> None:
    import torch

    model.eval()  # without dropout a loss is the same each time
    loss = loss_fn(model, batch)
    if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
        raise _Found("no_graph")
    if loss.numel() != 1:
        raise _Found("not_scalar", loss.numel())
    gradients = torch.autograd.grad(loss.sum(), list(model.parameters()), allow_unused=True)
    if all(gradient is None for gradient in gradients):
        raise _Found("other_model")

    def part(first: int, end: int) -> float:
        return float(loss_fn(model, _rows(batch, first, end)).detach())

    size, whole = TRIED_SIZES[-1], float(loss.detach())
    small, large = part(0, 2), part(2, size)  # two of one size would hide what is divided by the size
    if abs(small + large - whole) <= EQUAL * abs(whole):
        raise _Found("sum_not_mean")
    if abs((2 * small + (size - 2) * large) / size - whole) > EQUAL * abs(whole):
        raise _Found("not_the_mean")
    # Example by example: the means of two losses may be nearly the same by chance.
    alone = [(part(row, row + 1), _asked(model, _rows(batch, row, row + 1))) for row in range(size)]
    given, asked = max(alone, key=lambda pair: abs(pair[0] - pair[1]) / pair[1])
    if abs(given - asked) > EQUAL * asked:
        raise _Found("other_loss", round(given, 3), round(asked, 3))


def _rows(batch: Any, first: int, end: int) -> Any:
    import torch
    from torch.utils._pytree import tree_map_only

    return tree_map_only(torch.Tensor, lambda tensor: tensor[first:end] if tensor.dim() else tensor, batch)


def _asked(model: "nn.Module", batch: Any) -> float:
    """The loss that the exercise asks for; NaN where the batch does not hold tokens and labels."""
    from torch.nn.functional import cross_entropy

    from gradacc_lessons.nested import tensors_in

    tokens, labels = (next((t for t in tensors_in(batch) if t.dim() == dim), None) for dim in (2, 1))
    return math.nan if tokens is None or labels is None else float(cross_entropy(model(tokens), labels).detach())


def _planned(
    build_model: Callable[[], "nn.Module"], loss_fn: Callable[[Any, Any], Any], make_batch: Callable[[int], Any]
) -> list[float]:
    from gradacc_lessons.memory.plan import plan
    from gradacc_lessons.memory.sizes import MEBIBYTE
    from gradacc_lessons.recipe import Recipe

    recipe = Recipe(optimizer="adamw", learning_rate=1e-3)
    budget = PLANNED_BUDGET * MEBIBYTE
    found = plan(
        *(build_model, loss_fn, make_batch, recipe),
        target_batch_size=PLANNED_TARGET,
        budget_bytes=budget,
        explain=False,
    )
    measured = found.measured.peak_bytes if found.measured is not None else 0
    return [found.accumulation_steps, found.predicted.peak_bytes / MEBIBYTE, measured / MEBIBYTE]
