"""The commands of `gradacc` for authors: notebooks and publishing."""

from pathlib import Path

import click

from gradacc_lessons.cli_output import UserPath, one_sentence, report, say


@click.command()
@click.option("--repository", required=True, metavar="OWNER/NAME", help="Where the course stands on GitHub.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
def publish(repository: str, dry_run: bool) -> None:
    """Write the address of your copy of the course into its notebooks, README and pyproject.toml.

    Run it in the repository, then commit what changed. Running it again changes nothing more.

    Example:  gradacc publish --repository OWNER/NAME --dry-run
    """
    from gradacc_lessons.authoring.publish import publish as write_address

    with one_sentence():
        changed = write_address(repository, dry_run=dry_run)
    for path in changed:
        say(f"{'would change' if dry_run else 'changed'}  {path}")
    if not changed:
        say(f"Everything already points to {repository}.")


@click.group()
def notebooks() -> None:
    """For authors: execute, clean and check the lessons.

    Example:  gradacc notebooks check
    """


FILES = click.argument("files", nargs=-1, type=UserPath(exists=True, dir_okay=False), metavar="[NOTEBOOK]...")


@notebooks.command("execute")
@FILES
def notebooks_execute(files: tuple[Path, ...]) -> None:
    """Run notebooks from a fresh kernel, clean them, and write them back; all of them when none is named.

    Example:  gradacc notebooks execute notebooks/01_accumulate.ipynb
    """
    from gradacc_lessons.authoring.execute import execute_and_clean
    from gradacc_lessons.authoring.files import lessons

    with one_sentence():
        for file in lessons(files):
            say(f"{file.name} ...", end="")
            say(f" {execute_and_clean(file):.0f} s")


@notebooks.command("clean")
@FILES
def notebooks_clean(files: tuple[Path, ...]) -> None:
    """Take out what must not be committed, without running anything.

    Example:  gradacc notebooks clean
    """
    from gradacc_lessons.authoring.clean import clean_file
    from gradacc_lessons.authoring.files import lessons

    with one_sentence():
        for file in lessons(files):
            say(f"{file.name}: {'cleaned' if clean_file(file) else 'was clean'}")


@notebooks.command("check")
@FILES
def notebooks_check(files: tuple[Path, ...]) -> None:
    """Say what is stale, dirty, or against the conventions; the exit code is 1 if anything is.

    Example:  gradacc notebooks check notebooks/01_accumulate.ipynb
    """
    from gradacc_lessons.authoring.check import check
    from gradacc_lessons.authoring.files import lessons

    with one_sentence():
        problems = [problem for file in lessons(files) for problem in check(file)]
    report(problems, "Every notebook is fresh, clean and as it should be.")


@notebooks.command("template")
def notebooks_template() -> None:
    """Print the two cells that every lesson has: the badges and the set-up.

    Example:  gradacc notebooks template
    """
    from gradacc_lessons.authoring.cells import template

    say(template())
