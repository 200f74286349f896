"""The command `gradacc museum`: the museum of real bugs."""

import json
import math
import sys
from typing import Any

import click

from gradacc_lessons.cli_output import LANGUAGE, one_sentence, printable, say
from gradacc_lessons.patience import patience
from gradacc_lessons.text import Language


@click.command()
@click.argument("name", metavar="[ID]", required=False)
@click.option("--all", "everything", is_flag=True, help="Run every exhibit, a line for each.")
@click.option("--json", "for_programs", is_flag=True, help="Print JSON.")
@LANGUAGE
def museum(name: str | None, everything: bool, for_programs: bool, language: Language | None) -> None:
    """Real bugs of public projects, rebuilt small. Without an ID: list them.

    With an ID: run that exhibit with the bug and after the fix, and tell what was seen, the number that gives the bug
    away, what the instrument says, the fix, and the public thread. The exit code is 1 if an exhibit that was run is
    not found by its instrument.

    Example:  gradacc museum nanogpt-168
    """
    from gradacc_lessons.progress import chosen_language

    with one_sentence(), patience(lambda line: click.echo(printable(line), err=True)) as tell:
        if name is not None and everything:
            raise ValueError("name one exhibit, or give --all; not both")
        answer_in = language or chosen_language()
        tell("loading PyTorch")
        import torch

        torch.set_num_threads(1)  # the models are so small that a second thread waits longer than it computes
        if everything:
            _all(for_programs, answer_in)
        elif name is not None:
            _one(name, for_programs, answer_in)
        else:
            _list(for_programs, answer_in)


def _list(for_programs: bool, language: Language) -> None:
    from gradacc_lessons.museum.collection import exhibits
    from gradacc_lessons.museum.telling import listed

    shown = exhibits().values()
    say(_json([one.about(language) for one in shown]) if for_programs else listed(shown, language))


def _one(name: str, for_programs: bool, language: Language) -> None:
    from gradacc_lessons.museum.telling import told
    from gradacc_lessons.museum.visit import run_exhibit

    visit = run_exhibit(name)
    say(_json(visit.details(language)) if for_programs else told(visit, language))
    sys.exit(0 if visit.found else 1)


def _all(for_programs: bool, language: Language) -> None:
    from gradacc_lessons.museum.collection import exhibits
    from gradacc_lessons.museum.telling import in_a_line, summed_up
    from gradacc_lessons.museum.visit import visit

    visits, number = [], len(exhibits())
    for place, one in enumerate(exhibits().values(), 1):
        click.echo(f"{place:2}/{number} {one.id} ...", err=for_programs, nl=for_programs)
        visits.append(visit(one))
        if not for_programs:
            say(f" {in_a_line(visits[-1], language)}")
    say(_json([seen.details(language) for seen in visits]) if for_programs else summed_up(visits, language))
    sys.exit(0 if all(seen.found for seen in visits) else 1)


def _json(value: Any) -> str:
    return json.dumps(_plain(value), indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Numbers that are not finite are null."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
