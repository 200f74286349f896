"""What the quiz itself says, around the texts of the banks."""

from gradacc_lessons.text import Text

RIGHT = Text("✓ Right.", "✓ Goed.")
WRONG = Text("✗ Not right.", "✗ Niet goed.")
PARTLY = Text("◐ Partly right: {share}.", "◐ Gedeeltelijk goed: {share}.")
NO_ANSWER = Text("○ Not an answer yet.", "○ Nog geen antwoord.")
NOTED = Text("○ Noted.", "○ Genoteerd.")
PRACTICE = Text(
    "Your first answer is the one that counts; this one is practice.",
    "Je eerste antwoord telt; dit is om te oefenen.",
)
NEW_QUESTION = Text(
    "This question is new since you began; it counts the next time you take the quiz.",
    "Deze vraag is nieuw sinds je begon; hij telt mee als je de quiz opnieuw doet.",
)
COMMITTED = Text(
    "You predict {predicted}. Now look below. Until it is measured you can still change it.",
    "Je voorspelt {predicted}. Kijk nu hieronder. Tot het gemeten is kun je het nog veranderen.",
)
TOO_LATE = Text(
    "It has been measured, so your prediction stays {predicted}.",
    "Het is al gemeten, dus je voorspelling blijft {predicted}.",
)
TOO_SMALL = Text(
    "It cannot be less than {bound}: predict another number.",
    "Kleiner dan {bound} kan het niet zijn: voorspel een ander getal.",
)
TOO_LARGE = Text(
    "It cannot be more than {bound}: predict another number.",
    "Groter dan {bound} kan het niet zijn: voorspel een ander getal.",
)
NO_PREDICTION = Text(
    "Predict first, above; then run this cell again and read what was measured.",
    "Voorspel eerst, hierboven; voer deze cel dan opnieuw uit en lees wat er gemeten is.",
)
HINT = Text("Hint {number} of {total}: {hint}", "Hint {number} van {total}: {hint}")
NO_HINT = Text("There is no hint for this question.", "Bij deze vraag is er geen hint.")
ANSWER_FIRST = Text(
    "Answer the question first; its solution is shown after that.",
    "Beantwoord eerst de vraag; daarna zie je de oplossing.",
)
SOLUTION = Text("Solution: {solution}", "Oplossing: {solution}")
SOLUTION_CODE = Text(
    "One way to write it. Yours may look quite different and be as right.",
    "Eén manier om het te schrijven. De jouwe mag er heel anders uitzien en net zo goed zijn.",
)
MEASURED_DECIDES = Text(
    "There is no solution to look up: the run decides.", "Er is geen oplossing om op te zoeken: de run beslist."
)
LINE = Text("line {lines}", "regel {lines}")
OR = Text("or", "of")

OUT_OF_PLACE = Text(
    "The first that is out of place is number {place}: {name}.",
    "De eerste die niet op zijn plaats staat, is nummer {place}: {name}.",
)
AT_TWO_PLACES = Text(
    "This stands at {first} and at {second}: {name}. Give each a place of its own.",
    "Dit staat op {first} én op {second}: {name}. Geef elk een eigen plaats.",
)
WITHOUT_A_PLACE = Text(
    "This has no place yet: {name}. Give each a place.", "Dit heeft nog geen plaats: {name}. Geef elk een plaats."
)

RESULT = Text(
    "{points} of {of} points ({share}); {mark} passes.", "{points} van {of} punten ({share}); {mark} is voldoende."
)
NOTHING_COUNTS = Text("Nothing here counts towards a result.", "Niets hiervan telt mee voor een resultaat.")
PASSED = Text("✓ Passed.", "✓ Gehaald.")
NOT_YET = Text("✗ Not passed yet.", "✗ Nog niet gehaald.")
SO_FAR = Text(
    "{points} of {of} points so far; {open} of {questions} questions still open.",
    "Tot nu toe {points} van {of} punten; nog {open} van {questions} vragen open.",
)
BEST = Text("Your best take: {share}.", "Je beste poging: {share}.")
PREDICTED = Text("{made} of {asked} predictions made.", "{made} van {asked} voorspellingen gedaan.")
REREAD = Text("Read again: {sections}.", "Lees nog eens: {sections}.")

QUESTION_OF = Text("Question {number} of {total}", "Vraag {number} van {total}")
STATE_RIGHT = Text("answered: right", "beantwoord: goed")
STATE_WRONG = Text("answered: not right", "beantwoord: niet goed")
STATE_PARTLY = Text("answered: partly right", "beantwoord: gedeeltelijk goed")
STATE_OPEN = Text("not answered yet", "nog niet beantwoord")
STATE_COMMITTED = Text("prediction made: {predicted}", "voorspelling gedaan: {predicted}")
STATE_MEASURED = Text(
    "you predicted {predicted}, measured: {measured}", "jij voorspelde {predicted}, gemeten: {measured}"
)
PICK_ONE = Text("Pick one:", "Kies er één:")
PICK_ALL = Text("More than one can be right:", "Er kan meer dan één goed zijn:")
YOUR_NUMBER = Text("Your answer:", "Jouw antwoord:")
NUMBER_IN = Text("Your answer, in {unit}:", "Jouw antwoord, in {unit}:")
FAULTY_LINE = Text("The faulty line:", "De foute regel:")
CHOOSE_LINE = Text("choose a line", "kies een regel")
LINE_NUMBER = Text("line {line}: {code}", "regel {line}: {code}")
IN_ORDER = Text(
    "Put these in order. By keyboard, the space bar opens a list.",
    "Zet deze op volgorde. Met het toetsenbord opent de spatiebalk een lijst.",
)
PLACE_OF = Text("Place {place} of {total}:", "Plaats {place} van {total}:")
CHOOSE_ITEM = Text("choose one", "kies er één")
ONE_ORDER = Text("one right order: {order}", "één goede volgorde: {order}")
LISTING = Text("Listing with line numbers", "Listing met regelnummers")
WRITE_IN_CELL = Text(
    "Write it in a cell of this notebook, run the cell, then come back and check. Begin with:",
    "Schrijf hem in een cel van dit notebook, voer de cel uit, kom dan terug en laat hem nakijken. Begin met:",
)
TRY_FREELY = Text(
    "You may try as often as you like: nothing is lost, and your best try counts.",
    "Je mag het zo vaak proberen als je wilt: er gaat niets verloren, en je beste poging telt.",
)
NO_FUNCTION = Text(
    "There is no function {name} in this notebook yet. Write it in a cell, run the cell, then check again.",
    "Er is nog geen functie {name} in dit notebook. Schrijf hem in een cel, voer de cel uit en laat hem dan nakijken.",
)
PICK_FIRST = Text("Give an answer first.", "Geef eerst een antwoord.")
ANSWER = Text("Answer", "Antwoord")
PREDICT = Text("Predict", "Voorspel")
CHECK = Text("Check {name}", "Kijk {name} na")
ASK_HINT = Text("Hint", "Hint")
ASK_SOLUTION = Text("Solution", "Oplossing")
PREVIOUS = Text("Previous", "Vorige")
NEXT = Text("Next", "Volgende")
TO_RESULT = Text("Result", "Resultaat")
RETAKE = Text("Take it again", "Doe hem opnieuw")
RETAKE_NOTE = Text(
    "Taking it again draws new numbers and another order. Your best take counts.",
    "Als je hem opnieuw doet, krijg je andere getallen en een andere volgorde. Je beste poging telt.",
)
CHECKING = Text("Checking …", "Aan het nakijken …")
WENT_WRONG = Text(
    "Something went wrong in the quiz itself ({error}). Your earlier answers are kept; run the cell again.",
    "Er ging iets mis in de quiz zelf ({error}). Je eerdere antwoorden zijn bewaard; voer de cel opnieuw uit.",
)
TYPED = Text("Your answer (? hint, n next, q stop):", "Jouw antwoord (? hint, n volgende, q stoppen):")
TYPE_ONE = Text("Type the number of your choice.", "Typ het nummer van je keuze.")
TYPE_SEVERAL = Text(
    "Type the numbers of all that you choose, as in: 1 3", "Typ de nummers van alles wat je kiest, bijvoorbeeld: 1 3"
)
TYPE_ORDER = Text(
    "Type all numbers from first to last, as in: 2 1 3", "Typ alle nummers op volgorde, bijvoorbeeld: 2 1 3"
)
NO_SUCH_NUMBER = Text("The numbers here are 1 to {last}.", "De nummers hier zijn 1 tot en met {last}.")
TYPE_LINE = Text("Type the number of the line.", "Typ het nummer van de regel.")
TYPE_NUMBER = Text("Type the number.", "Typ het getal.")
TYPE_CODE = Text(
    "Write {name} in your file, then press Enter to have it checked; s shows a solution.",
    "Schrijf {name} in je bestand en druk op Enter om hem te laten nakijken; s toont een oplossing.",
)
NO_FILE = Text(
    "Write {name} in a file and take the quiz with --code FILE; type n to go on without it.",
    "Schrijf {name} in een bestand en doe de quiz met --code BESTAND; typ n om zonder verder te gaan.",
)
AFTER_WRONG = Text("Enter goes on, s shows the solution:", "Enter gaat verder, s toont de oplossing:")
AGAIN = Text("Take it again, with other numbers? (y/n)", "Nog een keer, met andere getallen? (j/n)")
STOPPED = Text(
    "Stopped. What you answered is kept; the same command goes on from there.",
    "Gestopt. Wat je hebt beantwoord is bewaard; hetzelfde commando gaat daar verder.",
)
REVIEWED = Text("Reviewed: {done} of {total}, {right} right.", "Herhaald: {done} van {total}, {right} goed.")
NOTHING_DUE = Text("Nothing is due for review today.", "Er is vandaag niets om te herhalen.")
NEXT_DUE = Text("Come back on {day}.", "Kom terug op {day}.")
OUTSIDE = Text(
    "Answer with quiz.answer(question, value). The questions:",
    "Antwoord met quiz.answer(vraag, waarde). De vragen:",
)
