"""The command `gradacc`. Every command is one call into a room; what a room needs is imported only there."""

import io
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from gradacc_lessons import __version__
from gradacc_lessons.patience import patience
from gradacc_lessons.recipe import OptimizerKernel, OptimizerName, Precision, Recipe
from gradacc_lessons.text import LANGUAGES, Language

if TYPE_CHECKING:
    from gradacc_lessons.detective.scenarios import Scope

LANGUAGE = click.option(
    "--language",
    type=click.Choice(LANGUAGES),
    help="The language of the answer; without it, the one you chose in the lessons.",
)

PRECISIONS = {"fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}
"""Short names that people use."""

STEERING = ("Cc", "Cf", "Cs")
"""Unicode's control and format characters, and halves of characters that no encoding has."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="gradacc")
def main() -> None:
    """Gradient accumulation, hands on.

    Open the lessons:  gradacc lab
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@main.command(context_settings={"ignore_unknown_options": True})
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Work on a copy of the lessons here.")
@click.argument("options", nargs=-1)
def lab(folder: Path | None, options: tuple[str, ...]) -> None:
    """Open the lessons in JupyterLab.

    OPTIONS go on to JupyterLab. Files that are already in the folder are never overwritten.

    Example:  gradacc lab --folder my-course --no-browser
    """
    from gradacc_lessons.lab import lessons_folder, open_lab

    with _one_sentence():
        place, sentence = lessons_folder(folder)
        _say(sentence)
        open_lab(place, options, _say)


@main.command()
def doctor() -> None:
    """Check that this machine can run the course, and say what to do where it cannot.

    The exit code is 1 if a line says FAIL.

    Example:  gradacc doctor
    """
    from gradacc_lessons.doctor import checkup

    result = checkup()
    _say(str(result))
    sys.exit(0 if result.ok else 1)


@main.group()
def quiz() -> None:
    """The question banks.

    Example:  gradacc quiz check
    """


@quiz.command("check")
@click.option(
    "--bank",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A folder with banks of your own; without it, the course's.",
)
def quiz_check(folder: Path | None) -> None:
    """Prove that every bank is complete and can be graded.

    Each problem is one line: file, line, field, and what is wrong.

    Example:  gradacc quiz check --bank my-quizzes
    """
    from gradacc_lessons.course import course_folder
    from gradacc_lessons.quiz.check import check_banks, summary

    folder = folder or course_folder("quizzes")
    with _one_sentence():
        problems = check_banks(folder)
        _report(problems, "" if problems else f"Complete: {summary(folder)}.")


@main.command()
@LANGUAGE
def progress(language: Language | None) -> None:
    """Show what you have done so far.

    Example:  gradacc progress
    """
    from gradacc_lessons.progress import summary

    with _one_sentence():
        _say(summary(language))


@main.command()
@click.argument("target", metavar="FILE:FUNCTION")
@click.option(
    "--scope",
    type=click.Choice(["windows", "tail", "items"]),
    default="items",
    show_default=True,
    help="How much the loop must get right: full windows, a short last window too, micro-batches of any size too.",
)
@LANGUAGE
def diagnose(target: str, scope: "Scope", language: Language | None) -> None:
    """Name the mistake in a training loop of yours.

    The function is called as train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps), in a
    process of its own; count, max_norm and scheduler too, if it takes them by keyword. The exit code is 0 if the
    loop is correct, 1 if not.

    Example:  gradacc diagnose my_loop.py:train_epoch --scope tail
    """
    from gradacc_lessons.detective.diagnose import diagnose as diagnose_loop
    from gradacc_lessons.detective.files import load_function
    from gradacc_lessons.home import expanded
    from gradacc_lessons.progress import chosen_language

    with _one_sentence():
        expanded(target)  # the ~ of nobody ends here
        answer_in = language or chosen_language()
        diagnosis = diagnose_loop(load_function(target, language=answer_in), scope, language=answer_in)
    _say(str(diagnosis))
    sys.exit(0 if diagnosis.correct else 1)


@main.command()
@click.argument("target", metavar="[FILE:FUNCTION]", required=False)
@click.option("--model", type=click.Path(path_type=Path), help="A transformers configuration file instead.")
@click.option("--sequence", type=int, help="With --model: tokens in the longest example.")
@click.option("--target-batch", type=int, required=True, help="Examples behind one update.")
@click.option("--memory", required=True, help="The budget, such as 24GiB.")
@click.option("--optimizer", type=click.Choice(get_args(OptimizerName)), default="adamw", show_default=True)
@click.option("--kernel", type=click.Choice(get_args(OptimizerKernel)), default="default", show_default=True)
@click.option(
    "--precision",
    type=click.Choice([*get_args(Precision), *PRECISIONS]),
    default="float32",
    show_default=True,
    help="The dtype of parameters and gradients; autocast keeps them in float32.",
)
@click.option("--checkpointing", is_flag=True, help="Compute the blocks again in backward.")
@click.option("--clip", type=float, help="Clip the window's gradient to this norm.")
@click.option("--device", default="cpu", show_default=True, help="Where it will be trained: cpu, cuda or mps.")
@click.option("--verify/--no-verify", default=True, help="Run one real window, if this machine has room for it.")
@click.option("--json", "for_programs", is_flag=True, help="Print JSON.")
def plan(
    target: str | None,
    model: Path | None,
    sequence: int | None,
    target_batch: int,
    memory: str,
    optimizer: OptimizerName,
    kernel: OptimizerKernel,
    precision: str,
    checkpointing: bool,
    clip: float | None,
    device: str,
    verify: bool,
    for_programs: bool,
) -> None:
    """Find the micro-batches that make up a target batch and fit in a memory budget, and say why.

    FUNCTION() returns (build_model, loss_fn, make_batch); make_batch(size) gives the longest batch. A model that this
    machine has no room for is predicted only.

    \b
    Example:  gradacc plan my_model.py:parts --target-batch 256 --memory 8GiB
              gradacc plan --model config.json --sequence 2048 --target-batch 256 --memory 24GiB --precision bf16
    """
    with _one_sentence(), patience(lambda line: click.echo(_printable(line), err=True)) as tell:
        if (target is None) == (model is None):
            raise ValueError("name what to plan: either FILE:FUNCTION, or --model and a configuration file")
        if model is not None and sequence is None:
            raise ValueError("with --model, say how many tokens the longest example has: --sequence 2048")
        recipe = Recipe(
            optimizer=optimizer,
            optimizer_kernel=kernel,
            precision=PRECISIONS.get(precision, precision),  # type: ignore[arg-type]  # one of the choices
            checkpointing=checkpointing,
            max_norm=clip,
        )
        tell("loading PyTorch")
        from gradacc_lessons.memory import command

        wishes = {"target_batch_size": target_batch, "budget_bytes": memory, "device": device, "verify": verify}
        if model is not None and sequence is not None:
            found = command.planned_config(model, sequence, recipe, tell=tell, **wishes)
        else:
            found = command.planned_file(str(target), recipe, tell=tell, **wishes)
    _say(command.as_json(found) if for_programs else command.as_text(found))


@main.command()
@click.option("--repository", required=True, metavar="OWNER/NAME", help="Where the course stands on GitHub.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
def publish(repository: str, dry_run: bool) -> None:
    """Write the address of your copy of the course into its notebooks, README and pyproject.toml.

    Run it in the repository, then commit what changed. Running it again changes nothing more.

    Example:  gradacc publish --repository OWNER/NAME --dry-run
    """
    from gradacc_lessons.authoring.publish import publish as write_address

    with _one_sentence():
        changed = write_address(repository, dry_run=dry_run)
    for path in changed:
        _say(f"{'would change' if dry_run else 'changed'}  {path}")
    if not changed:
        _say(f"Everything already points to {repository}.")


@main.group()
def notebooks() -> None:
    """For authors: execute, clean and check the lessons.

    Example:  gradacc notebooks check
    """


FILES = click.argument(
    "files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="[NOTEBOOK]..."
)


@notebooks.command("execute")
@FILES
def notebooks_execute(files: tuple[Path, ...]) -> None:
    """Run notebooks from a fresh kernel, clean them, and write them back; all of them when none is named.

    Example:  gradacc notebooks execute notebooks/01_accumulate.ipynb
    """
    from gradacc_lessons.authoring.execute import execute_and_clean
    from gradacc_lessons.authoring.files import lessons

    with _one_sentence():
        for file in lessons(files):
            _say(f"{file.name} ...", end="")
            _say(f" {execute_and_clean(file):.0f} s")


@notebooks.command("clean")
@FILES
def notebooks_clean(files: tuple[Path, ...]) -> None:
    """Take out what must not be committed, without running anything.

    Example:  gradacc notebooks clean
    """
    from gradacc_lessons.authoring.clean import clean_file
    from gradacc_lessons.authoring.files import lessons

    with _one_sentence():
        for file in lessons(files):
            _say(f"{file.name}: {'cleaned' if clean_file(file) else 'was clean'}")


@notebooks.command("check")
@FILES
def notebooks_check(files: tuple[Path, ...]) -> None:
    """Say what is stale, dirty, or against the conventions; the exit code is 1 if anything is.

    Example:  gradacc notebooks check notebooks/01_accumulate.ipynb
    """
    from gradacc_lessons.authoring.check import check
    from gradacc_lessons.authoring.files import lessons

    with _one_sentence():
        problems = [problem for file in lessons(files) for problem in check(file)]
    _report(problems, "Every notebook is fresh, clean and as it should be.")


@notebooks.command("template")
def notebooks_template() -> None:
    """Print the two cells that every lesson has: the badges and the set-up.

    Example:  gradacc notebooks template
    """
    from gradacc_lessons.authoring.cells import template

    _say(template())


def _report(problems: list[str], all_well: str) -> None:
    for problem in problems:
        _say(problem)
    if not problems:
        _say(all_well)
    sys.exit(1 if problems else 0)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """A mistake in what was asked for, or a machine that refuses it, ends in its own sentence, without a traceback."""
    try:
        yield
    except (click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # click's own ways to end, and a reader of the output that has seen enough
    except (ValueError, OSError, RuntimeError) as error:
        raise click.ClickException(_printable(_words(error))) from error


def _words(error: Exception) -> str:
    """What the error says; of the system's own, the file and the reason without the number."""
    if isinstance(error, OSError) and error.strerror:
        files = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return f"{' -> '.join(files)}: {error.strerror}" if files else error.strerror
    return str(error).strip() or type(error).__name__


def _say(text: str, end: str = "\n") -> None:
    click.echo(_printable(text) + end, nl=False)


def _printable(text: str) -> str:
    """Learners' code and file names may hold anything: what would steer the terminal is written as an escape."""
    return "".join(_escaped(char) if unicodedata.category(char) in STEERING else char for char in text)


def _escaped(char: str) -> str:
    return char if char in "\n\t" else char.encode("unicode_escape").decode("ascii")


if __name__ == "__main__":
    main()
