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
        "windows_one_too_long_or_short",
        Text(
            "Each window one micro-batch too long or too short",
            "Elk venster één micro-batch te lang of te kort",
        ),
        Text(
            "All full windows have N + 1 or N - 1 micro-batches: your count starts again with each window, and "
            "is wrong by one each time. The effective batch is not the one that was asked for, and the number of "
            "updates is not either.",
            "Alle volle vensters hebben N + 1 of N - 1 micro-batches: je teller begint bij elk venster opnieuw "
            "en zit er elke keer één naast. De effectieve batch is niet die waarom is gevraagd, en het aantal "
            "updates ook niet.",
        ),
        (
            Text(
                "How many micro-batches go into the first update, and how many into the second?",
                "Hoeveel micro-batches gaan er in de eerste update, en hoeveel in de tweede?",
            ),
            Text(
                "Take N = 2 and follow your counter from one update to the next.",
                "Neem N = 2 en volg je teller van de ene update naar de volgende.",
            ),
            Text(
                "Compare the counter with N before and after it goes up: more than, or as many as?",
                "Vergelijk de teller met N voor en na het ophogen: meer dan, of evenveel als?",
            ),
        ),
        "01_accumulate",
        "windows",
        listing("""
            def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):
                waiting = 0
                for batch in micro_batches:
                    loss = loss_fn(model, batch) / accumulation_steps
                    loss.backward()
                    waiting += 1
                    if waiting > accumulation_steps:
                        optimizer.step()
                        optimizer.zero_grad()
                        waiting = 0
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
)
