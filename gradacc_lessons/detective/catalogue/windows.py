"""Mistakes in where a window begins and ends."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

WINDOWS = (
    Fault(
        "window_off_by_one",
        Text("Windows shifted by one", "Vensters één plaats verschoven"),
        Text(
            "The test for the end of a window is true one micro-batch too early or too late. The first "
            "window is longer or shorter than the others, all windows after it are shifted, and at the end "
            "of the epoch micro-batches are left over.",
            "De test voor het eind van een venster is één micro-batch te vroeg of te laat waar. Het eerste "
            "venster is langer of korter dan de andere, alle vensters erna zijn verschoven, en aan het eind "
            "van de epoch blijven er micro-batches over.",
        ),
        (
            Text(
                "How many micro-batches go into the first update?",
                "Hoeveel micro-batches gaan er in de eerste update?",
            ),
            Text(
                "Which value does your counter start with? Try your test with that value.",
                "Met welke waarde begint je teller? Probeer je test eens met die waarde.",
            ),
            Text(
                "Ask how many micro-batches you have seen, not which index you are at.",
                "Vraag hoeveel micro-batches je hebt gezien, niet bij welke index je bent.",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                for i, batch in enumerate(micro_batches):
                    loss = loss_fn(model, batch) / accumulation_steps
                    loss.backward()
                    if i % accumulation_steps == 0:
                        optimizer.step()
                        optimizer.zero_grad()
        """),
    ),
    Fault(
        "one_update_per_epoch",
        Text("One update for the whole epoch", "Eén update voor de hele epoch"),
        Text(
            "The optimizer updates once, when the epoch ends. All micro-batches of the epoch meet in that one "
            "update, so the effective batch is the whole data set and N decides nothing about it.",
            "De optimizer doet één update, aan het eind van de epoch. Alle micro-batches van de epoch komen in "
            "die ene update samen, dus de effectieve batch is de hele dataset en N gaat daar niet meer over.",
        ),
        (
            Text(
                "Count the updates in one epoch. How many should there be?",
                "Tel de updates in één epoch. Hoeveel zouden het er moeten zijn?",
            ),
            Text(
                "Take 8 micro-batches and N = 4. After which ones does an update belong?",
                "Neem 8 micro-batches en N = 4. Na welke hoort een update?",
            ),
            Text(
                "Look at the indentation of optimizer.step(), and at the question that decides about it.",
                "Kijk hoe ver optimizer.step() is ingesprongen, en welke vraag erover beslist.",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                optimizer.zero_grad()
                for batch in micro_batches:
                    loss = loss_fn(model, batch) / accumulation_steps
                    loss.backward()
                optimizer.step()
        """),
    ),
    Fault(
        "accumulation_steps_ignored",
        Text("A fixed number of accumulation steps", "Een vast aantal accumulatiestappen"),
        Text(
            "The windows have the same length whatever N is asked for. The loop uses a number of its own, and is "
            "right only where N happens to be that number.",
            "De vensters zijn even lang, welke N er ook wordt gevraagd. De lus gebruikt een eigen getal, en klopt "
            "alleen als N toevallig dat getal is.",
        ),
        (
            Text(
                "Try your loop with two different values of N.", "Probeer je lus met twee verschillende waarden van N."
            ),
            Text(
                "Where does the loop get the length of a window from?",
                "Waar haalt de lus de lengte van een venster vandaan?",
            ),
            Text(
                "One of the five arguments is never read, or is overwritten.",
                "Eén van de vijf argumenten wordt nooit gelezen, of wordt overschreven.",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                accumulation_steps = 4
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
        "stops_after_first_window",
        Text("Returns after the first window", "Stopt na het eerste venster"),
        Text(
            "The function returns as soon as its first window is done. The rest of the epoch is never looked at.",
            "De functie stopt zodra het eerste venster klaar is. De rest van de epoch wordt niet bekeken.",
        ),
        (
            Text("How many micro-batches does one epoch use?", "Hoeveel micro-batches gebruikt één epoch?"),
            Text("Which statement can end a loop early?", "Welke opdracht kan een lus voortijdig beëindigen?"),
            Text("Look at how far the last line is indented.", "Kijk hoe ver de laatste regel is ingesprongen."),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                total = 0.0
                for start in range(0, len(micro_batches), accumulation_steps):
                    window = micro_batches[start : start + accumulation_steps]
                    examples = sum(len(batch[0]) for batch in window)
                    optimizer.zero_grad()
                    for batch in window:
                        loss = loss_fn(model, batch) * len(batch[0]) / examples
                        loss.backward()
                        total += loss.item()
                    optimizer.step()
                    return total
        """),
    ),
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
)
