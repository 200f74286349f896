"""Mistakes in the short last window of an epoch."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

TAILS = (
    Fault(
        "tail_dropped",
        Text("The short last window is dropped", "Het korte laatste venster valt weg"),
        Text(
            "The epoch does not divide into full windows, and the micro-batches that are left over never "
            "reach an update. With an epoch shorter than one window the model does not train at all.",
            "De epoch is niet in volle vensters te verdelen, en de micro-batches die overblijven komen nooit "
            "in een update. Is de epoch korter dan één venster, dan traint het model helemaal niet.",
        ),
        (
            Text(
                "Take 10 micro-batches and N = 4. Which ones are used?",
                "Neem 10 micro-batches en N = 4. Welke worden er gebruikt?",
            ),
            Text(
                "The updates per epoch are rounded. Up or down?",
                "De updates per epoch worden afgerond. Naar boven of naar beneden?",
            ),
            Text(
                "The end of the epoch also ends a window.",
                "Het eind van de epoch is ook het eind van een venster.",
            ),
        ),
        "04_uneven_windows",
        "tail",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    if len(window) < accumulation_steps:
                        break
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                    optimizer.step()
        """),
    ),
    Fault(
        "tail_leaks",
        Text(
            "The short last window leaks into the next epoch",
            "Het korte laatste venster lekt naar de volgende epoch",
        ),
        Text(
            "The micro-batches left over at the end of the epoch stay in .grad without an update. The first "
            "update of the next epoch then applies them as well, on top of its own window.",
            "De micro-batches die aan het eind van de epoch overblijven, blijven zonder update in .grad "
            "staan. De eerste update van de volgende epoch past ze alsnog toe, boven op zijn eigen venster.",
        ),
        (
            Text("What is in .grad when an epoch ends?", "Wat staat er in .grad als een epoch eindigt?"),
            Text(
                "Take 10 micro-batches and N = 4, and follow the last two into the second epoch.",
                "Neem 10 micro-batches en N = 4, en volg de laatste twee tot in de tweede epoch.",
            ),
            Text(
                "The last micro-batch of an epoch ends a window, full or not.",
                "De laatste micro-batch van een epoch sluit een venster af, vol of niet.",
            ),
        ),
        "04_uneven_windows",
        "tail",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for i, batch in enumerate(micro_batches):
                    loss = loss_fn(model, batch) / accumulation_steps
                    loss.backward()
                    if (i + 1) % accumulation_steps == 0:
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
    Fault(
        "tail_underscaled",
        Text("The short last window is divided by N", "Het korte laatste venster wordt door N gedeeld"),
        Text(
            "The last window has fewer micro-batches than N and is divided by N all the same. Its update is "
            "too short, by the part of the window that is missing.",
            "Het laatste venster heeft minder micro-batches dan N en wordt toch door N gedeeld. De update is "
            "te kort, precies zoveel als er aan het venster ontbreekt.",
        ),
        (
            Text(
                "How many micro-batches are in the last window?",
                "Hoeveel micro-batches zitten er in het laatste venster?",
            ),
            Text(
                "Compare the last update with the others: what share of a full one is it?",
                "Vergelijk de laatste update met de andere: welk deel van een volle is het?",
            ),
            Text(
                "The divisor is the length of this window, not the length you configured.",
                "De deler is de lengte van dit venster, niet de lengte die je hebt ingesteld.",
            ),
        ),
        "04_uneven_windows",
        "tail",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                optimizer.zero_grad()
                for i, batch in enumerate(micro_batches):
                    loss = loss_fn(model, batch) / accumulation_steps
                    loss.backward()
                    last = i + 1 == len(micro_batches)
                    if (i + 1) % accumulation_steps == 0 or last:
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
    Fault(
        "tail_unscaled",
        Text(
            "Only the short last window is not divided",
            "Alleen het korte laatste venster wordt niet gedeeld",
        ),
        Text(
            "Full windows take a mean, and the micro-batches that are left over are only added up. The last "
            "update of the epoch is as many times too long as micro-batches were left over.",
            "Volle vensters nemen een gemiddelde, en de micro-batches die overblijven worden alleen opgeteld. De "
            "laatste update van de epoch is zoveel keer te lang als er micro-batches overbleven.",
        ),
        (
            Text(
                "Compare the last update of an epoch with the others. Which one is longer?",
                "Vergelijk de laatste update van een epoch met de andere. Welke is langer?",
            ),
            Text(
                "Which line handles what is left over, and what does it leave out?",
                "Welke regel behandelt wat er overblijft, en wat laat die weg?",
            ),
            Text(
                "A short window needs a mean too, over its own length.",
                "Een kort venster heeft ook een gemiddelde nodig, over zijn eigen lengte.",
            ),
        ),
        "04_uneven_windows",
        "tail",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                full = len(micro_batches) // accumulation_steps * accumulation_steps
                optimizer.zero_grad()
                for i, batch in enumerate(micro_batches[:full]):
                    loss = loss_fn(model, batch) / accumulation_steps
                    loss.backward()
                    if (i + 1) % accumulation_steps == 0:
                        optimizer.step()
                        optimizer.zero_grad()
                for batch in micro_batches[full:]:
                    loss_fn(model, batch).backward()
                if full < len(micro_batches):
                    optimizer.step()
        """),
    ),
    Fault(
        "tail_updated_differently",
        Text(
            "The last update misses what the others get",
            "De laatste update mist wat de andere krijgen",
        ),
        Text(
            "The update of the short last window leaves out something that full windows get: clipping, or the "
            "schedule. It is an update like any other.",
            "De update van het korte laatste venster slaat iets over wat volle vensters wel krijgen: het "
            "clippen, of het schema. Het is een update als alle andere.",
        ),
        (
            Text(
                "Which lines run for a full window, and which for what is left over?",
                "Welke regels draaien voor een vol venster, en welke voor wat er overblijft?",
            ),
            Text(
                "Put the two pieces of code that update side by side and compare them.",
                "Leg de twee stukken code die een update doen naast elkaar en vergelijk ze.",
            ),
            Text(
                "What belongs to an update stands together, in one place.",
                "Wat bij een update hoort staat bij elkaar, op één plek.",
            ),
        ),
        "07_once_per_window",
        "tail",
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
                    if len(window) == accumulation_steps:
                        clip_grad_norm_(model.parameters(), max_norm)
                    optimizer.step()
        """),
    ),
)
