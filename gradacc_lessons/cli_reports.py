"""The commands of `gradacc class` for what comes after grading, and `gradacc slides`."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from gradacc_lessons.cli_classroom import CLASS
from gradacc_lessons.cli_classroom import classroom as classroom
from gradacc_lessons.cli_output import LANGUAGE, UserPath, counting, in_words, say
from gradacc_lessons.text import Language, Text, counted

TO = click.option("--to", type=UserPath(file_okay=False), help="Write here; without it, in the class's results.")


@classroom.command("report")
@CLASS
@TO
@click.option("--solutions", is_flag=True, help="Show right answers as well, below those that were not right.")
@LANGUAGE
def report(folder_of_class: Path, to: Path | None, solutions: bool, language: Language | None) -> None:
    """Write the gradebooks for Canvas and Moodle, and a page for each learner.

    A page holds the learner's answers, what was said to them and where to read again; right answers only with
    --solutions. index.html is yours.

    Example:  gradacc class report --class autumn --language nl
    """
    from gradacc_lessons.classroom.class_folder import open_class
    from gradacc_lessons.classroom.grade_words import about_code
    from gradacc_lessons.classroom.gradebook import write_gradebooks
    from gradacc_lessons.classroom.report import Reporter
    from gradacc_lessons.classroom.results import read_results

    with in_words(language) as answer_in:
        opened = open_class(folder_of_class)
        results, place = _results(opened.results, folder_of_class), to or opened.results
        for file in write_gradebooks(opened, read_results(results), place):
            say(str(file))
        pages = Reporter(opened, answer_in, solutions).write(read_results(results), place / "reports")
        beside = len(pages) - 1
        pages_at = Text(f"{pages[0]}, and {counted(beside, 'page')} beside it", f"{pages[0]}, met {beside} ernaast")
        for text in (pages_at, *about_code(read_results(results))):
            say(text.to(answer_in))


@classroom.command("items")
@CLASS
@TO
@LANGUAGE
def items(folder_of_class: Path, to: Path | None, language: Language | None) -> None:
    """Look at the questions: how hard, how telling, and which mistakes this class shares.

    Writes items.html, items.csv, mistakes.csv and a picture of each lesson, and prints what the class gets wrong.

    Example:  gradacc class items --class autumn
    """
    with in_words(language) as answer_in:
        from gradacc_lessons.classroom import items_page
        from gradacc_lessons.classroom.class_folder import open_class
        from gradacc_lessons.classroom.items import analyse, first_answers
        from gradacc_lessons.classroom.results import read_results

        opened = open_class(folder_of_class)
        found = analyse(first_answers(read_results(_results(opened.results, folder_of_class))))
        say(items_page.misconceptions(found, items_page.in_words(opened), answer_in))
        for file in items_page.write_items(opened, found, to or opened.results, answer_in):
            say(str(file))


def _results(folder: Path, folder_of_class: Path) -> Path:
    from gradacc_lessons.classroom.problem import ClassError
    from gradacc_lessons.classroom.results import RESULTS_NAME

    file, first = folder / RESULTS_NAME, f"`gradacc class grade FOLDER --class {folder_of_class}`"
    if not file.exists():
        raise ClassError(
            "not_graded",
            f"{file} is not there yet: grade first, with {first}",
            f"{file} is er nog niet: kijk eerst na, met {first}",
        )
    return file


@classroom.command("certify")
@CLASS
@click.option("--as", "issuer_name", required=True, metavar="NAME", help="Who issues them, as it is to stand there.")
@TO
@click.option("--valid-until", type=click.DateTime(["%Y-%m-%d"]), help="The day on which they expire, at 0:00 UTC.")
@LANGUAGE
def certify(
    folder_of_class: Path, issuer_name: str, to: Path | None, valid_until: datetime | None, language: Language | None
) -> None:
    """Issue certificates, signed with the class's key, to those whose graded answers earn one.

    The full certificate where every lesson was passed, the core certificate where lessons 00 to 05 and 07 were. Each
    is four files, named by the learner's id. What was issued before stays as it is. The exit code is 1 if somebody
    has earned one that could not be issued; the answer says why.

    Example:  gradacc class certify --class autumn --as "Class 5V, Hill School"
    """
    from gradacc_lessons.certificate.problem import need_extra

    with in_words(language) as answer_in:
        need_extra()
        from gradacc_lessons.classroom import certify_words as words
        from gradacc_lessons.classroom.certify import Certifier, summarised
        from gradacc_lessons.classroom.class_folder import open_class
        from gradacc_lessons.classroom.grade_words import about_code
        from gradacc_lessons.classroom.results import read_results

        opened, ends = open_class(folder_of_class), valid_until.replace(tzinfo=UTC) if valid_until else None
        results, place = _results(opened.results, folder_of_class), (to or opened.results) / "certificates"
        certifier = Certifier(opened, issuer_name, place, answer_in, ends)
        with counting(Text("Issuing", "Uitgeven"), answer_in) as tell:
            outcomes = certifier.certify(read_results(results), tell)
        where = words.written(str(place)), words.signed_with(certifier.key.did)
        for text in (*summarised(outcomes), *about_code(read_results(results)), *where):
            say(text.to(answer_in))
    sys.exit(1 if any(each.done == "held" for each in outcomes) else 0)


@classroom.command("export")
@click.argument("lessons", nargs=-1, metavar="[LESSON]...")
@click.option("--format", "kind", type=click.Choice(["moodle-xml", "qti12"]), required=True, help="For which system.")
@click.option("--class", "folder_of_class", type=UserPath(file_okay=False), help="A class's banks.")
@click.option("--bank", type=UserPath(file_okay=False, exists=True), help="Banks of your own.")
@click.option("--to", type=UserPath(file_okay=False), default=".", help="Write here.")
@click.option("--sets", type=click.IntRange(1, 50), default=5, show_default=True, help="Sets of numbers a question.")
@LANGUAGE
def export(
    lessons: tuple[str, ...],
    kind: str,
    folder_of_class: Path | None,
    bank: Path | None,
    to: Path,
    sets: int,
    language: Language | None,
) -> None:
    """Write question banks for a learning management system: Moodle XML, or QTI 1.2 for Canvas.

    All lessons if none is named. What a system cannot ask, code and predictions, is left out and named.

    Example:  gradacc class export 01 02 --format moodle-xml --language nl --to banks
    """
    from gradacc_lessons.classroom.lms.export import bank_files, export_banks

    with in_words(language) as answer_in:
        files = bank_files(lessons, folder_of_class, bank)
        for done in export_banks(files, kind, answer_in, to, sets):  # type: ignore[arg-type]  # one of the choices
            say(done.text().to(answer_in))


@classroom.command("demo")
@click.argument("folder", type=UserPath(), metavar="NAME")
@click.option("--learners", type=click.IntRange(12, 5000), default=300, show_default=True)
@click.option(
    "--lesson", "lessons", multiple=True, help="A lesson they take; without it, those of a class of 90 minutes."
)
@LANGUAGE
def demo(folder: Path, learners: int, lessons: tuple[str, ...], language: Language | None) -> None:
    """Make a class that does not exist, grade it, and see its misconceptions found.

    Every learner holds known misconceptions and hands in a file as `gradacc submit` writes it. The class stays in the
    folder NAME, to try the other commands on. The exit code is 1 if what was planted is not exactly what is found.

    Example:  gradacc class demo try-out --learners 60
    """
    with in_words(language) as answer_in:
        from gradacc_lessons.classroom.demonstration import demonstrate, lesson_names

        with counting(Text("Answering and grading", "Antwoorden en nakijken"), answer_in) as tell:
            shown = demonstrate(folder, learners, lesson_names(lessons), tell=tell)
        say(shown.text().to(answer_in))
    sys.exit(0 if shown.exact else 1)


@click.command("slides")
@click.argument("lesson")
@click.option("--to", type=UserPath(dir_okay=False), help="The file to write.")
@click.option(
    "--reveal",
    type=UserPath(file_okay=False),
    help="A folder with reveal.js, to put into the file: it then needs no internet.",
)
@LANGUAGE
def slides(lesson: str, to: Path | None, reveal: Path | None, language: Language | None) -> None:
    """Make a lecture of a lesson: slides for a browser, with the teacher's notes as speaker notes (key S).

    Without reveal.js in the file the browser loads it from the internet. With npm you get a copy by
    `npm install reveal.js@5`, which is found without --reveal where it was run.

    Example:  gradacc slides 01 --to lecture.html
    """
    with in_words(language) as answer_in:
        from gradacc_lessons.authoring.slides import write_slides

        made = write_slides(lesson, to, reveal)
        say(made.text().to(answer_in))
