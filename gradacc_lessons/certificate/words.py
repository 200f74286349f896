"""What certificates say, in both languages."""

from gradacc_lessons.progress import PASS_MARK
from gradacc_lessons.text import Text

COURSE = Text("Gradient accumulation, hands on", "Gradiëntaccumulatie, met je eigen handen")
TITLES = {
    "core": Text("Gradient accumulation: core certificate", "Gradiëntaccumulatie: basiscertificaat"),
    "full": Text("Gradient accumulation: full certificate", "Gradiëntaccumulatie: volledig certificaat"),
    "lessons": Text("Gradient accumulation: certificate", "Gradiëntaccumulatie: certificaat"),
}
DESCRIPTIONS = {
    "core": Text(
        "The core lessons of the course on gradient accumulation with PyTorch: their quizzes and exercises.",
        "De kernlessen van de cursus over gradiëntaccumulatie met PyTorch: de quizzen en oefeningen ervan.",
    ),
    "full": Text(
        "Every lesson of the course on gradient accumulation with PyTorch: its quizzes and exercises.",
        "Alle lessen van de cursus over gradiëntaccumulatie met PyTorch: de quizzen en oefeningen ervan.",
    ),
    "lessons": Text(
        "The lessons listed, of the course on gradient accumulation with PyTorch: their quizzes and exercises.",
        "De genoemde lessen van de cursus over gradiëntaccumulatie met PyTorch: de quizzen en oefeningen ervan.",
    ),
}


def criteria(by_learner: bool) -> Text:
    """What had to be done, and who saw it."""
    mark = f"{PASS_MARK * 100:.0f} %"
    if by_learner:
        return Text(
            f"At least {mark} of the points of each lesson's quiz, in one take. Self-study: graded and signed on the "
            "learner's own computer.",
            f"Minstens {mark} van de punten van de quiz van elke les, in één poging. Zelfstudie: nagekeken en "
            "ondertekend op de computer van de deelnemer zelf.",
        )
    return Text(
        f"At least {mark} of the points of each lesson's quiz, in one take. Class: graded again from the answers "
        "handed in, and signed by the issuer.",
        f"Minstens {mark} van de punten van de quiz van elke les, in één poging. Klas: opnieuw nagekeken vanuit de "
        "ingeleverde antwoorden, en ondertekend door de uitgever.",
    )


def proves(self_issued: bool) -> Text:
    """What the certificate proves and what not."""
    if self_issued:
        return Text(
            "Self-study: the learner issued it, with a key of their own. It proves that nothing was changed since "
            "then, and no more: not who the learner is, nor that nobody helped.",
            "Zelfstudie: de deelnemer heeft het zelf uitgegeven, met een eigen sleutel. Het bewijst dat er sindsdien "
            "niets is veranderd, en meer niet: niet wie de deelnemer is, en niet dat niemand heeft geholpen.",
        )
    return Text(
        "Class: it says that the issuer graded the answers again. It proves that whoever holds the issuer's key "
        "issued it, and that nothing was changed since then. How far that goes is as far as you trust the issuer.",
        "Klas: er staat in dat de uitgever de antwoorden opnieuw heeft nagekeken. Het bewijst dat wie de sleutel van "
        "de uitgever heeft, het heeft uitgegeven, en dat er sindsdien niets is veranderd. Het is zoveel waard als je "
        "de uitgever vertrouwt.",
    )
