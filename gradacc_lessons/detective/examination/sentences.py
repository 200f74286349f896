"""The sentences of an examination, in both languages."""

from gradacc_lessons.text import Text

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
        "It does not add up: the gradient of {number} micro-batches is {error} % away from that of the whole batch.",
        "Het telt niet op: de gradient van {number} micro-batches ligt {error} % naast die van de hele batch.",
    ),
    "elsewhere": Text(
        "It does not add up: with these parameters the gradients happen to agree, as can be right after an "
        "initialisation with zeros, but with others near them that of {number} micro-batches is {error} % away from "
        "that of the whole batch.",
        "Het telt niet op: met deze parameters zijn de gradients toevallig gelijk, zoals vlak na een initialisatie "
        "met nullen, maar met andere vlakbij ligt die van {number} micro-batches {error} % naast die van de hele "
        "batch.",
    ),
    "native": Text(
        "This was measured in the model's own precision, because it does not run in float64. Differences as small as "
        "its rounding stay unseen.",
        "Dit is gemeten in de precisie van het model zelf, want in float64 draait het niet. Verschillen zo klein als "
        "de afronding blijven onzichtbaar.",
    ),
}

MEANINGS: dict[str, Text] = {
    "batch_statistics": Text(
        "Batch statistics: in {modules} what comes out for one example depends on the other examples in its "
        "micro-batch.",
        "Batchstatistiek: in {modules} hangt wat er voor één voorbeeld uitkomt af van de andere voorbeelden in zijn "
        "micro-batch.",
    ),
    "batch_statistics_backward": Text(
        "Batch statistics: in the backward of {modules} the gradient of one example depends on the other examples in "
        "its micro-batch.",
        "Batchstatistiek: in de backward van {modules} hangt de gradient van één voorbeeld af van de andere "
        "voorbeelden in zijn micro-batch.",
    ),
    "randomness": Text(
        "Randomness: dropout, noise or another draw changes the gradient, and the micro-batches draw other numbers "
        "than the whole batch.",
        "Toeval: dropout, ruis of een andere trekking verandert de gradient, en de micro-batches trekken andere "
        "getallen dan de hele batch.",
    ),
    "loss_not_additive": Text(
        "The loss is not a sum over examples: there are no weights with which the micro-batches give the gradient of "
        "the whole batch.",
        "De loss is geen som over voorbeelden: er zijn geen gewichten waarmee de micro-batches de gradient van de "
        "hele batch geven.",
    ),
    "unequal_items": Text(
        "Unequal counts: the micro-batches give the whole gradient only with the weights {weights}.",
        "Ongelijke aantallen: de micro-batches geven de hele gradient alleen met de gewichten {weights}.",
    ),
    "module_state": Text(
        "State: every forward changes {state}. N small forwards leave something else than one large one; the gradient "
        "of this window does not depend on it.",
        "Toestand: elke forward verandert {state}. N kleine forwards laten iets anders achter dan één grote; de "
        "gradient van dit venster hangt er niet van af.",
    ),
    "state_touches": Text(
        "State: every forward changes {state}, and the gradient of the next micro-batch depends on it.",
        "Toestand: elke forward verandert {state}, en de gradient van de volgende micro-batch hangt daarvan af.",
    ),
    "low_precision": Text(
        "Low precision: in float64 it adds up, but adding up in the model's own dtype rounds too much away.",
        "Lage precisie: in float64 telt het op, maar het optellen in het dtype van het model zelf rondt te veel af.",
    ),
    "unknown": Text(
        "The reason was not found: nothing that was tried makes the gradients agree.",
        "De reden is niet gevonden: niets van wat is geprobeerd maakt de gradients gelijk.",
    ),
}

REMEDIES: dict[str, Text] = {
    "batch_statistics": Text(
        "Take a layer that looks at each example by itself (GroupNorm or LayerNorm in place of BatchNorm), freeze its "
        "statistics (eval mode), or choose a larger micro-batch.",
        "Neem een laag die elk voorbeeld apart bekijkt (GroupNorm of LayerNorm in plaats van BatchNorm), bevries zijn "
        "statistiek (eval-modus), of kies een grotere micro-batch.",
    ),
    "randomness": Text(
        "In training this is no mistake: leave it. To compare gradients, switch the draws off, with model.eval() for "
        "dropout.",
        "Bij het trainen is dit geen fout: laat het zo. Wil je gradients vergelijken, zet de trekkingen dan uit, met "
        "model.eval() voor dropout.",
    ),
    "loss_not_additive": Text(
        "Use GradCache (all embeddings first, then the gradient micro-batch by micro-batch), or a version of the loss "
        "that is a mean over examples.",
        "Gebruik GradCache (eerst alle embeddings, dan de gradient micro-batch voor micro-batch), of een versie van de "
        "loss die een gemiddelde over voorbeelden is.",
    ),
    "scaled": Text(
        "Divide a sum over the items by their number, or by nothing.",
        "Deel een som over de items door hun aantal, of door niets.",
    ),
    "unequal_items": Text(
        "Weight each micro-batch by what counts in it: pass it as count=, and train with accumulate(model, window, "
        "loss_sum, count).",
        "Weeg elke micro-batch met wat erin meetelt: geef dat mee als count=, en train met accumulate(model, window, "
        "loss_sum, count).",
    ),
    "module_state": Text(
        "Change it once per window instead of once per forward. Running statistics come close with the momentum "
        "1 - (1 - m)^(1/N).",
        "Verander het één keer per venster in plaats van per forward. Running statistics komen in de buurt met het "
        "momentum 1 - (1 - m)^(1/N).",
    ),
    "state_touches": Text(
        "Change it once per window: before its first micro-batch, or after its last.",
        "Verander het één keer per venster: voor de eerste micro-batch, of na de laatste.",
    ),
    "low_precision": Text(
        "Add the gradients up in float32: float32 parameters with autocast, or a float32 buffer beside the parameters.",
        "Tel de gradients op in float32: float32-parameters met autocast, of een float32-buffer naast de parameters.",
    ),
    "batch_first": Text(
        "Give batch_first=True. If dimension 0 of its input is meant to be time, put the examples in dimension 1.",
        "Geef batch_first=True. Is dimensie 0 van zijn invoer wel als tijd bedoeld, zet de voorbeelden dan in "
        "dimensie 1.",
    ),
    "gradient_hooks": Text(
        "Clip or change the gradient once per window: after the last backward, before the update.",
        "Clip of verander de gradient één keer per venster: na de laatste backward, voor de update.",
    ),
    "unknown": Text(
        "Try it on a smaller model, and switch parts off until the gradients agree.",
        "Probeer het op een kleiner model, en zet delen uit tot de gradients gelijk zijn.",
    ),
}

NOTES: dict[str, Text] = {
    "float64": VERDICTS["native"],
    "hooks_after": Text(
        "What runs after a gradient was added up (register_post_accumulate_grad_hook) was not examined: clipping in it "
        "works on each micro-batch, and an optimizer in it makes an update for each, so nothing accumulates.",
        "Wat draait nadat een gradient is opgeteld (register_post_accumulate_grad_hook), is niet onderzocht: clippen "
        "werkt daar op elke micro-batch, en een optimizer maakt daar per micro-batch een update, dus er telt niets op.",
    ),
    "left_wide": Text(
        "Something that cannot be reached still holds float64 numbers of this examination, such as a cache in a "
        "library: start Python again before you train.",
        "Iets waar niet bij te komen is houdt nog float64-getallen van dit onderzoek vast, zoals een cache in een "
        "library: start Python opnieuw voordat je traint.",
    ),
    "unseen": Text(
        "The model and its loss hold more objects than were looked at, so some of their state may have been changed.",
        "Het model en de loss bevatten meer objecten dan er zijn bekeken, dus een deel van hun toestand kan veranderd "
        "zijn.",
    ),
    "no_effect_in": Text(
        "It draws random numbers, but in {no_effect_in} runs with other seeds none changed the gradient: a draw that "
        "seldom matters stays unseen.",
        "Er worden toevalsgetallen getrokken, maar in {no_effect_in} runs met andere seeds veranderde geen ervan de "
        "gradient: een trekking die zelden iets doet blijft onzichtbaar.",
    ),
    "equal_examples": Text(
        "All examples in this batch are equal, so nothing that depends on the others can be seen: give it real ones.",
        "Alle voorbeelden in deze batch zijn gelijk, dus wat van de andere afhangt is niet te zien: geef echte.",
    ),
}
"""What limits the verdict, by the evidence for it."""

SEEN: dict[str, Text] = {
    "own forward": Text("the forward of the model itself ({kind})", "de forward van het model zelf ({kind})"),
    "more": Text("{names} and {more} more", "{names} en nog {more}"),
    "seeded_within": Text(
        "The code sets a seed in every forward, so all micro-batches get the same numbers.",
        "De code zet in elke forward een seed, dus alle micro-batches krijgen dezelfde getallen.",
    ),
    "unrepeated": Text(
        "They come from where no seed reaches: the same run gives another gradient each time. What else may be wrong "
        "cannot be told.",
        "Ze komen van een plek waar geen seed komt: dezelfde run geeft elke keer een andere gradient. Wat er verder "
        "mis is, valt niet te zeggen.",
    ),
    "unmatched": Text(
        "Some of them could not be given to the micro-batches again, so part of what else may differ stays unseen.",
        "Sommige konden niet opnieuw aan de micro-batches worden gegeven, dus een deel van wat verder afwijkt blijft "
        "onzichtbaar.",
    ),
    "batch_first": Text(
        "It has batch_first=False, so it takes dimension 0, the examples, for time.",
        "Er staat batch_first=False, dus dimensie 0, de voorbeelden, geldt er als tijd.",
    ),
    "gradient_hooks": Text(
        "Gradient hooks: the loss adds up, but the hooks on {names} (register_hook) change the gradient of each "
        "micro-batch in a way that is no factor.",
        "Gradienthooks: de loss telt op, maar de hooks op {names} (register_hook) veranderen de gradient van elke "
        "micro-batch op een manier die geen factor is.",
    ),
    "count given": Text("The counts that were given are {weights}.", "De opgegeven aantallen zijn {weights}."),
    "scaled": Text(
        "The loss is neither a sum nor a mean over items: the micro-batches give the whole gradient with the weights "
        "{weights}, which do not add up to 1.",
        "De loss is geen som en geen gemiddelde over items: de micro-batches geven de hele gradient met de gewichten "
        "{weights}, en die tellen niet op tot 1.",
    ),
    "counted": Text("That is count=lambda batch: {what}.", "Dat is count=lambda batch: {what}."),
    "stops": Text("Carried on to the next micro-batch: {error}.", "Meegenomen naar de volgende micro-batch: {error}."),
}
"""What was seen in this case, and the names of things."""
