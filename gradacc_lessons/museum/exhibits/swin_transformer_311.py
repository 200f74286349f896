"""Unscaling and clipping at every micro-batch."""

from contextlib import suppress

from torch.nn.utils import clip_grad_norm_

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.scene import Scene, scaled_scene
from gradacc_lessons.text import Text


class SwinTransformer311(TapeExhibit):
    """microsoft/Swin-Transformer, issue 311."""

    project, year = "Swin-Transformer", 2023
    thread = "https://github.com/microsoft/Swin-Transformer/issues/311"
    finding, lesson = "unscale_inside_window", "08_mixed_precision"
    title = Text("Unscaled inside the window", "Teruggeschaald midden in het venster")
    symptom = Text(
        "With N above 1 and mixed precision the run ends at once: RuntimeError, unscale_() has already been called "
        "on this optimizer since the last update().",
        "Met N groter dan 1 en mixed precision stopt de run meteen: RuntimeError, unscale_() has already been called "
        "on this optimizer since the last update().",
    )
    number_name = Text("micro-batches that run (of 8)", "micro-batches die draaien (van de 8)")
    expected = (2.0, 8.0)
    fix = Text(
        "Unscale and clip once per window, after its last backward.",
        "Schaal één keer per venster terug en clip dan, na de laatste backward.",
    )
    explanation = Text(
        "The scaler unscales the whole gradient, so it may do that once per window. The second call would divide what "
        "the first micro-batch left by the scale again, and PyTorch refuses. The error is a favour: by hand, without "
        "a GradScaler, nobody says a word.",
        "De scaler schaalt de hele gradient terug, dus dat mag één keer per venster. De tweede aanroep zou wat de "
        "eerste micro-batch achterliet nog eens door de schaal delen, en PyTorch weigert dat. Die fout is een "
        "gunst: met de hand, zonder GradScaler, zegt niemand iets.",
    )
    stops = (RuntimeError,)

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, scaler):
        for index, batch in enumerate(micro_batches):
            scaler.scale(loss_fn(model, batch) / accumulation_steps).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), max_norm=5.0)
            if (index + 1) % accumulation_steps == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, scaler):
        for index, batch in enumerate(micro_batches):
            scaler.scale(loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), max_norm=5.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """With a GradScaler."""
        return scaled_scene()

    def measure(self, kind: Kind) -> float:
        """Counted until the loop ends, or is ended by an error."""
        scene, ran = self.scene(), list[object]()
        scene.model.register_forward_hook(lambda *_: ran.append(None))
        with suppress(*self.stops):
            scene.run(self.code(kind))
        return float(len(ran))
