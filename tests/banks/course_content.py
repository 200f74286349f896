"""What the tests of the question banks share: the banks, the learner-facing texts in them, and running listings."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.accumulation import Batch, split
from gradacc_lessons.course import course_folder
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.quiz.grade import grade
from gradacc_lessons.quiz.questions import Bank, Question
from gradacc_lessons.tasks import Task, digits
from gradacc_lessons.text import Text

LESSONS = (
    *("00_start_here", "01_accumulate", "02_scale_the_loss", "03_the_memory_wall", "04_uneven_windows"),
    *("05_batch_norm", "06_not_a_sum", "07_once_per_window", "08_mixed_precision"),
    *("09_bug_museum", "10_fit_a_budget"),
)
EQUAL = 1e-12
"""float64 keeps 16 digits; sums of a few thousand terms lose two or three of them."""
TrainEpoch = Callable[..., object]


@cache
def all_banks() -> dict[str, Bank]:
    """Every bank of this slice of the course, by lesson."""
    return {lesson: load_bank(course_folder("quizzes") / f"{lesson}.yaml") for lesson in LESSONS}


def question(question_id: str) -> Any:
    """The question with this id, from whichever lesson has it."""
    return {each.id: each for bank in all_banks().values() for each in bank.questions}[question_id]


def draws(asked: Any) -> Iterator[dict[str, int | float]]:
    """Every combination of values that a number question can draw."""
    names = list(asked.variables)
    for values in product(*(asked.variables[name].values() for name in names)):
        yield dict(zip(names, values, strict=True))


def check_rounded(asked: Any, decimals: int) -> None:
    """What is right stays so when it is rounded to `decimals` or to one fewer; a known mistake, when to `decimals`."""
    for drawn in draws(asked):
        for places in (decimals, decimals - 1):
            assert grade(asked, round(asked.answer.value(drawn) + 1e-9, places), drawn).correct, drawn
        for index, mistake in enumerate(asked.mistakes, start=1):
            rounded = round(mistake.formula.value(drawn) + 1e-9, decimals)
            assert grade(asked, rounded, drawn).mistake == f"mistake-{index}", drawn


def texts(asked: Question) -> Iterator[tuple[str, Text]]:
    """(where, text) of everything a learner can read in a question."""
    for name in ("prompt", "unit"):
        if (text := getattr(asked, name, None)) is not None:
            yield name, text
    for index, hint in enumerate(asked.hints):
        yield f"hint {index}", hint
    for option in getattr(asked, "options", ()):
        yield f"option {option.id}", option.text
        if hasattr(option, "feedback"):
            yield f"feedback {option.id}", option.feedback
    if (verdicts := getattr(asked, "feedback", None)) is not None:
        yield "feedback correct", verdicts.correct
        yield "feedback wrong", verdicts.wrong
    for mistake in getattr(asked, "mistakes", ()):
        yield f"mistake {mistake.formula.text}", mistake.feedback
    for line, text in getattr(asked, "lines", {}).items():
        yield f"line {line}", text


def compiled(listing: str) -> TrainEpoch:
    """The function train_epoch that a listing defines."""
    names: dict[str, Any] = {}
    exec(listing, names)
    return names["train_epoch"]  # type: ignore[no-any-return]


class Recorder(torch.optim.SGD):
    """SGD that keeps the gradient of each update, and how many backwards came before it."""

    def __init__(self, model: nn.Module, backwards: list[int]) -> None:
        super().__init__(model.parameters(), lr=0.0)  # the weights stay, so every update is comparable
        self._model, self._backwards = model, backwards
        self.used: list[Tensor] = []
        self.after: list[int] = []

    def step(self, closure: Any = None) -> None:
        self.used.append(gradient(self._model).clone())
        self.after.append(len(self._backwards))
        super().step(closure)


def epoch(train_epoch: TrainEpoch, model: nn.Module, micro_batches: Sequence[Batch], loss_fn: Any, n: int) -> Recorder:
    """Run one epoch and return what its updates used."""
    backwards: list[int] = []
    first = next(model.parameters())
    handle = first.register_post_accumulate_grad_hook(lambda _: backwards.append(1))
    optimizer = Recorder(model, backwards)
    train_epoch(model, optimizer, list(micro_batches), loss_fn, n)
    handle.remove()
    return optimizer


def mlp_task() -> Task:
    """The digits MLP in float64."""
    return digits("mlp", dtype=torch.float64)


def full_gradients(task: Task, examples: int, effective_batch: int) -> list[Tensor]:
    """The gradient of each full batch of the first `examples` training images, at the initial weights."""
    model = task.build_model()
    out = []
    for batch in split(tuple(tensor[:examples] for tensor in task.train), effective_batch):
        model.zero_grad()
        task.loss_fn(model, batch).backward()
        out.append(gradient(model).clone())
    return out


def digits_epoch(train_epoch: TrainEpoch, b: int, n: int, windows: int = 3) -> tuple[Recorder, list[Tensor]]:
    """(what the updates of one epoch over full windows used, what they should have used)."""
    task = mlp_task()
    examples = b * n * windows
    micro_batches = split(tuple(tensor[:examples] for tensor in task.train), b)
    recorder = epoch(train_epoch, task.build_model(), micro_batches, task.loss_fn, n)
    return recorder, full_gradients(task, examples, b * n)


def unit_gradients(train_epoch: TrainEpoch, micro_batches: int, n: int, size: float = 1.0) -> list[float]:
    """What the updates use when every micro-batch has the gradient `size`."""
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    batch = (torch.full((8, 1), size, dtype=torch.float64), torch.zeros(8, dtype=torch.long))
    recorder = epoch(train_epoch, model, [batch] * micro_batches, lambda m, b: m(b[0]).mean(), n)
    return [float(used) for used in recorder.used]


def is_right(recorder: Recorder, full: Sequence[Tensor]) -> bool:
    """Whether every update used the gradient of its full batch, and there were as many as there should be."""
    return len(recorder.used) == len(full) and all(
        bool((used - right).abs().max() <= EQUAL) for used, right in zip(recorder.used, full, strict=True)
    )
