"""An update is skipped, and its gradient stays."""

import torch
from torch.nn.utils import clip_grad_norm_

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import lengths
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class ESPnet3283(TapeExhibit):
    """espnet/espnet, pull request 3283."""

    project, year = "ESPnet", 2021
    thread = "https://github.com/espnet/espnet/pull/3283"
    finding, lesson = "not_finite_kept", "08_mixed_precision"
    title = Text("Skipped, and not zeroed", "Overgeslagen, en niet op nul gezet")
    symptom = Text(
        "Results differ from those of an earlier version. Where a gradient is not a number and N is above 1, the "
        "update is skipped, as it should be, and zero_grad is skipped with it. The maintainer calls that fatal.",
        "De resultaten wijken af van die van een eerdere versie. Is een gradient geen getal en is N groter dan 1, dan "
        "wordt de update overgeslagen, zoals het hoort, en zero_grad ook. De beheerder noemt dat fataal.",
    )
    number_name = Text(
        "updates in an epoch of 16 micro-batches, one of which is no number (N = 4)",
        "updates in een epoch van 16 micro-batches, waarvan er één geen getal is (N = 4)",
    )
    expected = (1.0, 3.0)
    fix = Text(
        "Zero the gradient at the end of each window, also of one that is skipped.",
        "Zet de gradient aan het eind van elk venster op nul, ook van een venster dat wordt overgeslagen.",
    )
    explanation = Text(
        "Whatever is added to a gradient that is not a number is not a number. The next window begins with what the "
        "skipped one left, is skipped for it, and leaves it to the one after: the training has ended, and its loop "
        "goes on.",
        "Wat je ook optelt bij een gradient die geen getal is: het blijft geen getal. Het volgende venster begint met "
        "wat het overgeslagen venster achterliet, wordt daarom overgeslagen, en laat het weer achter: het trainen is "
        "afgelopen, en de lus gaat door.",
    )
    epochs = 1

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                norm = clip_grad_norm_(model.parameters(), max_norm=5.0)
                if torch.isfinite(norm):
                    optimizer.step()
                    optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                norm = clip_grad_norm_(model.parameters(), max_norm=5.0)
                if torch.isfinite(norm):
                    optimizer.step()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """Four windows; a pixel of micro-batch 6 is not a number."""
        scene = digits_scene(16)
        images, labels = scene.micro_batches[5]
        images = images.clone()
        images[0, 0, 0, 0] = torch.nan
        scene.micro_batches[5] = (images, labels)
        return scene

    def measure(self, kind: Kind) -> float:
        """Counted."""
        return float(len(lengths(self.scene(), self.code(kind))))
