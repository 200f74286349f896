"""What reports say, around the words of the banks."""

from gradacc_lessons.text import Text

TITLE = Text("{name}: how your answers were graded", "{name}: hoe je antwoorden zijn nagekeken")
CLASS = Text("Class {name}.", "Klas {name}.")
FILE = Text(
    "File {file}, written {written} (UTC, by the clock of the computer that wrote it).",
    "Bestand {file}, geschreven op {written} (UTC, volgens de klok van de computer die het schreef).",
)
NO_FILE = Text("No file was graded for you.", "Er is van jou geen bestand nagekeken.")
NOT_GRADED = Text("The file {file} was not graded. {reason}", "Het bestand {file} is niet nagekeken. {reason}")
COPIED = Text(
    "It holds the same work as another file, which is graded.",
    "Er staat hetzelfde werk in als in een ander bestand, en dat is nagekeken.",
)
NOTHING = Text("There are no answers in it.", "Er staan geen antwoorden in.")
BY_LESSON = Text("By lesson", "Per les")
HEADING = (
    Text("Lesson", "Les"),
    Text("Take that counts", "Poging die telt"),
    Text("Points", "Punten"),
    Text("Share", "Aandeel"),
    Text("Result", "Resultaat"),
)
POINTS = Text("{points} of {of}", "{points} van {of}")
YOUR_ANSWER = Text("Your answer", "Jouw antwoord")
SAID = Text("Feedback", "Feedback")
REREAD = Text("Read again", "Lees nog eens")
SOLUTION = Text("Solution", "Oplossing")
QUESTION = Text("Question {number} of {total}: {verdict} {points}", "Vraag {number} van {total}: {verdict} {points}")
FUNCTION = Text(
    "the function that you handed in (SHA-256 {digest})", "de functie die je hebt ingeleverd (SHA-256 {digest})"
)
OTHER_BANK = Text(
    "The questions have changed since this was graded: texts here may differ from what was asked.",
    "De vragen zijn veranderd sinds dit is nagekeken: teksten hier kunnen verschillen van wat er gevraagd is.",
)
GONE = Text(
    "This quiz is not in the class any more; only its result is known.",
    "Deze quiz zit niet meer in de klas; alleen het resultaat is bekend.",
)
OVERVIEW = Text("Class {name}: reports", "Klas {name}: rapporten")
LEARNERS = Text("Learners", "Leerlingen")
OVERVIEW_HEADING = (
    Text("Learner", "Leerling"),
    Text("File", "Bestand"),
    Text("Notes for the teacher", "Opmerkingen voor de docent"),
)
OTHER_FILES = Text("Other files", "Andere bestanden")
FILES_HEADING = (Text("File", "Bestand"), Text("Status", "Status"), Text("Reason", "Reden"))
STATUS = {
    "graded": Text("graded", "nagekeken"),
    "refused": Text("refused", "geweigerd"),
    "superseded": Text("superseded", "vervangen"),
    "copied": Text("copied", "gekopieerd"),
}
NONE = Text("none", "geen")
