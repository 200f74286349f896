"""Mistakes in the weight that a micro-batch's loss gets."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

SCALING = (
    Fault(
        "missing_scale",
        Text("The sum never becomes a mean", "De som wordt nooit een gemiddelde"),
        Text(
            "Each loss is a mean over its own micro-batch, and nothing divides their sum. The gradient of a "
            "window is as many times too long as the window has micro-batches. Look at the line just before "
            "the backward.",
            "Elke loss is een gemiddelde over zijn eigen micro-batch, en niets deelt de som ervan. De "
            "gradient van een venster is zoveel keer te lang als het venster micro-batches heeft. Kijk naar "
            "de regel net voor de backward.",
        ),
        (
            Text(
                "What does .grad hold after the second backward of a window?",
                "Wat staat er in .grad na de tweede backward van een venster?",
            ),
            Text(
                "Backward adds. Two means added up are not a mean.",
                "Backward telt op. Twee gemiddelden bij elkaar opgeteld zijn geen gemiddelde.",
            ),
            Text(
                "Every loss needs its share of the window before it goes backward.",
                "Elke loss moet eerst zijn aandeel in het venster krijgen, daarna pas de backward.",
            ),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                optimizer.zero_grad()
                for i, batch in enumerate(micro_batches):
                    loss = loss_fn(model, batch)
                    loss.backward()
                    last = i + 1 == len(micro_batches)
                    if (i + 1) % accumulation_steps == 0 or last:
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
    Fault(
        "sum_never_divided",
        Text("Sums that are never divided by a count", "Sommen die nooit door een aantal worden gedeeld"),
        Text(
            "Each mean loss is multiplied by the examples of its micro-batch, which makes sums of them, and nothing "
            "divides by the number of examples in the window. The gradient is too long, and longer the larger your "
            "micro-batches are.",
            "Elke gemiddelde loss wordt vermenigvuldigd met de voorbeelden van zijn micro-batch, en is dan een som. "
            "Niets deelt door het aantal voorbeelden in het venster. De gradient is te lang, en langer naarmate je "
            "micro-batches groter zijn.",
        ),
        (
            Text(
                "Is what goes backward a sum or a mean?",
                "Is wat backward gaat een som of een gemiddelde?",
            ),
            Text(
                "Double the micro-batch size in your head: does your gradient double?",
                "Verdubbel in gedachten de grootte van de micro-batch: verdubbelt je gradient dan?",
            ),
            Text(
                "A mean needs two totals: that of the losses, and that of the examples.",
                "Een gemiddelde heeft twee totalen nodig: dat van de losses en dat van de voorbeelden.",
            ),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                optimizer.zero_grad()
                for i, batch in enumerate(micro_batches):
                    loss = loss_fn(model, batch) * len(batch[0])
                    loss.backward()
                    last = i + 1 == len(micro_batches)
                    if (i + 1) % accumulation_steps == 0 or last:
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
    Fault(
        "double_scale",
        Text("Divided twice", "Twee keer gedeeld"),
        Text(
            "What is a mean over the window already is divided by the number of micro-batches once more, so the "
            "update is that many times too short. One place makes the mean, another scales it again.",
            "Wat al een gemiddelde over het venster is, wordt nog eens door het aantal micro-batches gedeeld, en de "
            "update is dus zoveel keer te kort. Op één plek ontstaat het gemiddelde, op een andere wordt het nog "
            "eens geschaald.",
        ),
        (
            Text(
                "Who owns the division in this loop?",
                "Wie is er in deze lus verantwoordelijk voor het delen?",
            ),
            Text(
                "Follow one loss from loss_fn to the update and count the divisions.",
                "Volg één loss van loss_fn tot de update en tel de delingen.",
            ),
            Text("Keep one of the two divisions.", "Houd één van de twee delingen over."),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    for parameter in model.parameters():
                        parameter.grad /= len(window)
                    optimizer.step()
                    optimizer.zero_grad()
        """),
    ),
    Fault(
        "grad_divided_every_micro_batch",
        Text("The buffer divided after every backward", "De buffer na elke backward gedeeld"),
        Text(
            "After each backward everything in .grad is divided, and .grad still holds the earlier "
            "micro-batches. Those are divided again and again: the first micro-batch of a window hardly "
            "counts.",
            "Na elke backward wordt alles in .grad gedeeld, en daarin staan ook de eerdere micro-batches "
            "nog. Die worden steeds opnieuw gedeeld: de eerste micro-batch van een venster telt bijna niet "
            "mee.",
        ),
        (
            Text(
                "What else is in .grad when you divide it?",
                "Wat staat er nog meer in .grad op het moment dat je deelt?",
            ),
            Text(
                "Count how often the first micro-batch of a window is divided.",
                "Tel hoe vaak de eerste micro-batch van een venster wordt gedeeld.",
            ),
            Text(
                "Scale each loss, or the finished sum once. Not the buffer in between.",
                "Schaal elke loss, of één keer de complete som. Niet de buffer ertussenin.",
            ),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    optimizer.zero_grad()
                    for batch in window:
                        loss_fn(model, batch).backward()
                        for parameter in model.parameters():
                            parameter.grad /= len(window)
                    optimizer.step()
        """),
    ),
    Fault(
        "running_total_backward",
        Text("Backward on the running total", "Backward op het lopende totaal"),
        Text(
            "The losses are added up, and the total so far goes backward each time. The first micro-batch "
            "is in every one of these totals and counts as often as the window is long; its graph stays "
            "alive as well.",
            "De losses worden opgeteld, en telkens gaat het totaal tot dan toe backward. De eerste "
            "micro-batch zit in al die totalen en telt zo vaak mee als het venster lang is; ook zijn graaf "
            "blijft in het geheugen.",
        ),
        (
            Text("Which losses does each backward see?", "Welke losses ziet elke backward?"),
            Text(
                "If you need retain_graph=True, something goes backward twice.",
                "Als je retain_graph=True nodig hebt, gaat er iets twee keer backward.",
            ),
            Text("Each loss goes backward once, alone.", "Elke loss gaat één keer backward, alleen."),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    total = 0
                    for batch in window:
                        total = total + loss_fn(model, batch) * len(batch[0]) / examples
                        total.backward(retain_graph=True)
                    optimizer.step()
        """),
    ),
    Fault(
        "mean_of_means",
        Text("A mean of means", "Een gemiddelde van gemiddelden"),
        Text(
            "Every micro-batch gets the same weight, whatever its size. One example of a small micro-batch "
            "then weighs more than one of a large micro-batch, and the result is not the mean over the "
            "window's items.",
            "Elke micro-batch krijgt hetzelfde gewicht, hoe groot hij ook is. Een voorbeeld uit een kleine "
            "micro-batch weegt dan zwaarder dan een uit een grote, en het resultaat is niet het gemiddelde "
            "over het venster.",
        ),
        (
            Text("Are all your micro-batches the same size?", "Zijn al je micro-batches even groot?"),
            Text(
                "Take micro-batches of 1 and 50 items. How much does each item count?",
                "Neem micro-batches van 1 en 50 items. Hoe zwaar telt elk item?",
            ),
            Text(
                "Add up sums and counts; take the mean once, at the end of the window.",
                "Tel sommen en aantallen op; neem het gemiddelde één keer, aan het eind van het venster.",
            ),
        ),
        "04_uneven_windows",
        "items",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) / len(window)
                        loss.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "examples_not_items",
        Text("Examples counted instead of items", "Voorbeelden geteld in plaats van items"),
        Text(
            "The loss is a mean over the labels that count, and the weights come from the number of "
            "examples, ignored ones included. A micro-batch full of padding weighs as much as a full one.",
            "De loss is een gemiddelde over de labels die meetellen, en de gewichten komen van het aantal "
            "voorbeelden, genegeerde meegerekend. Een micro-batch vol padding weegt even zwaar als een "
            "volle.",
        ),
        (
            Text("What did the loss take its mean over?", "Waarover heeft de loss zijn gemiddelde genomen?"),
            Text(
                "The weight and the mean must use the same number.",
                "Het gewicht en het gemiddelde moeten hetzelfde aantal gebruiken.",
            ),
            Text(
                "You are handed a function that knows this number.",
                "Je krijgt een functie mee die dat aantal kent.",
            ),
        ),
        "04_uneven_windows",
        "items",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, count):
                tokens = 0
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        tokens += count(batch)
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
                return tokens
        """),
    ),
)
