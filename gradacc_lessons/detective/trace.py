"""What does this loop do, micro-batch by micro-batch? Written down while it runs, without changing it."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer

from gradacc_lessons.detective.tape.events import Event
from gradacc_lessons.detective.tape.findings import findings_of, questions_of
from gradacc_lessons.detective.tape.hooks import Recorder
from gradacc_lessons.detective.tape.looks import Looks
from gradacc_lessons.detective.tape.view import Facts, Finding, Given
from gradacc_lessons.detective.tape.windows import Window, windows_of
from gradacc_lessons.detective.tape.wording import report, sentence
from gradacc_lessons.text import LANGUAGES, Language, Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def trace(
    model: nn.Module,
    optimizer: Optimizer | None = None,
    scheduler: LRScheduler | None = None,
    *,
    accumulation_steps: int | None = None,
    micro_batches_per_epoch: int | None = None,
    count: Callable[[Any], int] | None = None,
    scaler: GradScaler | None = None,
    watch: Sequence[nn.Module] = (),
    language: Language = "en",
) -> "Tape":
    """Write down what the loop within `with trace(model) as tape:` does to `model`.

    Any loop: one written by hand, or that of a framework which builds its optimizer itself. Everything else is
    optional, and lets the tape say more: `optimizer` and `scheduler` (when the schedule moves), `accumulation_steps`
    (how long a window should be), `micro_batches_per_epoch` (where an epoch ends), `count` (the items in what the
    model is called with: its only argument, the tuple of its arguments, or the dict of its keywords; by default the
    length of the first tensor), `scaler` (in which order it unscales and somebody clips), `watch` (modules outside
    the model, such as an average of its weights).

    The loop does exactly what it does without a tape. Tapes can be nested.
    ValueError, in one sentence, for what cannot be followed.
    """
    _check_objects(model, optimizer, scheduler, count, scaler, watch)
    for name, value in (
        ("accumulation_steps", accumulation_steps),
        ("micro_batches_per_epoch", micro_batches_per_epoch),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise ValueError(f"{name} must be a whole number of at least 1; it is {value!r}")
    if language not in LANGUAGES:
        raise ValueError(f"the language {language!r} is not one of {', '.join(LANGUAGES)}")
    if next(model.parameters(), None) is None:
        raise ValueError("this model has no parameters, so there are no gradients to follow")
    given = Given(accumulation_steps, micro_batches_per_epoch, counted=count is not None)
    looks = Looks(model, optimizer, scheduler, scaler, watch)
    return Tape(Recorder(model, looks, count), given, language)


def _check_objects(model: Any, optimizer: Any, scheduler: Any, count: Any, scaler: Any, watch: Any) -> None:
    """ValueError for an object of another kind than is asked for."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"the model must be a torch.nn.Module, not {_kind(model)}")
    # Not by its class: frameworks wrap optimizers and schedulers.
    if optimizer is not None and (isinstance(optimizer, type) or not hasattr(optimizer, "param_groups")):
        raise ValueError(f"the optimizer must be a torch optimizer, not {_kind(optimizer)}")
    moves = hasattr(scheduler, "step") and not hasattr(scheduler, "param_groups")
    if scheduler is not None and (isinstance(scheduler, type) or not moves):
        raise ValueError(f"the scheduler must be a torch learning-rate scheduler, not {_kind(scheduler)}")
    if count is not None and not callable(count):
        raise ValueError(f"count must be a function, not {_kind(count)}")
    if scaler is not None and (isinstance(scaler, type) or not hasattr(scaler, "get_scale")):
        raise ValueError(f"the scaler must be a torch.amp.GradScaler, not {_kind(scaler)}")
    if not isinstance(watch, Sequence):
        raise ValueError(f"watch must be a list of torch modules, not {_kind(watch)}")
    for module in watch:
        if not isinstance(module, nn.Module):
            raise ValueError(f"watch must be a list of torch modules; there is {_kind(module)} in it")


def _kind(found: Any) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else type(found).__name__


class Tape:
    """What a loop did. Use it as a context manager, once; read it during the loop or afterwards."""

    def __init__(self, recorder: Recorder, given: Given, language: Language) -> None:
        self._given, self._language = given, language
        self._log = recorder.looks.log
        self._recorder: Recorder | None = recorder
        self._facts: Facts | None = None  # once the tape is done, as it then lets go of the model

    def __enter__(self) -> Self:
        if self._recorder is None or self._recorder.attached:
            raise RuntimeError("a tape is used once: call trace(model) again for another run")
        self._recorder.attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._recorder is not None:
            self._recorder.detach()
            self._facts, self._recorder = self._recorder.facts(), None

    @property
    def events(self) -> list[Event]:
        """All that happened, in order."""
        self._log.settle()
        return list(self._log.events)

    @property
    def windows(self) -> list[Window]:
        """The same, cut at the updates."""
        return windows_of(self.events)

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the loop, most telling first; empty when nothing is."""
        return findings_of(self.windows, self._known(), self._given)

    @property
    def questions(self) -> list[Text]:
        """What the tape could say more about if it were told."""
        return questions_of(self.windows, self._known(), self._given)

    def _known(self) -> Facts:
        if self._recorder is not None:
            return self._recorder.facts()
        assert self._facts is not None
        return self._facts

    @property
    def sentence(self) -> str:
        """What the picture shows, in words."""
        return sentence(self.windows, self.findings).to(self._language)

    def report(self, language: Language | None = None) -> str:
        """Windows, findings and questions in words."""
        language = language or self._language
        return report(self.windows, self.findings, self.questions).to(language)

    def __str__(self) -> str:
        return self.report()

    def figure(self, language: Language | None = None) -> "Figure":
        """The picture: one lane for each kind of event over the micro-batches, the windows shaded."""
        from gradacc_lessons.detective.tape.picture import picture

        return picture(self.windows, self.findings, language or self._language)
