"""Lesson 07: what a loop does, one event at a time, and what is wrong with the order of it.

Everything is run: the loop trains the digits MLP under `trace`, and the picture, the sentence and the findings are
the tape's own.
"""

import html
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar

import ipywidgets as widgets
import pandas as pd
import torch

from gradacc_lessons.accumulation import split
from gradacc_lessons.detective.faults import FAULTS, compiled, fault_loop
from gradacc_lessons.detective.tape.events import Event
from gradacc_lessons.detective.trace import Tape, trace
from gradacc_lessons.recipe import Recipe
from gradacc_lessons.reference.schedule import warmup_then_cosine
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.ui import Choice, Explorer, LiveFigure, NumberSlider, Run, counted

RIGHT = "right"
RIGHT_SOURCE = """\
from torch.nn.utils import clip_grad_norm_


def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm, scheduler):
    for start in range(0, len(micro_batches), accumulation_steps):
        window = micro_batches[start : start + accumulation_steps]
        examples = sum(len(batch[0]) for batch in window)
        for batch in window:
            loss = loss_fn(model, batch) * len(batch[0]) / examples
            loss.backward()
        clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
"""
"""The loop of this lesson: one forward and backward per micro-batch, everything else once per window."""
SHOWN = (
    "zero_grad_every_micro_batch", "zero_grad_before_step", "never_zero_grad", "step_every_micro_batch",
    "updated_twice", "step_before_backward", "window_off_by_one", "tail_dropped", "tail_leaks",
    "tail_updated_differently", "clip_every_micro_batch", "clip_too_late", "clip_before_scaling",
    "scheduler_every_micro_batch", "scheduler_before_update", "scheduler_once_per_epoch", "sum_then_backward",
)  # fmt: skip
"""The catalogue's mistakes that are about what happens when. Divisors cannot be seen in an order."""
EXAMPLES, EPOCHS, MAX_NORM, LEARNING_RATE = 38, 2, 0.5, 0.1
"""By default; 38 in micro-batches of 4 are ten, the last of 2, and N = 4 makes windows of 4, 4 and 2."""
WARM_UP = 3
"""Updates."""


def source_of(loop: str) -> str:
    """The listing of the right loop, or of a mistake."""
    return RIGHT_SOURCE if loop == RIGHT else FAULTS[loop].source


@cache
def _task() -> Task:
    return digits("mlp", dtype=torch.float64)


def taped(train_epoch: Callable[..., Any], recipe: Recipe, examples: int = EXAMPLES, epochs: int = EPOCHS) -> Tape:
    """What a `train_epoch` does with the first `examples` digits, in so many epochs; the tape is done.

    It is handed `max_norm` and a scheduler if it takes them, and `count`.
    """
    task = _task()
    model = task.build_model(recipe.seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    scheduler = warmup_then_cosine(optimizer, WARM_UP, WARM_UP + epochs * recipe.updates_per_epoch(examples))
    offered = {"max_norm": MAX_NORM, "scheduler": scheduler, "count": task.count}
    taken = {name: offered[name] for name in inspect.signature(train_epoch).parameters if name in offered}
    micro_batches = split(tuple(tensor[:examples] for tensor in task.train), recipe.micro_batch_size)
    tape = trace(
        model, optimizer, scheduler, accumulation_steps=recipe.accumulation_steps,
        micro_batches_per_epoch=recipe.micro_batches_per_epoch(examples),
    )  # fmt: skip
    with warnings.catch_warnings(), tape:
        warnings.simplefilter("ignore", UserWarning)  # torch warns of a schedule that moves too early; the tape says it
        for _ in range(epochs):
            train_epoch(model, optimizer, micro_batches, task.loss_fn, recipe.accumulation_steps, **taken)
    return tape


def timeline(loop: str, micro_batch_size: int, accumulation_steps: int, examples: int) -> Iterator[dict[str, Any]]:
    """One row: `tape`, what the right loop or a mistake's did in two epochs, and what was chosen."""
    recipe = Recipe(micro_batch_size, accumulation_steps)
    train_epoch = compiled(RIGHT_SOURCE) if loop == RIGHT else fault_loop(loop)
    yield {"loop": loop, "recipe": recipe, "examples": examples, "tape": taped(train_epoch, recipe, examples)}


class TapeFigure(LiveFigure):
    """The tape's own picture; its size is the tape's, and it is drawn anew for each."""

    description: ClassVar[str] = (
        "A timeline over the micro-batches, from left to right, with a lane for each kind of event: forward and "
        "backward as bars, as long as the micro-batch has examples, and clip, update, schedule and zero_grad as marks "
        "in the order in which they come. Windows are shaded in turn; one where something is wrong is hatched, and a "
        "backward that no update applies is drawn hollow."
    )

    def draw(self, data: pd.DataFrame) -> str:
        """Take the picture of the tape."""
        self.take(data["tape"].iloc[-1])
        return timeline_sentence(data)

    def take(self, tape: Tape) -> None:
        """Show this tape from now on."""
        self.figure = tape.figure()
        self.width, self.height = (round(side) for side in self.figure.bbox.size)
        self.new_ground()

    def update(self, data: pd.DataFrame) -> str:
        """The same: lanes come and go, so nothing stays."""
        return self.draw(data)


def timeline_sentence(data: pd.DataFrame) -> str:
    """What was chosen, and the tape's own sentence."""
    last = data.iloc[-1]
    recipe, tape = last["recipe"], last["tape"]
    name = "the right loop" if last["loop"] == RIGHT else f"the mistake “{FAULTS[last['loop']].title.en}”"
    short = recipe.micro_batches_per_epoch(last["examples"]) % recipe.accumulation_steps
    tail = f", {counted(short, 'micro-batch')} in the last window" if short else ""
    setting = f"b = {recipe.micro_batch_size}, N = {recipe.accumulation_steps}{tail}, {name}"
    if tape.findings or last["loop"] == RIGHT:
        return f"{setting}: {tape.sentence}" + ("" if tape.findings else " Nothing wrong was found.")
    return f"{setting}: {tape.sentence} No finding: at these numbers the order does not give it away to the tape."


def findings_table(data: pd.DataFrame) -> pd.DataFrame:
    """What the tape found and what it asks for."""
    tape = data["tape"].iloc[-1]
    rows = [("found", finding.title.en, finding.said.en, finding.lesson[:2]) for finding in tape.findings]
    rows = rows or [("found", "nothing", "", "")]
    rows += [("asks", "to know more", question.en, "") for question in tape.questions]
    return pd.DataFrame(rows, columns=["the tape", "what", "in its words", "lesson"])


class LoopChoice(Choice):
    """A list of loops that shows the listing of the one that is chosen."""

    def __init__(self, value: str) -> None:
        named = [(FAULTS[fault].title.en, fault) for fault in SHOWN]
        super().__init__("loop", "Loop", [("right: everything in its place", RIGHT), *named], value)
        self.listing = widgets.HTML(_listing(value))
        self.widget = widgets.VBox([self.widget, self.listing])
        self.on_change(lambda _, chosen: setattr(self.listing, "value", _listing(chosen)))


def _listing(loop: str) -> str:
    return f'<pre style="line-height:1.3" tabindex="0">{html.escape(source_of(loop))}</pre>'


def explore_timeline(loop: str = "zero_grad_every_micro_batch") -> Explorer:
    """Sliders for b, N and the length of an epoch, a list of loops; each is run under `trace`."""

    def plan(micro_batch_size: int, accumulation_steps: int, examples: int, loop: str) -> Run:
        Recipe(micro_batch_size, accumulation_steps).check_fits(examples)
        return Run(lambda: timeline(loop, micro_batch_size, accumulation_steps, examples), 1, "tape")

    controls = [
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 16, 4),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 12, 4),
        NumberSlider("examples", "Examples per epoch", 8, 80, EXAMPLES),
        LoopChoice(loop),
    ]
    return Explorer(controls, plan, TapeFigure, findings_table)


WRITTEN = ("forward", "backward", "clip", "update", "zero_grad", "schedule")
"""The kinds of events that a written timeline has."""


def written(events: Sequence[Event]) -> str:
    """A timeline in words, a line for each micro-batch: what happened in it and after it, in order."""
    lines: list[str] = []
    for event in events:
        if event.kind == "forward" or not lines:
            lines.append(f"{len(lines) + 1:2} ")
        if event.kind in WRITTEN:
            lines[-1] += f" {event.kind}"
    return "\n".join(lines)
