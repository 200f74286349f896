"""The exercises of lesson 06: GradCache's second pass, and a Dice loss of several classes that adds up."""

from gradacc_lessons.quiz.exercise import Exercise, Group, WrongAnswer
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_sum import dice, second_pass
from gradacc_lessons.text import Text

_FIRST_PASS = '''import torch


def embed_in_two_passes(model, micro_batches, loss_fn):
    """Add to .grad what loss_fn of all embeddings asks for, one micro-batch at a time."""
    with torch.no_grad():
        kept = torch.cat([model(batch) for batch in micro_batches])
    kept.requires_grad_()
    loss_fn(kept).backward()  # kept.grad: what the loss asks of each embedding
'''
_WITH_GRAPH = _FIRST_PASS.replace(
    "    with torch.no_grad():\n        kept = torch.cat([model(batch) for batch in micro_batches])\n"
    "    kept.requires_grad_()\n",
    "    kept = torch.cat([model(batch) for batch in micro_batches])\n    kept.retain_grad()\n",
)
_LOOP = "    start = 0\n    for batch in micro_batches:\n        rows = kept.grad[start : start + len(batch)]\n"
_NEXT = "        start += len(batch)\n"


def _two_passes(body: str, fault: str, en: str, nl: str, first: str = _FIRST_PASS) -> WrongAnswer:
    return WrongAnswer(first + body, fault, Text(en, nl))


EMBED_IN_TWO_PASSES = Exercise(
    key="embed_in_two_passes",
    function="embed_in_two_passes",
    statement=Text(
        "The first pass of GradCache is written. Write the second: embed each micro-batch again, this time with a "
        "graph, and add to `.grad` what the loss asks of its embeddings. Micro-batches may differ in size, and no more "
        "than one of them may have its graph alive at any time.",
        "De eerste ronde van GradCache staat er. Schrijf de tweede: embed elke micro-batch opnieuw, nu met een graaf, "
        "en tel bij `.grad` op wat de loss van zijn embeddings vraagt. Micro-batches mogen in grootte verschillen, en "
        "er mag nooit meer dan één graaf tegelijk in leven zijn.",
    ),
    starter=_FIRST_PASS + "    # now the second pass\n    raise NotImplementedError\n",
    hints=(
        Text(
            "`kept.grad` has a row for each example. Which rows belong to the first micro-batch, and which to the "
            "second?",
            "`kept.grad` heeft een rij voor elk voorbeeld. Welke rijen horen bij de eerste micro-batch, en welke bij "
            "de tweede?",
        ),
        Text(
            "A tensor that is no scalar can go backward too: `tensor.backward(gradient)` takes a gradient of the same "
            "shape.",
            "Ook op een tensor die geen scalar is kun je `backward` aanroepen: `tensor.backward(gradient)` neemt een "
            "gradient met dezelfde vorm.",
        ),
        Text(
            "Keep a number that says where the rows of this micro-batch begin, and move it on by `len(batch)`.",
            "Houd een getal bij dat zegt waar de rijen van deze micro-batch beginnen, en schuif het `len(batch)` op.",
        ),
    ),
    solution=_FIRST_PASS + _LOOP + "        model(batch).backward(rows)\n" + _NEXT,
    wrong=(
        _two_passes(
            "    torch.cat([model(batch) for batch in micro_batches]).backward(kept.grad)\n",
            "whole_batch_alive",
            "The gradient is right, but several graphs were alive at once: that is the memory of the full batch, which "
            "is what should be saved.",
            "De gradient klopt, maar er waren meerdere grafen tegelijk in leven: dat kost het geheugen van de volle "
            "batch, en dat wilde je juist besparen.",
        ),
        _two_passes(
            "    for batch in micro_batches:\n        model(batch).backward(kept.grad[: len(batch)])\n",
            "rows_of_the_first",
            "Every micro-batch goes backward with the rows that belong to the first one.",
            "Elke micro-batch gebruikt in zijn backward de rijen die bij de eerste horen.",
        ),
        _two_passes(
            "    for k, batch in enumerate(micro_batches):\n        size = len(batch)\n"
            "        model(batch).backward(kept.grad[k * size : (k + 1) * size])\n",
            "sizes_taken_as_equal",
            "It works while all micro-batches have one size. When they differ, your rows begin in the wrong place.",
            "Het werkt zolang alle micro-batches even groot zijn. Verschillen ze, dan beginnen je rijen op de "
            "verkeerde plaats.",
        ),
        _two_passes(
            _LOOP + "        model(batch).backward(rows / len(micro_batches))\n" + _NEXT,
            "divided_by_n",
            "You divide by N. The loss was taken once, over the whole batch, so its mean is in these rows already.",
            "Je deelt door N. De loss is één keer berekend, over de hele batch: het gemiddelde zit al in die rijen.",
        ),
        _two_passes(
            _LOOP + "        model.zero_grad()\n        model(batch).backward(rows)\n" + _NEXT,
            "only_the_last",
            "What arrives in `.grad` is the last micro-batch alone. What the others added is gone.",
            "In `.grad` komt alleen de laatste micro-batch terecht. Wat de andere hadden opgeteld is weg.",
        ),
        _two_passes(
            "    model.zero_grad()\n" + _LOOP + "        model(batch).backward(rows)\n" + _NEXT,
            "zeroed_first",
            "What your loop adds is right. But what was in `.grad` before the call is gone, and you were to add to it: "
            "the caller may not have finished its window.",
            "Wat je lus optelt klopt. Maar wat er vóór de aanroep in `.grad` stond is weg, terwijl je daarbij moest "
            "optellen: het venster van de aanroeper is misschien nog niet klaar.",
        ),
        _two_passes(
            "    for batch in micro_batches:\n        (loss_fn(model(batch)) / len(micro_batches)).backward()\n",
            "own_micro_batch_only",
            "You take the loss anew for each micro-batch, so an example meets only those of its own. What the first "
            "pass found is not used.",
            "Je berekent de loss voor elke micro-batch opnieuw, dus een voorbeeld komt alleen die van zijn eigen "
            "micro-batch tegen. Wat de eerste ronde vond blijft ongebruikt.",
        ),
        _two_passes(
            _LOOP + "        (model(batch) * rows).mean().backward()\n" + _NEXT,
            "mean_of_products",
            "The rows say how much each number of an embedding counts. A mean over them makes all of it smaller, and "
            "differently for micro-batches of different size.",
            "De rijen zeggen hoe zwaar elk getal van een embedding telt. Een gemiddelde daarover maakt alles kleiner, "
            "en anders voor micro-batches van verschillende grootte.",
        ),
        _two_passes(
            "    for batch in micro_batches:\n        model(batch).sum().backward()\n",
            "rows_not_used",
            "Each number of an embedding is pushed equally hard. What the loss asks for stands in `kept.grad`.",
            "Elk getal van een embedding krijgt een even harde duw. Wat de loss vraagt staat in `kept.grad`.",
        ),
        _two_passes(
            "    return kept.grad\n",
            "no_second_pass",
            "No parameter of the model has a gradient: the graph ends at the embeddings that were kept.",
            "Geen enkele parameter van het model heeft een gradient: de graaf houdt op bij de bewaarde embeddings.",
        ),
        _two_passes(
            _LOOP + "        model(batch).backward(rows)\n" + _NEXT,
            "counted_twice",
            "The gradient is twice as long as it should be: the first pass keeps its graph and goes backward through "
            "the model, and then the second does so again.",
            "De gradient is twee keer zo lang als hij moet zijn: de eerste ronde bewaart de graaf en gaat er backward "
            "doorheen, en daarna doet de tweede dat nog eens.",
            _WITH_GRAPH,
        ),
    ),
    judge=TrialCheck(
        second_pass,
        (
            Group(Text("a single micro-batch", "één enkele micro-batch"), ((1, 6),)),
            Group(Text("micro-batches of one size", "micro-batches van dezelfde grootte"), ((2, 3, 3, 3), (3, 2, 2))),
            Group(Text("micro-batches of other sizes", "micro-batches van verschillende grootte"), ((4, 2, 4, 3),)),
        ),
        tolerance=1e-9,
        same={
            "whole_batch_alive": (_WITH_GRAPH,),
            "own_micro_batch_only": (
                _FIRST_PASS + "    for batch in micro_batches:\n        loss_fn(model(batch)).backward()\n",
            ),
            "only_the_last": (
                _FIRST_PASS
                + "    for batch in micro_batches:\n        again = model(batch)\n"
                + "    again.backward(kept.grad[-len(again) :])\n",
            ),
        },
    ),
)  # fmt: skip

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
            "Je telt klassen en voorbeelden op. Er wordt een gemiddelde gevraagd; een lus die door N deelt verwacht dat "
            "ook.",
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
