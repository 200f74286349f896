"""How `gradacc` speaks: what is printed, and how a mistake ends in one sentence."""

import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from gradacc_lessons.home import expanded
from gradacc_lessons.text import LANGUAGES, Language, Text

LANGUAGE = click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    help="The language of the answer; without it, the one you chose in the lessons.",
)

STEERING = ("Cc", "Cf", "Cs")
"""Unicode's control and format characters, and halves of characters that no encoding has."""


class UserPath(click.Path):
    """A path; a ~ at its beginning is a home folder behind an equals sign too, where shells leave it alone."""

    def __init__(self, **bounds: bool) -> None:
        super().__init__(path_type=Path, **bounds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(expanded(value), param, ctx)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def report(problems: list[str], all_well: str) -> None:
    """Print the problems, or that all is well; the exit code is 1 if there are any."""
    for problem in problems:
        say(problem)
    if not problems:
        say(all_well)
    sys.exit(1 if problems else 0)


@contextmanager
def one_sentence(exit_code: int = 1) -> Iterator[None]:
    """A mistake in what was asked for, or a machine that refuses it, ends in its own sentence, without a traceback."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # click's own ways to end, and a reader of the output that has seen enough
    except (ValueError, OSError, RuntimeError) as error:
        refusal = click.ClickException(printable(_words(error)))
        refusal.exit_code = exit_code  # type: ignore[misc]  # click's own way: each of its errors has one
        raise refusal from error


@contextmanager
def in_words(language: Language | None = None, exit_code: int = 1) -> Iterator[Language]:
    """The language of the answer: `language`, or the learner's own. A refusal that has both languages is said in it."""
    from gradacc_lessons.progress import chosen_language

    with one_sentence(exit_code):
        answer_in = language or chosen_language()
        try:
            yield answer_in
        except ValueError as error:
            if isinstance(text := getattr(error, "text", None), Text):
                raise ValueError(text.to(answer_in)) from error
            raise


@contextmanager
def counting(label: Text, language: Language) -> Iterator[Callable[[int, int], None]]:
    """A bar that moves when it is told how many are done, and how many there are."""
    with click.progressbar(length=0, label=label.to(language), show_pos=True) as bar:

        def tell(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield tell


def _words(error: Exception) -> str:
    """What the error says; of the system's own, the file and the reason without the number."""
    if isinstance(error, OSError) and error.strerror:
        files = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return f"{' -> '.join(files)}: {error.strerror}" if files else error.strerror
    return str(error).strip() or type(error).__name__


def say(text: str, end: str = "\n") -> None:
    """Print a line of the answer."""
    click.echo(printable(text) + end, nl=False)


def printable(text: str) -> str:
    """Learners' code and file names may hold anything: what would steer the terminal is written as an escape."""
    return "".join(_escaped(char) if unicodedata.category(char) in STEERING else char for char in text)


def _escaped(char: str) -> str:
    return char if char in "\n\t" else char.encode("unicode_escape").decode("ascii")
