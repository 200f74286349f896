"""A schedule that moves at every micro-batch."""

import torch

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text

WARM_UP = 16
"""What the schedule is told, in updates."""


class Lightning1476(TapeExhibit):
    """Lightning-AI/pytorch-lightning, issue 1476."""

    project, year = "Lightning", 2020
    thread = "https://github.com/Lightning-AI/pytorch-lightning/issues/1476"
    finding, lesson = "scheduler_every_micro_batch", "07_once_per_window"
    title = Text("The warm-up is over N times too soon", "De warm-up is N keer te vroeg voorbij")
    symptom = Text(
        "Training is unstable. A warm-up of 16,000 turns out to last 1,000 updates with accumulate_grad_batches=16.",
        "Het trainen is instabiel. Een warm-up van 16.000 blijkt 1.000 updates te duren met "
        "accumulate_grad_batches=16.",
    )
    number_name = Text(
        f"updates until the learning rate is full, for a warm-up of {WARM_UP} (N = 8)",
        f"updates tot de learning rate vol is, bij een warm-up van {WARM_UP} (N = 8)",
    )
    expected = (2.0, 16.0)
    fix = Text("Move the schedule once, after each update.", "Verzet het schema één keer, na elke update.")
    explanation = Text(
        "A schedule counts calls, not updates. Called after each micro-batch it runs N times as fast: the warm-up is "
        "over before it has helped, and the decay is at its end after a fraction of the training. "
        "PyTorch warns here that the schedule moves before the first update, and many read past it.",
        "Een schema telt aanroepen, geen updates. Wordt het na elke micro-batch aangeroepen, dan loopt het N keer zo "
        "snel: de warm-up is voorbij voor hij geholpen heeft, en de decay is al vroeg in het trainen aan zijn eind. "
        "PyTorch waarschuwt hier dat het schema voor de eerste update verspringt, en velen lezen daaroverheen.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, scheduler):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            scheduler.step()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, scheduler):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()

    def scene(self) -> Scene:
        """N = 8: 8 updates in an epoch of 64 micro-batches."""
        scene = digits_scene(64, 1, accumulation_steps=8)
        warm_up = torch.optim.lr_scheduler.LambdaLR(scene.optimizer, lambda moves: min(1.0, (moves + 1) / WARM_UP))
        scene.offered["scheduler"] = warm_up
        return scene

    def measure(self, kind: Kind) -> float:
        """Which update is the first to use the full learning rate."""
        scene, rates = self.scene(), list[float]()
        scene.optimizer.register_step_pre_hook(lambda optimizer, *_: rates.append(optimizer.param_groups[0]["lr"]))
        scene.run(self.code(kind), self.epochs)
        return float(rates.index(max(rates)) + 1)
