"""The commands of `gradacc` for classes: what a learner hands in, and what a teacher does with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from gradacc_lessons.cli_output import one_sentence, say
from gradacc_lessons.text import Language, Text

CLASS = click.option(
    "--class",
    "folder_of_class",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="The folder of the class; without it, the one you are in.",
)


@contextmanager
def _in_words(language: Language) -> Iterator[None]:
    """A problem in a class is one sentence, in this language."""
    from gradacc_lessons.classroom.problem import ClassError

    with one_sentence():
        try:
            yield
        except ClassError as problem:
            raise ValueError(problem.text.to(language)) from problem


@click.command()
@click.option("--to", type=click.Path(path_type=Path, dir_okay=False), help="The file to write.")
def submit(to: Path | None) -> None:
    """Write the file that you hand in to your teacher.

    It is plain JSON: your answers, the functions that you wrote, and versions. What is in it is said first.

    Example:  gradacc submit --to my-work.json
    """
    from gradacc_lessons.classroom import handing_in
    from gradacc_lessons.progress import learner_progress

    progress = learner_progress()
    with _in_words(progress.language):
        hand_in = handing_in.gather(progress)
        say(hand_in.described().to(progress.language))
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

    progress = learner_progress()
    with _in_words(progress.language):
        joined = handing_in.join(progress, code)
        said = Text(
            f"You are in class {joined.class_id}. Quizzes that you begin from now on count for it.",
            f"Je zit in klas {joined.class_id}. Quizzen die je vanaf nu begint, tellen daarvoor mee.",
        )
        say(said.to(progress.language))


@classroom.command("new")
@click.argument("folder", type=click.Path(path_type=Path), metavar="NAME")
@click.option(
    "--roster",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    help="A CSV with a column id and, if you like, name and email.",
)
@click.option(
    "--bank",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with banks of your own, in place of the course's; they are copied.",
)
def new(folder: Path, roster: Path, bank: Path | None) -> None:
    """Make a class in a new folder: its keys, and a class code for every learner.

    Example:  gradacc class new autumn --roster roster.csv
    """
    from gradacc_lessons.classroom.class_folder import new_class

    with one_sentence():
        made = new_class(folder, roster, bank)
    say(f"Class {made.name} ({made.id}) has {len(made.learners)} learners.")
    say(f"Give each of them their own code from {folder / 'codes.csv'}: gradacc class join CODE")
    say(f"Keep {folder / 'class.key'} and {folder / 'teacher.pem'} to yourself, and a copy of both in a safe place.")


@classroom.command("codes")
@CLASS
@click.option("--show", is_flag=True, help="Print them as well.")
def codes(folder_of_class: Path, show: bool) -> None:
    """Write codes.csv for the roster as it is now: add learners to roster.csv first.

    Example:  gradacc class codes --class autumn --show
    """
    from gradacc_lessons.classroom.class_folder import open_class

    with one_sentence():
        opened = open_class(folder_of_class)
        written = opened.write_codes()
    if show:
        for learner in opened.learners.values():
            say(f"{learner.id}  {opened.codes[learner.id].text}  {learner.name}")
    say(f"{len(opened.learners)} codes are in {written}")


@classroom.command("grade")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@CLASS
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="Write the results to this folder.")
@click.option("--jobs", type=click.IntRange(min=1), help="How many processes grade at once; one per core without it.")
@click.option("--unsafe", is_flag=True, help="Where there is no sandbox: run learners' code all the same, as you.")
def grade(folder: Path, folder_of_class: Path, to: Path | None, jobs: int | None, unsafe: bool) -> None:
    """Grade every file in FOLDER from its answers; learners' code runs in a sandbox only.

    Interrupted, the same command goes on where it stopped. The results are in results/results.jsonl of the class.

    Example:  gradacc class grade downloads --class autumn
    """
    from gradacc_lessons.classroom.class_folder import open_class
    from gradacc_lessons.classroom.grade_folder import grade_folder

    with one_sentence():
        opened = open_class(folder_of_class)
        with click.progressbar(length=0, label="Grading", show_pos=True) as bar:

            def tell(done: int, total: int) -> None:
                bar.length = total
                bar.update(done - bar.pos)

            summary = grade_folder(opened, folder, unsafe=unsafe, jobs=jobs, to=to, tell=tell)
    if summary.resumed:
        say(f"{summary.resumed} files had been graded before the interruption.")
    say(", ".join(f"{count} {status}" for status, count in sorted(summary.counts.items())) or "There was no file.")
    if summary.code == "refused":
        say(f"Code was not run, and counts for nothing: {summary.why_no_sandbox}.")
    if summary.code == "unsafe":
        say(f"Code was run WITHOUT a sandbox: {summary.why_no_sandbox}.")
    say(f"The results are in {summary.file}")
