"""Mistakes in what stands around the update: clipping and the learning rate schedule."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

AROUND = (
    Fault(
        "clip_every_micro_batch",
        Text(
            "Clipped at every micro-batch",
            "Bij elke micro-batch geclipt",
        ),
        Text(
            "The accumulated gradient is clipped after each backward. What came early in the window is "
            "shrunk again and again, so the update points in another direction than the clipped gradient "
            "of the whole window.",
            "De opgetelde gradient wordt na elke backward geclipt. Wat vroeg in het venster kwam, wordt "
            "steeds opnieuw ingekort, dus de update wijst een andere kant op dan de geclipte gradient van "
            "het hele venster.",
        ),
        (
            Text(
                "Which gradient is max_norm meant for?",
                "Voor welke gradient is max_norm bedoeld?",
            ),
            Text(
                "What does clipping do to the micro-batches that are in .grad already?",
                "Wat doet clippen met de micro-batches die al in .grad staan?",
            ),
            Text(
                "Half a window has no norm worth looking at.",
                "De norm van een half venster zegt nog niets.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            from torch.nn.utils import clip_grad_norm_


            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                        clip_grad_norm_(model.parameters(), max_norm)
                    optimizer.step()
        """),
    ),
    Fault(
        "clip_too_late",
        Text(
            "The update takes the unclipped gradient",
            "De update gebruikt de ongeclipte gradient",
        ),
        Text(
            "The optimizer updates with a gradient longer than max_norm. The clipping comes after the "
            "update, when it no longer matters, or it is missing.",
            "De optimizer doet een update met een gradient die langer is dan max_norm. Het clippen komt "
            "na de update, als het niet meer uitmaakt, of het ontbreekt.",
        ),
        (
            Text(
                "How long is the gradient at the moment of the update?",
                "Hoe lang is de gradient op het moment van de update?",
            ),
            Text(
                "Read the lines from the last backward to the update in order.",
                "Lees de regels van de laatste backward tot de update op volgorde.",
            ),
            Text(
                "Whatever changes the gradient has to happen before it is used.",
                "Wat de gradient verandert, moet gebeuren voordat hij wordt gebruikt.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            from torch.nn.utils import clip_grad_norm_


            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
                    clip_grad_norm_(model.parameters(), max_norm)
        """),
    ),
    Fault(
        "clip_before_scaling",
        Text(
            "Clipped before it is scaled",
            "Geclipt voordat er is geschaald",
        ),
        Text(
            "The gradient is clipped while it is still a sum, and divided afterwards. The sum is many "
            "times longer than the mean, so the threshold bites far too early and the update is shorter "
            "than max_norm allows.",
            "De gradient wordt geclipt terwijl hij nog een som is, en pas daarna gedeeld. De som is vele "
            "malen langer dan het gemiddelde, dus de drempel grijpt veel te vroeg in en de update is "
            "korter dan max_norm toestaat.",
        ),
        (
            Text(
                "Which gradient does the optimizer get in the end?",
                "Welke gradient krijgt de optimizer uiteindelijk?",
            ),
            Text(
                "Compare its length with max_norm.",
                "Vergelijk de lengte ervan met max_norm.",
            ),
            Text(
                "Two operations are in the wrong order.",
                "Twee bewerkingen staan in de verkeerde volgorde.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            from torch.nn.utils import clip_grad_norm_


            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0])
                        loss.backward()
                    clip_grad_norm_(model.parameters(), max_norm)
                    for parameter in model.parameters():
                        parameter.grad /= examples
                    optimizer.step()
        """),
    ),
    Fault(
        "scheduler_every_micro_batch",
        Text(
            "The schedule moves at every micro-batch",
            "Het schema verspringt bij elke micro-batch",
        ),
        Text(
            "scheduler.step() is called for each micro-batch instead of once per update. Warm-up and "
            "decay run as many times too fast as a window has micro-batches.",
            "scheduler.step() wordt voor elke micro-batch aangeroepen in plaats van één keer per update. "
            "Warm-up en decay gaan zoveel keer te snel als een venster micro-batches heeft.",
        ),
        (
            Text(
                "In which unit was the schedule planned?",
                "In welke eenheid is het schema bedacht?",
            ),
            Text(
                "Write down the learning rate of the first three updates.",
                "Schrijf de learning rate van de eerste drie updates op.",
            ),
            Text(
                "The schedule counts updates, so it moves where the update is.",
                "Het schema telt updates, dus het verspringt waar de update is.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, scheduler):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                        scheduler.step()
                    optimizer.step()
        """),
    ),
    Fault(
        "scheduler_once_per_epoch",
        Text(
            "The schedule moves once per epoch",
            "Het schema verspringt één keer per epoch",
        ),
        Text(
            "scheduler.step() is called once at the end of the epoch. All updates of an epoch get the "
            "same learning rate, and a warm-up counted in updates takes many epochs.",
            "scheduler.step() wordt één keer aangeroepen, aan het eind van de epoch. Alle updates van een "
            "epoch krijgen dezelfde learning rate, en een warm-up in updates duurt vele epochs.",
        ),
        (
            Text(
                "How many updates does one epoch have?",
                "Hoeveel updates heeft één epoch?",
            ),
            Text(
                "Write down the learning rate of each update of an epoch.",
                "Schrijf de learning rate van elke update van een epoch op.",
            ),
            Text(
                "Look at how far the call is indented.",
                "Kijk hoe ver de aanroep is ingesprongen.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, scheduler):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
                scheduler.step()
        """),
    ),
    Fault(
        "scheduler_never",
        Text(
            "The schedule never moves",
            "Het schema verspringt nooit",
        ),
        Text(
            "The loop is handed a scheduler and never moves it. All updates get the first learning rate: "
            "with a warm-up that is close to zero.",
            "De lus krijgt een scheduler mee en gebruikt hem niet. Alle updates krijgen de eerste "
            "learning rate: met een warm-up is die bijna nul.",
        ),
        (
            Text(
                "What is the learning rate after an epoch?",
                "Wat is de learning rate na een epoch?",
            ),
            Text(
                "Who moves the scheduler, if not this loop?",
                "Wie verzet het schema, als deze lus het niet doet?",
            ),
            Text(
                "A call that belongs to each update is missing.",
                "Er ontbreekt een aanroep die bij elke update hoort.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, scheduler):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "scheduler_before_update",
        Text(
            "The schedule moves before the update",
            "Het schema verspringt voor de update",
        ),
        Text(
            "scheduler.step() comes before optimizer.step(). The first learning rate is never used, and "
            "every update gets the rate of the one after it.",
            "scheduler.step() komt voor optimizer.step(). De eerste learning rate wordt nooit gebruikt, "
            "en elke update krijgt de rate van de volgende.",
        ),
        (
            Text(
                "Which learning rate does the first update use?",
                "Welke learning rate gebruikt de eerste update?",
            ),
            Text(
                "torch warns about this order. Did you see a warning?",
                "torch waarschuwt voor deze volgorde. Heb je een waarschuwing gezien?",
            ),
            Text(
                "Update first, then look up the rate for the next one.",
                "Eerst de update, dan de rate voor de volgende opzoeken.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, scheduler):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    scheduler.step()
                    optimizer.step()
        """),
    ),
)
