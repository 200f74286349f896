"""The commands of `gradacc` for learners' quizzes and progress."""

import sys
from pathlib import Path

import click

from gradacc_lessons.cli_output import LANGUAGE, UserPath, one_sentence, report, say
from gradacc_lessons.text import LANGUAGES, Language

BANK = click.option(
    "--bank",
    "folder",
    type=UserPath(file_okay=False, exists=True),
    help="A folder with banks of your own; without it, the course's.",
)


class Lessons(click.Group):
    """A group in which whatever is no command is a lesson."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click's own question: which command do these arguments begin with?"""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            return "take", self.commands["take"], args
        return super().resolve_command(ctx, args)


@click.group(cls=Lessons, subcommand_metavar="LESSON | COMMAND ...")
def quiz() -> None:
    """Take a quiz in the terminal, or look after the question banks.

    LESSON is a lesson's name or number. What you answer here counts like what you answer in the notebook, and the
    other way round. Options come after the lesson: gradacc quiz take --help lists them.

    Example:  gradacc quiz 01 --language nl
    """


@quiz.command("take")
@click.argument("lesson")
@click.option("--code", type=UserPath(dir_okay=False), help="The file with the functions you write.")
@click.option("--again", is_flag=True, help="Begin anew, with other numbers; your best take counts.")
@click.option("--review", is_flag=True, help="Only what you missed and what is due to come back today.")
@BANK
@click.option("--language", type=click.Choice(LANGUAGES), help="From now on, in notebooks too: en or nl.")
def take(
    lesson: str, code: Path | None, again: bool, review: bool, folder: Path | None, language: Language | None
) -> None:
    """Take the quiz of a lesson, where you stopped.

    Example:  gradacc quiz take 01 --code my_loop.py
    """
    with one_sentence():
        if again and review:
            raise ValueError("--again begins anew and --review brings back what was missed: choose one of the two")
        from gradacc_lessons.quiz.terminal import take_quiz

        take_quiz(lesson, bank_folder=folder, language=language, code=code, again=again, review=review)


@quiz.command("check")
@BANK
def quiz_check(folder: Path | None) -> None:
    """Prove that every bank is complete and can be graded.

    Each problem is one line: file, line, field, and what is wrong.

    Example:  gradacc quiz check --bank my-quizzes
    """
    from gradacc_lessons.course import course_folder
    from gradacc_lessons.quiz.check import check_banks, summary

    folder = folder or course_folder("quizzes")
    with one_sentence():
        problems = check_banks(folder)
        report(problems, "" if problems else f"Complete: {summary(folder)}.")


@quiz.command("schema")
def quiz_schema() -> None:
    """Print the JSON Schema of a bank, for an editor that checks and completes while you write.

    Example:  gradacc quiz schema > quizzes/schema.json
    """
    from gradacc_lessons.quiz.schema import as_json

    click.echo(as_json())


@click.group(invoke_without_command=True)
@LANGUAGE
@click.pass_context
def progress(context: click.Context, language: Language | None) -> None:
    """Show what you have done so far, or take it to another machine.

    Example:  gradacc progress
    """
    if context.invoked_subcommand is None:
        from gradacc_lessons.progress import summary

        with one_sentence():
            say(summary(language))


@progress.command("export")
@click.argument("file", type=UserPath(), required=False)
def progress_export(file: Path | None) -> None:
    """Write all that you have done as a short text, to a new FILE or onto the screen.

    Keep it anywhere. On Colab, where a reset takes everything else away, keep it in your Drive or in the notebook.

    Example:  gradacc progress export my-progress.txt
    """
    from gradacc_lessons.progress import learner_progress
    from gradacc_lessons.whole_file import write_whole

    with one_sentence():
        text = learner_progress().export_text()
        if file is None:
            click.echo(text, nl=False)
            return
        write_whole(file, text.encode("ascii"), over=False)
        say(str(file))


@progress.command("import")
@click.argument("file", type=UserPath(), required=False)
@LANGUAGE
def progress_import(file: Path | None, language: Language | None) -> None:
    """Take over what `export` wrote: from FILE, or what you paste, ended by Ctrl-D (on Windows Ctrl-Z, Enter).

    FILE may also be another progress file, such as one that was set aside. Nothing that is here gets worse by it, and
    importing twice is as good as once.

    Example:  gradacc progress import my-progress.txt
    """
    from gradacc_lessons.progress import learner_progress, summary
    from gradacc_lessons.progress_exchange import TextRefused
    from gradacc_lessons.progress_import import text_from, text_in

    with one_sentence():
        kept = learner_progress()
        try:
            text = text_from(sys.stdin.buffer) if file is None else text_in(file)
            taken = kept.import_text(text)
        except TextRefused as refused:
            raise ValueError(refused.sentence.to(language or kept.language)) from None
        say(taken.sentence.to(language or kept.language))
        say(summary(language))
