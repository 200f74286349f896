"""What an examination says: for each cause what it means here, and what to do."""

from collections.abc import Sequence
from typing import Any

from gradacc_lessons.detective.examination.findings import CAUSES, Findings
from gradacc_lessons.detective.examination.weights import as_ratio
from gradacc_lessons.detective.wording import filled, joined
from gradacc_lessons.text import Text

MOST_NAMES = 3
"""Modules or buffers that are named; of the others their number is told."""

VERDICTS: dict[str, Text] = {
    "expected": Text(
        "It adds up: {number} micro-batches give the gradient of the whole batch, if each loss is divided by "
        "N = {number}.",
        "Het telt op: {number} micro-batches geven de gradient van de hele batch, als je elke loss deelt door "
        "N = {number}.",
    ),
    "counted": Text(
        "It adds up: {number} micro-batches give the gradient of the whole batch, if each is weighted by its count.",
        "Het telt op: {number} micro-batches geven de gradient van de hele batch, als je elke weegt met zijn aantal.",
    ),
    "sum": Text(
        "It adds up: this loss is a sum, so {number} micro-batches give the gradient of the whole batch as they are. "
        "Do not divide by N.",
        "Het telt op: deze loss is een som, dus {number} micro-batches geven zo de gradient van de hele batch. "
        "Deel niet door N.",
    ),
    "wrong": Text(
        "It does not add up: {number} micro-batches do not give the gradient of the whole batch (relative error "
        "{error}).",
        "Het telt niet op: {number} micro-batches geven niet de gradient van de hele batch (relatieve fout {error}).",
    ),
    "native": Text(
        "Measured in the model's own precision, because it does not run in float64: small differences stay unseen.",
        "Gemeten in de precisie van het model zelf, want in float64 draait het niet: kleine verschillen blijven "
        "onzichtbaar.",
    ),
}

MEANINGS: dict[str, Text] = {
    "batch_statistics": Text(
        "Batch statistics: in {modules} the output for one example depends on the other examples in its micro-batch.",
        "Batchstatistiek: in {modules} hangt de uitkomst voor één voorbeeld af van de andere voorbeelden in zijn "
        "micro-batch.",
    ),
    "randomness": Text(
        "Randomness: dropout, noise or another draw changes the gradient, and the micro-batches draw other numbers "
        "than the whole batch.",
        "Toeval: dropout, ruis of een andere trekking verandert de gradient, en de micro-batches trekken andere "
        "getallen dan de hele batch.",
    ),
    "loss_not_additive": Text(
        "The loss is not a sum over examples: no weights for the micro-batches give the gradient of the whole batch.",
        "De loss is geen som over voorbeelden: met geen enkele weging geven de micro-batches de gradient van de hele "
        "batch.",
    ),
    "unequal_items": Text(
        "Unequal counts: the micro-batches fit only with the weights {weights}, which depend on the data.",
        "Ongelijke aantallen: de micro-batches passen alleen met de gewichten {weights}, en die hangen van de data af.",
    ),
    "module_state": Text(
        "State: every forward changes {state}, so N small forwards leave something else than one large one.",
        "Toestand: elke forward verandert {state}, dus N kleine forwards laten iets anders achter dan één grote.",
    ),
    "state_touches": Text(
        "State: every forward changes {state}, and the next micro-batch's gradient depends on it.",
        "Toestand: elke forward verandert {state}, en de gradient van de volgende micro-batch hangt daarvan af.",
    ),
    "low_precision": Text(
        "Low precision: in float64 it adds up, but in the model's own dtype adding up rounds too much away.",
        "Lage precisie: in float64 telt het op, maar in het dtype van het model zelf rondt het optellen te veel af.",
    ),
    "unknown": Text(
        "The reason was not found: none of the changes that were tried makes the gradients agree.",
        "De reden is niet gevonden: geen van de geprobeerde veranderingen maakt de gradiënten gelijk.",
    ),
}

REMEDIES: dict[str, Text] = {
    "batch_statistics": Text(
        "Take GroupNorm or LayerNorm, freeze the statistics (eval mode of the norm), or choose a larger micro-batch.",
        "Neem GroupNorm of LayerNorm, bevries de statistiek (de norm in eval-modus), of kies een grotere micro-batch.",
    ),
    "randomness": Text(
        "This is no bug: train as it is. To compare gradients, switch the draws off with model.eval().",
        "Dit is geen fout: train gewoon zo. Wil je gradiënten vergelijken, zet de trekkingen dan uit met model.eval().",
    ),
    "loss_not_additive": Text(
        "Use GradCache (all embeddings first, then the gradient micro-batch by micro-batch), or a version of the loss "
        "that is a mean over examples.",
        "Gebruik GradCache (eerst alle embeddings, dan de gradient micro-batch voor micro-batch), of een versie van de "
        "loss die een gemiddelde over voorbeelden is.",
    ),
    "unequal_items": Text(
        "Weight each micro-batch by what counts in it: pass count=, and train with accumulate(model, window, loss_sum, "
        "count).",
        "Weeg elke micro-batch met wat erin meetelt: geef count= mee, en train met accumulate(model, window, loss_sum, "
        "count).",
    ),
    "module_state": Text(
        "Update it once per window instead of once per forward; for running statistics take the momentum "
        "1 - (1 - m)^(1/N).",
        "Werk het één keer per venster bij in plaats van per forward; neem voor running statistics het momentum "
        "1 - (1 - m)^(1/N).",
    ),
    "low_precision": Text(
        "Keep the gradients that are added up in float32: float32 parameters with autocast, or a float32 buffer.",
        "Houd de gradiënten die worden opgeteld in float32: float32-parameters met autocast, of een float32-buffer.",
    ),
    "unknown": Text(
        "Try it on a smaller model, and switch parts off until the gradients agree.",
        "Probeer het op een kleiner model, en zet delen uit tot de gradiënten gelijk zijn.",
    ),
}

_OWN_FORWARD = Text("the model's own forward", "de forward van het model zelf")
_MORE = Text("{names} and {more} more", "{names} en nog {more}")


def causes_of(findings: Findings) -> tuple[str, ...]:
    """The ids, in their order."""
    return tuple(cause for cause in CAUSES if cause in findings.causes)


def message(findings: Findings, number: int, counted: bool) -> Text:
    """The verdict, and what each cause means here."""
    parts = [_verdict(findings, number, counted)]
    parts += [_meaning(cause, findings) for cause in causes_of(findings)]
    if "float64" in findings.evidence:
        parts.append(VERDICTS["native"])
    return joined(parts)


def remedies(findings: Findings) -> tuple[Text, ...]:
    """What to do, a sentence or two for each cause."""
    return tuple(REMEDIES[cause] for cause in causes_of(findings))


def _verdict(findings: Findings, number: int, counted: bool) -> Text:
    if findings.touching:
        return filled(VERDICTS["wrong"], number=number, error=f"{findings.relative_error:.2g}")
    if all(weight == 1 for weight in findings.weights):
        return filled(VERDICTS["sum"], number=number)
    return filled(VERDICTS["counted" if counted else "expected"], number=number)


def _meaning(cause: str, findings: Findings) -> Text:
    seen = findings.evidence
    if cause == "batch_statistics":
        return filled(MEANINGS[cause], modules=_names(seen["modules"]))
    if cause == "unequal_items":
        return filled(MEANINGS[cause], weights=weights_in_words(seen["item_weights"]))
    if cause == "module_state":
        name = "state_touches" if cause in findings.touching else cause
        return filled(MEANINGS[name], state=_names(seen["state"]))
    return MEANINGS[cause]


def weights_in_words(weights: Sequence[float]) -> str:
    """3 : 10 : 50 where they are such, else 0.21, 0.34, 0.45."""
    ratio = as_ratio(weights)
    return " : ".join(map(str, ratio)) if ratio else ", ".join(f"{weight:.3g}" for weight in weights)


def _names(names: Sequence[Any]) -> Text:
    shown: list[Text] = [Text(name, name) if name else _OWN_FORWARD for name in names]
    told = joined(shown[:MOST_NAMES], ", ")
    more = len(shown) - MOST_NAMES
    return filled(_MORE, names=told, more=more) if more > 0 else told
