"""An exercise of lesson 06: GradCache's second pass, where the loss has a part of the usual kind too."""

from gradacc_lessons.quiz.exercise import Exercise, Group, WrongAnswer
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_sum import second_pass
from gradacc_lessons.text import Text

_FIRST_PASS = '''import torch


def embed_in_two_passes(model, micro_batches, loss_fn, own_loss):
    """Add to .grad the gradient of loss_fn(all embeddings) + the mean of own_loss over all examples."""
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
_OWN = "        z = model(batch)\n        own = own_loss(z, batch) * len(batch) / len(kept)\n"
_BACK = "        ((z * rows).sum() + own).backward()\n"
_NEXT = "        start += len(batch)\n"


def _two_passes(body: str, fault: str, en: str, nl: str, first: str = _FIRST_PASS) -> WrongAnswer:
    return WrongAnswer(first + body, fault, Text(en, nl))


EMBED_IN_TWO_PASSES = Exercise(
    key="embed_in_two_passes",
    function="embed_in_two_passes",
    statement=Text(
        "A loss of two parts: `loss_fn(embeddings)` compares all examples of the window, and `own_loss(embeddings, "
        "batch)` is a mean over the examples of a micro-batch, each by itself. Wanted is the gradient of the first "
        "plus the mean of the second over all examples. The first pass of GradCache is written. Write the second, and "
        "add to `.grad` what both ask. Micro-batches may differ in size, and no more than one of them may have its "
        "graph alive at any time.",
        "Een loss met twee delen: `loss_fn(embeddings)` vergelijkt alle voorbeelden van het venster, en "
        "`own_loss(embeddings, batch)` is een gemiddelde over de voorbeelden van een micro-batch, elk op zichzelf. "
        "Gevraagd is de gradient van het eerste plus het gemiddelde van het tweede over alle voorbeelden. De eerste "
        "ronde van GradCache staat er. Schrijf de tweede, en tel bij `.grad` op wat beide vragen. Micro-batches mogen "
        "in grootte verschillen, en er mag nooit meer dan één graaf tegelijk in leven zijn.",
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
            "`own_loss` gives a mean over one micro-batch. How much does that weigh among all examples, if "
            "micro-batches differ in size? It can share its forward and its backward with the rows.",
            "`own_loss` geeft een gemiddelde over één micro-batch. Hoe zwaar weegt dat onder alle voorbeelden, als "
            "micro-batches in grootte verschillen? De forward en de backward kan het met de rijen delen.",
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
    solution=_FIRST_PASS + _LOOP + _OWN + _BACK + _NEXT,
    wrong=(
        _two_passes(
            "    z = torch.cat([model(batch) for batch in micro_batches])\n"
            "    ((z * kept.grad).sum() + own_loss(z, torch.cat(micro_batches))).backward()\n",
            "whole_batch_alive",
            "The gradient is right, but several graphs were alive at once: that is the memory of the full batch, which "
            "is what should be saved.",
            "De gradient klopt, maar er waren meerdere grafen tegelijk in leven: dat kost het geheugen van de volle "
            "batch, en dat wilde je juist besparen.",
        ),
        _two_passes(
            _LOOP + "        model(batch).backward(rows)\n" + _NEXT,
            "own_left_out",
            "What the comparison asks arrives. What the examples' own losses ask does not.",
            "Wat de vergelijking vraagt komt aan. Wat de eigen losses van de voorbeelden vragen niet.",
        ),
        _two_passes(
            _LOOP + _OWN.replace("* len(batch) / len(kept)", "/ len(micro_batches)") + _BACK + _NEXT,
            "own_mean_of_means",
            "The own losses became a mean of means: each micro-batch weighs the same in it, and they differ in size.",
            "De eigen losses zijn een gemiddelde van gemiddelden geworden: elke micro-batch weegt er even zwaar in, "
            "terwijl ze in grootte verschillen.",
        ),
        _two_passes(
            _LOOP + _OWN.replace(" * len(batch) / len(kept)", "") + _BACK + _NEXT,
            "own_not_weighted",
            "You add the own mean of each micro-batch in full. Together these are a sum of means, and one mean is "
            "wanted.",
            "Je telt het eigen gemiddelde van elke micro-batch helemaal mee. Samen is dat een som van gemiddelden, en "
            "gevraagd is één gemiddelde.",
        ),
        _two_passes(
            _LOOP.replace("start : start + len(batch)", ": len(batch)") + _OWN + _BACK,
            "rows_of_the_first",
            "Every micro-batch goes backward with the rows that belong to the first one.",
            "Elke micro-batch gebruikt in zijn backward de rijen die bij de eerste horen.",
        ),
        _two_passes(
            "    for k, batch in enumerate(micro_batches):\n        size = len(batch)\n"
            "        rows = kept.grad[k * size : (k + 1) * size]\n" + _OWN + _BACK,
            "sizes_taken_as_equal",
            "It works while all micro-batches have one size. When they differ, your rows begin in the wrong place.",
            "Het werkt zolang alle micro-batches even groot zijn. Verschillen ze, dan beginnen je rijen op de "
            "verkeerde plaats.",
        ),
        _two_passes(
            _LOOP + _OWN + _BACK.replace(".sum()", ".sum() / len(micro_batches)") + _NEXT,
            "divided_by_n",
            "You divide the rows by N. The loss was taken once, over the whole batch: its mean is in them already.",
            "Je deelt de rijen door N. De loss is één keer berekend, over de hele batch: het gemiddelde zit er al in.",
        ),
        _two_passes(
            _LOOP + "        model.zero_grad()\n" + _OWN + _BACK + _NEXT,
            "only_the_last",
            "What arrives in `.grad` is the last micro-batch alone. What the others added is gone.",
            "In `.grad` komt alleen de laatste micro-batch terecht. Wat de andere hadden opgeteld is weg.",
        ),
        _two_passes(
            "    model.zero_grad()\n" + _LOOP + _OWN + _BACK + _NEXT,
            "zeroed_first",
            "What your loop adds is right. But what was in `.grad` before the call is gone, and you were to add to it: "
            "the caller may not have finished its window.",
            "Wat je lus optelt klopt. Maar wat er vóór de aanroep in `.grad` stond is weg, terwijl je daarbij moest "
            "optellen: het venster van de aanroeper is misschien nog niet klaar.",
        ),
        _two_passes(
            "    for batch in micro_batches:\n" + _OWN + "        (loss_fn(z) / len(micro_batches) + own).backward()\n",
            "own_micro_batch_only",
            "You take the loss anew for each micro-batch, so an example meets only those of its own. What the first "
            "pass found is not used.",
            "Je berekent de loss voor elke micro-batch opnieuw, dus een voorbeeld komt alleen die van zijn eigen "
            "micro-batch tegen. Wat de eerste ronde vond blijft ongebruikt.",
        ),
        _two_passes(
            _LOOP + _OWN + _BACK.replace(".sum()", ".mean()") + _NEXT,
            "mean_of_products",
            "The rows say how much each number of an embedding counts. A mean over them makes all of it smaller, and "
            "differently for micro-batches of different size.",
            "De rijen zeggen hoe zwaar elk getal van een embedding telt. Een gemiddelde daarover maakt alles kleiner, "
            "en anders voor micro-batches van verschillende grootte.",
        ),
        _two_passes(
            "    for batch in micro_batches:\n" + _OWN + "        (z.sum() + own).backward()\n",
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
            _LOOP + _OWN + _BACK + _NEXT,
            "counted_twice",
            "What the comparison asks arrives twice: the first pass keeps its graph, so its backward reaches the "
            "model, and then the second sends the same again.",
            "Wat de vergelijking vraagt komt twee keer aan: de eerste ronde bewaart de graaf, dus zijn backward "
            "bereikt het model, en daarna stuurt de tweede hetzelfde nog eens.",
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
            "whole_batch_alive": (
                _WITH_GRAPH.replace("loss_fn(kept)", "(loss_fn(kept) + own_loss(kept, torch.cat(micro_batches)))"),
            ),
            "own_micro_batch_only": tuple(
                _FIRST_PASS
                + f"    for batch in micro_batches:\n        z = model(batch)\n        ({loss}).backward()\n"
                for loss in (
                    "loss_fn(z) + own_loss(z, batch)",
                    "(loss_fn(z) + own_loss(z, batch)) / len(micro_batches)",
                    "(loss_fn(z) + own_loss(z, batch)) * len(batch) / len(kept)",
                )
            ),
            "divided_by_n": (
                _FIRST_PASS + _LOOP + "        z = model(batch)\n"
                "        (((z * rows).sum() + own_loss(z, batch)) / len(micro_batches)).backward()\n" + _NEXT,
            ),
            "only_the_last": (
                _FIRST_PASS
                + "    for batch in micro_batches:\n" + _OWN
                + "    ((z * kept.grad[-len(z) :]).sum() + own).backward()\n",
            ),
        },
    ),
)  # fmt: skip
