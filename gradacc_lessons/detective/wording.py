"""The sentences of a diagnosis that do not belong to a fault of the catalogue."""

from typing import Any

from gradacc_lessons.text import Language, Text


def say(name: str, **values: Any) -> Text:
    """The sentence `name` with its values filled in; values that are Texts, in each language."""
    return filled(SENTENCES[name], **values)


def filled(text: Text, **values: Any) -> Text:
    """`text` with its values filled in; values that are Texts, in each language."""

    def spoken(language: Language) -> str:
        words = {key: value.to(language) if isinstance(value, Text) else value for key, value in values.items()}
        return text.to(language).format(**words)

    return Text(en=spoken("en"), nl=spoken("nl"))


SENTENCES: dict[str, Text] = {
    "correct": Text(
        "This loop does what it should: every update uses the mean gradient of its whole window.",
        "Deze lus doet wat hij moet doen: elke update gebruikt de gemiddelde gradient van zijn hele venster.",
    ),
    "correct_windows": Text(
        "Tried with full windows and micro-batches of equal size.",
        "Geprobeerd met volle vensters en micro-batches van gelijke grootte.",
    ),
    "correct_tail": Text(
        "Tried with a short last window too, and with micro-batches of equal size.",
        "Ook geprobeerd met een kort laatste venster, en met micro-batches van gelijke grootte.",
    ),
    "correct_items": Text(
        "Tried with a short last window and with micro-batches of different size too.",
        "Ook geprobeerd met een kort laatste venster en met micro-batches van verschillende grootte.",
    ),
    "not_attempted": Text(
        "Nothing to check yet: the function raises NotImplementedError. Write its body and try again.",
        "Nog niets te controleren: de functie geeft NotImplementedError. Schrijf de inhoud en probeer het opnieuw.",
    ),
    "not_callable": Text(
        "This is not a function that can be called, but {kind}. Pass the function itself, without brackets.",
        "Dit is geen functie die je kunt aanroepen, maar {kind}. Geef de functie zelf mee, zonder haakjes.",
    ),
    "lazy": Text(
        "Calling this function does not run it, because it contains yield or is declared async. "
        "train_epoch has to train when it is called.",
        "Deze functie aanroepen voert hem niet uit, want er staat yield in of hij is async. "
        "train_epoch moet trainen als hij wordt aangeroepen.",
    ),
    "signature": Text(
        "This function cannot be called as train_epoch(model, optimizer, micro_batches, loss_fn, "
        "accumulation_steps). It needs these five parameters, in this order; beside them only count, "
        "max_norm and scheduler are passed.",
        "Deze functie is niet aan te roepen als train_epoch(model, optimizer, micro_batches, loss_fn, "
        "accumulation_steps). Hij heeft deze vijf parameters nodig, in deze volgorde; daarnaast worden "
        "alleen count, max_norm en scheduler meegegeven.",
    ),
    "not_portable": Text(
        "This function cannot be sent to the process that checks it ({error}). It refers to something that "
        "exists only here, such as an open file, a lock or a running thread. Make it use its own arguments "
        "alone.",
        "Deze functie kan niet naar het proces dat hem controleert ({error}). Hij verwijst naar iets wat "
        "alleen hier bestaat, zoals een open bestand, een lock of een lopende thread. Gebruik alleen de "
        "eigen argumenten.",
    ),
    "not_received": Text(
        "The function could not be set up in the process that checks it: {error}.",
        "De functie kon niet worden klaargezet in het proces dat hem controleert: {error}.",
    ),
    "not_in_file": Text(
        "{file} does not hold this function. Has the file changed since the function was found?",
        "Deze functie staat niet in {file}. Is het bestand veranderd sinds de functie is gevonden?",
    ),
    "raised": Text("The loop stops with {error}{place}.", "De lus stopt met {error}{place}."),
    "misuse": Text(
        "loss_fn is called with the model and a micro-batch, loss_fn(model, batch), and gives the mean loss{place}.",
        "loss_fn roep je aan met het model en een micro-batch, loss_fn(model, batch); je krijgt de gemiddelde "
        "loss{place}.",
    ),
    "place": Text(" (line {line}{code})", " (regel {line}{code})"),
    "memory": Text(
        "The loop asks for more memory than the {limit} MB that a check may take. Does something grow without end?",
        "De lus vraagt meer geheugen dan de {limit} MB die een controle mag gebruiken. Groeit er iets zonder einde?",
    ),
    "time": Text(
        "The loop did not come back within {limit:g} seconds and was stopped. Does it wait for something, or "
        "repeat without an end?",
        "De lus kwam niet terug binnen {limit:g} seconden en is gestopt. Wacht hij ergens op, of herhaalt "
        "hij zonder einde?",
    ),
    "output": Text(
        "The loop prints too much: more than {limit} kB. It was stopped there.",
        "De lus print te veel: meer dan {limit} kB. Daar is hij gestopt.",
    ),
    "exit": Text(
        "The loop ends the whole program instead of returning (sys.exit, exit or quit).",
        "De lus beëindigt het hele programma in plaats van terug te keren (sys.exit, exit of quit).",
    ),
    "gone": Text(
        "The process that ran the loop ended without an answer (exit code {code}), as os._exit or a crash in "
        "compiled code does.",
        "Het proces waarin de lus draaide stopte zonder antwoord (exitcode {code}), zoals bij os._exit of "
        "een crash in gecompileerde code.",
    ),
    "killed": Text(
        "The process that ran the loop was ended by signal {signal}.",
        "Het proces waarin de lus draaide is beëindigd door signaal {signal}.",
    ),
    "unreadable": Text(
        "The process that ran the loop gave no readable answer.",
        "Het proces waarin de lus draaide gaf geen leesbaar antwoord.",
    ),
    "no_worker": Text(
        "The process that checks loops does not work: {error}. If your loop ends other processes, that is "
        "the reason; otherwise `gradacc doctor` looks at the installation.",
        "Het proces dat lussen controleert werkt niet: {error}. Als je lus andere processen beëindigt, ligt "
        "het daaraan; anders bekijkt `gradacc doctor` de installatie.",
    ),
    "no_forward": Text(
        "The function returns without a single forward: it trains nothing.",
        "De functie keert terug zonder één forward: er wordt niets getraind.",
    ),
    "copy_trained": Text(
        "The model that the loop is given is never trained: the forwards go through a copy of it.",
        "Het model dat de lus krijgt wordt nooit getraind: de forwards gaan door een kopie ervan.",
    ),
    "no_backward": Text(
        "Losses are computed and none goes backward, so there is no gradient and nothing is trained.",
        "Er worden losses berekend en geen enkele gaat backward, dus er is geen gradient en er wordt niets getraind.",
    ),
    "no_update": Text(
        "Gradients are computed and the optimizer never updates: the model stays as it was.",
        "Er worden gradients berekend en de optimizer doet nooit een update: het model blijft zoals het was.",
    ),
    "own_optimizer": Text(
        "The loop updates with an optimizer of its own. The one it is given knows the learning rate, the "
        "momentum and their history; use that one.",
        "De lus doet updates met een eigen optimizer. De optimizer die hij meekrijgt kent de learning rate, "
        "het momentum en de geschiedenis; gebruik die.",
    ),
    "no_optimizer": Text(
        "The parameters change without optimizer.step(). The optimizer that is given may be any kind; leave "
        "the update to it.",
        "De parameters veranderen zonder optimizer.step(). De optimizer die je krijgt kan elke soort zijn; "
        "laat de update aan hem over.",
    ),
    "learning_rate": Text(
        "The loop changes the learning rate: {wanted:g} was given, and update {update} runs with "
        "{found:.3g}. The rate belongs to whoever calls the loop.",
        "De lus verandert de learning rate: {wanted:g} was opgegeven, en update {update} gebruikt "
        "{found:.3g}. De learning rate is aan wie de lus aanroept.",
    ),
    "data_changed": Text(
        "The loop changes the micro-batches it is given, so the next epoch trains on other data.",
        "De lus verandert de micro-batches die hij krijgt, dus de volgende epoch traint op andere data.",
    ),
    "list_changed": Text(
        "The loop changes the list of micro-batches it is given, so the next epoch gets another list.",
        "De lus verandert de lijst met micro-batches die hij krijgt, dus de volgende epoch krijgt een andere lijst.",
    ),
    "fault": Text("{title}. {message}", "{title}. {message}"),
    "also": Text("There is a second mistake: {line}", "Er is een tweede fout: {line}"),
    "another": Text("There is another mistake: {line}", "Er is nog een fout: {line}"),
    "ambiguous": Text(
        "There is more that is wrong, and it can only be told apart once this is repaired.",
        "Er is nog meer mis, en dat is pas te onderscheiden als dit is hersteld.",
    ),
    "more": Text(
        "In {where} something else differs, and the catalogue does not know it.",
        "In {where} wijkt er nog iets af, en dat kent de catalogus niet.",
    ),
    "unknown": Text(
        "The loop is wrong in a way that the catalogue does not know. Measured in {where}:",
        "De lus is fout op een manier die de catalogus niet kent. Gemeten in {where}:",
    ),
    "several": Text(
        "The loop is wrong, and several mistakes of the catalogue explain that equally well. Measured in {where}:",
        "De lus is fout, en meerdere fouten uit de catalogus verklaren dat even goed. Gemeten in {where}:",
    ),
    "unknown_beside": Text(
        "The gradient is wrong too, in a way that the catalogue does not know. Measured in {where}:",
        "De gradient is ook fout, op een manier die de catalogus niet kent. Gemeten in {where}:",
    ),
    "several_beside": Text(
        "The gradient is wrong too, and several mistakes of the catalogue explain that equally well. "
        "Measured in {where}:",
        "De gradient is ook fout, en meerdere fouten uit de catalogus verklaren dat even goed. Gemeten in {where}:",
    ),
    "right_gradient": Text(
        "The gradient of every update is right; only the memory is not what it could be.",
        "De gradient van elke update klopt; alleen het geheugen is niet wat het zou kunnen zijn.",
    ),
    "updates": Text(
        "it makes {made} updates in two epochs where {wanted} belong.",
        "hij doet {made} updates in twee epochs waar er {wanted} horen.",
    ),
    "ratio": Text(
        "update {update} of epoch {epoch} is {ratio:.5g} times as long as it should be, in the right direction.",
        "update {update} van epoch {epoch} is {ratio:.5g} keer zo lang als hij hoort te zijn, in de juiste richting.",
    ),
    "nothing": Text(
        "update {update} of epoch {epoch} applies nothing at all.",
        "update {update} van epoch {epoch} past helemaal niets toe.",
    ),
    "opposite": Text(
        "update {update} of epoch {epoch} points the opposite way.",
        "update {update} van epoch {epoch} wijst precies de andere kant op.",
    ),
    "direction": Text(
        "update {update} of epoch {epoch} points another way (cosine {cosine:.2f} with the right one).",
        "update {update} van epoch {epoch} wijst een andere kant op (cosinus {cosine:.2f} met de juiste).",
    ),
    "skipped": Text(
        "micro-batch {micro_batch} of the epoch does not count in update {update}.",
        "micro-batch {micro_batch} van de epoch telt niet mee in update {update}.",
    ),
    "weight": Text(
        "micro-batch {micro_batch} of the epoch counts {ratio:.3g} times as much as it should in update {update}.",
        "micro-batch {micro_batch} van de epoch telt in update {update} {ratio:.3g} keer zo zwaar als hij hoort.",
    ),
    "foreign": Text(
        "micro-batch {micro_batch} of the epoch counts in update {update}, where it does not belong.",
        "micro-batch {micro_batch} van de epoch telt mee in update {update}, waar hij niet hoort.",
    ),
    "parameters": Text(
        "the parameters at the end of the epochs differ.",
        "de parameters aan het eind van de epochs wijken af.",
    ),
}

PLACES: dict[str, Text] = {
    "windows": Text("full windows of equal micro-batches", "volle vensters met gelijke micro-batches"),
    "momentum": Text("SGD with momentum and N = 2", "SGD met momentum en N = 2"),
    "adam": Text("Adam and N = 3", "Adam en N = 3"),
    "clip": Text("gradients large enough to be clipped", "gradients die groot genoeg zijn om te clippen"),
    "large gradients": Text("large gradients", "grote gradients"),
    "schedule": Text("a learning rate schedule", "een schema voor de learning rate"),
    "tail": Text("a short last window", "een kort laatste venster"),
    "short epoch": Text("an epoch shorter than one window", "een epoch korter dan één venster"),
    "clip the tail": Text("a short last window that is clipped", "een kort laatste venster dat wordt geclipt"),
    "schedule the tail": Text(
        "a short last window under a learning rate schedule", "een kort laatste venster met een schema"
    ),
    "items": Text("micro-batches of different size", "micro-batches van verschillende grootte"),
    "counted": Text("labels that do not all count", "labels die niet allemaal meetellen"),
    "trace of windows": Text("full windows of equal micro-batches", "volle vensters met gelijke micro-batches"),
    "trace of the tail": Text("a short last window", "een kort laatste venster"),
    "trace of items": Text("micro-batches of different size", "micro-batches van verschillende grootte"),
}
"""Where something was measured, by scenario."""
