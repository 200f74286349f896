"""Writing an item analysis: a page with pictures and tables, and two CSV files."""

import math
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

import pandas as pd

from gradacc_lessons.classroom.answers import named_mistake
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.items import COMMON, FEWEST, LOW, ItemAnalysis
from gradacc_lessons.classroom.items_figure import DESCRIPTION, ItemsFigure
from gradacc_lessons.classroom.page import page, table
from gradacc_lessons.classroom.tables import as_csv
from gradacc_lessons.quiz.feedback import html
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.text import Language, Text
from gradacc_lessons.ui.static import picture_html
from gradacc_lessons.whole_file import write_whole

TITLE = Text("Class {name}: the questions", "Klas {name}: de vragen")
INTRODUCTION = Text(
    "Only first answers count here: the first take of each learner, before any feedback. Of a function that was "
    "written it is the best try.",
    "Alleen eerste antwoorden tellen hier: de eerste poging van elke leerling, vóór alle feedback. Van een functie die "
    "is geschreven telt de beste versie.",
)
MISCONCEPTIONS = Text("Misconceptions of this class", "Misvattingen van deze klas")
NONE = Text(
    "No mistake was made by {share} of those who answered and at least {fewest} learners.",
    "Geen enkele fout werd door {share} van wie antwoordde en minstens {fewest} leerlingen gemaakt.",
)
MISTAKE_HEADING = (
    Text("Lesson", "Les"),
    Text("Question", "Vraag"),
    Text("Mistake", "Fout"),
    Text("In words", "In woorden"),
    Text("Learners", "Leerlingen"),
    Text("Share", "Aandeel"),
)
ITEM_HEADING = (
    Text("Question", "Vraag"),
    Text("Kind", "Soort"),
    Text("Answered", "Beantwoord"),
    Text("Difficulty", "Moeilijkheid"),
    Text("Discrimination", "Onderscheidend vermogen"),
    Text("All right", "Helemaal goed"),
)
KINDS = {
    "choice": Text("choice", "keuze"),
    "multiple": Text("several choices", "meer keuzes"),
    "number": Text("number", "getal"),
    "order": Text("order", "volgorde"),
    "spot": Text("faulty line", "foute regel"),
    "code": Text("function", "functie"),
}
COMMONEST_FIRST = Text("The commonest first", "De meest gemaakte eerst")
MISTAKES, QUESTIONS = Text("Every mistake", "Elke fout"), Text("Every question", "Elke vraag")
EXPLAINED = Text(
    "Difficulty is the mean share of the points. Discrimination is the correlation with the points of the other "
    "questions: below {low} a question tells little about who knows.",
    "Moeilijkheid is het gemiddelde aandeel van de punten. Onderscheidend vermogen is de correlatie met de punten van "
    "de andere vragen: onder {low} zegt een vraag weinig over wie het weet.",
)
InWords = Callable[[str, str, str], Text]
"""(lesson, question, mistake) -> the mistake in words."""


def write_items(of_class: ClassFolder, found: ItemAnalysis, folder: Path, language: Language) -> list[Path]:
    """Write items.html, items.csv, mistakes.csv and the picture of each lesson into `folder`."""
    named, figures = in_words(of_class), drawn(found, language)
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        folder / "items.html": items_page(of_class.name, found, named, language, figures),
        folder / "items.csv": items_csv(found),
        folder / "mistakes.csv": mistakes_csv(found, named, language),
        **{folder / f"items-{lesson}.png": figure.png() for lesson, (figure, _) in figures.items()},
    }
    for file, content in files.items():
        write_whole(file, content)
    return list(files)


def in_words(of_class: ClassFolder) -> InWords:
    """Mistakes in the words of the class's banks; a mistake of another bank is named by its id."""
    banks = {}

    def named(lesson: str, question: str, mistake: str) -> Text:
        if lesson not in banks and lesson in of_class.bank_files:
            banks[lesson] = {each.id: each for each in of_class.bank(lesson)[0].questions}
        asked = banks.get(lesson, {}).get(question)
        return named_mistake(asked, mistake) if asked else Text(mistake, mistake)

    return named


Figures = Mapping[str, tuple[ItemsFigure, str]]
"""By lesson: the picture, and what it says in words."""


def drawn(found: ItemAnalysis, language: Language) -> Figures:
    """The picture of each lesson."""
    figures = {}
    for lesson in found.items["lesson"].unique():
        figure = ItemsFigure(language)
        figures[str(lesson)] = figure, figure.draw(found.of_lesson(lesson).items)
    return figures


def items_page(name: str, found: ItemAnalysis, named: InWords, language: Language, figures: Figures) -> bytes:
    """The page: what the class got wrong together, then each lesson with its picture and tables."""
    parts = [f"<p>{escape(INTRODUCTION.to(language))}</p>", f"<h2>{escape(MISCONCEPTIONS.to(language))}</h2>"]
    common = found.misconceptions()
    if len(common):
        parts.append(_mistake_table(common, named, language, COMMONEST_FIRST))
    else:
        parts.append(f"<p>{escape(_none(language))}</p>")
    for lesson, (figure, sentence) in figures.items():
        part = found.of_lesson(lesson)
        parts += [f"<h2>{escape(lesson)}</h2>", _picture(figure, sentence, language), f"<p>{escape(sentence)}</p>"]
        explained = fill(EXPLAINED, {"low": LOW}).to(language)
        parts += [_item_table(part.items, language), f"<p>{escape(explained)}</p>"]
        if len(part.mistakes):
            parts.append(_mistake_table(part.mistakes, named, language, MISTAKES))
    return page(fill(TITLE, {"name": name}).to(language), language, "\n".join(parts))


def misconceptions(found: ItemAnalysis, named: InWords, language: Language) -> str:
    """The misconceptions of the class as lines of text."""
    lines = [
        f"{row['share']:>4.0%}  {row['lesson']} {row['question']}: "
        f"{named(row['lesson'], row['question'], row['mistake']).to(language)}"
        for _, row in found.misconceptions().iterrows()
    ]
    return "\n".join([MISCONCEPTIONS.to(language), *lines] if lines else [_none(language)])


def _none(language: Language) -> str:
    return fill(NONE, {"share": f"{COMMON:.0%}", "fewest": FEWEST}).to(language)


def _item_table(items: pd.DataFrame, language: Language) -> str:
    rows = [
        [
            escape(row["question"]), escape(_kind(row["kind"], language)), str(row["n"]),
            _decimals(row["difficulty"], language), _decimals(row["discrimination"], language), f"{row['right']:.0%}",
        ]
        for _, row in items.iterrows()
    ]  # fmt: skip
    return table(QUESTIONS.to(language), [each.to(language) for each in ITEM_HEADING], rows, numbers=(2, 3, 4, 5))


def _mistake_table(mistakes: pd.DataFrame, named: InWords, language: Language, caption: Text) -> str:
    rows = [
        [
            escape(row["lesson"]), escape(row["question"]), escape(row["mistake"]),
            html(named(row["lesson"], row["question"], row["mistake"]).to(language)), str(row["count"]),
            f"{row['share']:.0%}",
        ]
        for _, row in mistakes.iterrows()
    ]  # fmt: skip
    return table(caption.to(language), [each.to(language) for each in MISTAKE_HEADING], rows, numbers=(4, 5))


def _kind(kind: str, language: Language) -> str:
    return KINDS[kind].to(language) if kind in KINDS else kind


def _picture(figure: ItemsFigure, sentence: str, language: Language) -> str:
    return picture_html(figure, sentence, DESCRIPTION.to(language))


def _decimals(value: float, language: Language) -> str:
    """Two decimals; nothing for what is not a number."""
    shown = "" if math.isnan(value) else f"{value:.2f}"
    return shown.replace(".", ",") if language == "nl" else shown


def items_csv(found: ItemAnalysis) -> bytes:
    """A row per question."""
    rows = [
        [
            row["lesson"], row["question"], row["kind"], str(row["n"]), f"{row['difficulty']:.4f}",
            _decimals(row["discrimination"], "en"), f"{row['right']:.4f}", row["mistake"],
            f"{row['mistake_share']:.4f}",
        ]
        for _, row in found.items.iterrows()
    ]  # fmt: skip
    return as_csv(list(found.items.columns), rows)


def mistakes_csv(found: ItemAnalysis, named: InWords, language: Language) -> bytes:
    """A row per question and mistake."""
    rows = [
        [
            row["lesson"], row["question"], row["mistake"],
            named(row["lesson"], row["question"], row["mistake"]).to(language), str(row["count"]), str(row["n"]),
            f"{row['share']:.4f}",
        ]
        for _, row in found.mistakes.iterrows()
    ]  # fmt: skip
    return as_csv(["lesson", "question", "mistake", "in words", "count", "n", "share"], rows)
