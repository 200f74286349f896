"""The words of a tape: findings, questions and the report."""

from collections.abc import Iterable, Sequence
from typing import Any

from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.detective.tape.said import OWN, SAID
from gradacc_lessons.detective.tape.view import Finding
from gradacc_lessons.detective.tape.windows import Window
from gradacc_lessons.detective.wording import filled
from gradacc_lessons.text import Text, joined

QUESTIONS: dict[str, Text] = {
    "no_backward": Text(
        "No backward reached the parameters of this model. Is it the model that the loop trains?",
        "Geen backward heeft de parameters van dit model bereikt. Is het wel het model dat de lus traint?",
    ),
    "no_update": Text(
        "No torch optimizer with this model's parameters has updated. What makes the updates?",
        "Geen torch-optimizer met de parameters van dit model heeft een update gedaan. Wat doet de updates?",
    ),
    "by_hand": Text(
        "The parameters are written without a torch optimizer, so the tape cannot tell where an update is.",
        "De parameters worden zonder torch-optimizer beschreven, dus de tape weet niet waar een update is.",
    ),
    "accumulation_steps": Text(
        "How many micro-batches should a window have? They have {lengths}. Give accumulation_steps=N to have that "
        "checked.",
        "Hoeveel micro-batches hoort een venster te hebben? Het zijn er {lengths}. Geef accumulation_steps=N om dat "
        "te laten controleren.",
    ),
    "epoch": Text(
        "Where does an epoch end? At the end of the tape {left} micro-batch(es) have no update. Give "
        "micro_batches_per_epoch to learn whether the end of an epoch is dropped, or leaks into the next.",
        "Waar eindigt een epoch? Aan het eind van de tape hebben {left} micro-batch(es) geen update. Geef "
        "micro_batches_per_epoch om te weten of het eind van een epoch wegvalt, of in de volgende lekt.",
    ),
    "epoch_short": Text(
        "Where does an epoch end? Give micro_batches_per_epoch to have the windows at its end checked.",
        "Waar eindigt een epoch? Geef micro_batches_per_epoch om de vensters aan het eind te laten controleren.",
    ),
    "not_run": Text(
        "Were these whole epochs? {ran} micro-batches ran, and an epoch was said to have {length}. If they were, the "
        "last {left} of each were never run.",
        "Waren dit hele epochs? Er draaiden {ran} micro-batches, en een epoch heeft er {length}, zo is gezegd. Als het "
        "hele waren, zijn de laatste {left} van elke epoch nooit gedraaid.",
    ),
    "no_forward": Text(
        "Neither the model nor a direct part of it was called, so there are no items: only backwards are seen.",
        "Het model is niet aangeroepen, en een direct onderdeel ook niet. Er zijn dus geen items: alleen de backwards "
        "zijn gezien.",
    ),
    "count": Text(
        "Items are the rows of a micro-batch here. If tokens count, give count=, which gets what the model is called "
        "with.",
        "Items zijn hier de rijen van een micro-batch. Als tokens tellen, geef dan count=; die krijgt waarmee het "
        "model wordt aangeroepen.",
    ),
    "undivided": Text(
        "Did the model divide its losses by the items of the whole window? They went backward as it returned them. If "
        "it returns the mean of a micro-batch, each has to be divided by N.",
        "Heeft het model zijn losses door de items van het hele venster gedeeld? Ze gingen backward zoals het ze "
        "teruggaf. Als dat het gemiddelde van een micro-batch is, moet elke loss nog door N.",
    ),
    "elsewhere": Text(
        "The loop puts gradients into .grad itself, in window {window} for one, so the tape cannot tell which "
        "micro-batches are in them; diagnose() can.",
        "De lus zet zelf gradients in .grad, bijvoorbeeld in venster {window}. De tape weet dus niet welke "
        "micro-batches erin zitten; diagnose() wel.",
    ),
    "before": Text(
        "There were gradients when the tape began, so the first update may apply more than the tape saw. Begin the "
        "tape before the first micro-batch.",
        "Er waren al gradients toen de tape begon, dus de eerste update past misschien meer toe dan de tape zag. "
        "Begin de tape voor de eerste micro-batch.",
    ),
    "lost": Text(
        "Were the {lost} micro-batches before window {window} meant to be thrown away? They were zeroed and no update "
        "applied them. A GradScaler does that with gradients that are not finite.",
        "Was het de bedoeling dat de {lost} micro-batches voor venster {window} wegvallen? Ze zijn op nul gezet en "
        "geen update past ze toe. Een GradScaler doet dat met gradients die niet eindig zijn.",
    ),
    "scaler": Text(
        "Was the gradient of window {window} unscaled and clipped? It was divided by {divisor:.6g} at once. Give "
        "scaler= to have both told apart.",
        "Is de gradient van venster {window} teruggeschaald en geclipt? Hij is in één keer door {divisor:.6g} gedeeld. "
        "Geef scaler= om die twee te onderscheiden.",
    ),
    "scale": Text(
        "By what were the losses of the short window of update {update} divided? The model does not return its loss, "
        "so the tape cannot see it. It should be {length}, or the items of that window; diagnose() can measure it.",
        "Waardoor zijn de losses van het korte venster van update {update} gedeeld? Het model geeft zijn loss niet "
        "terug, dus de tape ziet het niet. Het hoort {length} te zijn, of de items van dat venster; diagnose() kan "
        "het meten.",
    ),
}
"""What the tape asks for."""

REPORT: dict[str, Text] = {
    "counts": Text(
        "{micro_batches} micro-batches, {updates} updates. Micro-batches per update: {lengths}.",
        "{micro_batches} micro-batches, {updates} updates. Micro-batches per update: {lengths}.",
    ),
    "skipped": Text(
        "Skipped, as a gradient was not finite: {count}.", "Overgeslagen omdat een gradient niet eindig was: {count}."
    ),
    "fine": Text("Nothing wrong was found.", "Er is niets verkeerds gevonden."),
    "findings": Text("Found:", "Gevonden:"),
    "questions": Text("To know more:", "Om meer te weten:"),
    "finding": Text("- {title}. {said} (lesson {lesson})", "- {title}. {said} (les {lesson})"),
    "question": Text("- {said}", "- {said}"),
    "title": Text("{title}.", "{title}."),
    "none": Text("none", "geen"),
}


LANES: dict[str, Text] = {
    "forward": Text("forward", "forward"),
    "backward": Text("backward", "backward"),
    "unscale": Text("unscale", "terugschalen"),
    "clip": Text("clip", "clippen"),
    "gradient": Text("gradient written", "gradient beschreven"),
    "update": Text("update", "update"),
    "schedule": Text("schedule", "schema"),
    "zero_grad": Text("zero_grad", "zero_grad"),
    "parameters": Text("parameters written", "parameters beschreven"),
    "buffers": Text("buffers", "buffers"),
    "watched": Text("frozen, watched", "bevroren, bekeken"),
    "all_reduce": Text("all-reduce", "all-reduce"),
    "evaluation": Text("forward, no graph", "forward zonder graaf"),
}
"""The names of the lanes."""

PICTURE: dict[str, Text] = {
    "axis": Text("micro-batch", "micro-batch"),
    "title": Text("What the loop does, window by window", "Wat de lus doet, venster voor venster"),
    "beginning": Text(
        "What the loop does: the first {first} of {ran} micro-batches",
        "Wat de lus doet: de eerste {first} van {ran} micro-batches",
    ),
    "updated": Text("update {number} applies {count}", "update {number} past er {count} toe"),
    "skipped": Text("skipped", "overgeslagen"),
    "open": Text("no update", "geen update"),
}
"""The words of the picture."""


def found(name: str, windows: Iterable[Window], **values: Any) -> Finding:
    """The finding `name` with what was seen in `windows`."""
    title, lesson = (FAULTS[name].title, FAULTS[name].lesson) if name in FAULTS else OWN[name]
    return Finding(name, title, filled(SAID[name], **values), lesson, tuple(window.number for window in windows))


def ask(name: str, **values: Any) -> Text:
    """The question `name`."""
    return filled(QUESTIONS[name], **values)


def numbers(values: Sequence[int], most: int = 12) -> str:
    """4, 4, 2, and ... where there are many."""
    return ", ".join(map(str, values[:most])) + (", …" if len(values) > most else "")


def names(values: Sequence[str], most: int = 5) -> str:
    """Some names, and how many there are beside them."""
    return ", ".join(values[:most]) + (f", … (+{len(values) - most})" if len(values) > most else "")


def counts(windows: Sequence[Window]) -> Text:
    """How many micro-batches and updates there were."""
    updated = [len(window.fresh) for window in windows if window.outcome == "updated"]
    ran = {number for window in windows for number in (*window.fresh, *window.lost)}
    lengths = numbers(updated) or REPORT["none"]
    return filled(REPORT["counts"], micro_batches=len(ran), updates=len(updated), lengths=lengths)


def sentence(windows: Sequence[Window], findings: Sequence[Finding]) -> Text:
    """The picture in words."""
    titles = [filled(REPORT["title"], title=finding.title) for finding in findings]
    return joined([counts(windows), *titles])


def report(windows: Sequence[Window], findings: Sequence[Finding], questions: Sequence[Text]) -> Text:
    """The whole tape in words."""
    lines = [counts(windows)]
    if skipped := sum(window.outcome == "skipped" for window in windows):
        lines.append(filled(REPORT["skipped"], count=skipped))
    if findings or any(window.of("backward") for window in windows):
        lines.append(REPORT["findings" if findings else "fine"])
    for one in findings:
        lines.append(filled(REPORT["finding"], title=one.title, said=one.said, lesson=one.lesson))
    if questions:
        lines += [REPORT["questions"], *(filled(REPORT["question"], said=question) for question in questions)]
    return joined(lines, "\n")
