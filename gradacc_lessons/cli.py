"""The command `gradacc`. Every command is one call into a room; what a room needs is imported only there."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from gradacc_lessons import __version__
from gradacc_lessons.cli_authors import notebooks, publish
from gradacc_lessons.cli_certificate import certificate, verify
from gradacc_lessons.cli_classroom import submit
from gradacc_lessons.cli_museum import museum
from gradacc_lessons.cli_output import LANGUAGE, UserPath, one_sentence, printable, say
from gradacc_lessons.cli_quiz import progress, quiz
from gradacc_lessons.cli_reports import classroom, slides
from gradacc_lessons.patience import patience
from gradacc_lessons.recipe import OptimizerKernel, OptimizerName, Precision, Recipe
from gradacc_lessons.text import Language

if TYPE_CHECKING:
    from gradacc_lessons.detective.scenarios import Scope

PRECISIONS = {"fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}
"""Short names that people use."""


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
@click.option("--folder", type=UserPath(file_okay=False), help="Work on a copy of the lessons here.")
@click.argument("options", nargs=-1)
def lab(folder: Path | None, options: tuple[str, ...]) -> None:
    """Open the lessons in JupyterLab.

    OPTIONS go on to JupyterLab. Files that are already in the folder are never overwritten.

    Example:  gradacc lab --folder my-course --no-browser
    """
    from gradacc_lessons.lab import lessons_folder, open_lab

    with one_sentence():
        place, sentence = lessons_folder(folder)
        say(sentence)
        open_lab(place, options, say)


@main.command()
def doctor() -> None:
    """Check that this machine can run the course, and say what to do where it cannot.

    The exit code is 1 if a line says FAIL.

    Example:  gradacc doctor
    """
    from gradacc_lessons.doctor import checkup

    result = checkup()
    say(str(result))
    sys.exit(0 if result.ok else 1)


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

    with one_sentence():
        expanded(target)  # the ~ of nobody ends here
        answer_in = language or chosen_language()
        diagnosis = diagnose_loop(load_function(target, language=answer_in), scope, language=answer_in)
    say(str(diagnosis))
    sys.exit(0 if diagnosis.correct else 1)


@main.command()
@click.argument("target", metavar="FILE:FUNCTION")
@click.option("--micro-batch-size", type=int, required=True, help="Examples that one backward would see.")
@click.option("--json", "for_programs", is_flag=True, help="Print JSON.")
@LANGUAGE
def examine(target: str, micro_batch_size: int, for_programs: bool, language: Language | None) -> None:
    """Say whether a model with its loss can be accumulated, and why not.

    FUNCTION() returns (model, loss_fn, batch), or (model, loss_fn, batch, count). The gradient of loss_fn(model, batch)
    is compared with that of its micro-batches, each divided by N, or weighted by count(micro_batch). The exit code is
    0 if they are the same, 1 if not, 2 if they could not be compared.

    Example:  gradacc examine my_model.py:parts --micro-batch-size 4
    """
    from gradacc_lessons.progress import chosen_language

    with one_sentence(exit_code=2), patience(lambda line: click.echo(printable(line), err=True)) as tell:
        tell("loading PyTorch")
        from gradacc_lessons.detective import examine_command

        answer_in = language or chosen_language()
        found = examine_command.examined_file(target, micro_batch_size, language=answer_in, tell=tell)
    say(examine_command.as_json(found) if for_programs else str(found))
    sys.exit(0 if found.additive else 1)


@main.command()
@click.argument("target", metavar="[FILE:FUNCTION]", required=False)
@click.option("--model", type=UserPath(), help="A transformers configuration file instead.")
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
@click.option("--explain/--no-explain", default=True, help="Say what binds, and what other settings would buy.")
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
    explain: bool,
    for_programs: bool,
) -> None:
    """Find the micro-batches that make up a target batch and fit in a memory budget, and say why.

    FUNCTION() returns (build_model, loss_fn, make_batch); make_batch(size) gives the longest batch. A model that this
    machine has no room for is predicted only.

    \b
    Example:  gradacc plan my_model.py:parts --target-batch 256 --memory 8GiB
              gradacc plan --model config.json --sequence 2048 --target-batch 256 --memory 22GiB --device cuda
    """
    with one_sentence(), patience(lambda line: click.echo(printable(line), err=True)) as tell:
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

        wishes = {
            "target_batch_size": target_batch, "budget_bytes": memory, "device": device, "verify": verify,
            "explain": explain,
        }  # fmt: skip
        if model is not None and sequence is not None:
            found = command.planned_config(model, sequence, recipe, tell=tell, **wishes)
        else:
            found = command.planned_file(str(target), recipe, tell=tell, **wishes)
    say(command.as_json(found) if for_programs else command.as_text(found))


main.add_command(quiz)
main.add_command(progress)
main.add_command(publish)
main.add_command(notebooks)
main.add_command(certificate)
main.add_command(verify)
main.add_command(museum)
main.add_command(submit)
main.add_command(classroom)
main.add_command(slides)

if __name__ == "__main__":
    main()
