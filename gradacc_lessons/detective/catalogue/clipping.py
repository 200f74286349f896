"""Mistakes in clipping the gradient."""

from gradacc_lessons.detective.catalogue.fault import Fault, listing
from gradacc_lessons.text import Text

CLIPPING = (
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
            "update, when it no longer matters, or it is missing, or its threshold is not max_norm but "
            "higher than any gradient here.",
            "De optimizer doet een update met een gradient die langer is dan max_norm. Het clippen komt "
            "na de update, als het niet meer uitmaakt, of het ontbreekt, of de drempel is niet max_norm "
            "maar hoger dan elke gradient hier.",
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
        "max_norm_ignored",
        Text(
            "Clipped at a number of its own",
            "Geclipt op een eigen getal",
        ),
        Text(
            "The gradient is clipped once per window, and the threshold is not the max_norm that was asked for. "
            "The loop uses a number of its own, and is right only where max_norm happens to be that number.",
            "De gradient wordt één keer per venster geclipt, maar de drempel is niet de max_norm waarom is "
            "gevraagd. De lus gebruikt een eigen getal, en klopt alleen als max_norm toevallig dat getal is.",
        ),
        (
            Text(
                "Call your loop with two different values of max_norm. What changes?",
                "Roep je lus aan met twee verschillende waarden van max_norm. Wat verandert er?",
            ),
            Text(
                "Where does the threshold come from?",
                "Waar komt de drempel vandaan?",
            ),
            Text(
                "One of the arguments is never read, or is overwritten.",
                "Eén van de argumenten wordt nooit gelezen, of wordt overschreven.",
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
                    clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
        """),
    ),
)
