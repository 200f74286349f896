"""Mistakes in what happens when: zero_grad, backward and the update."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

ORDER = (
    Fault(
        "zero_grad_every_micro_batch",
        Text("Gradients zeroed within the window", "De gradient binnen het venster op nul gezet"),
        Text(
            "The gradients are set to zero while their window is still being filled, and what its earlier "
            "micro-batches brought is wiped out. The update only sees the last micro-batch of its window.",
            "De gradient wordt op nul gezet terwijl zijn venster nog niet vol is, en wat eerdere micro-batches "
            "brachten is weg. De update ziet alleen de laatste micro-batch van zijn venster.",
        ),
        (
            Text(
                "What is in .grad when the optimizer updates?",
                "Wat staat er in .grad als de optimizer de update doet?",
            ),
            Text("How often may a window be wiped?", "Hoe vaak mag een venster worden gewist?"),
            Text(
                "Setting to zero belongs to the window, not to the micro-batch.",
                "Op nul zetten hoort bij het venster, niet bij de micro-batch.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    for batch in window:
                        optimizer.zero_grad()
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "backward_once_per_window",
        Text(
            "Only one backward per window",
            "Maar één backward per venster",
        ),
        Text(
            "Of each window only one micro-batch goes backward. The others never reach .grad, with or without a "
            "forward of their own: the window might as well be that one micro-batch.",
            "Van elk venster gaat maar één micro-batch backward. De andere komen nooit in .grad, met of zonder "
            "eigen forward: het venster had net zo goed die ene micro-batch kunnen zijn.",
        ),
        (
            Text(
                "Count the forwards and the backwards.",
                "Tel de forwards en de backwards.",
            ),
            Text(
                "Accumulating means adding gradients. What adds them?",
                "Accumuleren is gradients optellen. Wat telt ze op?",
            ),
            Text(
                "Only the update waits for the end of the window.",
                "Alleen de update wacht op het eind van het venster.",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
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
        "never_zero_grad",
        Text("Gradients never zeroed", "De gradient nooit op nul gezet"),
        Text(
            "Nothing sets the gradients to zero between windows. Each update repeats the windows before it, "
            "so the gradient keeps growing.",
            "Niets zet de gradient tussen twee vensters op nul. Elke update herhaalt de vensters ervoor, dus "
            "de gradient blijft groeien.",
        ),
        (
            Text(
                "What is in .grad when the second window begins?",
                "Wat staat er in .grad als het tweede venster begint?",
            ),
            Text(
                "The optimizer uses gradients; it does not use them up.",
                "De optimizer gebruikt de gradient; daarmee is hij niet verdwenen.",
            ),
            Text("One call per window is missing.", "Er ontbreekt één aanroep per venster."),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "zero_grad_before_step",
        Text("Zeroed just before the update", "Op nul gezet vlak voor de update"),
        Text(
            "The gradients are set to zero between the last backward and optimizer.step(). The optimizer "
            "finds nothing to apply, and the model stays as it was.",
            "De gradient wordt op nul gezet tussen de laatste backward en optimizer.step(). De optimizer "
            "heeft niets om toe te passen, en het model blijft zoals het was.",
        ),
        (
            Text("Does the loss go down at all?", "Daalt de loss eigenlijk wel?"),
            Text(
                "Read the lines from backward to optimizer.step() in order.",
                "Lees de regels van backward tot optimizer.step() op volgorde.",
            ),
            Text(
                "Two neighbouring lines stand in the wrong order.",
                "Twee regels naast elkaar staan in de verkeerde volgorde.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.zero_grad()
                    optimizer.step()
        """),
    ),
    Fault(
        "step_every_micro_batch",
        Text("An update at every micro-batch", "Een update bij elke micro-batch"),
        Text(
            "The optimizer updates after each backward instead of once per window. The gradient is still "
            "growing then: the first micro-batch of a window is applied again with each of the following "
            "ones.",
            "De optimizer doet na elke backward een update, in plaats van één keer per venster. De gradient "
            "groeit dan nog: de eerste micro-batch van een venster wordt bij elke volgende opnieuw "
            "toegepast.",
        ),
        (
            Text(
                "Count the updates in one epoch. How many should there be?",
                "Tel de updates in één epoch. Hoeveel zouden het er moeten zijn?",
            ),
            Text(
                "Which lines belong to every micro-batch, and which to the window?",
                "Welke regels horen bij elke micro-batch, en welke bij het venster?",
            ),
            Text(
                "Look at the indentation of optimizer.step().",
                "Kijk hoe ver optimizer.step() is ingesprongen.",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
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
        "updated_twice",
        Text(
            "Updated twice with the same gradient",
            "Twee updates met dezelfde gradient",
        ),
        Text(
            "optimizer.step() runs twice before the gradients are set to zero. Each window is applied two times: "
            "with SGD that doubles the learning rate, and momentum and Adam count two updates where there should "
            "be one.",
            "optimizer.step() wordt twee keer aangeroepen voordat de gradient op nul gaat. Elk venster wordt "
            "twee keer toegepast: met SGD verdubbelt dat de learning rate, en momentum en Adam tellen twee "
            "updates waar er één hoort.",
        ),
        (
            Text(
                "Count the updates in one epoch. How many windows are there?",
                "Tel de updates in één epoch. Hoeveel vensters zijn er?",
            ),
            Text(
                "Does anything besides your own line update the model, such as a helper or a scaler?",
                "Is er naast je eigen regel nog iets dat het model bijwerkt, zoals een hulpfunctie of een scaler?",
            ),
            Text(
                "One of the two has to go.",
                "Eén van de twee moet weg.",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
                    optimizer.step()
        """),
    ),
    Fault(
        "no_accumulation",
        Text("No accumulation at all", "Helemaal geen accumulatie"),
        Text(
            "Each micro-batch gets an update of its own, and the gradients are set to zero in between. No two "
            "micro-batches meet in .grad, so the effective batch is a single micro-batch.",
            "Elke micro-batch krijgt een eigen update, en daartussen wordt de gradient op nul gezet. Er komen "
            "nooit twee micro-batches samen in .grad, dus de effectieve batch is één micro-batch.",
        ),
        (
            Text(
                "How many different micro-batches have a part in one update?",
                "Hoeveel verschillende micro-batches hebben een aandeel in één update?",
            ),
            Text(
                "Several micro-batches must meet in .grad before an update.",
                "Er moeten meerdere micro-batches in .grad samenkomen voordat er een update is.",
            ),
            Text(
                "Zeroing and updating become rarer; backward stays where it is. Then think about the scale.",
                "Op nul zetten en updaten gebeuren minder vaak; backward blijft staan. Denk daarna aan de schaal.",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for batch in micro_batches:
                    optimizer.zero_grad()
                    loss = loss_fn(model, batch)
                    loss.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "step_before_backward",
        Text("The update comes before the last backward", "De update komt voor de laatste backward"),
        Text(
            "The update comes one micro-batch too early: the last micro-batch of a window goes backward only "
            "after it. That one is missing from its own window and lands in the next.",
            "De update komt één micro-batch te vroeg: de laatste micro-batch van een venster gaat pas daarna "
            "backward. Die ontbreekt in zijn eigen venster en komt in het volgende terecht.",
        ),
        (
            Text(
                "How many backwards come before the first update?",
                "Hoeveel backwards gaan er aan de eerste update vooraf?",
            ),
            Text(
                "Follow the last micro-batch of a window through the loop body.",
                "Volg de laatste micro-batch van een venster door de lus.",
            ),
            Text(
                "The question whether the window is full comes too early.",
                "De vraag of het venster vol is komt te vroeg.",
            ),
        ),
        "07_once_per_window",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for i, batch in enumerate(micro_batches):
                    if (i + 1) % accumulation_steps == 0:
                        optimizer.step()
                        optimizer.zero_grad()
                    loss = loss_fn(model, batch) / accumulation_steps
                    loss.backward()
        """),
    ),
)
