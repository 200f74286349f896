"""Mistakes in the number that a micro-batch's loss is divided by."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

DIVISORS = (
    Fault(
        "running_scale",
        Text("Divided by the running count", "Gedeeld door de stand van de teller"),
        Text(
            "Each loss is divided by the number of micro-batches seen so far. The first one counts in full, "
            "the second for a half, the third for a third: the early ones weigh too much.",
            "Elke loss wordt gedeeld door het aantal micro-batches dat tot dan toe is gezien. De eerste telt "
            "helemaal mee, de tweede half, de derde voor een derde: de vroege wegen te zwaar.",
        ),
        (
            Text("Do all micro-batches weigh the same?", "Wegen alle micro-batches even zwaar?"),
            Text(
                "Write down the divisor for each micro-batch of one window.",
                "Schrijf de deler op voor elke micro-batch van één venster.",
            ),
            Text(
                "A divisor that changes inside the window cannot give a mean over it.",
                "Een deler die binnen het venster verandert, geeft geen gemiddelde over het venster.",
            ),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                optimizer.zero_grad()
                for i, batch in enumerate(micro_batches):
                    seen = i % accumulation_steps + 1
                    loss = loss_fn(model, batch) / seen
                    loss.backward()
                    if seen == accumulation_steps or i + 1 == len(micro_batches):
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
    Fault(
        "divided_by_micro_batch_size",
        Text("Divided by the size of the micro-batch", "Gedeeld door de grootte van de micro-batch"),
        Text(
            "Each loss is divided by the number of examples in its micro-batch. The loss is a mean over "
            "those examples already; what is still missing is the number of micro-batches in the window.",
            "Elke loss wordt gedeeld door het aantal voorbeelden in zijn micro-batch. De loss is al een "
            "gemiddelde over die voorbeelden; wat nog ontbreekt is het aantal micro-batches in het venster.",
        ),
        (
            Text("What has loss_fn already divided by?", "Waar heeft loss_fn zelf al door gedeeld?"),
            Text(
                "Double the micro-batch size in your head: does your gradient halve?",
                "Verdubbel in gedachten de grootte van de micro-batch: halveert je gradient dan?",
            ),
            Text(
                "The divisor counts backwards per update, not examples per backward.",
                "De deler telt backwards per update, niet voorbeelden per backward.",
            ),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                optimizer.zero_grad()
                for i, batch in enumerate(micro_batches):
                    loss = loss_fn(model, batch) / len(batch[0])
                    loss.backward()
                    last = i + 1 == len(micro_batches)
                    if (i + 1) % accumulation_steps == 0 or last:
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
    Fault(
        "divided_by_examples_again",
        Text("A mean divided by the examples again", "Een gemiddelde nog eens door de voorbeelden gedeeld"),
        Text(
            "loss_fn gives a mean over the examples of a micro-batch already, and the loop divides by a number "
            "of examples once more. The gradient is too short, and shorter the larger your micro-batches are.",
            "loss_fn geeft al een gemiddelde over de voorbeelden van een micro-batch, en de lus deelt nog eens "
            "door een aantal voorbeelden. De gradient is te kort, en korter naarmate je micro-batches groter zijn.",
        ),
        (
            Text("What has loss_fn already divided by?", "Waar heeft loss_fn zelf al door gedeeld?"),
            Text(
                "Double the micro-batch size in your head: does your gradient halve?",
                "Verdubbel in gedachten de grootte van de micro-batch: halveert je gradient dan?",
            ),
            Text(
                "Only a sum may be divided by a number of examples. Is yours a sum at that moment?",
                "Alleen een som mag je door een aantal voorbeelden delen. Is de jouwe op dat moment een som?",
            ),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) / examples
                        loss.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "divided_by_epoch_length",
        Text("Divided by the length of the epoch", "Gedeeld door de lengte van de epoch"),
        Text(
            "Each loss is divided by what there is in the whole epoch. One update only sees its own window, so "
            "its gradient is too short, and shorter the more data you have.",
            "Elke loss wordt gedeeld door wat er in de hele epoch zit. Eén update ziet alleen zijn eigen "
            "venster, dus de gradient is te kort, en korter naarmate je meer data hebt.",
        ),
        (
            Text(
                "How many backwards lie between two updates?",
                "Hoeveel backwards liggen er tussen twee updates?",
            ),
            Text(
                "Would your gradient change if the epoch were twice as long?",
                "Zou je gradient veranderen als de epoch twee keer zo lang was?",
            ),
            Text(
                "Take the mean over a window, not over an epoch.",
                "Neem het gemiddelde over een venster, niet over een epoch.",
            ),
        ),
        "02_scale_the_loss",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                optimizer.zero_grad()
                for i, batch in enumerate(micro_batches):
                    loss = loss_fn(model, batch) / len(micro_batches)
                    loss.backward()
                    last = i + 1 == len(micro_batches)
                    if (i + 1) % accumulation_steps == 0 or last:
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
)
