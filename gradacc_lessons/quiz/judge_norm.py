"""How lesson 05's norm is judged: put into a small CNN, in the checking process, and measured there."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from functools import wraps
from math import isfinite, nan
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
    "not_finite": Fault(
        Text(
            "What comes out of your layer, or its gradient, holds values that are no numbers (NaN or infinite): a "
            "division by zero, or the root of a negative number.",
            "Wat er uit je laag komt, of de gradient ervan, bevat waarden die geen getal zijn (NaN of oneindig): een "
            "deling door nul, of de wortel van een negatief getal.",
        )
    ),
    "random": Fault(
        Text(
            "Twice the same images give two results: your layer draws at random, or it remembers what it has seen. "
            "Then no two cuts can agree.",
            "Twee keer dezelfde afbeeldingen geven twee uitkomsten: je laag trekt toevalsgetallen, of onthoudt wat hij "
            "gezien heeft. Dan kunnen twee manieren van knippen nooit overeenkomen.",
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
class Measured:
    """What was measured of a layer, in the checking process; what is wrong with it is decided outside."""

    is_layer: float = 0.0
    """1 for an nn.Module; for anything else nothing more was measured."""
    all_training: float = 0.0
    """1 if every module in it came in training mode."""
    same_shape: float = 0.0
    """1 if a tensor of the shape that went in came out; if not, nothing more was measured."""
    again: float = 0.0
    """How far the outputs for the same images are apart, relative."""
    b4: float = 0.0
    """How far the accumulated gradient is from the full batch's at b = 4, relative."""
    b2: float = 0.0
    """The same at b = 2."""
    b1: float = 0.0
    """The same at b = 1."""
    brighter: float = 0.0
    """How far the output moves when all features are BRIGHTER times as large, relative."""
    evaluating: float = 0.0
    """How far the output in evaluation mode is from that in training mode, relative."""

    def fault(self) -> tuple[str, float] | None:
        """The first thing that is wrong, with a figure; None if nothing is."""
        cut = self.b4, self.b2, self.b1
        if not self.is_layer:
            return "no_module", 0.0
        if not self.same_shape:
            return "wrong_shape", 0.0
        if not all(map(isfinite, (self.again, *cut, self.brighter, self.evaluating))):
            return "not_finite", 0.0
        if self.again > ROUNDING:
            return "random", 0.0
        if max(cut) > ROUNDING:
            return ("batch_statistics", self.b2) if self.all_training else ("undone", 0.0)
        if self.brighter > UNMOVED:
            return "no_norm", 0.0
        return ("evaluates_otherwise", 0.0) if self.evaluating > ROUNDING else None


@dataclass(frozen=True)
class NormCheck:
    """A function that makes a norm: what it makes is measured in a CNN of two sizes."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        @wraps(function)  # its lines are named as the learner's own
        def measured(channels: int) -> list[float]:
            return measure(function(channels), channels)

        returned = call_in_child(measured, [(channels,) for channels in CHANNELS], _read, SECONDS)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        for one in returned.values:
            if found := one.fault():
                key, figure = found
                seen = FAULTS[key].seen
                return not_yet(key, FAULTS[key].words, _with(seen, figure) if seen else None)
        return Grade(1.0, True, RIGHT)


def _read(value: Any) -> Measured:
    """What came back from the checking process; what cannot have been measured counts as nothing."""
    numbers = [each if isinstance(each, int | float) else nan for each in value] if isinstance(value, list) else []
    return Measured(*numbers) if len(numbers) == len(fields(Measured)) else Measured()


def _with(seen: Text, error: float) -> Text:
    """`seen` with a relative error in whole percent; one that rounds to nothing is not nothing."""
    percent = round(100 * error)
    if percent:
        return fill(seen, {"a": f"{percent} %"})
    return Text(fill(seen, {"a": "less than 1 %"}).en, fill(seen, {"a": "minder dan 1 %"}).nl)


def measure(layer: Any, channels: int) -> list[float]:
    """The fields of `Measured`, in order, for a layer that was made for so many channels."""
    import torch
    from torch import nn

    if not isinstance(layer, nn.Module):
        return list(astuple(Measured()))
    all_training = float(all(module.training for module in layer.modules()))
    layer.double().train()
    drawn = torch.Generator().manual_seed(channels)
    features = torch.randn(IMAGES, channels, SIDE, SIDE, generator=drawn, dtype=torch.float64)
    with torch.no_grad():
        first = layer(features)
        if not isinstance(first, torch.Tensor) or first.shape != features.shape:
            return list(astuple(Measured(1.0, all_training)))
        again = _difference(layer(features), first)
    errors = gradient_errors(layer, features)
    with torch.no_grad():
        brighter = _difference(layer(BRIGHTER * features), first)
        evaluating = _difference(layer.eval()(features), first)
    return [1.0, all_training, 1.0, again, *errors, brighter, evaluating]


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
