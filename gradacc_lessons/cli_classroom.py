"""The commands of `gradacc` for classes: what a learner hands in, and what a teacher does with it."""

from pathlib import Path

import click

from gradacc_lessons.cli_output import LANGUAGE, UserPath, counting, in_words, say
from gradacc_lessons.text import Language, Text, counted

CLASS = click.option(
    "--class",
    "folder_of_class",
    type=UserPath(file_okay=False),
    default=".",
    help="The folder of the class; without it, the one you are in.",
)


@click.command()
@click.option("--to", type=UserPath(dir_okay=False), help="The file to write.")
def submit(to: Path | None) -> None:
    """Write the file that you hand in to your teacher.

    It is plain JSON: your answers, the functions that you wrote, and versions. What is in it is said first.

    Example:  gradacc submit --to my-work.json
    """
    from gradacc_lessons.classroom import handing_in
    from gradacc_lessons.progress import learner_progress

    with in_words() as answer_in:
        hand_in = handing_in.gather(learner_progress())
        say(hand_in.described().to(answer_in))
        say(str(handing_in.write(hand_in, to)))


@click.group("class")
def classroom() -> None:
    """A class: join one, or make one and grade it.

    Example:  gradacc class new autumn --roster roster.csv
    """


@classroom.command("join")
@click.argument("code")
def join(code: str) -> None:
    """Join your teacher's class, before you take its quizzes: the class has numbers of its own for you.

    Example:  gradacc class join k7m2qd-abcde-fghij-klmno-pqrst-uvwxy-z23
    """
    from gradacc_lessons.classroom import handing_in
    from gradacc_lessons.progress import learner_progress

    with in_words() as answer_in:
        joined = handing_in.join(learner_progress(), code)
        said = Text(
            f"You are in class {joined.class_id}. Quizzes that you begin from now on count for it.",
            f"Je zit in klas {joined.class_id}. Quizzen waar je vanaf nu aan begint, tellen mee voor deze klas.",
        )
        say(said.to(answer_in))


@classroom.command("new")
@click.argument("folder", type=UserPath(), metavar="NAME")
@click.option(
    "--roster",
    type=UserPath(exists=True, dir_okay=False),
    required=True,
    help="A CSV with a column id and, if you like, name and email.",
)
@click.option(
    "--bank",
    type=UserPath(exists=True, file_okay=False),
    help="A folder with banks of your own, in place of the course's; they are copied.",
)
@LANGUAGE
def new(folder: Path, roster: Path, bank: Path | None, language: Language | None) -> None:
    """Make a class in a new folder: its keys, and a class code for every learner.

    Example:  gradacc class new autumn --roster roster.csv
    """
    from gradacc_lessons.classroom.class_folder import new_class

    with in_words(language) as answer_in:
        made = new_class(folder, roster, bank)
        count, codes, keys = len(made.learners), folder / "codes.csv", (folder / "class.key", folder / "teacher.pem")
        said = Text(
            f"Class {made.name} ({made.id}) has {counted(count, 'learner')}.\n"
            f"Give each of them their own code from {codes}: gradacc class join CODE\n"
            f"Keep {keys[0]} and {keys[1]} to yourself, and a copy of both in a safe place.",
            f"Klas {made.name} ({made.id}) heeft {count} leerling{'' if count == 1 else 'en'}.\n"
            f"Geef ieder de eigen code uit {codes}: gradacc class join CODE\n"
            f"Houd {keys[0]} en {keys[1]} voor jezelf, en bewaar een kopie van beide op een veilige plek.",
        )
        say(said.to(answer_in))


@classroom.command("codes")
@CLASS
@click.option("--show", is_flag=True, help="Print them as well.")
@LANGUAGE
def codes(folder_of_class: Path, show: bool, language: Language | None) -> None:
    """Write codes.csv for the roster as it is now: add learners to roster.csv first.

    Example:  gradacc class codes --class autumn --show
    """
    from gradacc_lessons.classroom.class_folder import open_class

    with in_words(language) as answer_in:
        opened = open_class(folder_of_class)
        written = opened.write_codes()
        if show:
            for learner in opened.learners.values():
                say(f"{learner.id}  {opened.codes[learner.id].text}  {learner.name}")
        count = len(opened.learners)
        say(Text(f"{written} has {counted(count, 'code')}.", f"Codes in {written}: {count}.").to(answer_in))


@classroom.command("grade")
@click.argument("folder", type=UserPath(exists=True, file_okay=False))
@CLASS
@click.option("--to", type=UserPath(file_okay=False), help="Write the results to this folder.")
@click.option("--jobs", type=click.IntRange(min=1), help="How many processes grade at once; one per core without it.")
@click.option("--unsafe", is_flag=True, help="Where there is no sandbox: run learners' code all the same, as you.")
@LANGUAGE
def grade(
    folder: Path,
    folder_of_class: Path,
    to: Path | None,
    jobs: int | None,
    unsafe: bool,
    language: Language | None,
) -> None:
    """Grade every file in FOLDER from its answers; learners' code runs in a sandbox only.

    Interrupted, the same command goes on where it stopped. The results are in results/results.jsonl of the class.

    Example:  gradacc class grade downloads --class autumn
    """
    from gradacc_lessons.classroom import grade_words as words
    from gradacc_lessons.classroom.class_folder import open_class
    from gradacc_lessons.classroom.grade_folder import grade_folder

    with in_words(language) as answer_in:
        opened = open_class(folder_of_class)
        with counting(Text("Grading", "Nakijken"), answer_in) as tell:
            done = grade_folder(opened, folder, unsafe=unsafe, jobs=jobs, to=to, tell=tell)
        say(words.summary(done).to(answer_in))
