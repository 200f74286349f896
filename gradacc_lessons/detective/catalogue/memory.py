"""Loops with the memory of the full batch. What they do to the gradient is another matter."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

MEMORY = (
    Fault(
        "sum_then_backward",
        Text("The losses summed, then one backward", "Eerst de losses optellen, dan één backward"),
        Text(
            "This takes the memory of the full batch: the losses of a window are collected first and go "
            "backward afterwards, so the graph of every micro-batch stays alive until then. That memory is what "
            "accumulation should save.",
            "Dit kost het geheugen van de volle batch: de losses van een venster worden eerst verzameld en "
            "gaan daarna pas backward, dus de graaf van elke micro-batch blijft tot dan bestaan. Juist dat "
            "geheugen wilde je besparen.",
        ),
        (
            Text(
                "When can a micro-batch's activations be freed?",
                "Wanneer kunnen de activaties van een micro-batch weg?",
            ),
            Text(
                "Count the graphs that are alive just before the backward.",
                "Tel de grafen die vlak voor de backward nog bestaan.",
            ),
            Text(
                "A loss that has gone backward keeps nothing. Do it while it is alone.",
                "Een loss die backward is gegaan houdt niets vast. Doe het zolang hij alleen is.",
            ),
        ),
        "03_the_memory_wall",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    total = 0
                    for batch in window:
                        total = total + loss_fn(model, batch) * len(batch[0]) / examples
                    optimizer.zero_grad()
                    total.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "window_in_one_batch",
        Text("The window glued back into one batch", "Het venster weer tot één batch geplakt"),
        Text(
            "This takes the memory of the full batch: the micro-batches of a window are put together again "
            "and go through the model at once. That is the large batch that did not fit.",
            "Dit kost het geheugen van de volle batch: de micro-batches van een venster worden weer "
            "samengevoegd en gaan in één keer door het model. Dat is de grote batch die niet paste.",
        ),
        (
            Text("How many examples does one forward see?", "Hoeveel voorbeelden ziet één forward?"),
            Text(
                "Why were the micro-batches cut in the first place?",
                "Waarom waren de micro-batches ook alweer in stukken gesneden?",
            ),
            Text(
                "Each micro-batch goes forward and backward by itself.",
                "Elke micro-batch gaat apart forward en backward.",
            ),
        ),
        "03_the_memory_wall",
        "windows",
        listing("""
            import torch


            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    full_batch = tuple(torch.cat(parts) for parts in zip(*window))
                    optimizer.zero_grad()
                    loss_fn(model, full_batch).backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "graphs_kept_alive",
        Text("Graphs kept that no update needs", "Grafen bewaard die geen update nodig heeft"),
        Text(
            "This takes the memory of the full batch: the graphs of a whole window are alive at once, and the "
            "backward does not need them together. Something holds on to losses or outputs with their graph, "
            "or computes one with a graph only to look at it.",
            "Dit kost het geheugen van de volle batch: de grafen van een heel venster bestaan tegelijk, terwijl "
            "de backward ze niet samen nodig heeft. Iets houdt losses of uitvoer vast met hun graaf, of rekent "
            "er een uit met graaf, alleen om ernaar te kijken.",
        ),
        (
            Text(
                "Which graphs does the backward still need, and which not any more?",
                "Welke grafen heeft de backward nog nodig, en welke niet meer?",
            ),
            Text(
                "Look at what you keep for a report: is it a number, or does it hang on to everything behind it?",
                "Kijk wat je voor een verslag bewaart: is het een getal, of hangt alles erachter er nog aan?",
            ),
            Text(
                "A backward frees its graph unless it is told not to. What you only want to see needs no graph at all.",
                "Een backward ruimt zijn graaf op, tenzij je zegt van niet. Wat je alleen wilt zien heeft geen "
                "graaf nodig.",
            ),
        ),
        "03_the_memory_wall",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                losses = []
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward(retain_graph=True)
                        losses.append(loss)
                    optimizer.step()
                return losses
        """),
    ),
)
