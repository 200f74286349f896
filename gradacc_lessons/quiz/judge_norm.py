"""How lesson 05's norm is judged: put into a small CNN, in the checking process, and measured there."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

from gradacc_lessons.quiz.call_in_child import call_in_child
from gradacc_lessons.quiz.exercise import Exercise, did_not_return
from gradacc_lessons.quiz.grade import Grade, fill
from gradacc_lessons.quiz.judge_choice import not_yet
from gradacc_lessons.text import Text

if TYPE_CHECKING:
    from torch import Tensor, nn

CHANNELS = (12, 16)
"""How many channels the norm is asked for."""
IMAGES, SIDE, MICRO_BATCH_SIZES = 8, 6, (4, 2, 1)
"""The window that is cut, the side of its feature maps, and the cuts."""
SECONDS = 15.0
"""For two small models, on a slow machine as well."""
ROUNDING = 1e-9
"""Relative: float64 sums in another order differ by far less, and no real difference is as small."""
BRIGHTER, UNMOVED = 10.0, 0.1
"""A norm hardly notices features that are all this many times as large: its output moves by less than this share."""


@dataclass(frozen=True)
class Fault:
    """What can be wrong with a norm."""

    words: Text
    """What is wrong, and why it matters."""
    seen: Text | None = None
    """What was seen, with {a} for its figure; None if there is nothing to add."""


FAULTS = {
    "no_module": Fault(
        Text(
            "`new_norm` must return a layer: an `nn.Module` that is made already, and not its class or a function.",
            "`new_norm` moet een laag teruggeven: een `nn.Module` die al gemaakt is, en niet de klasse of een functie.",
        )
    ),
    "wrong_shape": Fault(
        Text(
            "What comes out of your layer has another shape than what went in. The layers after it count on the same.",
            "Wat er uit je laag komt heeft een andere vorm dan wat erin ging. De lagen erna rekenen op dezelfde vorm.",
        )
    ),
    "random": Fault(
        Text(
            "Twice the same images give two results: something in your layer draws at random. Then no two cuts can "
            "agree.",
            "Twee keer dezelfde afbeeldingen geven twee uitkomsten: iets in je laag trekt toevalsgetallen. Dan kunnen "
            "twee manieren van knippen nooit overeenkomen.",
        )
    ),
    "batch_statistics": Fault(
        Text(
            "Your layer looks at who else is in the micro-batch, so the accumulated gradient is another one than the "
            "full batch's. No divisor repairs that.",
            "Je laag kijkt wie er nog meer in de micro-batch zit, dus de geaccumuleerde gradient is een andere dan "
            "die van de volle batch. Geen deler herstelt dat.",
        ),
        Text(
            "At b = 2 they differ by {a} of the length.",
            "Bij b = 2 verschillen ze {a} van de lengte.",
        ),
    ),
    "undone": Fault(
        Text(
            "You put the layer into evaluation mode, and a training loop calls `model.train()`, which undoes it: from "
            "then on your layer looks at the whole micro-batch again.",
            "Je zet de laag in evaluatiemodus, en een trainingslus roept `model.train()` aan, die dat ongedaan maakt: "
            "vanaf dan kijkt je laag weer naar de hele micro-batch.",
        )
    ),
    "no_norm": Fault(
        Text(
            "The gradient is right, but your layer does not normalise: make all features ten times as large, and what "
            "comes out grows with them.",
            "De gradient klopt, maar je laag normaliseert niet: maak alle features tien keer zo groot, en wat eruit "
            "komt groeit mee.",
        )
    ),
    "evaluates_otherwise": Fault(
        Text(
            "The gradient is right, but in evaluation mode your layer uses running statistics, which it does not use "
            "in training. The same images come out differently.",
            "De gradient klopt, maar in evaluatiemodus gebruikt je laag lopende statistieken, en in trainingsmodus "
            "niet. Dezelfde afbeeldingen komen er anders uit.",
        )
    ),
}
RIGHT = Text(
    "Accumulated in micro-batches of 4, 2 and 1 the gradient is the full batch's to rounding, features of any size "
    "come out the same, and training and evaluation agree.",
    "Geaccumuleerd in micro-batches van 4, 2 en 1 is de gradient op afronding na die van de volle batch, features van "
    "elke grootte komen er hetzelfde uit, en training en evaluatie zijn het eens.",
)


@dataclass(frozen=True)
class NormCheck:
    """A function that makes a norm: what it makes is measured in a CNN of two sizes."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        @wraps(function)  # its lines are named as the learner's own
        def measured(channels: int) -> list[float]:
            return examine(function(channels), channels)

        returned = call_in_child(measured, [(channels,) for channels in CHANNELS], lambda value: value, SECONDS)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        for verdict, figure in returned.values:
            if verdict:
                key = list(FAULTS)[int(verdict) - 1]
                fault = FAULTS[key]
                return not_yet(key, fault.words, _with(fault.seen, figure) if fault.seen else None)
        return Grade(1.0, True, RIGHT)


def _with(seen: Text, error: float) -> Text:
    """`seen` with a relative error in whole percent; one that rounds to nothing is not nothing."""
    percent = round(100 * error)
    if percent:
        return fill(seen, {"a": f"{percent} %"})
    return Text(fill(seen, {"a": "less than 1 %"}).en, fill(seen, {"a": "minder dan 1 %"}).nl)


def examine(layer: Any, channels: int) -> list[float]:
    """[0, 0] for a norm that does all it should; else the number of its fault, from 1, and a figure."""
    fault, figure = _examine(layer, channels)
    return [float(list(FAULTS).index(fault) + 1) if fault else 0.0, figure]


def _examine(layer: Any, channels: int) -> tuple[str | None, float]:
    import torch
    from torch import nn

    if not isinstance(layer, nn.Module):
        return "no_module", 0.0
    evaluating = not all(module.training for module in layer.modules())
    layer.double().train()
    drawn = torch.Generator().manual_seed(channels)
    features = torch.randn(IMAGES, channels, SIDE, SIDE, generator=drawn, dtype=torch.float64)
    with torch.no_grad():
        first = layer(features)
        if not isinstance(first, torch.Tensor) or first.shape != features.shape:
            return "wrong_shape", 0.0
        if _difference(layer(features), first) > ROUNDING:
            return "random", 0.0
    errors = gradient_errors(layer, features)
    if max(errors) > ROUNDING:
        if evaluating:
            return "undone", 0.0
        return "batch_statistics", errors[MICRO_BATCH_SIZES.index(2)]
    with torch.no_grad():
        if _difference(layer(BRIGHTER * features), first) > UNMOVED:
            return "no_norm", 0.0
        if _difference(layer.eval()(features), first) > ROUNDING:
            return "evaluates_otherwise", 0.0
    return None, 0.0


def _difference(one: "Tensor", other: "Tensor") -> float:
    """How far `one` is from `other`, over the length of `other`."""
    return float((one - other).norm() / other.norm().clamp_min(1e-300))


def gradient_errors(layer: "nn.Module", features: "Tensor") -> list[float]:
    """How far the gradient of one window is from the full batch's, for each micro-batch size.

    Before the layer there is a convolution, after it a ReLU and a classifier, in float64.
    """
    import torch
    from torch import nn

    from gradacc_lessons.accumulation import accumulate, split
    from gradacc_lessons.lessons.training import gradient
    from gradacc_lessons.tasks.digits import count_examples, cross_entropy_sum

    channels = features.shape[1]
    torch.manual_seed(0)  # of the checking process, which ends after this
    before = nn.Conv2d(channels, channels, 3, padding=1)
    model = nn.Sequential(before, layer, nn.ReLU(), nn.Flatten(), nn.Linear(channels * SIDE * SIDE, 10)).double()
    batch = (features, torch.arange(len(features)))
    found = []
    for size in (len(features), *MICRO_BATCH_SIZES):
        model.zero_grad()
        accumulate(model, split(batch, size), cross_entropy_sum, count_examples)
        found.append(gradient(model).clone())
    return [_difference(each, found[0]) for each in found[1:]]
