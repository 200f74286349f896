"""Mistakes in the learning rate schedule."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

SCHEDULE = (
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
    Fault(
        "scheduler_twice",
        Text(
            "The schedule moves per update and per epoch",
            "Het schema verspringt per update én per epoch",
        ),
        Text(
            "scheduler.step() follows each update, and is called once more when the epoch ends. From the second "
            "epoch on every update has the learning rate of a later one, and the difference grows with each "
            "epoch.",
            "scheduler.step() volgt op elke update, en wordt aan het eind van de epoch nog een keer aangeroepen. "
            "Vanaf de tweede epoch heeft elke update de learning rate van een latere, en het verschil groeit met "
            "elke epoch.",
        ),
        (
            Text(
                "How often does the scheduler move in one epoch? How many updates are there?",
                "Hoe vaak verspringt het schema in één epoch? Hoeveel updates zijn er?",
            ),
            Text(
                "Compare the last learning rate of one epoch with the first of the next.",
                "Vergelijk de laatste learning rate van een epoch met de eerste van de volgende.",
            ),
            Text(
                "A schedule has one unit. Which one is yours planned in?",
                "Een schema heeft één eenheid. In welke is het jouwe bedacht?",
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
                scheduler.step()
        """),
    ),
)
