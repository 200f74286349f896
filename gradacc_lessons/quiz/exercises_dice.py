"""An exercise of lesson 06: a Dice loss of several classes that adds up."""

from gradacc_lessons.quiz.exercise import Exercise, Group, WrongAnswer
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_sum import dice
from gradacc_lessons.text import Text

_DICE = '''def dice_per_class(found, masks):
    """The mean over classes and examples of 1 - Dice; eps = 1e-6 above and below the line."""
'''
_EACH = "    overlap = (found * masks).sum(dim=(2, 3))\n    areas = found.sum(dim=(2, 3)) + masks.sum(dim=(2, 3))\n"
_EXAMPLE, _CLASS = (_EACH.replace("(2, 3)", dimensions) for dimensions in ("(1, 2, 3)", "(0, 2, 3)"))
_ALL = "    overlap = (found * masks).sum()\n    areas = found.sum() + masks.sum()\n"


def _dice(body: str, fault: str, en: str, nl: str) -> WrongAnswer:
    return WrongAnswer(_DICE + body, fault, Text(en, nl))


DICE_PER_CLASS = Exercise(
    key="dice_per_class",
    function="dice_per_class",
    statement=Text(
        "Write `dice_per_class(found, masks)`: a Dice loss for several classes that adds up over micro-batches. Both "
        "are (examples, classes, height, width): probabilities, and masks of zeros and ones. A class is small in one "
        "example and large in another, and each is to count the same. So take, for each class of each example, 1 minus "
        "twice the overlap over the sum of both areas, with 1e-6 added above and below the line: a class that is not "
        "there and not found counts as perfect. Return the mean over classes and examples, a scalar tensor.",
        "Schrijf `dice_per_class(found, masks)`: een Dice-loss voor meerdere klassen die je over micro-batches kunt "
        "optellen. Allebei zijn ze (voorbeelden, klassen, hoogte, breedte): kansen, en maskers van nullen en enen. Een "
        "klasse is in het ene voorbeeld klein en in het andere groot, en ze moeten allemaal even zwaar tellen. Neem "
        "dus voor elke klasse van elk voorbeeld 1 min tweemaal de overlap gedeeld door de som van beide oppervlakken, "
        "met 1e-6 erbij boven en onder de streep: een klasse die er niet is en niet gevonden wordt, telt als perfect. "
        "Geef het gemiddelde over klassen en voorbeelden terug, een scalaire tensor.",
    ),
    starter=_DICE + "    raise NotImplementedError\n",
    hints=(
        Text(
            "Which dimensions belong to one class of one example? Only over those may you sum before you divide.",
            "Welke dimensies horen bij één klasse van één voorbeeld? Alleen daarover mag je optellen voordat je deelt.",
        ),
        Text(
            "`tensor.sum(dim=...)` takes several dimensions at once. What shape is left, if a number is to remain for "
            "each class of each example?",
            "`tensor.sum(dim=...)` neemt meerdere dimensies tegelijk. Welke vorm blijft er over, als er een getal moet "
            "overblijven voor elke klasse van elk voorbeeld?",
        ),
        Text(
            "Divide first, for each class of each example, and take the mean of the ratios last.",
            "Deel eerst, voor elke klasse van elk voorbeeld, en neem als laatste het gemiddelde van de verhoudingen.",
        ),
    ),
    solution=_DICE + _EACH + "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).mean()\n",
    wrong=(
        _dice(
            _EXAMPLE + "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).mean()\n",
            "classes_pooled",
            "You sum over the classes of an example before you divide. It adds up over examples, but a large class "
            "drowns a small one in the same picture.",
            "Je telt de klassen van een voorbeeld bij elkaar op voordat je deelt. Over voorbeelden kun je dit wel "
            "optellen, maar een grote klasse overstemt een kleine in hetzelfde plaatje.",
        ),
        _dice(
            _CLASS + "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).mean()\n",
            "examples_pooled",
            "The classes are apart, but each of them is summed over the examples before you divide. So what an example "
            "counts depends on which others are with it, and micro-batches do not add up.",
            "De klassen staan apart, maar elke klasse tel je over de voorbeelden op voordat je deelt. Hoe zwaar een "
            "voorbeeld telt hangt dan af van welke andere erbij zitten, en micro-batches kun je niet optellen.",
        ),
        _dice(
            _ALL + "    return 1 - (2 * overlap + 1e-6) / (areas + 1e-6)\n",
            "batch_dice",
            "This is the Dice of the whole batch: you sum over examples and classes before you divide, so each "
            "example's share depends on which others are with it.",
            "Dit is de Dice van de hele batch: je telt over voorbeelden en klassen op voordat je deelt, dus het "
            "aandeel van elk voorbeeld hangt af van welke andere erbij zitten.",
        ),
        _dice(
            _EACH + "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).sum()\n",
            "sum_not_mean",
            "You add up classes and examples. It is a mean that is asked for; a loop that divides by N expects one.",
            "Je telt klassen en voorbeelden op. Er wordt een gemiddelde gevraagd; een lus die door N deelt verwacht "
            "dat ook.",
        ),
        _dice(
            _EACH + "    return (1 - 2 * overlap / areas).mean()\n",
            "eps_missing",
            "An empty mask that is found empty gives 0 / 0, and one such example makes the whole loss nan.",
            "Een leeg masker dat leeg gevonden wordt geeft 0 / 0, en één zo'n voorbeeld maakt de hele loss nan.",
        ),
        _dice(
            _EACH + "    return (1 - 2 * overlap / (areas + 1e-6)).mean()\n",
            "eps_below_only",
            "An empty mask that is found empty counts as a complete miss here, where it should be perfect.",
            "Een leeg masker dat leeg gevonden wordt telt hier als helemaal mis, terwijl het perfect moet zijn.",
        ),
        _dice(
            _EACH + "    return ((2 * overlap + 1e-6) / (areas + 1e-6)).mean()\n",
            "overlap_not_loss",
            "This is the overlap itself, which grows as the model gets better. A loss must fall.",
            "Dit is de overlap zelf, en die groeit als het model beter wordt. Een loss moet dalen.",
        ),
        _dice(
            _EACH + "    return (1 - (overlap + 1e-6) / (areas + 1e-6)).mean()\n",
            "factor_missing",
            "A perfect overlap gives a half here and not zero: the pixels of the overlap are in both areas.",
            "Een perfecte overlap geeft hier een half en niet nul: de pixels van de overlap zitten in beide "
            "oppervlakken.",
        ),
        _dice(
            _EACH + "    return (1 - (overlap + 1e-6) / (areas - overlap + 1e-6)).mean()\n",
            "union",
            "You divide by the union. That is the Jaccard index (IoU), also a good loss, and another one.",
            "Je deelt door de vereniging. Dat is de Jaccard-index (IoU), ook een goede loss, maar een andere.",
        ),
        _dice(
            "    overlap = (found * masks).sum(dim=0)\n    areas = found.sum(dim=0) + masks.sum(dim=0)\n"
            "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).mean()\n",
            "pixel_by_pixel",
            "You sum over the examples and keep the pixels apart. It is the other way round.",
            "Je telt op over de voorbeelden en houdt de pixels uit elkaar. Het is andersom.",
        ),
        _dice(
            _EACH + "    return 1 - (2 * overlap + 1e-6) / (areas + 1e-6)\n",
            "not_scalar",
            "You return several numbers. Backward starts from a single one.",
            "Je geeft meer dan één getal terug. Backward begint bij één getal.",
        ),
        _dice(
            "    found = (found > 0.5).to(masks.dtype)\n"
            + _EACH
            + "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).mean()\n",
            "no_graph",
            "No gradient comes back to the probabilities. A threshold, `.item()` or `.detach()` ends the graph.",
            "Er komt geen gradient terug bij de kansen. Een drempel, `.item()` of `.detach()` breekt de graaf af.",
        ),
    ),
    judge=TrialCheck(
        dice,
        (
            Group(Text("one example", "één voorbeeld"), ((1, 12, 20), (2, 30, 6))),
            Group(Text("masks of very different size", "maskers van heel verschillende grootte"), ((3, 2, 40, 9, 24),)),
            Group(
                Text("an empty mask that is found empty", "een leeg masker dat leeg gevonden wordt"),
                ((4, 0, 12, 7, 15),),
            ),
        ),
        tolerance=1e-4,
        same={
            "no_graph": (
                _DICE + _EACH + "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).mean().item()\n",
                _DICE + _EACH + "    return (1 - (2 * overlap + 1e-6) / (areas + 1e-6)).mean().detach()\n",
            )
        },
    ),
)
