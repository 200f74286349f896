"""What certificates say, in both languages."""

from datetime import datetime
from typing import TYPE_CHECKING

from gradacc_lessons.progress import PASS_MARK
from gradacc_lessons.text import Text, counted

if TYPE_CHECKING:
    from gradacc_lessons.certificate.credential import Credential

COURSE = Text("Gradient accumulation, hands on", "Gradiëntaccumulatie in de praktijk")
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


def trusted(name: str) -> Text:
    """The answer where the user trusts the issuer, under a name of their own unless they named its key just now."""
    named = f": {name}" if name else ""
    return Text(
        f"✔ Unchanged, valid, and issued with a key that you trust{named}.",
        f"✔ Onveranderd, geldig, en uitgegeven met een sleutel die je vertrouwt{named}.",
    )


def unknown(credential: "Credential", *, named: bool) -> Text:
    """The answer where the user does not."""
    if named:
        return Text(
            "? Unchanged since issue, but not issued with the key that you named.",
            "? Onveranderd sinds de uitgifte, maar niet uitgegeven met de sleutel die je noemde.",
        )
    return Text(
        "? Unchanged since issue, issuer unknown. Anybody can make a key and call it what they like. Do you know from "
        f"elsewhere whose key this is? `gradacc certificate trust {credential.issuer} --name NAME` remembers it.",
        "? Onveranderd sinds de uitgifte, uitgever onbekend. Iedereen kan een sleutel maken en die noemen zoals hij "
        f"wil. Weet je uit een andere bron van wie deze sleutel is? "
        f"`gradacc certificate trust {credential.issuer} --name NAAM` onthoudt het.",
    )


def contents(credential: "Credential") -> Text:
    """What a certificate says, to read in a terminal."""
    width = max(len(lesson.name) for lesson in credential.lessons)
    lessons = "\n".join(f"  {each.name:<{width}}  {each.percent:>3} %  {each.title}" for each in credential.lessons)
    day, until = f"{credential.valid_from:%Y-%m-%d}", credential.valid_until
    en = f"{day}, valid until {until:%Y-%m-%d %H:%M} UTC" if until else day
    nl = f"{day}, geldig tot {until:%Y-%m-%d %H:%M} UTC" if until else day
    return Text(
        f"\nname     {credential.name}\npassed   {credential.title}\n{lessons}\nissued   {en}\n"
        f"issuer   calls itself {credential.issuer_name}\nkey      {credential.issuer}\nid       {credential.id}\n",
        f"\nnaam     {credential.name}\ngehaald  {credential.title}\n{lessons}\ndatum    {nl}\n"
        f"uitgever noemt zich {credential.issuer_name}\nsleutel  {credential.issuer}\nid       {credential.id}\n",
    )


HEADINGS = {
    "core": Text("Core certificate", "Basiscertificaat"),
    "full": Text("Full certificate", "Volledig certificaat"),
    "lessons": Text("Certificate", "Certificaat"),
}
IN_PANEL = Text("four micro-batches, one update", "vier micro-batches, één update")
MONTHS = [
    Text("January", "januari"),
    Text("February", "februari"),
    Text("March", "maart"),
    Text("April", "april"),
    Text("May", "mei"),
    Text("June", "juni"),
    Text("July", "juli"),
    Text("August", "augustus"),
    Text("September", "september"),
    Text("October", "oktober"),
    Text("November", "november"),
    Text("December", "december"),
]


def awarded(credential: "Credential") -> str:
    """What stands above the name."""
    return Text("for", "voor").to(credential.language)


def passed(credential: "Credential") -> str:
    """What stands above the lessons."""
    mark = f"{PASS_MARK * 100:.0f} %"
    return Text(
        f"who has passed these lessons, with at least {mark} of the points of each quiz:",
        f"die deze lessen heeft gehaald, met minstens {mark} van de punten van elke quiz:",
    ).to(credential.language)


def day(at: datetime) -> Text:
    """A day, written out."""
    month = MONTHS[at.month - 1]
    return Text(f"{at.day} {month.en} {at.year}", f"{at.day} {month.nl} {at.year}")


def facts(credential: "Credential") -> list[tuple[str, str]]:
    """What stands below the lessons: a label, and its value."""
    to = credential.language
    by = Text("the learner (self-study)", "de deelnemer zelf (zelfstudie)").to(to)
    rows = [
        (Text("issued on", "uitgegeven op").to(to), day(credential.valid_from).to(to)),
        (Text("issued by", "uitgegeven door").to(to), by if credential.self_issued else credential.issuer_name),
    ]
    if credential.valid_until is not None:
        rows.append((Text("valid until", "geldig tot").to(to), day(credential.valid_until).to(to)))
    return rows


def code_caption(only_id: bool) -> Text:
    """What stands below the QR code."""
    if only_id:
        return Text("The code holds the id\nof this certificate.", "In de code staat de id\nvan dit certificaat.")
    return Text(
        "The code is the certificate:\ngradacc verify reads it, offline.",
        "De code is het certificaat:\ngradacc verify leest hem, zonder netwerk.",
    )


NO_SHAPING = Text(
    "The matplotlib that is installed here cannot write from right to left, so the name on the picture is not as it "
    "should be; matplotlib 3.11 can. The certificate itself has the name right.",
    "De matplotlib die hier staat kan niet van rechts naar links schrijven, dus de naam op de afbeelding staat er niet "
    "goed op; matplotlib 3.11 kan dat wel. In het certificaat zelf staat de naam goed.",
)


def no_font(lacking: str) -> Text:
    """Characters that the picture shows boxes for."""
    return Text(
        f"No font on this computer has {lacking}, so the picture shows boxes there. The certificate itself has the "
        "name right.",
        f"Geen lettertype op deze computer heeft {lacking}, dus op de afbeelding staan daar hokjes. In het certificaat "
        "zelf staat de naam goed.",
    )


NO_LIST = Text(
    "Whether it has been revoked, only its issuer's list can say: --revoked FILE.",
    "Of het is ingetrokken, kan alleen de lijst van de uitgever zeggen: --revoked BESTAND.",
)
NOBODY = Text("You have not named an issuer that you trust.", "Je hebt nog geen uitgever genoemd die je vertrouwt.")
WHO = Text(
    'Say who it is, in your own words: --name "Class 5V".', 'Zeg in je eigen woorden wie het is: --name "Klas 5V".'
)
WHICH = Text(
    "Say which key; `gradacc certificate trust` alone lists those that you trust.",
    "Zeg welke sleutel; alleen `gradacc certificate trust` toont de sleutels die je vertrouwt.",
)
FORGOTTEN = Text("That key is trusted no longer.", "Die sleutel wordt niet meer vertrouwd.")
NOT_KNOWN = Text("That key was not trusted.", "Die sleutel werd niet vertrouwd.")


def remembered(name: str) -> Text:
    """A key was added to the keyring."""
    return Text(
        f"Remembered: certificates of {name} are trusted.", f"Onthouden: certificaten van {name} worden vertrouwd."
    )


def revoked(count: int, file: str) -> Text:
    """A list of revocations was written."""
    held = "staat nu 1 certificaat" if count == 1 else f"staan nu {count} certificaten"
    use = f"gradacc verify … --revoked {file}"
    return Text(
        f"{file} now holds {counted(count, 'certificate')}. Give it to those who verify: {use}",
        f"In {file} {held}. Geef de lijst aan wie controleert: {use}",
    )
