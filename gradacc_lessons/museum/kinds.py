"""Three kinds of exhibits, one for each instrument that finds their bug."""

import sys
from abc import abstractmethod
from contextlib import suppress
from typing import ClassVar

from gradacc_lessons.detective.diagnose import Diagnosis, diagnose
from gradacc_lessons.detective.examine import Examination, examine
from gradacc_lessons.detective.scenarios import Scope
from gradacc_lessons.detective.trace import Tape, trace
from gradacc_lessons.museum.exhibit import Exhibit, Kind
from gradacc_lessons.museum.measures import gradient_error
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text

PATIENCE = 60.0
"""Seconds that `diagnose` may take: these loops come to an end, also on a machine that is busy."""


class LoopExhibit(Exhibit):
    """`bug` and `fixed` are a `train_epoch` that `diagnose` runs on problems of its own."""

    instrument = "diagnose"
    scope: ClassVar[Scope] = "tail"
    """How much the fixed loop gets right."""

    def scene(self) -> Scene:
        """What `measure` runs the loop on."""
        return digits_scene()

    def inspect(self, kind: Kind) -> Diagnosis:
        """What `diagnose` says of the loop."""
        import cloudpickle

        # The loop travels with its code: to import its module there would take the checking process a second.
        cloudpickle.register_pickle_by_value(sys.modules[type(self).__module__])
        return diagnose(self.code(kind), self.scope, time_limit=PATIENCE)

    def findings(self, result: Diagnosis) -> tuple[str, ...]:
        """The faults in the loop; its outcome where no fault has a name."""
        return result.faults or (() if result.correct else (result.outcome.value,))

    def said(self, result: Diagnosis) -> Text:
        """What `diagnose` says."""
        return result.said


class ModelExhibit(Exhibit):
    """`bug` and `fixed` return (model, loss_fn, batch), or those and a `count`, for `examine`."""

    instrument = "examine"
    micro_batch_size: ClassVar[int] = 8
    """Examples in a micro-batch."""

    def measure(self, kind: Kind) -> float:
        """How far the gradient of the micro-batches is from that of the whole batch."""
        return gradient_error(self.code(kind)(), self.micro_batch_size)

    def inspect(self, kind: Kind) -> Examination:
        """What `examine` says of the model and its loss."""
        model, loss_fn, batch, *count = self.code(kind)()
        return examine(model, loss_fn, batch, self.micro_batch_size, count=count[0] if count else None)

    def findings(self, result: Examination) -> tuple[str, ...]:
        """The causes."""
        return result.causes

    def said(self, result: Examination) -> Text:
        """What `examine` says."""
        return result.said


class TapeExhibit(Exhibit):
    """`bug` and `fixed` are a loop that runs under a tape. It may take more by keyword, if its scene offers it."""

    instrument = "trace"
    epochs: ClassVar[int] = 2
    """How often the loop is called."""
    stops: ClassVar[tuple[type[Exception], ...]] = ()
    """With what the bug ends the run; the tape is read all the same."""

    @abstractmethod
    def scene(self) -> Scene:
        """What the loop runs on."""

    def inspect(self, kind: Kind) -> Tape:
        """The tape of the loop."""
        scene = self.scene()
        tape = trace(
            scene.model,
            scene.optimizer,
            scene.offered.get("scheduler"),
            accumulation_steps=scene.accumulation_steps,
            micro_batches_per_epoch=len(scene.micro_batches),
            scaler=scene.offered.get("scaler"),
            watch=scene.watch,
        )
        with suppress(*self.stops), tape:
            scene.run(self.code(kind), self.epochs)
        return tape

    def findings(self, result: Tape) -> tuple[str, ...]:
        """What the tape found."""
        return tuple(finding.id for finding in result.findings)

    def said(self, result: Tape) -> Text:
        """The tape's report."""
        return Text(result.report("en"), result.report("nl"))
